// Motions with a solution in closed form: pendulum, free top, carousel; one for each smooth force element that has one
// (springs, tables and bushings oscillate in force_elements_test.cpp).
#include <doctest/doctest.h>

#include "core/index3/physics/kinematics.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/force_cases.h"
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
    error =
        std::max(error, std::abs(std::remainder(std::atan2(r.y(), r.x()) - sample["theta"].get<double>(), 2.0 * kPi)));
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

constexpr double kBlockMass = 2.0, kRate = 3.0;  // [kg], [1/s]: what slows a block of unit speed [m/s]

// What makes dv/dt = -kRate v of the block on its slide.
void add_damper(const std::string& kind, MechanismBuilder& b) {
  const double damping = kBlockMass * kRate;
  Spring damper;
  damper.name = kind;
  if (kind == "damper") damper.damping = damping;
  if (kind == "table") damper.damping_table = {{-1.0, 2.0}, {-damping, 2.0 * damping}};
  if (kind == "damper" || kind == "table") b.add_joint_spring(damper, "rail", Freedom::displacement);
  if (kind == "friction") b.add_friction({.name = kind, .viscous = damping}, "rail", Freedom::displacement);
  Bushing bushing;
  bushing.name = kind;
  bushing.damping(0, 0) = damping;
  if (kind == "bushing") b.add_bushing(bushing, "ground", "block", MechanismBuilder::SideInBody{});
  Motor brake;
  brake.name = kind;
  brake.rate_gain = damping;
  if (kind == "motor") b.add_motor(brake, "rail", Freedom::displacement, {});
}

// Error of the block's speed after 0.5 s [m/s].
double decay_error(const std::string& kind, double dt) {
  MechanismBuilder b = slide(kBlockMass, 1.0);
  double want = std::exp(-0.5 * kRate);
  if (kind == "drag") {
    b.add_drag({.name = kind, .density = 1.2, .drag_area = kBlockMass * kRate / 0.6}, "block");
    want = 1.0 / (1.0 + 0.5 * kRate);  // dv/dt = -kRate v^2
  } else {
    add_damper(kind, b);
  }
  index3::Stepper s(b.build(), step_of(dt));
  REQUIRE(test::run(s, 0.5));
  return std::abs(s.state().body[0].v.x() - want);
}

// Error after 0.5 s [m/s] of a block that a motor speeds up from rest, at its limit, which falls to zero at 2 m/s.
double run_up_error(double dt) {
  MechanismBuilder b = slide(kBlockMass);
  Motor motor;
  motor.name = "motor";
  motor.constant = 1e3;
  motor.no_load_speed = 2.0;
  motor.effort_limit = kBlockMass * kRate * motor.no_load_speed;
  b.add_motor(motor, "rail", Freedom::displacement, {});
  index3::Stepper s(b.build(), step_of(dt));
  REQUIRE(test::run(s, 0.5));
  return std::abs(s.state().body[0].v.x() - 2.0 * (1.0 - std::exp(-0.5 * kRate)));
}

// A disc J at rest on a torsional spring k, whose other end a driver turns by a sin(Omega t):
// theta = a k / (k - J Omega^2) (sin(Omega t) - Omega / omega sin(omega t)), omega^2 = k / J. Error after 0.7 s [rad].
double torsion_error(double dt) {
  const double J = 0.5, k = 80.0, a = 0.3, Omega = 5.0, t = 0.7;
  MechanismBuilder b("torsion");
  Body crank = make_body("crank", Vec3::Zero());
  crank.angular_velocity_0 = {0.0, 0.0, a * Omega};
  b.add_body(crank);
  b.add_body(make_body("disc", Vec3::UnitZ(), 2.0, J * Mat3::Identity()));
  b.add_joint(make_joint("shaft", JointType::revolute, "ground", "crank", Vec3::Zero()));
  b.add_joint(make_joint("torsion", JointType::revolute, "crank", "disc", Vec3::UnitZ()));
  Spring spring;
  spring.name = "spring";
  spring.stiffness = k;
  b.add_joint_spring(spring, "torsion", Freedom::angle);
  Driver driver;
  driver.name = "driver";
  driver.function = harmonic(0.0, a, Omega);
  b.add_driver(driver, "shaft", Freedom::angle);
  index3::Stepper s(b.build(), step_of(dt));
  REQUIRE(test::run(s, t));
  const EulerParameters& p = s.state().body[1].p;
  const double omega = std::sqrt(k / J);
  return std::abs(2.0 * std::atan2(p[3], p[0]) -
                  a * k / (k - J * Omega * Omega) * (std::sin(Omega * t) - Omega / omega * std::sin(omega * t)));
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

TEST_CASE("dampers of all kinds slow a block exponentially, drag as one over time, with order two") {
  for (const std::string kind : {"damper", "table", "friction", "bushing", "motor", "drag"}) {
    const double coarse = decay_error(kind, 1e-2), fine = decay_error(kind, 5e-3);
    CAPTURE(kind);
    MESSAGE(kind << ": " << coarse << ", " << fine << " m/s at 10, 5 ms");
    CHECK(fine < 5e-5);
    check_order_two(coarse, fine);
  }
}

TEST_CASE("a motor runs up to its no-load speed exponentially, with order two") {
  const double coarse = run_up_error(1e-2), fine = run_up_error(5e-3);
  MESSAGE("run-up: " << coarse << ", " << fine << " m/s at 10, 5 ms");
  CHECK(fine < 1e-4);
  check_order_two(coarse, fine);
}

TEST_CASE("a disc on a torsional spring with a driven end moves as in closed form, with order two") {
  const double coarse = torsion_error(5e-3), fine = torsion_error(2.5e-3);
  MESSAGE("torsion: " << coarse << ", " << fine << " rad at 5, 2.5 ms");
  CHECK(fine < 1e-4);
  check_order_two(coarse, fine);
}
