// Motions with a solution in closed form: pendulum, free top, carousel.
#include <doctest/doctest.h>

#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

void check_order_two(double coarse, double fine) {
  CHECK(std::log2(coarse / fine) == doctest::Approx(2.0).epsilon(0.03));
}

// Largest error of the angle over 10 s [rad] of a compound pendulum with the reduced length 1 m: mass centre 0.5 m from
// the pivot, inertia m / 4. Let go on the left side at the height of the pivot.
double pendulum_error(JointType type, std::int64_t dt_ns) {
  Description d;
  d.gravity = {0.0, -9.81, 0.0};
  d.bodies = {make_body("rod", {-0.5, 0.0, 0.0}, 3.0, 0.75 * Mat3::Identity())};
  d.joints = {make_joint("pivot", type, "ground", "rod", Vec3::Zero())};
  index3::Stepper s(build(d), {.dt_ns = dt_ns});
  double error = 0.0;
  const nlohmann::json exact = reference("a01_simple_pendulum");
  for (const auto& sample : exact["reference"]) {
    const auto target = std::llround(1e9 * sample["t"].get<double>() / static_cast<double>(dt_ns));
    while (s.state().step < static_cast<std::uint64_t>(target)) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
    const Vec3 r = s.state().body[0].r;
    error = std::max(
        error, std::abs(std::remainder(std::atan2(r.y(), r.x()) - sample["theta"].get<double>(), 2.0 * index3::kPi)));
  }
  return error;
}

struct TopError {
  double orientation = 0.0;       // largest element of the rotation matrix [-]
  double angular_velocity = 0.0;  // [rad/s]
};

// A free symmetric top: its axis turns about the angular momentum L at |L| / A, the top on its axis at w3 (1 - C / A).
TopError top_error(double C_over_A, std::int64_t dt_ns) {
  constexpr double A = 0.4;
  const double C = C_over_A * A;
  test::Random random(3);
  const Eigen::Quaterniond start = random.rotation();
  const Vec3 w_b{1.5, 0.0, 4.0}, L = start * Vec3(A * w_b.x(), 0.0, C * w_b.z());
  Description d;
  d.bodies = {make_body("top", Vec3::Zero(), 2.0, Vec3(A, A, C).asDiagonal())};
  d.bodies[0].orientation = {start.w(), start.x(), start.y(), start.z()};
  d.bodies[0].angular_velocity_0 = start * w_b;
  index3::Stepper s(build(d), {.dt_ns = dt_ns});
  TopError error;
  while (static_cast<std::int64_t>(s.state().step) * dt_ns < 2000 * kMs) {
    REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
    const double t = 1e-9 * static_cast<double>(static_cast<std::int64_t>(s.state().step) * dt_ns);
    const Mat3 want = Eigen::AngleAxisd(L.norm() / A * t, L.normalized()) * start.toRotationMatrix() *
                      Eigen::AngleAxisd(w_b.z() * (1.0 - C_over_A) * t, Vec3::UnitZ());
    const Mat3 got = index3::rotation_matrix(s.state().body[0].p);
    const Vec3 want_w = L / A + w_b.z() * (1.0 - C_over_A) * want.col(2);
    error.orientation = std::max(error.orientation, (got - want).cwiseAbs().maxCoeff());
    error.angular_velocity = std::max(error.angular_velocity, (got * s.state().body[0].w_b - want_w).norm());
  }
  return error;
}

// Change of the angular momentum about the axle of a carousel that was given a push, relative, over 2 s; rise: of the
// seats [m].
double carousel_error(std::int64_t dt_ns, double& rise) {
  Description d = carousel(12);
  for (Body& b : d.bodies) {
    b.angular_velocity_0 = {0.0, 0.0, 3.0};
    b.velocity_0 = b.angular_velocity_0.cross(b.position_0);
  }
  const Mechanism m = build(d);
  index3::Stepper s(m, {.dt_ns = dt_ns});
  const auto about_axle = [&] {
    double sum = 0.0;
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      const index3::BodyState& x = s.state().body[i];
      const Vec3 spin = index3::rotation_matrix(x.p) * (m.bodies()[i].inertia_b * x.w_b);
      sum += m.bodies()[i].mass * x.r.cross(x.v).z() + spin.z();
    }
    return sum;
  };
  const double start = about_axle();
  for (std::int64_t t = 0; t < 2000 * kMs; t += dt_ns) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  rise = s.state().body[1].r.z() - m.bodies()[1].position_0.z();
  for (std::size_t i = 2; i < m.bodies().size(); ++i)
    CHECK(s.state().body[i].r.z() == doctest::Approx(s.state().body[1].r.z()).epsilon(1e-9));
  return std::abs(about_axle() / start - 1.0);
}

}  // namespace

TEST_CASE("a compound pendulum swings as the elliptic functions of its reduced length say, with order two") {
  for (const JointType type : {JointType::revolute, JointType::spherical, JointType::universal, JointType::gimbal}) {
    const double coarse = pendulum_error(type, 4 * kMs), fine = pendulum_error(type, 2 * kMs);
    CAPTURE(to_string(type));
    MESSAGE("pendulum: " << coarse << ", " << fine << " rad at 4, 2 ms");
    CHECK(fine < 4e-4);
    check_order_two(coarse, fine);
  }
}

TEST_CASE("a free symmetric top, flat or long, precesses and spins in closed form with order two") {
  for (const double C_over_A : {0.05, 0.5, 1.4, 1.9}) {
    const TopError coarse = top_error(C_over_A, 2 * kMs), fine = top_error(C_over_A, kMs);
    CAPTURE(C_over_A);
    MESSAGE("top: " << coarse.orientation << ", " << fine.orientation << " at 2, 1 ms; rate " << fine.angular_velocity);
    CHECK(fine.orientation < 1e-4);
    check_order_two(coarse.orientation, fine.orientation);
    check_order_two(coarse.angular_velocity, fine.angular_velocity);
  }
}

TEST_CASE("a carousel that turns freely lifts its seats and keeps its angular momentum with order two") {
  double rise = 0.0;
  const double coarse = carousel_error(2 * kMs, rise), fine = carousel_error(kMs, rise);
  MESSAGE("carousel: " << coarse << ", " << fine << " at 2, 1 ms; rise " << rise);
  CHECK(fine < 1e-6);
  CHECK(rise > 0.01);
  check_order_two(coarse, fine);
}
