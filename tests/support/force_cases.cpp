#include "tests/support/force_cases.h"

#include <cmath>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/stepper_access.h"

namespace rigstep::test {

MechanismBuilder slide(double mass, double speed, const Vec3& gravity) {
  MechanismBuilder builder("slide");
  builder.set_gravity(gravity);
  Body block = make_body("block", Vec3::Zero(), mass);
  block.velocity_0 = {speed, 0.0, 0.0};
  builder.add_body(block);
  builder.add_joint(make_joint("rail", JointType::prismatic, "ground", "block", Vec3::Zero(), Vec3::UnitX()));
  return builder;
}

void show_element(MechanismBuilder& builder, const std::string& element) {
  Output output;
  output.kind = Output::Kind::force_element;
  output.name = element;
  builder.add_element_output(output, element);
}

Mechanism every_force_element() {
  MechanismBuilder b("every_force_element");
  b.set_gravity({0.0, 0.0, -9.81});
  b.add_body(make_body("cart", {0.0, 0.1, 0.6}, 40.0, Vec3(3.0, 3.0, 3.0).asDiagonal()));
  b.add_body(make_body("carrier", {0.0, 0.1, 0.3}, 5.0, Vec3(0.1, 0.1, 0.1).asDiagonal()));
  b.add_body(make_body("wheel", {0.0, 0.0, 0.298}, 8.0, Vec3(0.2, 0.35, 0.2).asDiagonal()));
  b.add_joint(make_joint("axle", JointType::revolute, "carrier", "wheel", {0.0, 0.0, 0.298}, Vec3::UnitY()));
  b.add_joint(make_joint("guide", JointType::cylindrical, "ground", "cart", {0.0, 0.1, 0.6}, Vec3::UnitZ()));
  Spring strut;
  strut.name = "strut";
  strut.first_point_b = {0.0, 0.0, 0.1};
  strut.rest = 0.3;
  strut.preload = 400.0;
  strut.stiffness_table = {{-0.1, 0.0, 0.1}, {-3000.0, 0.0, 2000.0}};
  strut.damping_table = {{-1.0, 0.0, 1.0}, {-300.0, 0.0, 900.0}};
  strut.second_point_b = {0.0, 0.0, 0.1};
  b.add_spring(strut, "carrier", "cart");
  Bushing mount;
  mount.name = "mount";
  mount.stiffness.diagonal() << 1e6, 1e6, 0.0, 1e4, 1e4, 1e4;
  mount.damping.diagonal() << 1e3, 1e3, 10.0, 10.0, 10.0, 10.0;
  MechanismBuilder::SideInBody at;
  at.point = {0.0, 0.1, 0.45};
  b.add_bushing(mount, "cart", "carrier", at);
  b.add_friction({.name = "seal", .coulomb = 2.0, .viscous = 0.1}, "axle", Freedom::angle);
  b.add_friction({.name = "rail", .coulomb = 5.0}, "guide", Freedom::displacement);
  const char* const names[] = {"torque", "angle", "height", "height_rate"};
  for (const char* name : names) {
    Input in;
    in.name = name;
    b.add_signal_input(in);
  }
  Motor drive;
  drive.name = "drive";
  drive.effort_limit = 60.0;
  drive.no_load_speed = 40.0;
  b.add_motor(drive, "axle", Freedom::angle, {"torque", "", ""});
  Motor turn;
  turn.name = "turn";
  turn.position_gain = 2e3;
  turn.rate_gain = 50.0;
  b.add_motor(turn, "guide", Freedom::angle, {"", "angle", ""});
  b.add_effort({.name = "pull", .function = harmonic(20.0, 10.0, 7.0) + polynomial({0.0, 5.0})}, "guide",
               Freedom::displacement);
  b.add_drag({.name = "air", .point_b = {0.0, 0.0, 0.2}, .drag_area = 0.6, .wind_0 = {-5.0, 2.0, 0.0}}, "cart");
  Tyre tyre;
  tyre.name = "tyre";
  tyre.radius = 0.3;
  tyre.stiffness = 1.5e5;
  tyre.damping = 300.0;
  b.add_tyre(tyre, "wheel", "height", "height_rate");
  for (const char* element : {"strut", "seal", "drive"}) show_element(b, element);
  Output output;
  output.name = "tyre";
  output.kind = Output::Kind::tyre;
  b.add_element_output(output, "tyre");
  output.name = "mount";
  output.kind = Output::Kind::bushing;
  b.add_element_output(output, "mount");
  output.name = "pull";
  output.kind = Output::Kind::force_element;
  b.add_element_output(output, "pull");
  return b.build();
}

Inputs every_input(std::uint64_t step) {
  const double t = 1e-3 * static_cast<double>(step);
  Inputs u;
  u.count = 4;
  u.value[0] = 50.0 * std::sin(6.0 * t);
  u.value[1] = 0.3 * std::sin(4.0 * t);
  u.value[2] = 0.01 * (1.0 - std::cos(20.0 * t));
  u.value[3] = 0.2 * std::sin(20.0 * t);
  return u;
}

index3::Settings step_of(double dt) {
  index3::Settings settings;
  settings.dt_ns = std::llround(dt * 1e9);
  return settings;
}

Inputs inputs_of(std::initializer_list<double> values) {
  Inputs u;
  for (const double value : values) u.value[static_cast<std::size_t>(u.count++)] = value;
  return u;
}

bool run(index3::Stepper& stepper, double time, const Inputs& inputs) {
  const auto steps = static_cast<std::uint64_t>(std::llround(time / index3::plan_of(stepper).dt()));
  for (std::uint64_t k = 0; k < steps; ++k)
    if (failed(stepper.step(inputs).status)) return false;
  return true;
}

double total_energy(const index3::Stepper& stepper) {
  const index3::Energy e = index3::energy(index3::plan_of(stepper), stepper.state(), index3::workspace_of(stepper));
  return e.kinetic + e.potential;
}

}  // namespace rigstep::test
