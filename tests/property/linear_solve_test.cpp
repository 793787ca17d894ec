// One sweep over the compounds against a dense solve of the same dual system.
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/lane_access.h"
#include "tests/support/force_cases.h"
#include "tests/support/hub_cases.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

constexpr double kTimeStep = 1e-2;
constexpr double kStiffnessFactor = 0.25 * kTimeStep * kTimeStep, kDampingFactor = 0.5 * kTimeStep;

// The rows of all constraints, then those of all elements.
struct Dense {
  MatrixXd J, M_inverse;
  VectorXd compliance;
};

int element_rows(const Plan& plan) {
  int rows = 0;
  for (const Element& element : plan.elements) rows += element.rows;
  return rows;
}

// f(row of Dense, constraint of the elimination, its row)
template <class F>
void for_all_rows(const Plan& plan, const F& f) {
  for (int c = 0; c < plan.first_element(); ++c) {
    const int constraint = plan.eliminated[c];
    for (int row = plan.first_row[constraint]; row < plan.first_row[constraint + 1]; ++row)
      f(row, c, row - plan.first_row[constraint]);
  }
  int row = plan.rows();
  for (std::size_t k = 0; k < plan.elements.size(); ++k)
    for (int i = 0; i < plan.elements[k].rows; ++i) f(row++, plan.first_element() + static_cast<int>(k), i);
}

// M + h2 K of a body, the geometric stiffness only where it leaves a tenth of the inertia, and its force elements
Mat6 tangent_mass(const Plan& plan, const Workspace& w, const State& x, int body) {
  const Body& b = plan.mechanism.bodies()[body];
  const Mat3 I = w.placement[body].A * b.inertia_b * w.placement[body].A.transpose();
  Mat3 K = Mat3::Zero();
  for (const int c : plan.eliminated) {
    std::array<Mat3, 4> K_c;
    geometric_stiffness(plan, c, x.lambda.data() + plan.first_row[c], w, K_c);
    for (std::size_t side = 0; side < 4; ++side)
      if (plan.bodies[c][side] == body) K += kStiffnessFactor * K_c[side];
  }
  Mat6 M = Mat6::Zero();
  M.topLeftCorner<3, 3>().diagonal().setConstant(b.mass);
  const bool leaves_enough = Eigen::SelfAdjointEigenSolver<Mat3>(0.9 * I + K).eigenvalues()[0] > 0.0;
  M.bottomRightCorner<3, 3>() = leaves_enough ? Mat3(I + K) : I;
  if (plan.carries_spring[body]) M += w.tangent[body];
  return M;
}

Dense dense(const Plan& plan, const Workspace& w, const State& x) {
  const Index bodies = static_cast<Index>(w.placement.size()), rows = plan.rows() + element_rows(plan);
  Dense d{MatrixXd::Zero(rows, 6 * bodies), MatrixXd::Zero(6 * bodies, 6 * bodies), VectorXd::Ones(rows)};
  for (int row = 0; row < plan.rows(); ++row) {
    for_each_block(plan, w, row, [&](int body, const Vec6& J) { d.J.block<1, 6>(row, 6 * body) = J.transpose(); });
    d.compliance[row] = plan.compliance[row];
  }
  Index row = plan.rows();
  for (const Element& element : plan.elements) {
    ElementRows of;
    evaluate_element(plan, element, kStiffnessFactor, kDampingFactor, w, of);
    for (int k = 0; k < element.rows; ++k, ++row) {
      if (element.first != kGround) d.J.block<1, 6>(row, 6 * element.first) = of.first[k].transpose();
      if (element.second != kGround) d.J.block<1, 6>(row, 6 * element.second) = of.second[k].transpose();
    }
  }
  for (int i = 0; i < bodies; ++i) d.M_inverse.block<6, 6>(6 * i, 6 * i) = tangent_mass(plan, w, x, i).inverse();
  return d;
}

// The state x as the iterate of the lanes, and its tangent factorised.
void factorise(const Plan& plan, const State& x, Workspace& w) {
  StepArrays& a = w.lanes;
  evaluate_state(plan, x, w);
  enter_lanes(plan, x, w);
  std::copy_n(a.last, kStateFields * plan.elimination.positions, a.next);
  std::copy_n(a.last_lambda, a.rows, a.lambda);
  plan.kernels->place(a);
  plan.kernels->constrain(a, true);
  constrain_general(plan, w, true);
  take_inputs(plan, {}, w);
  tangent_of_forces(plan, kStiffnessFactor, kDampingFactor, w);
  REQUIRE(plan.kernels->factorise(a, kStiffnessFactor, true, 0) == -1);
}

void set_motion(const Plan& plan, const VectorXd& motion, Workspace& w) {
  const Elimination& e = plan.elimination;
  for (std::size_t i = 0; i < e.body.size(); ++i) {
    std::vector<BodyPlace> places = e.body_copies[i];
    places.push_back(e.body[i]);
    for (const BodyPlace& place : places)
      for (int k = 0; k < 6; ++k)
        w.lanes.motion[place.of(6).base + k * place.of(6).stride] = motion[6 * static_cast<Index>(i) + k];
  }
}

void set_right_hand_side(const Plan& plan, const VectorXd& rhs, Workspace& w) {
  for_all_rows(plan, [&](int row, int c, int k) {
    const ConstraintPlace& place = plan.elimination.constraint[c];
    std::vector<Place> places = place.copies;
    places.push_back(place.rows);
    for (const Place& at : places) w.lanes.Phi[at.base + k * at.stride] = rhs[row];
  });
}

struct Errors {
  double Lambda, motion;  // relative to the largest element
};

// random bias and right-hand side through one sweep and through the dense solver
Errors sweep_errors(const Mechanism& m, MergeOrder order, unsigned seed, bool consistent, Hubs hubs = Hubs::dual) {
  Settings settings = test::step_of(kTimeStep);
  settings.order = order;
  settings.hubs = hubs;
  const Plan plan(m, settings);
  if (hubs == Hubs::primal) REQUIRE(plan.hub_choice.reason == HubChoice::Reason::primal);
  Workspace w(plan);
  State x = start_pose(plan);
  test::Random random(seed);
  for (double& lambda : x.lambda) lambda = random.uniform();
  factorise(plan, x, w);
  const Dense d = dense(plan, w, x);
  const VectorXd bias = random.values(d.J.cols());
  const VectorXd rhs = consistent ? VectorXd(d.J * random.values(d.J.cols())) : random.values(d.J.rows());
  set_motion(plan, bias, w);
  set_right_hand_side(plan, rhs, w);
  plan.kernels->project(w.lanes);
  plan.kernels->assemble(w.lanes, RightHandSide::Phi);
  plan.kernels->disassemble(w.lanes);
  plan.kernels->close(w.lanes);

  // in extended precision: in double it would be less accurate than the sweep
  const LongMatrix J = d.J.cast<long double>(), M_inverse = d.M_inverse.cast<long double>();
  LongMatrix S = J * M_inverse * J.transpose();
  S.diagonal() += d.compliance.cast<long double>();
  const LongMatrix b = J * bias.cast<long double>() + rhs.cast<long double>();
  const VectorXd want = S.partialPivLu().solve(b).cast<double>();
  const VectorXd want_motion =
      (bias.cast<long double>() - M_inverse * J.transpose() * S.partialPivLu().solve(b)).cast<double>();
  VectorXd Lambda(d.J.rows()), moved(bias.size());
  for_all_rows(plan, [&](int row, int c, int k) {
    const Place& at = plan.elimination.constraint[c].rows;
    Lambda[row] = w.lanes.Lambda[at.base + k * at.stride];
  });
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i) moved.segment<6>(6 * i) = motion(plan, w, i);
  return {(Lambda - want).cwiseAbs().maxCoeff() / want.cwiseAbs().maxCoeff(),
          (moved - want_motion).cwiseAbs().maxCoeff() / want_motion.cwiseAbs().maxCoeff()};
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

TEST_CASE("one sweep gives the motion of chains, branches and redundant ladders") {
  for (const MergeOrder order : kOrders) {
    for (const JointType type : {JointType::spherical, JointType::revolute, JointType::universal})
      CHECK(sweep_errors(test::build(test::chain(20, type)), order, 1, false).motion < 1e-10);
    for (const int n :
         {8, 13, 16, 37, 130})  // segments side by side, with and without a rest; longer: worse conditioned
      CHECK(sweep_errors(test::build(test::chain(n, JointType::revolute)), order, 6, false).motion < 1e-12 * n * n);
    CHECK(sweep_errors(test::build(test::tree(31, 2, JointType::revolute)), order, 2, false).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::tree(21, 20, JointType::revolute)), order, 3, false).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::ladder(8)), order, 4, true).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::four_bar(0.6)), order, 5, true).motion < 1e-10);
  }
}

TEST_CASE("one sweep with hubs that stay primal solves the same dual system") {
  for (const MergeOrder order : kOrders) {
    CAPTURE(static_cast<int>(order));
    const auto check = [order](const Mechanism& m) {
      CAPTURE(m.name());
      const Errors error = sweep_errors(m, order, 8, false, Hubs::primal);
      CHECK(error.motion < 1e-9);
      CHECK(error.Lambda < 1e-9);
    };
    check(test::build(test::star(8, 3)));
    check(test::build(test::star(21, 1)));
    check(test::build(test::star(3, 9)));      // legs that are chains of their own
    check(test::build(test::carousel(6, 2)));  // its pin comes late
    check(test::mechanism("full_car"));        // force elements on the hub
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
  const Plan plan(m, {});
  Workspace w(plan);
  const State x = start_pose(plan);
  factorise(plan, x, w);
  REQUIRE(plan.kernels->factorise(w.lanes, 0.0, false, 1) == -1);
  test::Random random(3);
  const VectorXd bias = random.values(static_cast<Index>(6 * m.bodies().size()));
  set_motion(plan, bias, w);
  set_right_hand_side(plan, VectorXd::Zero(plan.rows() + element_rows(plan)), w);
  plan.kernels->project(w.lanes);
  plan.kernels->assemble(w.lanes, RightHandSide::Phi);
  plan.kernels->disassemble(w.lanes);
  plan.kernels->close(w.lanes);
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
  const VectorXd want = bias - M_inverse * J.transpose() * S.ldlt().solve(J * bias);
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i)
    CHECK((motion(plan, w, i) - want.segment<6>(6 * i)).norm() < 1e-12);
}

}  // namespace rigstep::index3
