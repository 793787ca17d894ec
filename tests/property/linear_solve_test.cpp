// One sweep over the compounds against a dense solve of the same dual system.
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/offline/dense.h"
#include "tests/support/extended_precision.h"
#include "tests/support/force_cases.h"
#include "tests/support/placements.h"
#include "tests/support/primal_body_cases.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kTimeStep = 1e-2;
constexpr double kStiffnessFactor = 0.25 * kTimeStep * kTimeStep, kDampingFactor = 0.5 * kTimeStep;

// The rows of all constraints, then those of all elements, then those of elements along a joint's coordinate.
struct Dense {
  MatrixXd J, M_inverse;
  VectorXd compliance;
};

int element_rows(const Plan& plan) {
  int rows = static_cast<int>(plan.elastic_joints.size());
  for (const Element& element : plan.elements) rows += element.rows;
  return rows;
}

// f(row of Dense, constraint of the elimination, its row)
template <class F>
void for_all_rows(const Plan& plan, const F& f) {
  for (int c = 0; c < plan.mechanism.constraints(); ++c)
    for (int k = 0; k < plan.eliminated_rows[c]; ++k)
      f(plan.first_row[c] + k, plan.eliminated_as[c], plan.first_row_there[c] + k);
  int row = plan.rows();
  for (std::size_t k = 0; k < plan.elements.size(); ++k)
    for (int i = 0; i < plan.elements[k].rows; ++i) f(row++, plan.first_element() + static_cast<int>(k), i);
  for (const int j : plan.elastic_joints)
    f(row++, plan.eliminated_as[j], plan.constraints[plan.eliminated_as[j]].format.rows - 1);
}

// as the elimination takes it: lifted where it falls short of a tenth of the inertia by little, else left out
Mat3 with_stiffness(const Mat3& I, const Mat3& K) {
  const Mat3 S = 0.9 * I + K, full = I + K;
  if (offline::spectrum(S).values[0] > 0.0) return full;
  const double minors = 0.5 * (S.trace() * S.trace() - (S * S).trace()), lift = -S.determinant() / minors;
  return minors > 0.0 && lift > 0.0 && lift < 0.05 * S.trace() ? Mat3(full + lift * Mat3::Identity()) : I;
}

// K with its antisymmetric part, made symmetric: of each pair of entries, in the principal axes P, the mean that counts
// the entry of a small moment of inertia more
Mat3 weighted(const Mat3& K, const Mat3& P, const Vec3& moments) {
  const Mat3 in_axes = P.transpose() * K * P;
  Mat3 mean;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      const double of_i = 1.0 / (moments[i] * moments[i]), of_j = 1.0 / (moments[j] * moments[j]);
      mean(i, j) = (of_i * in_axes(i, j) + of_j * in_axes(j, i)) / (of_i + of_j);
    }
  return P * mean * P.transpose();
}

// The inertia of a body that turned with w_b until it stood still in the iterate, in the world frame, with what its
// inertia torque changes by when it is turned.
Mat3 turned_inertia(const Body& b, const BodyState& x, const Mat3& A) {
  const Vec3 t = 0.5 * kTimeStep * x.w_b;  // 2 G(p) h1 = -w_b where p has not changed
  const Mat3& J = b.inertia_b;
  const Vec3 Jt = J * t;
  return A * ((1.0 - 0.25 * t.squaredNorm()) * J + 0.5 * t.squaredNorm() / t.dot(Jt) * Jt * Jt.transpose()) *
         A.transpose();
}

// Of the constraints' loads J' lambda.
Vec3 torque_on(const Plan& plan, const Workspace& w, const State& x, int body) {
  Vec3 torque = Vec3::Zero();
  for (int row = 0; row < plan.rows(); ++row)
    for_each_block(plan, w, row, [&](int on, const Vec6& J) {
      if (on == body) torque += x.lambda[static_cast<std::size_t>(row)] * J.tail<3>();
    });
  return torque;
}

Mat3 geometric_stiffness(const Plan& plan, Workspace& w, const State& x, int body) {
  const Mat3 A = w.placement[body].A;
  const Mat3 K = test::symmetric_turning(A, [&](const Mat3& turned) {
    w.placement[body].A = turned;
    evaluate_constraints(plan, w);
    return torque_on(plan, w, x, body);
  });
  w.placement[body].A = A;
  evaluate_constraints(plan, w);
  return K;
}

// M + h2 K of a body, the geometric stiffness only where it leaves a tenth of the inertia, and its force elements
Mat6 tangent_mass(const Plan& plan, Workspace& w, const State& x, int body) {
  const Body& b = plan.mechanism.bodies()[body];
  const Mat3 I = w.placement[body].A * b.inertia_b * w.placement[body].A.transpose();
  const Mat3 turning = geometric_stiffness(plan, w, x, body) + 0.5 * index3::skew(torque_on(plan, w, x, body));
  const offline::Spectrum inertia = offline::spectrum(I);
  const Mat3 K = weighted(kStiffnessFactor * turning, inertia.vectors, inertia.values);
  Mat6 M = Mat6::Zero();
  M.topLeftCorner<3, 3>().diagonal().setConstant(b.mass);
  M.bottomRightCorner<3, 3>() = with_stiffness(turned_inertia(b, x.body[body], w.placement[body].A), K);
  if (plan.has_own_tangent[body]) M += w.tangent[body];
  return M;
}

Dense dense(const Plan& plan, Workspace& w, const State& x) {
  const Index bodies = static_cast<Index>(w.placement.size()), rows = plan.rows() + element_rows(plan);
  Dense d{MatrixXd::Zero(rows, 6 * bodies), MatrixXd::Zero(6 * bodies, 6 * bodies), VectorXd::Ones(rows)};
  for (int row = 0; row < plan.rows(); ++row) {
    for_each_block(plan, w, row, [&](int body, const Vec6& J) { d.J.block<1, 6>(row, 6 * body) = J.transpose(); });
    d.compliance[row] = plan.compliance[row];
  }
  Index row = plan.rows();
  for (const Element& element : plan.elements) {
    evaluate_rows(plan, element, {kStiffnessFactor, kDampingFactor}, w);
    for (int k = 0; k < element.rows; ++k, ++row)
      for (std::size_t s = 0; s < element.bodies.size(); ++s)
        if (element.bodies[s] != kGround)
          d.J.block<1, 6>(row, 6 * element.bodies[s]) = w.element_rows[s][k].transpose();
  }
  for (const int j : plan.elastic_joints) {
    const Joint& joint = plan.mechanism.joints()[j];
    const Placement &first = placement(w, joint.first), &second = placement(w, joint.second);
    const Coordinate x_along = coordinate(rigstep::freedoms(joint.type)[0], w.joint[j], first, second);
    const double root = std::sqrt(elastic_tangent(plan, j, {kStiffnessFactor, kDampingFactor}, w));
    if (joint.first != kGround) d.J.block<1, 6>(row, 6 * joint.first) = root * x_along.first.transpose();
    if (joint.second != kGround) d.J.block<1, 6>(row, 6 * joint.second) = root * x_along.second.transpose();
    ++row;
  }
  for (int i = 0; i < bodies; ++i) d.M_inverse.block<6, 6>(6 * i, 6 * i) = tangent_mass(plan, w, x, i).inverse();
  return d;
}

// one solve for the motion and the right-hand sides that are set
void solve(const Plan& plan, Workspace& w) {
  AssemblySweep up;
  up.start = AssemblySweep::Start::same_motion;
  up.right_hand_sides = true;
  plan.kernels->assemble(w.arrays, up);
  plan.kernels->disassemble(w.arrays, {true, Multiplier::sigma, DisassemblySweep::Finish::motion});
}

// The state x as the iterate of the lanes, and its tangent factorised.
void factorise(const Plan& plan, const State& x, Workspace& w) {
  StepArrays& a = w.arrays;
  evaluate_state(plan, x, w);
  enter_lanes(plan, x, w);
  plan.kernels->predict(a);  // what is kept of the last instant
  iterate_from_last(plan, w);
  tangent_of_forces(plan, {kStiffnessFactor, kDampingFactor}, w);
  AssemblySweep constraints;
  constraints.constrain = constraints.with_stiffness = true;
  plan.kernels->assemble(a, constraints);
  constrain_couplings(plan, w, true);
  AssemblySweep tangent;
  tangent.factorise = true;
  tangent.tangent = {
      .geometric = kStiffnessFactor, .with_force_derivatives = true, .compliance = ComplianceOf::iterations};
  REQUIRE(plan.kernels->assemble(a, tangent));
}

void set_motion(const Plan& plan, const VectorXd& motion, Workspace& w) {
  for (int i = 0; i < static_cast<int>(plan.elimination.body.size()); ++i)
    index3::set_motion(plan, i, motion.segment<6>(6 * i), w);
}

void set_right_hand_side(const Plan& plan, const VectorXd& rhs, Workspace& w) {
  for_all_rows(plan, [&](int row, int c, int k) {
    const ConstraintPlace& place = plan.elimination.constraint_place[c];
    std::vector<RowsPlace> places = place.copies;
    places.push_back(place);
    for (const RowsPlace& at : places) w.arrays.Phi[at.rows.base + k * at.rows.stride] = rhs[row];
  });
}

struct Errors {
  double Lambda, motion;  // relative to the largest element
};

// random bias and right-hand side through one sweep and through the dense solver
Errors sweep_errors(const Mechanism& m, MergeOrder order, unsigned seed, bool consistent,
                    PrimalBodies primal_bodies = PrimalBodies::dual, const char* instruction_set = nullptr) {
  Settings settings = test::step_of(kTimeStep);
  settings.instruction_set = instruction_set;
  settings.order = order;
  settings.primal_bodies = primal_bodies;
  const Plan plan = make_plan(m, settings);
  if (primal_bodies == PrimalBodies::primal) REQUIRE(plan.primal_choice.reason == PrimalChoice::Reason::primal);
  Workspace w(plan);
  State x = start_pose(plan);
  test::Random random(seed);
  for (double& lambda : x.lambda) lambda = random.uniform();
  for (BodyState& body : x.body) body.w_b = random.uniform(0.0, 0.5) / kTimeStep * random.direction();
  keep_planar(m, plan.planar, x);
  factorise(plan, x, w);
  const Dense d = dense(plan, w, x);
  const VectorXd bias = in_planes(plan.planar, random.values(d.J.cols()));
  VectorXd rhs = consistent ? d.J * in_planes(plan.planar, random.values(d.J.cols())) : random.values(d.J.rows());
  for (int row = 0; row < plan.rows(); ++row)
    if (plan.planar.is_idle[row]) rhs[row] = 0.0;
  set_motion(plan, bias, w);
  set_right_hand_side(plan, rhs, w);
  solve(plan, w);

  // in extended precision: in double it would be less accurate than the sweep
  const test::DualSolution want = test::solve_dual(d.J, d.M_inverse, d.compliance, bias, rhs);
  REQUIRE(want.asymmetry < 1e-12);
  REQUIRE((want.multipliers.allFinite() && want.motion.allFinite()));
  VectorXd Lambda = VectorXd::Zero(d.J.rows()), moved(bias.size());
  for_all_rows(plan, [&](int row, int c, int k) {
    const Place& at = plan.elimination.constraint_place[c].rows;
    Lambda[row] = w.arrays.sigma[at.base + k * at.stride];
  });
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i) moved.segment<6>(6 * i) = motion(plan, w, i);
  return {(Lambda - want.multipliers).cwiseAbs().maxCoeff() / want.multipliers.cwiseAbs().maxCoeff(),
          (moved - want.motion).cwiseAbs().maxCoeff() / want.motion.cwiseAbs().maxCoeff()};
}

// of a planar mechanism, with idle rows left out and with all of them
double motion_error(const test::Description& d, MergeOrder order, unsigned seed, bool consistent,
                    const char* instruction_set = nullptr) {
  const auto error = [&](const Mechanism& m) {
    return sweep_errors(m, order, seed, consistent, PrimalBodies::dual, instruction_set).motion;
  };
  return std::max(error(test::build(d)), error(test::build(test::in_space(d))));
}

constexpr MergeOrder kOrders[] = {MergeOrder::in_lanes, MergeOrder::fewest_operations, MergeOrder::fewest_levels};

}  // namespace

TEST_CASE("one sweep over a random tree solves the dual system of all its joints") {
  for (unsigned seed = 1; seed <= 20; ++seed)
    for (const MergeOrder order : kOrders) {
      const Mechanism m = test::build(test::random_tree(seed, 3 + static_cast<int>(seed)));
      const Errors error = sweep_errors(m, order, seed, false);
      CAPTURE(seed);
      CHECK(error.Lambda < 1e-10);
      CHECK(error.motion < 1e-10);
    }
}

TEST_CASE("one sweep over random closed loops solves the dual system of all their joints") {
  for (unsigned seed = 1; seed <= 20; ++seed)
    for (const MergeOrder order : kOrders) {
      const Mechanism m = test::build(test::random_loops(seed, 3 + static_cast<int>(seed) / 2));
      const Errors error = sweep_errors(m, order, seed, true);
      CAPTURE(seed);
      CHECK(error.motion < 1e-10);
      // a redundant row is held by its compliance alone, 1e-8 of the others: that much accuracy is lost
      CHECK(error.Lambda < 1e-7);
    }
}

TEST_CASE("one sweep with couplings over up to four bodies solves the dual system") {
  for (unsigned seed = 1; seed <= 10; ++seed)
    for (const MergeOrder order : kOrders) {
      test::Description d = test::random_bare_tree(seed, 14);
      test::add_random_couplings(seed, d, 3);
      const Errors error = sweep_errors(test::build(d), order, seed, true);
      CAPTURE(seed);
      CHECK(error.motion < 1e-10);
    }
}

TEST_CASE("one sweep with couplings, drivers and springs between the bodies of random trees solves the dual system") {
  for (unsigned seed = 1; seed <= 10; ++seed)
    for (const MergeOrder order : kOrders) {
      test::Description d = test::random_bare_tree(seed, 16);
      test::add_random_couplings(seed, d, 2);
      test::Random random(seed);
      test::add_random_springs(random, d);
      for (const auto& joint : d.joints)
        if (const auto open = freedoms(joint.type); !open.empty() && d.drivers.size() < 3) {
          Driver driver;
          driver.name = "drive_" + joint.name;
          driver.function = polynomial({0.0});
          d.drivers.push_back({driver, {joint.name, open.back()}});
        }
      const Errors error = sweep_errors(test::build(d), order, seed, true);
      CAPTURE(seed);
      CHECK(d.drivers.size() == 3);
      CHECK(error.motion < 1e-10);
    }
}

TEST_CASE("one sweep gives the motion of nets, stars, carousels and rows of parallelograms") {
  for (const MergeOrder order : kOrders) {
    for (const JointType type : {JointType::spherical, JointType::revolute})
      CHECK(motion_error(test::net(4, type), order, 8, true) < 1e-9);
    CHECK(motion_error(test::tree(33, 32, JointType::revolute), order, 9, false) < 1e-10);
    CHECK(motion_error(test::carousel(12), order, 10, false) < 1e-10);
    CHECK(motion_error(test::n_four_bar(8, 1.0, 0.0), order, 11, true) < 1e-9);
  }
}

TEST_CASE("one sweep gives the motion of chains, branches and redundant ladders") {
  for (const MergeOrder order : kOrders) {
    for (const JointType type : {JointType::spherical, JointType::revolute, JointType::universal})
      CHECK(motion_error(test::chain(20, type), order, 1, false) < 1e-10);
    for (const int n :
         {8, 13, 16, 37, 130})  // segments side by side, with and without a rest; longer: worse conditioned
      CHECK(motion_error(test::chain(n, JointType::revolute), order, 6, false) < 1e-12 * n * n);
    CHECK(motion_error(test::tree(31, 2, JointType::revolute), order, 2, false) < 1e-10);
    CHECK(motion_error(test::tree(21, 20, JointType::revolute), order, 3, false) < 1e-10);
    CHECK(motion_error(test::ladder(8), order, 4, true) < 1e-10);
    CHECK(motion_error(test::four_bar(0.6), order, 5, true) < 1e-10);
  }
}

TEST_CASE("one sweep gives the motion of long chains of all joint types, whichever side of a joint comes first") {
  for (int seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Mechanism m = test::build(test::random_chain(seed, 10 + seed % 40));
    CHECK(sweep_errors(m, MergeOrder::in_lanes, static_cast<unsigned>(seed), false).motion < 1e-8);
  }
}

TEST_CASE("one sweep solves what is joined in unusual ways: several joints, gears alone, separate and free bodies") {
  test::Description several = test::double_pendulum();
  several.joints.push_back(test::make_joint("e", JointType::perpendicular_axes, "A", "B", Vec3::Zero()));
  several.joints.push_back(test::make_joint("f", JointType::parallel_axes, "B", "A", Vec3::Zero()));
  several.joints.push_back(test::make_joint("g", JointType::point_on_line, "ground", "A", Vec3::Zero()));
  several.joints.push_back(test::make_joint("h", JointType::perpendicular_axes, "B", "ground", Vec3::Zero()));
  test::Description separate = test::double_pendulum();
  for (const char* name : {"free", "C", "D"}) separate.bodies.push_back(test::make_body(name, Vec3::UnitX()));
  separate.joints.push_back(test::make_joint("cd", JointType::revolute, "C", "D", Vec3::UnitY()));
  test::Description gears;
  for (int i = 0; i < 4; ++i) gears.bodies.push_back(test::make_body(test::body_name(i), {1.0 * i, 0.0, 0.0}));
  gears.joints = {test::make_joint("a", JointType::revolute, "body0", "body1", {0.5, 0.0, 0.0}),
                  test::make_joint("b", JointType::revolute, "body2", "body3", {2.5, 0.0, 0.0})};
  gears.couplings = {{"mesh", {"a", Freedom::angle}, {"b", Freedom::angle}, 2.0}};
  for (const MergeOrder order : kOrders)
    for (const char* set : test::instruction_sets())
      for (const test::Description& d :
           {several, separate, gears, test::chain(1, JointType::spherical), test::net(5, JointType::revolute)})
        CHECK(motion_error(d, order, 13, true, set) < 1e-9);
}

TEST_CASE("one sweep gives the motion with each instruction set and its lanes") {
  for (const MergeOrder order : kOrders)
    for (const char* set : test::instruction_sets()) {
      CAPTURE(set);
      for (const int n : {7, 8, 9, 37})
        CHECK(motion_error(test::chain(n, JointType::spherical), order, 14, false, set) < 1e-9);
      CHECK(sweep_errors(test::build(test::star(5, 17)), order, 15, false, PrimalBodies::primal, set).motion < 1e-9);
      CHECK(motion_error(test::ladder(9), order, 16, true, set) < 1e-9);
    }
}

TEST_CASE("one sweep where round and slender bodies, with axes of their own, lie side by side") {
  test::Description d = test::chain(16, JointType::revolute);
  for (Body& body : d.bodies) body.inertia_b = Mat3::Identity();
  const Mat3 turn = index3::rotation_matrix(Eigen::Vector4d(0.8, 0.36, 0.48, 0.0));
  d.bodies[5].inertia_b = turn * Vec3(0.01, 0.5, 0.505).asDiagonal() * turn.transpose();
  d.bodies[6].inertia_b = Vec3(1e-4, 1.0 / 12.0, 1.0 / 12.0).asDiagonal();
  for (const MergeOrder order : kOrders) CHECK(sweep_errors(test::build(d), order, 12, false).motion < 1e-10);
}

TEST_CASE("one sweep with primal bodies that stay primal solves the same dual system") {
  for (const MergeOrder order : kOrders) {
    CAPTURE(static_cast<int>(order));
    const auto check = [order](const Mechanism& m) {
      CAPTURE(m.name());
      const Errors error = sweep_errors(m, order, 8, false, PrimalBodies::primal);
      CHECK(error.motion < 1e-9);
      CHECK(error.Lambda < 1e-9);
    };
    check(test::build(test::star(8, 3)));
    check(test::build(test::star(21, 1)));
    check(test::build(test::star(4, 7)));      // legs that are chains of their own
    check(test::build(test::carousel(6, 2)));  // its pin comes late
    check(test::mechanism("full_car"));        // force elements on the primal body
    check(test::mechanism("stewart"));         // its drivers come late
  }
}

TEST_CASE("one sweep solves the dual system of joints and force elements together") {
  for (const MergeOrder order : kOrders) {
    const Errors error = sweep_errors(test::every_force_element(), order, 7, false);
    CHECK(error.motion < 1e-10);
    CHECK(error.Lambda < 1e-10);
  }
}

TEST_CASE("element rows leave the projections alone") {
  const Mechanism m = test::every_force_element();
  const Plan plan = make_plan(m, {});
  Workspace w(plan);
  const State x = start_pose(plan);
  factorise(plan, x, w);
  AssemblySweep metric;
  metric.factorise = true;
  metric.tangent = {.geometric = 0.0, .with_force_derivatives = false, .compliance = ComplianceOf::projections};
  REQUIRE(plan.kernels->assemble(w.arrays, metric));
  test::Random random(3);
  const VectorXd bias = random.values(static_cast<Index>(6 * m.bodies().size()));
  set_motion(plan, bias, w);
  set_right_hand_side(plan, VectorXd::Zero(plan.rows() + element_rows(plan)), w);
  solve(plan, w);
  const MatrixXd J = dense(plan, w, x).J.topRows(plan.rows());
  MatrixXd M_inverse = MatrixXd::Zero(J.cols(), J.cols());
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i) {
    const Body& b = m.bodies()[i];
    M_inverse.block<3, 3>(6 * i, 6 * i).diagonal().setConstant(1.0 / b.mass);
    M_inverse.block<3, 3>(6 * i + 3, 6 * i + 3) =
        w.placement[i].A * b.inertia_b.inverse() * w.placement[i].A.transpose();
  }
  const MatrixXd S = J * M_inverse * J.transpose() +
                     MatrixXd(Eigen::Map<const VectorXd>(plan.compliance.data(), plan.rows()).asDiagonal());
  const VectorXd want = bias - M_inverse * J.transpose() * offline::least_squares(S, J * bias).x;
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i)
    CHECK((motion(plan, w, i) - want.segment<6>(6 * i)).norm() < 1e-12);
}

}  // namespace rigstep::index3
