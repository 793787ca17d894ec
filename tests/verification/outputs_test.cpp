// Output channels: the stepper's against those of the reference solvers, which compute them from their own motion,
// multipliers and loads. They come together with the square of the step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "core/index3/outputs/sensors.h"
#include "core/index3/stepper.h"
#include "core/offline/outputs.h"
#include "core/offline/solver.h"
#include "tests/support/force_cases.h"
#include "tests/support/reference.h"

namespace rigstep {
namespace {

using Kind = Output::Kind;
using Rows = std::vector<std::vector<double>>;  // (instants x output channels)

const std::vector<double> kInstants{0.02, 0.03, 0.05};  // whole multiples of all steps

Rows run_stepper(const Mechanism& m, std::int64_t dt_ns) {
  index3::Stepper stepper(m, {.dt_ns = dt_ns});
  Inputs none;
  none.count = static_cast<int>(m.input_channels().size());
  Rows rows;
  for (const double t : kInstants) {
    StepReport report;
    while (stepper.state().step * static_cast<std::uint64_t>(dt_ns) < static_cast<std::uint64_t>(std::llround(t * 1e9)))
      report = stepper.step(none);
    REQUIRE(!failed(report.status));
    Outputs y;
    stepper.read_outputs(report, y);
    rows.emplace_back(y.value.begin(), y.value.begin() + y.count);
  }
  return rows;
}

struct Reference {
  Rows rows;
  std::vector<std::string> unsupported_reasons;  // (outputs)
};

Reference run_reference(const Mechanism& m, const char* solver) {
  offline::Scenario scenario;
  scenario.mechanism = &m;
  scenario.instants = {0.0};
  scenario.instants.insert(scenario.instants.end(), kInstants.begin(), kInstants.end());
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = 1e-11;
  const offline::Trajectory run = offline::find_solver(solver)->simulate(scenario, options);
  Reference result{{}, offline::output_unsupported_reasons(scenario, run.instants)};
  for (std::size_t k = 1; k < run.instants.size(); ++k) result.rows.push_back(run.instants[k].output);
  return result;
}

double largest_difference(const Rows& a, const Rows& b, std::size_t channel) {
  double largest = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::abs(a[k][channel] - b[k][channel]));
  return largest;
}

// Outputs without values are those named; all channels of the others come four times nearer with half the step, down to
// what is left of rounding and of the tolerance.
void check_outputs(const Mechanism& m, const char* solver, std::int64_t dt_ns, const std::set<std::string>& missing) {
  CAPTURE(m.name());
  CAPTURE(solver);
  const Reference reference = run_reference(m, solver);
  const Rows coarse = run_stepper(m, dt_ns), fine = run_stepper(m, dt_ns / 2);
  for (std::size_t k = 0; k < m.outputs().size(); ++k) {
    const Output& output = m.outputs()[k];
    CAPTURE(output.name);
    CHECK(reference.unsupported_reasons[k].empty() == !missing.contains(output.name));
    if (!reference.unsupported_reasons[k].empty() || output.kind == Kind::constraint_residual) continue;
    const std::size_t first = static_cast<std::size_t>(output.first_channel);
    const std::size_t end = k + 1 < m.outputs().size() ? static_cast<std::size_t>(m.outputs()[k + 1].first_channel)
                                                       : m.output_channels().size();
    double scale = 0.0;
    for (const auto& row : reference.rows)
      for (std::size_t c = first; c < end; ++c) scale = std::max(scale, std::abs(row[c]));
    for (std::size_t c = first; c < end; ++c) {
      CAPTURE(m.output_channels()[c].name);
      const double before = largest_difference(coarse, reference.rows, c);
      const double after = largest_difference(fine, reference.rows, c);
      CHECK(after < std::max(0.3 * before, 3e-9 + 3e-8 * scale));
      CHECK(before < 0.05 * std::max(scale, 1e-3));
    }
  }
}

Mechanism with_drives_and_efforts() {
  MechanismBuilder b("driven");
  b.set_gravity({0.0, 0.0, -9.81});
  b.add_body(test::make_body("crank", {0.2, 0.0, 0.0}, 2.0, Vec3(0.02, 0.05, 0.06).asDiagonal()));
  b.add_body(test::make_body("arm", {0.6, 0.0, 0.0}, 1.0, Vec3(0.01, 0.03, 0.03).asDiagonal()));
  b.add_body(test::make_body("slide", {0.9, 0.0, 0.0}, 0.5, Vec3(0.01, 0.01, 0.01).asDiagonal()));
  b.add_joint(test::make_joint("shaft", JointType::revolute, "ground", "crank", Vec3::Zero(), Vec3::UnitY()));
  b.add_joint(test::make_joint("elbow", JointType::revolute, "crank", "arm", {0.4, 0.0, 0.0}, Vec3::UnitY()));
  b.add_joint(test::make_joint("rail", JointType::prismatic, "arm", "slide", {0.9, 0.0, 0.0}, Vec3::UnitX()));
  Driver motor;
  motor.name = "motor";
  motor.function = harmonic(0.0, 0.2, 15.0, 0.5) + polynomial({-0.2 * std::sin(0.5), -3.0 * std::cos(0.5), 4.0}) +
                   table({0.0, 0.04, 0.1}, {0.0, 0.05, -0.1});
  b.add_driver(motor, "shaft", Freedom::angle);
  AppliedEffort torque;
  torque.name = "torque";
  torque.function = harmonic(0.4, 1.5, 20.0, 0.3) + polynomial({0.0, 10.0});
  b.add_effort(torque, "elbow", Freedom::angle);
  AppliedEffort push;
  push.name = "push";
  push.function = table({0.0, 0.03, 0.06}, {0.0, 2.0, -1.0});
  b.add_effort(push, "rail", Freedom::displacement);
  Output output;
  output.name = "motor";
  output.kind = Kind::driver_effort;
  b.add_driver_output(output, "motor");
  output.kind = Kind::force_element;
  for (const char* element : {"torque", "push"}) {
    output.name = element;
    b.add_element_output(output, element);
  }
  output.name = "elbow";
  output.kind = Kind::joint_reaction;
  b.add_joint_output(output, "elbow", Freedom::angle);
  return b.build();
}

}  // namespace

TEST_CASE("output channels of the shipped mechanisms agree with those of the reference solvers") {
  check_outputs(test::mechanism("double_pendulum"), "hamiltonian_dca", 1'000'000, {"solver"});
  check_outputs(test::mechanism("double_pendulum"), "tree_newton_euler_lu", 1'000'000, {"solver"});
  check_outputs(test::mechanism("double_pendulum"), "index3_literal", 1'000'000, {"solver"});
  check_outputs(test::mechanism("driven_crank"), "ida", 200'000, {"solver"});
  check_outputs(test::mechanism("driven_crank"), "qr", 200'000, {"solver"});
  check_outputs(test::mechanism("quarter_car"), "ida", 500'000, {"solver"});
  check_outputs(test::mechanism("screw_jack"), "ida", 1'000'000, {"solver"});
  check_outputs(test::mechanism("stewart"), "ida", 1'000'000, {"solver"});
}

TEST_CASE("loads that redundant constraints leave open are left out, those that they do not are told") {
  check_outputs(test::mechanism("four_bar"), "ida", 1'000'000, {"solver", "joint1_reaction"});
  check_outputs(test::mechanism("slider_crank"), "hamiltonian_dca", 1'000'000, {"solver", "gudgeon_pin"});
}

TEST_CASE("readings of every force element agree with those of the reference solvers") {
  check_outputs(test::every_force_element(), "ida", 500'000, {});
}

TEST_CASE("sums of drivers and efforts move a mechanism as the reference solvers say") {
  check_outputs(with_drives_and_efforts(), "ida", 1'000'000, {});
  check_outputs(with_drives_and_efforts(), "putd_gauss", 1'000'000, {});
}

TEST_CASE("joint coordinates count the turns between two instants, by every kind of reference solver") {
  MechanismBuilder b("rotor");
  Body rotor = test::make_body("rotor", Vec3::Zero());
  rotor.angular_velocity_0 = {0.0, 0.0, 10.0};
  b.add_body(rotor);
  b.add_joint(test::make_joint("axle", JointType::revolute, "ground", "rotor", Vec3::Zero(), Vec3::UnitZ()));
  Output output;
  output.name = "angle";
  output.kind = Kind::joint_coordinate;
  b.add_joint_output(output, "axle", Freedom::angle);
  const Mechanism m = b.build();
  offline::Scenario scenario;
  scenario.mechanism = &m;
  scenario.instants = {0.0, 1.0, 2.0};
  for (const char* solver : {"ida", "hamiltonian_dca", "tree_hamilton_lu", "index3_literal", "qr"}) {
    CAPTURE(solver);
    const offline::Trajectory run = offline::find_solver(solver)->simulate(scenario, {});
    CHECK(run.instants[1].output[0] == doctest::Approx(10.0).epsilon(1e-8));
    CHECK(run.instants[2].output[0] == doctest::Approx(20.0).epsilon(1e-8));
  }
}

TEST_CASE("a torque turns a body of known inertia, and a force between two bodies pushes them apart") {
  constexpr double kInertia = 0.5, kEnd = 0.8;
  const auto angle_after = [&](const TimeFunction& function, double dt) {
    MechanismBuilder b("hinge");
    b.add_body(test::make_body("rotor", Vec3::Zero(), 1.0, Vec3(0.3, 0.3, kInertia).asDiagonal()));
    b.add_joint(test::make_joint("hinge", JointType::revolute, "ground", "rotor", Vec3::Zero(), Vec3::UnitZ()));
    b.add_effort({.name = "torque", .function = function}, "hinge", Freedom::angle);
    index3::Stepper stepper(b.build(), test::step_of(dt));
    REQUIRE(test::run(stepper, kEnd));
    return stepper.state().coordinate[0];
  };
  const double a = 0.7, w = 5.0, T = kEnd;
  const std::pair<TimeFunction, double> cases[] = {
      {polynomial({a}), 0.5 * a / kInertia * T * T},
      {harmonic(0.0, a, w), a / kInertia * (T / w - std::sin(w * T) / (w * w))},
      {polynomial({0.0, 0.0, 3.0}), 3.0 / 12.0 / kInertia * T * T * T * T},
      {table({0.0, T}, {0.0, 2.0}), 2.0 / kInertia * T * T * (1.0 / 4.0 - 1.0 / 10.0)}};
  double sum = 0.0;
  TimeFunction all;
  for (const auto& [function, angle] : cases) {
    const double coarse = std::abs(angle_after(function, 4e-3) - angle),
                 fine = std::abs(angle_after(function, 2e-3) - angle);
    CHECK(fine < 1e-4);
    CHECK(coarse / fine == doctest::Approx(4.0).epsilon(0.05));
    sum += angle;
    all = all + function;
  }
  CHECK(std::abs(angle_after(all, 1e-3) - sum) < 1e-4);

  MechanismBuilder b("pushed");
  b.add_body(test::make_body("A", Vec3::Zero(), 1.0));
  b.add_body(test::make_body("B", Vec3(1.0, 0.0, 0.0), 3.0));
  b.add_joint(test::make_joint("rail", JointType::prismatic, "A", "B", Vec3::Zero(), Vec3::UnitX()));
  b.add_effort({.name = "force", .function = polynomial({6.0})}, "rail", Freedom::displacement);
  index3::Stepper stepper(b.build(), test::step_of(1e-3));
  REQUIRE(test::run(stepper, 0.5));
  CHECK(stepper.state().body[0].v.x() == doctest::Approx(-3.0).epsilon(1e-9));
  CHECK(stepper.state().body[1].v.x() == doctest::Approx(1.0).epsilon(1e-9));
}

}  // namespace rigstep
