// Mechanism and rig files: what is read, what is written, and what a mistake is told as.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/index3/start/initial_state.h"
#include "core/mechanism/portable_math.h"
#include "proto/load_mechanism.h"
#include "proto/load_rig.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::config {
namespace {

// A good file; line numbers below count from here, name at 1.
constexpr const char* kGood = R"(name: "good"
gravity { y: -9.81 }
body {
  name: "A"
  mass: 2
  inertia { xx: 1 yy: 1 zz: 1 }
  position { x: 0.5 }
}
body {
  name: "B"
  mass: 1
  inertia { xx: 1 yy: 1 zz: 1 }
}
joint {
  name: "hinge"
  type: REVOLUTE
  first: "ground"
  second: "A"
  at_start { point {} axis { z: 1 } }
}
joint {
  name: "rod"
  type: CYLINDRICAL
  first: "A"
  second: "B"
  at_start { point {} axis { x: 1 } }
}
spring {
  name: "soft"
  in_joint { joint: "hinge" }
  stiffness: 3
}
load { name: "hum" body: "A" force { x: 1 } amplitude: 2 angular_frequency: 3 }
input { name: "drive" joint_effort { joint: "hinge" } }
output { name: "pose" body_pose { body: "B" } }
)";

bool starts_with(const std::string& text, const std::string& start) { return text.rfind(start, 0) == 0; }
std::string replaced(const std::string& from, const std::string& to) { return test::replaced(kGood, from, to); }
std::string complaint(const std::string& from, const std::string& to) { return test::complaint(replaced(from, to)); }
void check_complaint(const std::string& from, const std::string& to, int line, const std::string& field,
                     const std::string& problem) {
  test::check_complaint(replaced(from, to), line, field, problem);
}

}  // namespace

TEST_CASE("a good file gives the mechanism that it describes") {
  const LoadedMechanism loaded = parse_mechanism(kGood, "m.textproto");
  const Mechanism& m = loaded.mechanism;
  CHECK(m.name() == "good");
  CHECK(m.gravity_0() == Vec3(0.0, -9.81, 0.0));
  REQUIRE(m.bodies().size() == 2);
  CHECK(m.bodies()[0].mass == 2.0);
  CHECK(m.bodies()[0].position_0 == Vec3(0.5, 0.0, 0.0));
  REQUIRE(m.joints().size() == 2);
  CHECK(m.joints()[0].first == kGround);
  CHECK(m.joints()[1].type == JointType::cylindrical);
  CHECK(loaded.joint_line == std::vector<int>{14, 21});
  CHECK(m.springs()[0].stiffness == 3.0);
  CHECK(m.input_channels()[0].unit == "N m");
  CHECK(m.output_channels().size() == 7);
  CHECK(m.id() == parse_mechanism(kGood, "elsewhere").mechanism.id());
}

TEST_CASE("a mistake is told as file:line: field: problem: remedy, at the line where it stands") {
  check_complaint("mass: 2\n", "mass: \n", 6, "syntax", "");  // the parser sees what stands where the number should
  check_complaint("  mass: 2", "  weight: 2", 5, "weight", "is no field of Body");
  check_complaint("  mass: 2", "  mas: 2", 5, "mas", "did you mean mass?");
  check_complaint("mass: 2\n", "mass: 2,5\n", 5, "syntax", "write a point: 2.5");
  check_complaint("  mass: 2", "  period_us: 2", 5, "period_us", "is no field of Body");
  test::check_complaint("mechanism: \"m.textproto\"\nperiod_us: 1000\n", 1, "mechanism", "belongs into a rig file");
  check_complaint("type: REVOLUTE\n", "type: REVOLUT\n", 16, "type", "did you mean REVOLUTE?");
  check_complaint("mass: 2", "mass: 0", 5, "body \"A\".mass", "0 kg");
  check_complaint("inertia { xx: 1 yy: 1 zz: 1 }", "inertia { xx: 1 yy: 1 zz: 3 }", 6, "body \"A\".inertia",
                  "principal");
  check_complaint("name: \"B\"", "name: \"A\"", 10, "body \"A\".name", "another body");
  check_complaint("name: \"B\"", "name: \"B 2\"", 10, "body \"B 2\".name", "character");
  check_complaint("  position { x: 0.5 }", "  orientation { e0: 2 }", 7, "body \"A\".orientation", "norm 2");
  check_complaint("second: \"A\"", "second: \"C\"", 18, "joint \"hinge\".second", "\"C\"");
  check_complaint("second: \"B\"", "second: \"A\"", 25, "joint \"rod\".second", "two different");
  check_complaint("point {} axis { z: 1 }", "point {} axis {}", 19, "joint \"hinge\".at_start.axis", "no direction");
  check_complaint("point {} axis { z: 1 } }", "point {} axis { z: 1 } }\n  in_first {}", 19, "joint \"hinge\".at_start",
                  "stands beside");
  check_complaint("  type: REVOLUTE\n", "", 14, "joint \"hinge\".type", "is missing");
  check_complaint("joint: \"hinge\" }\n  stiff", "joint: \"hing\" }\n  stiff", 30, "spring \"soft\".joint", "\"hing\"");
  check_complaint("joint: \"hinge\" }\n  stiff", "joint: \"rod\" }\n  stiff", 28, "spring \"soft\".freedom", "has two");
  check_complaint("stiffness: 3", "stiffness: -3", 31, "spring \"soft\".stiffness", "-3");
  check_complaint("body: \"A\" force", "body: \"ground\" force", 33, "load \"hum\".body", "ground");
  check_complaint("joint_effort { joint: \"hinge\" }", "", 34, "input \"drive\".body_force", "is missing");
  check_complaint("joint_effort { joint: \"hinge\" }", "joint_effort { joint: \"hinge\" freedom: DISPLACEMENT }", 34,
                  "input \"drive\".freedom", "displacement");
  check_complaint("body_pose { body: \"B\" }", "body_pose { body: \"\" }", 35, "output \"pose\".body", "is missing");
  check_complaint("y: -9.81", "y: nan", 2, "gravity", "finite");
}

TEST_CASE("a joint is placed once, and on both sides") {
  const std::string at_start = "at_start { point {} axis { z: 1 } }";
  check_complaint(at_start, "", 14, "joint \"hinge\".at_start", "is missing");
  check_complaint(at_start, "in_first { axis { z: 1 } normal { x: 1 } }", 14, "joint \"hinge\".in_second",
                  "is missing");
  check_complaint(at_start, "in_first { axis { z: 1 } normal { x: 1 } }\n  in_second { axis { z: 1 } }", 20,
                  "joint \"hinge\".in_second.normal", "is missing");
  CHECK(complaint(at_start, "in_first { axis { z: 1 } normal { x: 1 } } in_second { axis { z: 1 } normal { x: 1 } }")
            .empty());
}

TEST_CASE("leads, lengths, couplings and drivers that cannot work are told where they stand") {
  const std::string rod = "  type: CYLINDRICAL\n";  // line 23 of the joint that begins at 21
  check_complaint(rod, "  type: SCREW\n", 21, "joint \"rod\".lead", "is 0 m");
  check_complaint(rod, "  type: SCREW lead: nan\n", 23, "joint \"rod\".lead", "nan");
  check_complaint(rod, "  type: CYLINDRICAL lead: 0.1\n", 23, "joint \"rod\".lead", "belongs to a screw");
  check_complaint(rod, "  type: CYLINDRICAL length: 0.1\n", 23, "joint \"rod\".length", "belongs to a distance");
  check_complaint(rod, "  type: DISTANCE\n", 21, "joint \"rod\".length", "is 0 m");
  check_complaint(rod, "  type: DISTANCE length: 1\n", 23, "joint \"rod\".length", "start pose");
  check_complaint("point {} axis { x: 1 } }", "point {} axis { x: 1 } normal { x: 1 } }", 26,
                  "joint \"rod\".at_start.normal", "perpendicular");
  check_complaint("type: CYLINDRICAL\n  first: \"A\"\n  second: \"B\"\n  at_start { point {} axis { x: 1 } }",
                  "type: PLANAR\n  first: \"A\"\n  second: \"B\"\n  at_start { point {} axis { x: 1 } coordinate: 1 }",
                  26, "joint \"rod\".at_start.coordinate", "measures from the start");

  const std::string pose = "output { name: \"pose\" body_pose { body: \"B\" } }";  // line 35
  const auto coupling = [&](const std::string& text, const std::string& field, const std::string& problem) {
    check_complaint(pose, "coupling { name: \"mesh\" " + text + " }", 35, "coupling \"mesh\"." + field, problem);
  };
  const std::string hinge = "first_joint: \"hinge\" ", angle = "second_joint: \"rod\" second_freedom: ANGLE ";
  coupling(hinge + angle, "ratio", "is 0");
  coupling("first_joint: \"hing\" ratio: 2 " + angle, "first_joint", "\"hing\"");
  coupling(hinge + "ratio: 2", "second_joint", "is missing");
  coupling(hinge + "second_joint: \"rod\" ratio: 2", "second_freedom", "has two");
  coupling(hinge + "second_joint: \"rod\" second_freedom: DISPLACEMENT_X ratio: 2", "second_freedom", "displacement_x");
  coupling(hinge + "second_joint: \"hinge\" ratio: 2", "second_freedom", "first one again");

  const auto driver = [&](const std::string& text, const std::string& field, const std::string& problem) {
    check_complaint(pose, "driver { name: \"motor\" joint: \"hinge\" " + text + " }", 35, "driver \"motor\"." + field,
                    problem);
  };
  driver("", "polynomial", "is missing");
  driver("polynomial {}", "coefficient", "is missing");
  driver("polynomial { coefficient: inf }", "coefficient", "finite");
  driver("harmonic { amplitude: nan }", "amplitude", "finite");
  driver("table { time: 0 value: 1 }", "time", "has 1 points");
  driver("table { time: [0, 1] value: 1 }", "value", "has 1 numbers for 2 times");
  driver("table { time: [0, 1, 1] value: [0, 0, 0] }", "time", "1 s comes after 1 s");
  driver("input { position_only {} }", "time_constant", "is 0 s");
  driver("freedom: DISPLACEMENT polynomial { coefficient: 0 }", "freedom", "displacement");
  check_complaint(pose,
                  "driver { name: \"one\" joint: \"hinge\" polynomial { coefficient: 0 } }\n"
                  "driver { name: \"two\" joint: \"hinge\" polynomial { coefficient: 0 } }",
                  36, "driver \"two\".freedom", "driven by \"one\"");
  check_complaint(pose, "output { name: \"torque\" driver_effort { driver: \"motor\" } }", 35,
                  "output \"torque\".driver", "\"motor\"");
}

TEST_CASE("couplings and drivers are read as they are written") {
  const std::string pose = "output { name: \"pose\" body_pose { body: \"B\" } }";
  const LoadedMechanism loaded = parse_mechanism(
      replaced(
          pose,
          "coupling { name: \"mesh\" first_joint: \"rod\" first_freedom: ANGLE second_joint: \"hinge\" ratio: 2 }\n"
          "driver { name: \"a\" joint: \"rod\" freedom: DISPLACEMENT input {} }\n"
          "driver { name: \"b\" joint: \"hinge\" input { position_only { time_constant: 0.1 } } }\n"
          "output { name: \"force\" driver_effort { driver: \"a\" } }"),
      "m.textproto");
  const Mechanism& m = loaded.mechanism;
  REQUIRE(m.couplings().size() == 1);
  CHECK(m.coordinates()[m.couplings()[0].first].joint == 1);
  CHECK(m.coordinates()[m.couplings()[0].second].joint == 0);
  CHECK(m.couplings()[0].ratio == 2.0);
  REQUIRE(m.drivers().size() == 2);
  CHECK(m.drivers()[1].time_constant == 0.1);
  std::vector<std::string> names;
  for (const Channel& channel : m.input_channels()) names.push_back(channel.name + " " + channel.unit);
  CHECK(names == std::vector<std::string>{"drive N m", "a.position m", "a.velocity m/s", "a.acceleration m/s^2",
                                          "b.position rad"});
  CHECK(m.drivers()[1].first_channel == 4);
  CHECK(m.output_channels()[0].unit == "N");
  CHECK(loaded.coupling_line == std::vector<int>{35});
  CHECK(loaded.driver_line == std::vector<int>{36, 37});
  CHECK(m.constraint_name(1) == "joint \"rod\"");
  CHECK(m.constraint_name(2) == "coupling \"mesh\"");
  CHECK(m.constraint_name(4) == "driver \"b\"");
}

TEST_CASE("a driver that contradicts the start is told at its line") {
  const LoadedMechanism loaded = parse_mechanism(
      replaced("output { name",
               "driver { name: \"motor\" joint: \"hinge\" polynomial { coefficient: 0.5 } }\noutput { name"),
      "m.textproto");
  try {
    index3::require_consistent_start(loaded.mechanism);
    FAIL("accepted");
  } catch (const index3::StartError& error) {
    CHECK(starts_with(loaded.at_joint(error.joint, error).what(), "m.textproto:35: driver \"motor\": prescribes"));
  }
}

TEST_CASE("a mechanism without a body, without a name or with too many channels is refused") {
  CHECK_THROWS_WITH_AS(parse_mechanism("name: \"empty\"\n", "m"), doctest::Contains("body: there is none"),
                       ConfigError);
  CHECK(complaint("name: \"good\"\n", "").find("name: is missing") != std::string::npos);
  std::string poses = "pose\" body_pose { body: \"B\" } }\n";
  for (int k = 0; k < 18; ++k) poses += "output { name: \"p" + std::to_string(k) + "\" body_pose { body: \"B\" } }\n";
  CHECK(complaint("pose\" body_pose { body: \"B\" } }\n", poses).find("output: make 133 channels") !=
        std::string::npos);
}

TEST_CASE("the constant part of a load is 1 if it is left out, but 0 beside an amplitude") {
  const auto constant = [](const std::string& rest) {
    return parse_mechanism(replaced("amplitude: 2 angular_frequency: 3", rest), "m").mechanism.loads()[0].constant;
  };
  CHECK(constant("") == 1.0);
  CHECK(constant("amplitude: 2 angular_frequency: 3") == 0.0);
  CHECK(constant("constant: 0.5 amplitude: 2") == 0.5);
  CHECK(constant("constant: 0") == 0.0);
}

TEST_CASE("the freedom may be left out where a joint has only one") {
  const std::string in_joint = "in_joint { joint: \"hinge\" }";
  const auto coordinate = [&](const std::string& text) {
    return parse_mechanism(replaced(in_joint, text), "m").mechanism.coordinates()[0];
  };
  CHECK(coordinate(in_joint).freedom == Freedom::angle);
  CHECK(coordinate("in_joint { joint: \"rod\" freedom: DISPLACEMENT }").freedom == Freedom::displacement);
  CHECK(coordinate("in_joint { joint: \"rod\" freedom: ANGLE }").joint == 1);
}

TEST_CASE("a start that contradicts a joint is told at the joint's line") {
  const LoadedMechanism loaded = parse_mechanism(
      replaced(
          "at_start { point {} axis { z: 1 } }",
          "in_first { point { x: 1 } axis { z: 1 } normal { x: 1 } }\n  in_second { axis { z: 1 } normal { x: 1 } }"),
      "m.textproto");
  try {
    index3::require_consistent_start(loaded.mechanism);
    FAIL("an open joint was accepted");
  } catch (const index3::StartError& error) {
    CHECK(error.joint == 0);
    CHECK(starts_with(loaded.at_joint(error.joint, error).what(), "m.textproto:14: joint \"hinge\": is open by 0.5 m"));
  }
}

TEST_CASE("a file with another start pose is written and read back to the last bit") {
  const Mechanism before = parse_mechanism(kGood, "m").mechanism;
  std::vector<rigstep::Body> bodies = before.bodies();
  test::Random random(9);
  for (rigstep::Body& b : bodies) {
    b.position_0 = random.vector();
    b.velocity_0 = random.vector();
    b.angular_velocity_0 = random.vector();
    b.orientation = EulerParameters{0.6, 0.0, -0.8, 0.0};
  }
  const Mechanism after = parse_mechanism(with_start(parse_mechanism(kGood, "m"), bodies).text, "m").mechanism;
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    CHECK(after.bodies()[i].position_0 == bodies[i].position_0);
    CHECK(after.bodies()[i].velocity_0 == bodies[i].velocity_0);
    CHECK(after.bodies()[i].angular_velocity_0 == bodies[i].angular_velocity_0);
    CHECK((after.bodies()[i].orientation - bodies[i].orientation).norm() < 1e-15);
    CHECK(after.bodies()[i].mass == before.bodies()[i].mass);
  }
  CHECK(after.joints().size() == before.joints().size());
  CHECK(after.outputs().size() == before.outputs().size());
}

TEST_CASE("a file that is not there is told by its path") {
  CHECK_THROWS_WITH_AS(load_mechanism("/no/such/file"), doctest::Contains("/no/such/file: file: cannot be read"),
                       ConfigError);
  CHECK_THROWS_AS(load_mechanism("/"), ConfigError);
  CHECK_THROWS_AS(load_rig("/no/such/file"), ConfigError);
}

namespace {

std::string rig_complaint(const std::string& text) {
  try {
    parse_rig(text, "rig.textproto");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a rig file needs a mechanism and takes its defaults for the rest") {
  const RigConfig rig = parse_rig("mechanism: \"../a/b.textproto\"", "/x/y/rig.textproto");
  CHECK(rig.mechanism_path == "/x/a/b.textproto");
  CHECK(rig.period_ns == 1'000'000);
  CHECK(rig.iterations == 3);
  CHECK(rig.relative_compliance < 0.0);
  CHECK(rig.projection_passes == 0);
  CHECK(rig.address == "127.0.0.1");
  CHECK(rig.port == 47001);
  CHECK(rig.key_path.empty());
  CHECK_FALSE(rig.allow_unauthenticated);
  CHECK(rig.timeout_steps == 2000);
  CHECK(rig.priority == 80);
  CHECK_FALSE(rig.cpu.has_value());
  CHECK(rig.max_input_age_steps == 20);
  CHECK(starts_with(rig_complaint(""), "rig.textproto: mechanism: is missing"));
}

TEST_CASE("a limit of the step's error is read in its units, and what is left out is unlimited") {
  const RigConfig rig =
      parse_rig("mechanism: \"m\" solver { order: 4 error_limit { position: 0.1 mm } }", "rig.textproto");
  CHECK(rig.error_limit.position == 1e-4);
  CHECK(rig.error_limit.holds(1e-4, 1e9));
  CHECK_FALSE(rig.error_limit.holds(1.1e-4, 0.0));
  CHECK(parse_rig("mechanism: \"m\"", "rig.textproto").error_limit.holds(1e9, 1e9));
}

TEST_CASE("without a word about it a rig that falls silent is ramped to safe within 0.25 s and faulted after 2 s") {
  const std::string m = "mechanism: \"m\" ";
  for (const auto& [text, ramp, fault] :
       {std::tuple("", 250u, 2000u), std::tuple("period_us: 100", 2500u, 20'000u),
        std::tuple("period_us: 3000", 84u, 667u), std::tuple("period_us: 100000", 3u, 23u),
        std::tuple("stale_input { max_age_steps: 5 }", 250u, 2000u),
        std::tuple("input { channel: \"c\" max_age_steps: 5000 ramp_steps: 7 }", 250u, 5007u),
        std::tuple("input { channel: \"c\" max_age_steps: 4294967295 }", 250u, 4294967295u)}) {
    const RigConfig rig = parse_rig(m + text, "r");
    const std::string rig_text = text;
    CAPTURE(rig_text);
    CHECK(rig.stale_rule == StaleRule::ramp);
    CHECK(rig.ramp_steps == ramp);
    CHECK(rig.fault_after_steps == fault);
  }
  CHECK(input_policies(parse_rig("mechanism: \"m\"", "r"), test::mechanism("four_bar"))[0].ramp_steps == 250);
  CHECK(parse_rig(m + "input { channel: \"c\" ramp_steps: 0 }", "r").inputs[0].treatment.ramp_steps == 0);

  // to hold for ever takes two words
  CHECK(parse_rig(m + "stale_input { rule: HOLD }", "r").fault_after_steps == 2000);
  const RigConfig hold = parse_rig(m + "stale_input { rule: HOLD fault_after_steps: 0 }", "r");
  CHECK(hold.stale_rule == StaleRule::hold);
  CHECK(hold.fault_after_steps == 0);
  CHECK(starts_with(rig_complaint(m + "\nstale_input { fault_after_steps: 20 }"),
                    "rig.textproto:2: stale_input.fault_after_steps: is not more than max_age_steps"));
}

TEST_CASE("missed deadlines are a fault from a second of them on, unless the file says no limit") {
  const RigConfig rig = parse_rig("mechanism: \"m\"", "r");
  CHECK(rig.consecutive_misses == 1000);
  CHECK(rig.misses_per_second == 750);
  const RigConfig slow = parse_rig("mechanism: \"m\" period_us: 500000", "r");
  CHECK(slow.consecutive_misses == 10);
  CHECK(slow.misses_per_second == 10);
  const RigConfig own =
      parse_rig("mechanism: \"m\" realtime { deadline_misses_until_fault { consecutive: 3 per_second: 0 } }", "r");
  CHECK(own.consecutive_misses == 3);
  CHECK(own.misses_per_second == 0);
}

TEST_CASE("the link of a rig file: the key lies beside it, the time-out is two seconds at any period") {
  const RigConfig rig = parse_rig("mechanism: \"m\" link { key_file: \"../bench.key\" }", "/x/y/rig.textproto");
  CHECK(rig.key_path == "/x/bench.key");
  CHECK(parse_rig("mechanism: \"m\" link { key_file: \"/etc/k\" }", "/x/y/rig.textproto").key_path == "/etc/k");
  CHECK(parse_rig("mechanism: \"m\" period_us: 100", "r").timeout_steps == 20'000);
  CHECK(parse_rig("mechanism: \"m\" period_us: 1000000", "r").timeout_steps == 2);
  CHECK(parse_rig("mechanism: \"m\" link { timeout_steps: 50 }", "r").timeout_steps == 50);
}

TEST_CASE("settings of a rig that cannot work are told at their line") {
  const std::string start = "mechanism: \"m\"\n";
  CHECK(starts_with(rig_complaint(start + "period_us: 19"), "rig.textproto:2: period_us: "));
  CHECK(starts_with(rig_complaint(start + "period_us: 1000001"), "rig.textproto:2: period_us: "));
  CHECK(starts_with(rig_complaint(start + "solver {\n iterations: 51 }"), "rig.textproto:3: solver.iterations: "));
  CHECK(starts_with(rig_complaint(start + "solver {\n projection_passes: 51 }"),
                    "rig.textproto:3: solver.projection_passes: "));
  CHECK(starts_with(rig_complaint(start + "solver {\n\n relative_compliance: 0.5 }"),
                    "rig.textproto:4: solver.relative_compliance: "));
  CHECK(starts_with(rig_complaint(start + "solver {\n error_limit { position: 1 mm } }"),
                    "rig.textproto:3: solver.error_limit: needs steps that estimate their error"));
  CHECK(starts_with(rig_complaint(start + "solver { order: 4\n error_limit {} }"),
                    "rig.textproto:3: solver.error_limit: limits nothing"));
  CHECK(starts_with(rig_complaint(start + "solver { order: 4 error_limit {\n orientation: -1 } }"),
                    "rig.textproto:3: solver.error_limit.orientation: is no limit"));
  CHECK(starts_with(rig_complaint(start + "link { port: 70000 }"), "rig.textproto:2: link.port: "));
  CHECK(starts_with(rig_complaint(start + "link { timeout_steps: 9 }"), "rig.textproto:2: link.timeout_steps: "));
  CHECK(starts_with(rig_complaint(start + "link { timeout_steps: 60001 }"), "rig.textproto:2: link.timeout_steps: "));
  CHECK(starts_with(rig_complaint(start + "realtime { priority: 100 }"), "rig.textproto:2: realtime.priority: "));
  CHECK(starts_with(rig_complaint(start + "speed: 3"), "rig.textproto:2: speed: "));
  CHECK(starts_with(rig_complaint(start + "perod_us: 3"),
                    "rig.textproto:2: perod_us: is no field of Rig: did you mean "
                    "period_us?"));
  CHECK(starts_with(rig_complaint("name: \"m\"\nbody {}"), "rig.textproto:1: name: belongs into a mechanism file"));
}

TEST_CASE("a rig file says who paces, what is kept for a fault, and what each channel may do") {
  const RigConfig rig = parse_rig(
      "mechanism: \"m\" stale_input { max_age_steps: 30 rule: ZERO } realtime { pace: RIG busy_poll_us: 40 }\n"
      "black_box { folder: \"boxes\" }\n"
      "input { channel: \"drive\" rule: RAMP safe: 1 ramp_steps: 50 minimum: -10 maximum: 10\n"
      "        most_change_per_step: 0.5 }\n"
      "input { channel: \"other\" max_age_steps: 7 }\n"
      "safe_output { channel: \"phi\" value: 2 ramp_steps: 100 }",
      "rig.textproto");
  CHECK(rig.lockstep);
  CHECK(rig.busy_poll_ns == 40'000);
  CHECK(rig.black_box_folder == "boxes");
  CHECK(rig.black_box_seconds == 30.0);
  CHECK(rig.black_box_least_interval_s == 10.0);
  CHECK(rig.most_black_boxes == 50);
  CHECK(rig.most_black_box_bytes == std::uint64_t{1024} << 20);
  CHECK(rig.disk_reserve_bytes == std::uint64_t{100} << 20);
  REQUIRE(rig.inputs.size() == 2);
  CHECK(rig.inputs[0].treatment.rule == StaleRule::ramp);
  CHECK(rig.inputs[0].treatment.max_age_steps == 30);
  CHECK(rig.inputs[0].treatment.safe == 1.0);
  CHECK(rig.inputs[0].treatment.ramp_steps == 50);
  CHECK(rig.inputs[0].treatment.minimum == -10.0);
  CHECK(rig.inputs[0].treatment.most_change_per_step == 0.5);
  CHECK(rig.inputs[1].treatment.rule == StaleRule::zero);
  CHECK(rig.inputs[1].treatment.max_age_steps == 7);
  CHECK(parse_rig("mechanism: \"m\" stale_input { rule: STOP }", "r").stale_rule == StaleRule::fault);
  CHECK_FALSE(parse_rig("mechanism: \"m\"", "r").lockstep);

  const Mechanism m = test::mechanism("four_bar");
  RigConfig other = rig;
  other.inputs.pop_back();
  const auto policies = input_policies(other, m);
  REQUIRE(policies.size() == 1);
  CHECK(policies[0].ramp_steps == 50);
  const auto outputs = safe_outputs(other, m);
  REQUIRE(outputs.size() == 1);
  CHECK(m.output_channels()[static_cast<std::size_t>(outputs[0].channel)].name == "phi");
  CHECK(outputs[0].value == 2.0);
  CHECK_THROWS_WITH_AS(
      input_policies(rig, m),
      "rig.textproto:5: input.channel: \"other\" is no input channel of the mechanism: use one of drive", ConfigError);
  other.safe_outputs[0].channel = "psi";
  CHECK_THROWS_WITH_AS(safe_outputs(other, m), doctest::Contains("rig.textproto:6: safe_output.channel: \"psi\""),
                       ConfigError);
}

TEST_CASE("what is found wrong with a rig file after loading is told at its line, too") {
  const RigConfig rig =
      parse_rig("mechanism: \"m\"\nlink {\n address: \"0.0.0.0\"\n}\noutput: \"a\"\noutput: \"b\"\n\noutput: \"c\"",
                "rig.textproto");
  CHECK(place_in(rig, "link.address") == "rig.textproto:3: link.address");
  CHECK(place_in(rig, "output") == "rig.textproto:5: output");
  CHECK(place_in(rig, "output", 2) == "rig.textproto:8: output");
  CHECK(place_in(rig, "link.key_file") == "rig.textproto:2: link.key_file");  // not written: what encloses it
  CHECK(place_in(rig, "black_box.folder") == "rig.textproto: black_box.folder");
  const RigConfig list = parse_rig("mechanism: \"m\"\noutput: [\"a\", \"b\"]", "rig.textproto");
  CHECK(place_in(list, "output", 1) == "rig.textproto:2: output");
}

TEST_CASE("what a rig file says of a channel has to be possible, and is refused at its line") {
  const auto complaint = [](const std::string& text) { return rig_complaint("mechanism: \"m\"\n" + text); };
  const auto of_drive = [&](const std::string& fields) {
    return complaint("input { channel: \"drive\"\n" + fields + " }");
  };
  CHECK(starts_with(of_drive("minimum: 2 maximum: 1"), "rig.textproto:3: input \"drive\".minimum: "));
  CHECK(starts_with(of_drive("minimum: nan"), "rig.textproto:3: input \"drive\".minimum: "));
  CHECK(starts_with(of_drive("safe: 3 maximum: 1"), "rig.textproto:3: input \"drive\".safe: "));
  CHECK(starts_with(of_drive("safe: inf"), "rig.textproto:3: input \"drive\".safe: "));
  CHECK(starts_with(of_drive("minimum: 1"), "rig.textproto:2: input \"drive\".safe: "));
  CHECK(starts_with(of_drive("rule: ZERO minimum: 1 safe: 2"), "rig.textproto:3: input \"drive\".rule: "));
  CHECK(starts_with(of_drive("most_change_per_step: 0"), "rig.textproto:3: input \"drive\".most_change_per_step: "));
  CHECK(starts_with(complaint("input { rule: HOLD }"), "rig.textproto:2: input.channel: is missing"));
  CHECK(starts_with(complaint("input { channel: \"a\" }\ninput { channel: \"a\" }"),
                    "rig.textproto:3: input \"a\".channel: is named twice"));
  CHECK(starts_with(complaint("safe_output { channel: \"a\" value: inf }"),
                    "rig.textproto:2: safe_output \"a\".value: "));
  CHECK(starts_with(complaint("stale_input { rule: RATE }"), "rig.textproto:2: stale_input.rule: "));
  CHECK(starts_with(complaint("realtime { busy_poll_us: 1000 }"), "rig.textproto:2: realtime.busy_poll_us: "));
  CHECK(starts_with(complaint("black_box { seconds: 5 }"), "rig.textproto:2: black_box.folder: is missing"));
  CHECK(starts_with(complaint("black_box { folder: \".\" seconds: 2000 }"), "rig.textproto:2: black_box.seconds: "));
  CHECK(starts_with(complaint("black_box { folder: \".\" least_interval_seconds: -1 }"),
                    "rig.textproto:2: black_box.least_interval_seconds: "));
}

namespace {

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path(folder)))
    if (entry.path().extension() == ".textproto") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("every mechanism that comes with the program loads and starts") {
  const auto files = files_in("config/mechanisms");
  CHECK(files.size() >= 11);
  for (const std::string& file : files) {
    CAPTURE(file);
    const LoadedMechanism loaded = load_mechanism(file);
    CHECK(loaded.mechanism.name() == std::filesystem::path(file).stem().string());
    CHECK_NOTHROW(index3::require_consistent_start(loaded.mechanism));
    index3::Stepper stepper(loaded.mechanism, {});
    CHECK_FALSE(failed(stepper.step(Inputs{}).status));
  }
}

TEST_CASE("every rig that comes with the program loads with its mechanism, and its outputs exist") {
  const auto files = files_in("config/rigs");
  CHECK(files.size() >= 3);
  for (const std::string& file : files) {
    CAPTURE(file);
    const RigConfig rig = load_rig(file);
    const Mechanism m = load_mechanism(rig.mechanism_path).mechanism;
    for (const std::string& name : rig.outputs) {
      const auto named = [&](const rigstep::Output& o) { return o.name == name; };
      CHECK(std::any_of(m.outputs().begin(), m.outputs().end(), named));
    }
  }
}

TEST_CASE("the mechanism files are the mechanisms of the papers as the tests build them") {
  const std::pair<std::string, rigstep::Mechanism> cases[] = {{"double_pendulum", test::build(test::double_pendulum())},
                                                              {"four_bar", test::build(test::four_bar(0.25 * kPi))}};
  for (const auto& each : cases) {
    const std::string& name = each.first;
    const rigstep::Mechanism& built = each.second;
    const Mechanism file = test::mechanism(name);
    CAPTURE(name);
    REQUIRE(file.bodies().size() == built.bodies().size());
    REQUIRE(file.joints().size() == built.joints().size());
    for (std::size_t i = 0; i < file.bodies().size(); ++i) {
      CHECK(file.bodies()[i].name == built.bodies()[i].name);
      CHECK((file.bodies()[i].position_0 - built.bodies()[i].position_0).norm() < 1e-15);
      const EulerParameters p = file.bodies()[i].orientation, q = built.bodies()[i].orientation;
      CHECK(std::min((p - q).norm(), (p + q).norm()) < 1e-15);
    }
    for (std::size_t j = 0; j < file.joints().size(); ++j) {
      CHECK(file.joints()[j].name == built.joints()[j].name);
      CHECK(file.joints()[j].type == built.joints()[j].type);
      CHECK((file.joints()[j].in_first.point_b - built.joints()[j].in_first.point_b).norm() < 1e-15);
      CHECK((file.joints()[j].in_second.point_b - built.joints()[j].in_second.point_b).norm() < 1e-15);
    }
  }
}

TEST_CASE("a mechanism written with another start keeps its joints, with what their coordinates measure") {
  for (const auto& entry : std::filesystem::directory_iterator(test::source_path("config/mechanisms"))) {
    const LoadedMechanism loaded = load_mechanism(entry.path().string());
    CAPTURE(loaded.path);
    std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
    for (rigstep::Body& body : moved) body.position_0[0] += 1e-15;  // so that every joint is written anew
    const Mechanism again = parse_mechanism(with_start(loaded, moved).text, "again").mechanism;
    const index3::Settings settings{.dt_ns = 100'000};
    index3::Stepper a(loaded.mechanism, settings), b(again, settings);
    for (int k = 0; k < 50; ++k) {
      REQUIRE_FALSE(failed(a.step(Inputs{}).status));
      REQUIRE_FALSE(failed(b.step(Inputs{}).status));
    }
    for (std::size_t i = 0; i < a.state().body.size(); ++i)
      CHECK((a.state().body[i].r - b.state().body[i].r).norm() < 1e-12);
    for (std::size_t c = 0; c < a.state().coordinate.size(); ++c)
      CHECK(a.state().coordinate[c] == doctest::Approx(b.state().coordinate[c]).epsilon(1e-9));
  }
}

TEST_CASE("a joint placed at the start stays where it is in its bodies when the start moves") {
  const LoadedMechanism loaded = load_mechanism(test::source_path("config/mechanisms/pipelayer.textproto"));
  std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
  for (rigstep::Body& body : moved) body.position_0 += Vec3(0.1, -0.2, 0.3) * static_cast<double>(&body - moved.data());
  const Mechanism again = parse_mechanism(with_start(loaded, moved).text, "again").mechanism;
  for (std::size_t j = 0; j < again.joints().size(); ++j)
    CHECK((again.joints()[j].in_second.point_b - loaded.mechanism.joints()[j].in_second.point_b).norm() < 1e-14);
}

TEST_CASE("parameters of a file, and what a wrong one is told as") {
  const std::string parameter =
      "parameter { name: \"soft\" of: \"soft.stiffness\" of: \"A.mass\" factor: 1.5 factor: 1 minimum: 0.5 maximum: 9 "
      "}\n";
  LoadedMechanism loaded = parse_mechanism(kGood + parameter, "m.textproto");
  REQUIRE(loaded.mechanism.parameters().size() == 1);
  CHECK(loaded.mechanism.parameters()[0].value == 2.0);
  CHECK(loaded.mechanism.parameters()[0].unit == "N m/rad");
  CHECK(loaded.mechanism.parameters()[0].tunable);
  set_parameters(loaded, {{"soft", 4.0}});
  CHECK(loaded.mechanism.springs()[0].stiffness == 6.0);
  CHECK(loaded.mechanism.bodies()[0].mass == 4.0);
  CHECK_THROWS_AS(set_parameters(loaded, {{"soft", 10.0}}), MechanismError);
  CHECK_THROWS_AS(set_parameters(loaded, {{"sofd", 1.0}}), MechanismError);
  const int line = static_cast<int>(std::count(kGood, kGood + std::string(kGood).size(), '\n')) + 1;
  const auto wrong = [&](const std::string& from, const std::string& to, const std::string& field,
                         const std::string& problem) {
    test::check_complaint(kGood + test::replaced(parameter, from, to), line, "parameter \"soft\"." + field, problem);
  };
  wrong("A.mass", "B.mass", "of", "makes it 1");
  wrong("A.mass", "A.mess", "of", "nothing is named");
  wrong("minimum: 0.5 ", "", "minimum", "is missing");
  wrong("factor: 1.5 ", "", "factor", "is given 1 times");
  wrong("maximum: 9", "maximum: 1", "minimum", "leave out");
}

}  // namespace rigstep::config
