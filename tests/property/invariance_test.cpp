// Physics does not depend on the choice of the world frame, nor on the order in which a file lists things; a mechanism
// that nothing holds keeps its momentum.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/index3/compile/plan.h"
#include "tests/support/mechanisms.h"
#include "tests/support/momentum.h"

namespace rigstep::index3 {
namespace {

// The same mechanism in a world turned by R and shifted by t.
test::Description seen_from(test::Description d, const Eigen::Quaterniond& R, const Vec3& t) {
  d.gravity = R * d.gravity;
  for (Body& b : d.bodies) {
    const EulerParameters p = b.orientation;
    const Eigen::Quaterniond q = R * Eigen::Quaterniond(p[0], p[1], p[2], p[3]);
    b.orientation = EulerParameters{q.w(), q.x(), q.y(), q.z()};
    b.position_0 = R * b.position_0 + t;
    b.velocity_0 = R * b.velocity_0;
    b.angular_velocity_0 = R * b.angular_velocity_0;
  }
  for (auto& joint : d.joints) {
    joint.point = R * joint.point + t;
    joint.axis = R * joint.axis;
    joint.second_axis = R * joint.second_axis;
    joint.normal = R * joint.normal;
    joint.second_point = R * joint.second_point + t;
  }
  for (auto& s : d.springs) {
    s.spring.direction_0 = R * s.spring.direction_0;
    if (s.first == "ground") s.spring.first_point_b = R * s.spring.first_point_b + t;
    if (s.second == "ground") s.spring.second_point_b = R * s.spring.second_point_b + t;
  }
  for (auto& i : d.body_inputs)
    if (i.input.frame == Frame::world) i.input.direction = R * i.input.direction;
  return d;
}

// The same with the joints as they are built into the bodies of `m`: an axis given at the start leaves the normals to
// the program, which chooses them in the world.
Mechanism with_frames(const test::Description& d, const Mechanism& m, const Mat3& R, const Vec3& t) {
  MechanismBuilder builder(d.name);
  builder.set_gravity(d.gravity);
  for (const Body& b : d.bodies) builder.add_body(b);
  const auto side = [&](int body, const JointFrame& in) {
    const bool ground = body == kGround;
    const Mat3 axes = ground ? Mat3(R * in.axes_b) : in.axes_b;
    return MechanismBuilder::SideInBody{ground ? Vec3(R * in.point_b + t) : in.point_b, axes.col(2), axes.col(0)};
  };
  for (const Joint& j : m.joints())
    builder.add_joint(j.name, j.type, std::string(m.body_name(j.first)), std::string(m.body_name(j.second)),
                      side(j.first, j.in_first), side(j.second, j.in_second), j.lead + j.length);
  test::add_forces(builder, d);
  return builder.build();
}

Stepper run(const Mechanism& m, int steps, std::int64_t dt_ns = 1'000'000) {
  Stepper s(m, {.dt_ns = dt_ns});
  const std::uint64_t ms_per_step = static_cast<std::uint64_t>(dt_ns / 1'000'000);
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(steps); ++k)
    REQUIRE(s.step(test::test_inputs(m, k * ms_per_step)).status == StepStatus::ok);
  return s;
}

const BodyState& body(const Stepper& s, const std::string& name) {
  const auto& bodies = s.mechanism().bodies();
  const auto at = std::find_if(bodies.begin(), bodies.end(), [&](const Body& b) { return b.name == name; });
  return s.state().body[static_cast<std::size_t>(at - bodies.begin())];
}

// largest difference between two runs, of poses [m, -] and velocities [m/s, rad/s]
double difference(const Stepper& a, const Stepper& b, const Mat3& R, const Vec3& t) {
  double most = 0.0;
  for (const Body& each : a.mechanism().bodies()) {
    const BodyState &x = body(a, each.name), &y = body(b, each.name);
    most = std::max({most, (R * x.r + t - y.r).norm(), (R * rotation_matrix(x.p) - rotation_matrix(y.p)).norm(),
                     (R * x.v - y.v).norm(), (x.w_b - y.w_b).norm()});
  }
  return most;
}

void shuffle(test::Description& d, unsigned seed) {
  test::Random random(seed);
  const auto mix = [&random](auto& items) {
    for (std::size_t k = items.size(); k > 1; --k)
      std::swap(items[k - 1], items[static_cast<std::size_t>(random.below(static_cast<int>(k)))]);
  };
  mix(d.bodies);
  mix(d.joints);
  mix(d.springs);
}

}  // namespace

TEST_CASE("a turned and shifted world with turned gravity gives the turned and shifted run") {
  for (unsigned seed = 1; seed <= 6; ++seed) {
    test::Random random(seed + 50);
    const Mat3 R = random.rotation().toRotationMatrix();
    const Vec3 t = random.vector(3.0);
    for (const test::Description& d : {test::random_tree(seed, 8), test::random_loops(seed, 6)}) {
      const Mechanism m = test::build(d);
      const Stepper here = run(with_frames(d, m, Mat3::Identity(), Vec3::Zero()), 200);
      const Stepper there = run(with_frames(seen_from(d, Eigen::Quaterniond(R), t), m, R, t), 200);
      CAPTURE(d.name);
      CAPTURE(seed);
      CHECK(difference(here, there, R, t) < 1e-9);
    }
  }
}

TEST_CASE("the normals that the program chooses for a joint matter in the third order of dt") {
  int seen = 0;
  // through the own-body geometric stiffness of the row that keeps a prismatic or fixed joint from turning; with 16
  // bodies there is one of each
  for (unsigned seed = 1; seed <= 6; ++seed) {
    test::Random random(seed + 50);
    const Eigen::Quaterniond R = random.rotation();
    const test::Description d = test::random_tree(seed, 16);
    const auto at_step = [&](std::int64_t dt_ns) {
      const int steps = static_cast<int>(200'000'000 / dt_ns);
      return difference(run(test::build(d), steps, dt_ns),
                        run(test::build(seen_from(d, R, Vec3::Zero())), steps, dt_ns), R.toRotationMatrix(),
                        Vec3::Zero());
    };
    const double coarse = at_step(4'000'000), fine = at_step(2'000'000);
    CAPTURE(seed);
    CHECK(fine < 1e-6);
    if (coarse < 1e-10) continue;  // rounding: such a joint carries nothing here
    CHECK(coarse / fine > 7.0);
    CHECK(coarse / fine < 9.0);
    ++seen;
  }
  CHECK(seen >= 4);
}

TEST_CASE("bodies and joints listed in another order give the same run") {
  for (unsigned seed = 1; seed <= 6; ++seed)
    for (test::Description d : {test::random_tree(seed, 8), test::random_loops(seed, 6)}) {
      const Stepper as_listed = run(test::build(d), 200);
      shuffle(d, seed);
      CAPTURE(d.name);
      CAPTURE(seed);
      CHECK(difference(as_listed, run(test::build(d), 200), Mat3::Identity(), Vec3::Zero()) < 1e-9);
    }
}

namespace {

// bodies that only hold one another, without gravity
test::Description floating(unsigned seed, int n) {
  return test::made_consistent(test::random_bare_tree(seed, n, false));
}

// change of the momenta over `time` [s], relative to the momenta themselves
test::Momentum change(const Mechanism& m, std::int64_t dt_ns, double time) {
  Stepper s(m, {.dt_ns = dt_ns});
  const test::Momentum start = test::momentum(s);
  const auto steps = static_cast<int>(std::lround(time * 1e9 / static_cast<double>(dt_ns)));
  for (int k = 0; k < steps; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  const test::Momentum end = test::momentum(s);
  return {(end.linear - start.linear) / start.linear_scale, (end.angular - start.angular) / start.angular_scale};
}

}  // namespace

TEST_CASE("a floating mechanism keeps its linear momentum to rounding") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    CHECK(change(test::build(floating(seed, 8)), 1'000'000, 1.0).linear.norm() < 1e-11);
  }
}

TEST_CASE("a spring inside a floating mechanism takes no linear momentum beyond Newton's remainder") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    test::Description d = floating(seed, 8);
    test::Description::BodySpring inside;
    inside.spring.name = "spring";
    inside.spring.stiffness = 1000.0;
    inside.first = d.bodies[0].name;
    inside.second = d.bodies[7].name;
    inside.spring.rest = 0.5 * (d.bodies[7].position_0 - d.bodies[0].position_0).norm();
    d.springs = {inside};
    CAPTURE(seed);
    CHECK(change(test::build(d), 1'000'000, 1.0).linear.norm() < 1e-7);
  }
}

TEST_CASE("a floating mechanism keeps its angular momentum with an error of second order in dt") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const Mechanism m = test::build(floating(seed, 8));
    const double coarse = change(m, 2'000'000, 0.5).angular.norm(), fine = change(m, 1'000'000, 0.5).angular.norm();
    CAPTURE(seed);
    CHECK(fine < 1e-5);
    CHECK(coarse / fine > 3.5);
    CHECK(coarse / fine < 4.5);
  }
}

}  // namespace rigstep::index3
