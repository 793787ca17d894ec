// Partial derivatives of every force element against finite differences.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/index3/physics/elements/bushing.h"
#include "core/index3/physics/elements/tyre.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/workspace.h"
#include "core/offline/dense.h"
#include "tests/support/force_cases.h"
#include "tests/support/placements.h"

namespace rigstep::index3 {
namespace {

using test::kError, test::kStep, test::moved, test::random_placement;

using Dense6 = Eigen::Matrix<double, 6, 6>;

Placement faster(const Placement& at, int k, double step) {
  Placement to = at;
  (k < 3 ? to.v : to.w)[k % 3] += step;
  return to;
}

// Columns: derivative of f with respect to displacement and rotation, or to velocities, of one body.
// NOLINTNEXTLINE(performance-unnecessary-value-param): f may write to where it is
Dense6 derivative(Placement at, bool by_velocity, const std::function<Vec6(const Placement&)>& f) {
  Dense6 D;
  for (int k = 0; k < 6; ++k)
    D.col(k) = by_velocity ? Vec6((f(faster(at, k, kStep)) - f(faster(at, k, -kStep))) / (2.0 * kStep))
                           : Vec6((f(moved(at, k, kStep)) - f(moved(at, k, -kStep))) / (2.0 * kStep));
  return D;
}

// w.Q of what w.placement holds
void evaluate_and_apply(const Plan& plan, Workspace& w) {
  std::vector<double> reference(w.coordinate.size());
  std::ranges::transform(w.coordinate, reference.begin(), &Coordinate::value);
  evaluate_elements(plan, {}, 0.0, reference, w);
  apply_forces(plan, {}, 0.0, w);
}

double least_eigenvalue(const Mat6& M) { return offline::spectrum(0.5 * (M + M.transpose())).values[0]; }

Bushing random_bushing(test::Random& random) {
  Bushing b;
  b.in_first = {random.vector(), random.rotation().toRotationMatrix()};
  b.in_second = {random.vector(), random.rotation().toRotationMatrix()};
  b.stiffness = random.semidefinite(100.0), b.damping = random.semidefinite(1.0);
  return b;
}

}  // namespace

TEST_CASE("the gradients of a bushing's deflection and its rate are those of finite differences") {
  test::Random random(3);
  for (int k = 0; k < 10; ++k) {
    const Bushing b = random_bushing(random);
    const Placement first = random_placement(random), second = random_placement(random);
    const BushingDeflection at = deflection(b, first, second);
    const auto by_first = [&](const Placement& p) { return deflection(b, p, second).x; };
    const auto by_second = [&](const Placement& p) { return deflection(b, first, p).x; };
    CHECK((at.J_first - derivative(first, false, by_first)).norm() < kError);
    CHECK((at.J_second - derivative(second, false, by_second)).norm() < kError);
    const auto later = [](const Placement& p, double t) {
      Placement to = p;
      to.r += t * p.v;
      to.A = Eigen::AngleAxisd(t * p.w.norm(), p.w.normalized()) * p.A;
      return to;
    };
    const Vec6 rate = (deflection(b, later(first, kStep), later(second, kStep)).x -
                       deflection(b, later(first, -kStep), later(second, -kStep)).x) /
                      (2.0 * kStep);
    CHECK((at.rate - rate).norm() < kError);
  }
}

TEST_CASE("a bushing's deflection vanishes at the start and is the rotation vector for small turns") {
  test::Random random(4);
  Bushing b = random_bushing(random);
  const Placement first = random_placement(random);
  Placement second = first;  // both frames coincide
  b.in_second = b.in_first;
  CHECK(deflection(b, first, second).x.norm() < 1e-14);
  const Mat3 axes = first.A * b.in_first.axes_b;
  const Vec3 axis = random.direction();
  second.A = Eigen::AngleAxisd(1e-4, axis) * first.A;
  CHECK((axes * deflection(b, first, second).x.tail<3>() - 1e-4 * axis).norm() < 1e-11);
}

TEST_CASE("the rows of a bushing multiply to K + 2/dt C, with as many rows as that has rank") {
  test::Random random(5);
  for (int rank = 0; rank <= 6; ++rank) {
    Bushing b = random_bushing(random);
    Eigen::MatrixXd root = Eigen::MatrixXd::Zero(6, rank);
    for (int i = 0; i < 6; ++i)
      for (int k = 0; k < rank; ++k) root(i, k) = random.uniform() * (i < 3 ? 1e4 : 1.0);
    b.stiffness = root * root.transpose();
    b.damping = 1e-3 * b.stiffness;
    const BushingRows rows = bushing_rows(b, 1e-3);
    const Mat6 sum = 3.0 * b.stiffness;
    CHECK(rows.count == rank);
    CHECK((rows.L * rows.L.transpose() - sum).norm() <= 1e-11 * sum.norm());
  }
}

TEST_CASE("the element rows carry the whole derivative of an undeflected bushing's load, across both bodies") {
  MechanismBuilder builder("pair");
  test::Random random(6);
  Body a = test::make_body("a", random.vector()), c = test::make_body("c", random.vector());
  a.orientation = random.orientation();
  c.orientation = random.orientation();
  builder.add_body(a);
  builder.add_body(c);
  Bushing b = random_bushing(random);
  b.name = "b";
  MechanismBuilder::SideInBody at;
  at.point = random.vector();
  builder.add_bushing(b, "a", "c", at);
  const Mechanism m = builder.build();
  const double dt = 2e-3;
  const Plan plan = make_plan(m, test::step_of(dt));
  Workspace w(plan);
  const State x(m, plan.rows());
  evaluate_state(plan, x, w);
  REQUIRE(plan.elements.size() == 1);
  evaluate_rows(plan, plan.elements[0], {1.0, 2.0 / dt}, w);
  const auto first = w.element_rows[0], second = w.element_rows[1];
  Dense6 own = Dense6::Zero(), cross = Dense6::Zero();
  for (int row = 0; row < plan.elements[0].rows; ++row) {
    own += first[row] * first[row].transpose();
    cross += second[row] * first[row].transpose();
  }
  for (const bool by_velocity : {false, true}) {
    const double factor = by_velocity ? 2.0 / dt : 1.0;
    const auto load_on = [&](int body) {
      return [&, body](const Placement& p) {
        evaluate_state(plan, x, w);
        w.placement[0] = p;
        evaluate_and_apply(plan, w);
        return w.Q[body];
      };
    };
    evaluate_state(plan, x, w);
    const Placement start = w.placement[0];
    own += factor * derivative(start, by_velocity, load_on(0));
    cross += factor * derivative(start, by_velocity, load_on(1));
  }
  CHECK(own.norm() < 1e-6);
  CHECK(cross.norm() < 1e-6);
}

TEST_CASE("drag damping is minus the derivative of drag, positive semidefinite also about the mass centre") {
  test::Random random(8);
  Drag drag;
  drag.drag_area = 1.3;
  for (int k = 0; k < 5; ++k) {
    const Vec3 u = random.vector(3.0);
    Mat3 D;
    for (int i = 0; i < 3; ++i)
      D.col(i) =
          (drag_force(drag, u + kStep * Vec3::Unit(i)) - drag_force(drag, u - kStep * Vec3::Unit(i))) / (2 * kStep);
    const Mat6 damping = drag_damping(drag, {Vec3::Zero(), u});
    CHECK((damping.topLeftCorner<3, 3>() + D).norm() < 1e-8);
    CHECK(damping.topLeftCorner<3, 3>().determinant() > 0.0);
    CHECK(damping.bottomRows<3>().isZero(0.0));
  }
  CHECK(drag_damping(drag, {random.vector(1.0), Vec3::Zero()}).isZero(0.0));
}

TEST_CASE("the tangent of a drag at an arm is minus the derivative of the load by the body's velocities") {
  MechanismBuilder builder("drag");
  test::Random random(9);
  Body a = test::make_body("a", random.vector());
  a.orientation = random.orientation();
  a.velocity_0 = random.vector();
  a.angular_velocity_0 = random.vector();
  builder.add_body(a);
  builder.add_drag({.name = "d", .point_b = random.vector(), .drag_area = 2.0, .wind_0 = random.vector()}, "a");
  const Mechanism m = builder.build();
  const Plan plan = make_plan(m, {});
  Workspace w(plan);
  const State x(m, 0);
  evaluate_state(plan, x, w);
  force_tangent(plan, {0.0, 1.0}, w);
  const Mat6 tangent = w.tangent[0];
  const Dense6 D = derivative(w.placement[0], true, [&](const Placement& p) {
    w.placement[0] = p;
    evaluate_and_apply(plan, w);
    return w.Q[0];
  });
  CHECK((tangent + D).norm() < 1e-8);
}

TEST_CASE(
    "slopes of springs with tables and of motors are those of their efforts; friction's secant bounds its slope") {
  const auto slope = [](const std::function<double(double)>& f, double at) {
    return (f(at + kStep) - f(at - kStep)) / (2.0 * kStep);
  };
  Spring s;
  s.stiffness = 3.0;
  s.damping = 0.5;
  s.rest = 0.1;
  s.preload = 7.0;
  s.stiffness_table = {{-1.0, 0.0, 0.4, 1.0}, {-4.0, 0.0, 1.0, 9.0}};
  s.damping_table = {{-1.0, 0.0, 2.0}, {-5.0, 0.0, 3.0}};
  for (const double x : {-3.0, -0.5, 0.3, 0.8, 4.0})
    for (const double v : {-2.0, 0.7}) {
      const ScalarEffort e = spring_effort(s, x, v);
      CHECK(e.stiffness == doctest::Approx(-slope([&](double y) { return spring_effort(s, y, v).effort; }, x)));
      CHECK(e.damping == doctest::Approx(-slope([&](double y) { return spring_effort(s, x, y).effort; }, v)));
    }
  Motor motor;
  motor.position_gain = 20.0;
  motor.rate_gain = 2.0;
  motor.effort_limit = 5.0;
  motor.no_load_speed = 4.0;
  for (const double x : {-3.0, -0.05, 0.02, 3.0})
    for (const double v : {-3.0, -0.4, 0.4, 1.5, 6.0}) {
      const ScalarEffort e = motor_effort(motor, x, v, nullptr);
      CHECK(e.stiffness ==
            doctest::Approx(-slope([&](double y) { return motor_effort(motor, y, v, nullptr).effort; }, x)));
      CHECK(e.damping ==
            doctest::Approx(-slope([&](double y) { return motor_effort(motor, x, y, nullptr).effort; }, v)));
    }
  const JointFriction f{.name = "f", .coulomb = 4.0, .viscous = 0.3, .regularisation_speed = 0.01};
  const auto effort = [&](double v) { return friction_effort(f, v).effort; };
  CHECK(friction_effort(f, 0.0).damping == doctest::Approx(-slope(effort, 0.0)).epsilon(1e-5));
  for (const double v : {-1.0, -0.01, 0.003, 0.5}) CHECK(friction_effort(f, v).damping >= -slope(effort, v));
}

TEST_CASE("a negative slope of a table stays out of the tangent") {
  Spring s;
  s.stiffness_table = {{0.0, 1.0, 2.0}, {0.0, 5.0, 1.0}};
  CHECK(spring_effort(s, 0.5, 0.0).stiffness == 5.0);
  CHECK(spring_effort(s, 1.5, 0.0).stiffness == 0.0);
}

TEST_CASE("the integral of a table is its potential energy, on both sides of zero and outside the table") {
  const Characteristic table{{-1.0, 0.5, 2.0}, {-4.0, 1.0, 9.0}};
  for (const double x : {-3.0, -0.7, 0.0, 0.2, 1.1, 5.0})
    CHECK((table.integral(x + kStep) - table.integral(x - kStep)) / (2 * kStep) == doctest::Approx(table.value(x)));
  CHECK(table.integral(0.0) == 0.0);
  CHECK(Characteristic{}.integral(2.0) == 0.0);
}

TEST_CASE("a pulled spring's tangent holds its string stiffness, a pushed one's does not") {
  const auto tangent_and_derivative = [](double rest) {
    MechanismBuilder builder("string");
    builder.add_body(test::make_body("a", {0.3, -0.8, 0.5}));
    Spring s;
    s.name = "s";
    s.stiffness = 50.0;
    s.rest = rest;
    builder.add_spring(s, "ground", "a");  // at the mass centre: no torque, the derivative is exact
    const Mechanism m = builder.build();
    const Plan plan = make_plan(m, {});
    Workspace w(plan);
    const State x(m, 0);
    evaluate_state(plan, x, w);
    force_tangent(plan, {1.0, 0.0}, w);
    const Mat6 tangent = w.tangent[0];
    const Dense6 D = derivative(w.placement[0], false, [&](const Placement& p) {
      w.placement[0] = p;
      evaluate_and_apply(plan, w);
      return w.Q[0];
    });
    return std::pair<Mat6, Dense6>(tangent, D);
  };
  const auto [pulled, pulled_derivative] = tangent_and_derivative(0.4);
  CHECK((pulled + pulled_derivative).norm() < kError * pulled.norm());
  const auto [pushed, pushed_derivative] = tangent_and_derivative(2.0);
  CHECK(least_eigenvalue(pushed) > -1e-12);
  CHECK(least_eigenvalue(-pushed_derivative) < -1.0);
}

namespace {

Tyre test_tyre() {
  Tyre t;
  t.radius = 0.3;
  t.stiffness = 2e3;
  t.damping = 20.0;
  t.axis_b = Vec3(0.1, 1.0, 0.2).normalized();
  t.centre_b = {0.01, 0.05, -0.02};
  t.road_normal_0 = Vec3(0.1, -0.05, 1.0).normalized();
  t.road_point_0 = {0.3, 0.1, 0.0};
  t.longitudinal = {12.0, 1.6, -0.5, 1.1};
  t.lateral = {9.0, 1.3, 0.2, 0.9};
  return t;
}

Placement wheel_at(double depth, unsigned seed) {
  test::Random random(seed);
  Placement p;
  p.r = {0.2, 0.1, 0.28 - depth};
  p.A = Eigen::AngleAxisd(0.2, random.direction()).toRotationMatrix();
  p.v = random.vector();
  p.w = random.vector();
  return p;
}

}  // namespace

TEST_CASE("a tyre's normal wrench is minus the gradient of its deflection, and its rate follows") {
  const Tyre t = test_tyre();
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Placement p = wheel_at(0.03, seed);
    const TyreContact at = contact(t, p, 0.01, 0.3);
    REQUIRE(at.touches);
    Vec6 gradient;
    for (int k = 0; k < 6; ++k)
      gradient[k] = (contact(t, moved(p, k, kStep), 0.01, 0.0).deflection -
                     contact(t, moved(p, k, -kStep), 0.01, 0.0).deflection) /
                    (2.0 * kStep);
    CHECK((gradient + at.normal).norm() < kError);
    Vec6 motion;
    motion << p.v, p.w;
    CHECK(at.deflection_rate == doctest::Approx(gradient.dot(motion) + 0.3).epsilon(1e-8));
  }
}

TEST_CASE("the tyre's tangent is that of its normal force, and of its slip forces at rest") {
  Tyre t = test_tyre();
  for (unsigned seed = 1; seed <= 5; ++seed) {
    Placement p = wheel_at(0.03, seed);
    p.v.setZero();
    p.w.setZero();
    Mat6 damping = Mat6::Zero();
    add_tyre_tangent(t, tyre_forces(t, p, 0.0, 0.0), 0.0, 1.0, damping);
    const Dense6 by_velocity =
        derivative(p, true, [&](const Placement& q) { return tyre_wrench(tyre_forces(t, q, 0.0, 0.0)); });
    CHECK((damping + by_velocity).norm() < 1e-6 * damping.norm());
    CHECK(least_eigenvalue(damping) > -1e-9 * damping.norm());
    // the direction of the normal wrench turns with the camber: the force alone is compared
    Mat6 stiffness = Mat6::Zero();
    add_tyre_tangent(t, tyre_forces(t, p, 0.0, 0.0), 1.0, 0.0, stiffness);
    Vec6 slope;
    for (int k = 0; k < 6; ++k)
      slope[k] =
          (tyre_forces(t, moved(p, k, kStep), 0.0, 0.0).normal - tyre_forces(t, moved(p, k, -kStep), 0.0, 0.0).normal) /
          (2.0 * kStep);
    const TyreContact at = contact(t, p, 0.0, 0.0);
    CHECK((stiffness + at.normal * slope.transpose()).norm() < 1e-6 * stiffness.norm());
  }
}

TEST_CASE("slip forces stay within the friction ellipse, oppose slip, and their secants bound their slopes") {
  const Tyre t = test_tyre();
  const double fz = 300.0, speed = 5.0;
  for (double x = -6.0; x <= 6.0; x += 0.37)
    for (double y = -6.0; y <= 6.0; y += 0.41) {
      const SlipForce f = slip_force(t, fz, speed, x, y);
      CHECK(std::hypot(f.x / (t.longitudinal.friction * fz), f.y / (t.lateral.friction * fz)) <= 1.0 + 1e-12);
      CHECK(f.x * x <= 0.0);
      CHECK(f.y * y <= 0.0);
      CHECK(f.x == doctest::Approx(-f.damping_x * x));
      const double slope =
          -(slip_force(t, fz, speed, x + kStep, y).x - slip_force(t, fz, speed, x - kStep, y).x) / (2.0 * kStep);
      CHECK(f.damping_x >= slope - 1e-6);
    }
}

TEST_CASE("a tyre in the air or on a wheel that lies flat does nothing") {
  Tyre t = test_tyre();
  CHECK(tyre_wrench(tyre_forces(t, wheel_at(-0.2, 1), 0.0, 0.0)).isZero(0.0));
  t.axis_b = t.road_normal_0;
  Placement p;
  p.r = {0.0, 0.0, -0.01};
  CHECK(tyre_wrench(tyre_forces(t, p, 0.0, 0.0)).isZero(0.0));
  CHECK(normal_force(t, 0.001, -100.0) == 0.0);
  CHECK(std::isnan(tyre_wrench(tyre_forces(test_tyre(), wheel_at(0.03, 1), std::nan(""), 0.0)).sum()));
}

}  // namespace rigstep::index3
