// Parameters: what they name, what is refused, and that a stepper whose parameters change has the bits of one that was
// made with the new values.
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/index3/stepper.h"
#include "core/mechanism/builder.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"

namespace rigstep {
namespace {

using index3::Settings;
using index3::Stepper;

MechanismBuilder::JointAtStart joint(const std::string& name, JointType type, const std::string& first,
                                     const std::string& second, const Vec3& point, const Vec3& axis) {
  MechanismBuilder::JointAtStart at;
  at.name = name, at.type = type, at.first = first, at.second = second, at.point = point, at.axis = axis;
  return at;
}

// A cart with an elastic mount, a swinging arm with a motor and friction, and a wheel on the road; more links on the
// arm, so that threads divide them; closed: the last one hinged to the ground, a loop.
MechanismBuilder described(int links, bool closed = false) {
  MechanismBuilder b("tuned");
  b.set_gravity({0.0, 0.0, -9.81});
  const auto body = [&](const std::string& name, double mass, const Vec3& position) {
    Body x;
    x.name = name, x.mass = mass, x.position_0 = position;
    x.inertia_b = Vec3(0.1, 0.12, 0.15).asDiagonal();
    if (name == "wheel") x.velocity_0 = Vec3(0.5, 0.1, 0.0);
    b.add_body(x);
  };
  body("cart", 2.0, Vec3::Zero());
  body("arm", 1.0, {0.5, 0.0, 0.0});
  body("wheel", 3.0, {0.0, 1.0, -0.01});
  b.add_joint(joint("slide", JointType::prismatic, "ground", "cart", Vec3::Zero(), Vec3::UnitX()));
  b.add_joint(joint("swing", JointType::revolute, "cart", "arm", Vec3::Zero(), Vec3::UnitY()));
  std::string before = "arm";
  for (int k = 0; k < links; ++k) {
    const std::string name = "link_" + std::to_string(k);
    body(name, 0.5, {1.5 + k, 0.0, 0.0});
    b.add_joint(
        joint("pin_" + std::to_string(k), JointType::revolute, before, name, {1.0 + k, 0.0, 0.0}, Vec3::UnitY()));
    before = name;
  }
  if (closed) b.add_joint(joint("last", JointType::revolute, before, "ground", {1.0 + links, 0.0, 0.0}, Vec3::UnitY()));
  Input push;
  push.name = "push", push.kind = Input::Kind::body_force, push.direction = Vec3::UnitX();
  b.add_body_input(push, "cart");
  Spring spring;
  spring.name = "spring", spring.kind = Spring::Kind::along_direction, spring.direction_0 = Vec3::UnitX();
  spring.stiffness = 200.0;
  b.add_spring(spring, "ground", "cart");
  Bushing mount;
  mount.stiffness.diagonal() << 500.0, 500.0, 500.0, 0.0, 0.0, 0.0;
  for (const char* const name : {"mount", "other_mount"}) {  // of several, lanes keep the numbers
    mount.name = name;
    b.add_bushing(mount, "cart", "wheel", SideInBody{Vec3(0.0, 0.5, 0.0), Vec3::Zero(), Vec3::Zero()});
  }
  JointFriction friction;
  friction.name = "rubbing", friction.coulomb = 0.3;
  b.add_friction(friction, "swing", Freedom::angle);
  Motor motor;
  motor.name = "motor", motor.constant = 1.5, motor.effort_limit = 5.0;
  b.add_motor(motor, "swing", Freedom::angle, {});
  Tyre tyre;
  tyre.name = "tyre", tyre.radius = 0.3, tyre.stiffness = 2e4, tyre.damping = 50.0, tyre.road_point_0 = {0, 0, -0.308};
  b.add_tyre(tyre, "wheel", "", "");
  for (const Output::Kind kind : {Output::Kind::energy, Output::Kind::constraint_residual}) {
    Output output;
    output.name = kind == Output::Kind::energy ? "energy" : "gaps", output.kind = kind;
    b.add_output(output);
  }
  for (const char* const element : {"spring", "motor"}) test::show_element(b, element);
  return b;
}

Mechanism tuned(int links, bool closed = false) {
  MechanismBuilder b = described(links, closed);
  b.add_parameter("payload", {{"arm.mass"}}, 0.2, 50.0);
  b.add_parameter("arm_inertia", {{"arm.inertia.yy"}}, 0.06, 0.24);
  b.add_parameter("stiffness", {{"spring.stiffness"}}, 0.0, 1e5);
  b.add_parameter("mount", {{"mount.stiffness.x"}, {"mount.stiffness.y"}, {"mount.stiffness.z", 1.0}}, 0.0, 1e6);
  b.add_parameter("mount_turn", {{"mount.stiffness.rx"}}, 0.0, 1e3);
  b.add_parameter("coulomb", {{"rubbing.coulomb"}}, 0.0, 2.0);
  b.add_parameter("grip", {{"tyre.longitudinal.friction"}, {"tyre.lateral.friction"}}, 0.1, 1.5);
  b.add_parameter("gravity", {{"gravity.z", -1.0}}, 0.0, 20.0);
  b.add_parameter("torque", {{"motor.constant"}}, -5.0, 5.0);
  b.add_parameter("limit", {{"motor.effort_limit"}}, 0.5, 10.0);
  b.add_parameter("attachment", {{"mount.in_first.point.x"}}, -0.1, 0.1);
  return b.build();
}

std::vector<ParameterValue> other_values(const Mechanism& m) {
  std::vector<ParameterValue> values;
  for (const auto& [name, value] : std::vector<std::pair<const char*, double>>{{"payload", 7.0},
                                                                               {"arm_inertia", 0.2},
                                                                               {"stiffness", 0.0},
                                                                               {"mount", 9e4},
                                                                               {"mount_turn", 12.0},
                                                                               {"coulomb", 1.7},
                                                                               {"grip", 0.4},
                                                                               {"gravity", 3.7},
                                                                               {"torque", -2.0},
                                                                               {"limit", 0.8}})
    values.push_back({m.parameter(name), value});
  return values;
}

Inputs push(std::uint64_t step) {
  Inputs u;
  u.count = 1;
  u.value[0] = step % 7 < 3 ? 4.0 : -3.0;
  return u;
}

std::vector<double> flat(const Stepper& s) {
  std::vector<double> x(s.state().flat_size());
  s.state().flatten(x);
  return x;
}

// The hashes of so many steps.
std::vector<std::uint64_t> hashes(Stepper& s, int steps) {
  std::vector<std::uint64_t> all;
  for (int k = 0; k < steps; ++k) {
    REQUIRE_FALSE(failed(s.step(push(s.state().step + 1)).status));
    all.push_back(s.state().hash());
  }
  return all;
}

std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const MechanismError& e) {
    return e.what();
  }
  return "";
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a parameter has the value of the numbers that it names, and their unit and kind") {
  const Mechanism m = tuned(0);
  const auto of = [&](const char* name) { return m.parameters()[static_cast<std::size_t>(m.parameter(name))]; };
  CHECK(of("payload").value == 1.0);
  CHECK(of("payload").unit == "kg");
  CHECK(of("payload").tunable);
  CHECK(of("gravity").value == 9.81);
  CHECK(of("gravity").unit == "m/s^2");
  CHECK(of("coulomb").unit == "N m");
  CHECK(of("stiffness").unit == "N/m");
  CHECK_FALSE(of("attachment").tunable);
  CHECK(says(refusal([&] { m.parameter("payloda"); }), "\"payload\""));
}

TEST_CASE("a parameter that makes no sense is refused with the names of what is wrong") {
  const auto refused = [](const std::vector<MechanismBuilder::ParameterTarget>& targets, double minimum,
                          double maximum) {
    return refusal([&] {
      MechanismBuilder b = described(0);
      b.add_parameter("first", {{"spring.damping"}}, 0.0, 1.0);
      b.add_parameter("p", targets, minimum, maximum);
      b.build();
    });
  };
  CHECK(refused({{"spring.stiffness"}}, 0.0, 1e3) == "");
  CHECK(says(refused({{"spring.stifness"}}, 0.0, 1e3), "\"spring.stiffness\""));
  CHECK(says(refused({{"spring.damping"}}, 0.0, 1.0), "\"first\""));
  CHECK(says(refused({{"spring.stiffness"}, {"spring.stiffness"}}, 0.0, 1e3), "already"));
  CHECK(says(refused({{"spring.stiffness"}, {"tyre.stiffness"}}, 0.0, 1e6), "\"tyre.stiffness\" makes it 20000"));
  CHECK(refused({{"spring.stiffness"}, {"tyre.stiffness", 100.0}}, 1.0, 1e6) == "");
  CHECK(says(refused({{"spring.stiffness"}}, 0.0, 100.0), "leave out 200"));
  CHECK(says(refused({{"spring.stiffness"}}, -1.0, 1e3), "too wide"));
  CHECK(says(refused({{"arm.mass"}}, 0.0, 10.0), "too wide"));
  CHECK(says(refused({{"arm.inertia.xx"}}, 0.01, 10.0), "too wide"));
  CHECK(says(refused({{"motor.effort_limit"}}, 0.0, 10.0), "without 0"));
  CHECK(says(refused({}, 0.0, 10.0), "is missing"));
  CHECK(says(refused({{"spring.stiffness", 0.0}}, 0.0, 10.0), "factor"));
}

TEST_CASE("parameters are part of the identity of a mechanism, their values at the start are not") {
  const Mechanism plain = described(0).build(), m = tuned(0);
  CHECK(plain.id() != m.id());
  const Mechanism other = with_parameters(m, other_values(m));
  CHECK(other.id() == m.id());
  CHECK(other.bodies()[1].mass == 7.0);
  CHECK(other.gravity_0()[2] == -3.7);
  CHECK(other.parameters()[static_cast<std::size_t>(m.parameter("payload"))].value == 7.0);
  const ParameterValue too_much{m.parameter("payload"), 51.0}, fixed{m.parameter("attachment"), 0.05};
  CHECK(says(refusal([&] { with_parameters(m, {&too_much, 1}); }), "\"payload\""));
  CHECK(with_parameters(m, {&fixed, 1}).bushings()[0].in_first.point_b[0] == 0.05);
}

TEST_CASE("a stepper refuses what is fixed, out of range or not a number, all of it, and keeps its bits") {
  const Mechanism m = tuned(0);
  Stepper s(m, {}), untouched(m, {});
  const int payload = m.parameter("payload");
  CHECK_FALSE(s.set_parameter(m.parameter("attachment"), 0.05));
  CHECK_FALSE(s.set_parameter(payload, 51.0));
  CHECK_FALSE(s.set_parameter(payload, std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(s.set_parameter(-1, 1.0));
  CHECK_FALSE(s.set_parameter(static_cast<int>(m.parameters().size()), 1.0));
  const ParameterValue both[] = {{payload, 5.0}, {m.parameter("stiffness"), -1.0}};
  CHECK_FALSE(s.set_parameters(both));
  CHECK(s.parameter(payload) == 1.0);
  CHECK(hashes(s, 20) == hashes(untouched, 20));
}

TEST_CASE("after a change a stepper has the bits of one made with the new values and the same state") {
  for (const auto& [threads, links, closed] : {std::tuple{1, 2, false}, {2, 40, false}, {1, 3, true}, {2, 40, true}})
    for (const char* set : {static_cast<const char*>(nullptr), "x86-64"}) {
      const Mechanism m = tuned(links, closed);
      Settings settings;
      settings.threads = threads;
      settings.instruction_set = set;
      for (const ParameterValue& one : other_values(m)) {
        CAPTURE(m.parameters()[static_cast<std::size_t>(one.index)].name);
        Stepper s(m, settings), made(with_parameters(m, {&one, 1}), settings);
        const auto before = hashes(s, 30);
        made.restore(flat(s), s.state().step);
        REQUIRE(s.set_parameter(one.index, one.value));
        CHECK(s.parameter(one.index) == one.value);
        Stepper unchanged(m, settings);
        CHECK(hashes(unchanged, 30) == before);
        const auto after = hashes(s, 30);
        CHECK(after == hashes(made, 30));
        CHECK(after != hashes(unchanged, 30));
      }
      Stepper s(m, settings), made(with_parameters(m, other_values(m)), settings);
      s.restore(flat(made), 0);
      REQUIRE(s.set_parameters(other_values(m)));
      CHECK(hashes(s, 60) == hashes(made, 60));
      Stepper restored(m, settings);
      REQUIRE(restored.set_parameters(other_values(m)));
      restored.restore(flat(s), s.state().step);
      CHECK(hashes(restored, 30) == hashes(s, 30));
    }
}

TEST_CASE("values that change back give the bits of values that never changed") {
  const Mechanism m = tuned(0);
  Stepper s(m, {}), unchanged(m, {});
  REQUIRE(s.set_parameters(other_values(m)));
  for (const ParameterValue& each : other_values(m))
    REQUIRE(s.set_parameter(each.index, m.parameters()[static_cast<std::size_t>(each.index)].value));
  CHECK(hashes(s, 30) == hashes(unchanged, 30));
}

TEST_CASE("what force elements did in a step can be read later, also after a parameter was set") {
  const Mechanism m = tuned(1);
  for (const int order : {2, 4}) {
    Stepper always(m, {.order_of_accuracy = order}), once(m, {.order_of_accuracy = order});
    // The energy of a spring is that of its stiffness when it is read.
    const auto without_energy = [&m](const Outputs& outputs) {
      std::vector<double> values;
      for (std::size_t k = 0; k < m.output_channels().size(); ++k)
        if (!m.output_channels()[k].name.starts_with("energy")) values.push_back(outputs.value[k]);
      return values;
    };
    Outputs want, got;
    StepReport report;
    for (std::uint64_t step = 0; step < 20; ++step) {
      REQUIRE_FALSE(failed(always.step(push(step), want).status));
      report = once.step(push(step));
    }
    SUBCASE("at once") {}
    SUBCASE("after parameters were set") { REQUIRE(once.set_parameters(other_values(m))); }
    once.read_outputs(report, got);
    CHECK(without_energy(got) == without_energy(want));
    REQUIRE_FALSE(failed(always.step(push(20), want).status));
    CHECK(without_energy(got) != without_energy(want));
  }
}

}  // namespace rigstep
