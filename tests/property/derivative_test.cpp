// Every closed-form derivative against finite differences.
#include <doctest/doctest.h>

#include <functional>

#include "core/index3/physics/drivers.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"
#include "tests/support/mechanisms.h"
#include "tests/support/placements.h"

namespace rigstep::index3 {
namespace {

using test::kError, test::kStep, test::moved, test::random_placement;

// Gradient of f with respect to displacement and rotation of one body.
Vec6 gradient(const Placement& at, const std::function<double(const Placement&)>& f) {
  Vec6 g;
  for (int k = 0; k < 6; ++k) g[k] = (f(moved(at, k, kStep)) - f(moved(at, k, -kStep))) / (2.0 * kStep);
  return g;
}

JointFrame random_frame(test::Random& random) { return {random.vector(), random.rotation().toRotationMatrix()}; }

// A joint in an arbitrary pose, far from closed.
struct OpenJoint {
  OpenJoint(JointType type, unsigned seed) {
    test::Random random(seed);
    joint.type = type;
    joint.lead = -2.3;
    joint.length = 0.8;
    joint.in_first = random_frame(random);
    joint.in_second = random_frame(random);
    first = random_placement(random);
    second = random_placement(random);
  }
  double Phi(const Row& row, const Placement& a, const Placement& b) const {
    return evaluate(row, place_joint(joint, a, b)).Phi;
  }
  // what finite differences may err by: near its singular pose the derivatives of an angle grow
  double error(const Row& row) const {
    if (row.form != Row::Form::screw) return kError;
    return kError * growth(Freedom::angle);
  }
  double growth(Freedom freedom) const {
    Vec6 on_first, on_second;
    coordinate_gradient(freedom, place_joint(joint, first, second), on_first, on_second);
    return std::pow(1.0 + on_second.tail<3>().norm(), 4.0);
  }

  Joint joint;
  Placement first, second;
};

}  // namespace

TEST_CASE("the rows of every joint are the derivatives of Phi with respect to both bodies, open joints included") {
  for (const JointType type : test::kAllJointTypes)
    for (unsigned seed = 1; seed <= 5; ++seed) {
      const OpenJoint open(type, seed);
      for (const Row& row : rows_of(type)) {
        const RowValue value = evaluate(row, place_joint(open.joint, open.first, open.second));
        const Vec6 on_first = gradient(open.first, [&](const Placement& p) { return open.Phi(row, p, open.second); });
        const Vec6 on_second = gradient(open.second, [&](const Placement& p) { return open.Phi(row, open.first, p); });
        CAPTURE(to_string(type));
        CHECK((value.J_first - on_first).norm() < open.error(row));
        CHECK((value.J_second - on_second).norm() < open.error(row));
      }
    }
}

TEST_CASE("the quadratic term is the rate of J v along a motion with constant twists") {
  for (const JointType type : test::kAllJointTypes)
    for (unsigned seed = 1; seed <= 5; ++seed) {
      const OpenJoint open(type, seed);
      const auto later = [](const Placement& at, double t) { return moved(at, t * at.v, t * at.w); };
      const auto row_velocity = [&](const Row& row, double t) {
        const RowValue value = evaluate(row, place_joint(open.joint, later(open.first, t), later(open.second, t)));
        Vec6 v_first, v_second;
        v_first << open.first.v, open.first.w;
        v_second << open.second.v, open.second.w;
        return value.J_first.dot(v_first) + value.J_second.dot(v_second);
      };
      for (const Row& row : rows_of(type)) {
        const double rate = (row_velocity(row, kStep) - row_velocity(row, -kStep)) / (2.0 * kStep);
        CAPTURE(to_string(type));
        CHECK(quadratic(row, place_joint(open.joint, open.first, open.second), open.first, open.second) ==
              doctest::Approx(rate).epsilon(open.error(row)));
      }
    }
}

namespace {

struct OpenFreedom {
  OpenJoint open;
  Freedom freedom;
  JointPlacement at(const Placement& a, const Placement& b) const { return place_joint(open.joint, a, b); }
  double value(const Placement& a, const Placement& b) const { return coordinate(freedom, at(a, b), a, b).value; }
};

std::vector<OpenFreedom> open_freedoms() {
  std::vector<OpenFreedom> all;
  for (const JointType type : test::kAllJointTypes)
    for (const Freedom freedom : freedoms(type))
      for (unsigned seed = 1; seed <= 5; ++seed) all.push_back({OpenJoint(type, seed), freedom});
  return all;
}

}  // namespace

TEST_CASE("coordinate gradients and rates are derivatives of the coordinate, open joints included") {
  for (const OpenFreedom& f : open_freedoms()) {
    const Placement &a = f.open.first, &b = f.open.second;
    const Coordinate c = coordinate(f.freedom, f.at(a, b), a, b);
    const double error = kError * f.open.growth(f.freedom);
    CAPTURE(to_string(f.open.joint.type));
    CAPTURE(to_string(f.freedom));
    CHECK((c.first - gradient(a, [&](const Placement& p) { return f.value(p, b); })).norm() < error);
    CHECK((c.second - gradient(b, [&](const Placement& p) { return f.value(a, p); })).norm() < error);
    const auto later = [](const Placement& at, double t) { return moved(at, t * at.v, t * at.w); };
    const double rate =
        (f.value(later(a, kStep), later(b, kStep)) - f.value(later(a, -kStep), later(b, -kStep))) / (2.0 * kStep);
    CHECK(std::abs(c.rate - rate) < error);
  }
}

TEST_CASE("a coordinate's quadratic term is the rate of its rate along a motion with constant twists") {
  for (const OpenFreedom& f : open_freedoms()) {
    const Placement &a = f.open.first, &b = f.open.second;
    const auto rate = [&](double t) {
      const Placement p = moved(a, t * a.v, t * a.w), q = moved(b, t * b.v, t * b.w);
      return coordinate(f.freedom, f.at(p, q), p, q).rate;
    };
    CAPTURE(to_string(f.open.joint.type));
    CAPTURE(to_string(f.freedom));
    CHECK(std::abs(coordinate_quadratic(f.freedom, f.at(a, b), a, b) - (rate(kStep) - rate(-kStep)) / (2.0 * kStep)) <
          kError * f.open.growth(f.freedom));
  }
}

TEST_CASE("the row of a coupling has the derivatives of its coordinates' sum on all bodies, shared ones too") {
  for (const int bodies : {4, 3, 2}) {
    test::Description d = test::random_bare_tree(5, 4);
    test::Random random(21);
    d.joints = {test::random_joint(random, "a", JointType::gimbal, "body0", "body1", random.vector()),
                test::random_joint(random, "b", JointType::cylindrical, bodies == 2 ? "body1" : "body2",
                                   bodies == 2   ? "ground"
                                   : bodies == 3 ? "body0"
                                                 : "body3",
                                   random.vector())};
    d.couplings = {{"c", {"a", Freedom::third_angle}, {"b", Freedom::displacement}, -1.7}};
    const Mechanism m = test::build(d);
    const Plan plan = make_plan(m, {});
    Workspace w(plan);
    const State x = start_pose(plan);
    const int row = plan.rows() - 1;
    evaluate_state(plan, x, w);
    CHECK(std::abs(w.Phi[row]) < 1e-14);
    std::vector<double> terms(w.Phi.size());
    evaluate_quadratic_terms(plan, w, terms);
    const double quadratic = terms[row];
    int blocks = 0;
    std::vector<Vec6> J(4, Vec6::Zero());
    for_each_block(plan, w, row, [&](int body, const Vec6& J_body) { J[body] += J_body, ++blocks; });
    CHECK(blocks == bodies);
    for (int body = 0; body < 4; ++body) {
      const Vec6 want = gradient(w.placement[body], [&](const Placement& at) {
        Workspace v(plan);
        evaluate_state(plan, x, v);
        v.placement[body] = at;
        evaluate_constraints(plan, v);
        return v.Phi[row];
      });
      CHECK((J[body] - want).norm() < kError);
    }
    const auto row_velocity = [&](double t) {
      Workspace v(plan);
      evaluate_state(plan, x, v);
      for (Placement& at : v.placement) at = moved(at, t * at.v, t * at.w);
      evaluate_constraints(plan, v);
      double sum = 0.0;
      for_each_block(plan, v, row, [&](int body, const Vec6& J_body) {
        sum += J_body.head<3>().dot(v.placement[body].v) + J_body.tail<3>().dot(v.placement[body].w);
      });
      return sum;
    };
    CHECK(quadratic == doctest::Approx((row_velocity(kStep) - row_velocity(-kStep)) / (2.0 * kStep)).epsilon(1e-8));
  }
}

TEST_CASE("the terms of a driver's row are the derivatives of its Phi with respect to time") {
  test::Description d = test::chain(2, JointType::revolute);
  Driver driver;
  driver.name = "drive";
  driver.function = harmonic(0.0, 0.3, 4.0, 0.7) + polynomial({0.0, 0.2, -0.5, 0.1});
  d.drivers = {{driver, {"joint1", Freedom::angle}}};
  const Plan plan = make_plan(test::build(d), {});
  Workspace w(plan);
  const State x = start_pose(plan);
  const int row = plan.rows() - 1;
  std::vector<double> terms(w.Phi.size());
  const auto Phi = [&](double t) {
    evaluate_state(plan, x, w);
    w.drive[0] = prescribed(plan.mechanism.drivers()[0], plan.drivers[0], t);
    evaluate_constraints(plan, w);
    return w.Phi[row];
  };
  const auto velocity_term = [&](double t) {
    Phi(t);
    evaluate_velocity_terms(plan, w, terms);
    return terms[row];
  };
  const double Phi_t = (Phi(0.1 + kStep) - Phi(0.1 - kStep)) / (2.0 * kStep);
  const double Phi_tt = (velocity_term(0.1 + kStep) - velocity_term(0.1 - kStep)) / (2.0 * kStep);
  CHECK(velocity_term(0.1) == doctest::Approx(Phi_t).epsilon(1e-8));
  evaluate_quadratic_terms(plan, w, terms);  // the chain is at rest
  CHECK(terms[row] == doctest::Approx(Phi_tt).epsilon(1e-8));
}

TEST_CASE("coordinate gradients and rates are the derivatives of the coordinate of a closed joint") {
  test::Random random(7);
  for (const JointType type : test::kAllJointTypes)
    for (const Freedom freedom : freedoms(type)) {
      test::Description d = test::random_bare_tree(3, 2);
      d.joints = {test::random_joint(random, "j", type, "body0", "body1", Vec3::Zero())};
      const Mechanism m = test::build(test::made_consistent(d));
      const Joint& joint = m.joints()[0];
      const State x(m, 0);
      const Placement first = placement_of(x.body[0]), second = placement_of(x.body[1]);
      const auto value = [&](const Placement& a, const Placement& b) {
        return coordinate(freedom, place_joint(joint, a, b), a, b).value;
      };
      const Coordinate c = coordinate(freedom, place_joint(joint, first, second), first, second);
      const auto later = [](const Placement& at, double t) { return moved(at, t * at.v, t * at.w); };
      const double rate =
          (value(later(first, kStep), later(second, kStep)) - value(later(first, -kStep), later(second, -kStep))) /
          (2.0 * kStep);
      CAPTURE(to_string(type));
      CAPTURE(to_string(freedom));
      CHECK((c.first - gradient(first, [&](const Placement& p) { return value(p, second); })).norm() < kError);
      CHECK((c.second - gradient(second, [&](const Placement& p) { return value(first, p); })).norm() < kError);
      CHECK(c.rate == doctest::Approx(rate).epsilon(kError));
    }
}

namespace {

// A mechanism with one spring of its kind between two bodies, at its rest length and without damping.
Mechanism with_one_spring(Spring::Kind kind, Freedom freedom, JointType type, double stiffness, double damping) {
  test::Description d = test::random_bare_tree(5, 2);
  test::Random random(11);
  d.joints = {test::random_joint(random, "j", type, "body0", "body1", Vec3::Zero())};
  Spring s = random_spring(random, "spring", kind);
  s.stiffness = stiffness;
  s.damping = damping;
  if (kind == Spring::Kind::in_joint)
    d.joint_springs = {{s, "j", freedom}};
  else
    d.springs = {{s, "body0", "body1"}};
  const auto rest = [&]() -> double& {
    return kind == Spring::Kind::in_joint ? d.joint_springs[0].spring.rest : d.springs[0].spring.rest;
  };
  const Mechanism m = test::build(d);
  const Plan plan = make_plan(m, {});
  Workspace w(plan);
  State x(m, plan.rows());
  evaluate_state(plan, x, w);
  if (kind == Spring::Kind::in_joint)
    rest() = w.coordinate[0].value;
  else
    rest() = spring_coordinate(m.springs()[0], surroundings(plan, w)).value;
  return test::build(d);
}

// dQ/d(displacement, rotation) or dQ/d(velocity, angular velocity) of one body's own load
Eigen::Matrix<double, 6, 6> load_derivative(const Plan& plan, const State& x, Workspace& w, int body,
                                            bool by_velocity) {
  const auto load = [&](int k, double step) {
    evaluate_state(plan, x, w);
    Placement& at = w.placement[body];
    if (!by_velocity)
      at = moved(at, k, step);
    else
      (k < 3 ? at.v : at.w)[k % 3] += step;
    evaluate_constraints(plan, w);
    evaluate_elements(plan, Inputs{}, 0.0, x.coordinate, w);
    apply_forces(plan, Inputs{}, 0.0, w);
    return w.Q[body];
  };
  Eigen::Matrix<double, 6, 6> D;
  for (int k = 0; k < 6; ++k) D.col(k) = (load(k, kStep) - load(k, -kStep)) / (2.0 * kStep);
  return D;
}

void check_spring(const Mechanism& m, bool damping) {
  const Plan plan = make_plan(m, {});
  Workspace w(plan);
  const State x(m, plan.rows());
  for (const int body : {0, 1}) {
    evaluate_state(plan, x, w);
    force_tangent(plan, {damping ? 0.0 : 1.0, damping ? 1.0 : 0.0}, w);
    Mat6 tangent = plan.has_own_tangent[body] ? w.tangent[body] : Mat6(Mat6::Zero());
    for (const Element& element : plan.elements) {
      evaluate_rows(plan, element, {damping ? 0.0 : 1.0, damping ? 1.0 : 0.0}, w);
      const Vec6& J = w.element_rows[element.bodies[0] == body ? 0 : 1][0];
      tangent += J * J.transpose();
    }
    for (const int j : plan.elastic_joints) {
      const Coordinate& x_along = w.coordinate[0];
      const Vec6& J = m.joints()[static_cast<std::size_t>(j)].first == body ? x_along.first : x_along.second;
      tangent += along_scalar(w.along_joint[j], {damping ? 0.0 : 1.0, damping ? 1.0 : 0.0}) * J * J.transpose();
    }
    CHECK(tangent.norm() > 0.1);
    CHECK((tangent + load_derivative(plan, x, w, body, damping)).norm() < kError * tangent.norm());
  }
}

}  // namespace

TEST_CASE("the spring tangent is minus the derivative of a spring's load on its own body, at rest length") {
  check_spring(with_one_spring(Spring::Kind::between_points, {}, JointType::spherical, 50.0, 0.0), false);
  check_spring(with_one_spring(Spring::Kind::along_direction, {}, JointType::spherical, 50.0, 0.0), false);
  check_spring(with_one_spring(Spring::Kind::in_joint, Freedom::angle, JointType::revolute, 50.0, 0.0), false);
  check_spring(with_one_spring(Spring::Kind::in_joint, Freedom::displacement, JointType::cylindrical, 50.0, 0.0),
               false);
  check_spring(with_one_spring(Spring::Kind::in_joint, Freedom::first_angle, JointType::universal, 50.0, 0.0), false);
  check_spring(with_one_spring(Spring::Kind::in_joint, Freedom::second_angle, JointType::universal, 50.0, 0.0), false);
  for (const JointType type :
       {JointType::planar, JointType::gimbal, JointType::screw, JointType::point_on_plane, JointType::floating})
    for (const Freedom freedom : freedoms(type))
      check_spring(with_one_spring(Spring::Kind::in_joint, freedom, type, 50.0, 0.0), false);
}

TEST_CASE("the damper tangent is minus the derivative of a damper's load with respect to its own body's velocities") {
  check_spring(with_one_spring(Spring::Kind::between_points, {}, JointType::spherical, 0.0, 3.0), true);
  check_spring(with_one_spring(Spring::Kind::along_direction, {}, JointType::spherical, 0.0, 3.0), true);
  check_spring(with_one_spring(Spring::Kind::in_joint, Freedom::angle, JointType::revolute, 0.0, 3.0), true);
  check_spring(with_one_spring(Spring::Kind::in_joint, Freedom::displacement, JointType::prismatic, 0.0, 3.0), true);
}

}  // namespace rigstep::index3
