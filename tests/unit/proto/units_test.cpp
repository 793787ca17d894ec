#include "proto/units.h"

#include <doctest/doctest.h>
#include <google/protobuf/descriptor.h>

#include <cstdlib>
#include <numbers>
#include <set>
#include <string>

#include "proto/dimensions.h"
#include "proto/load_mechanism.h"
#include "proto/load_rig.h"
#include "proto/mechanism.pb.h"
#include "proto/rig.pb.h"
#include "proto/written_units.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

namespace pb = google::protobuf;

double in_si(const std::string& number, const std::string& unit) {
  const Unit from = *parse_unit(unit);
  return std::strtod(converted(number, from, Unit{from.power}).c_str(), nullptr);
}

std::string mechanism_with(const std::string& lines) {
  return "name: \"m\"\n"
         "body { name: \"A\" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } }\n"
         "body { name: \"B\" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } position { x: 1 } }\n"
         "joint { name: \"hinge\" type: REVOLUTE first: \"ground\" second: \"A\" at_start { point {} axis { y: 1 } } "
         "}\n"
         "joint { name: \"slide\" type: PRISMATIC first: \"ground\" second: \"B\" at_start { point {} axis { x: 1 } } "
         "}\n" +
         lines;
}

Mechanism in_units(const std::string& lines) { return parse_mechanism(mechanism_with(lines), "m.textproto").mechanism; }

std::string unit_complaint(const std::string& lines) {
  try {
    in_units(lines);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

bool tells(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Every floating-point field that can be reached, with the field that holds its message.
void collect(const pb::Descriptor& message, const pb::FieldDescriptor* parent,
             std::set<std::pair<const pb::FieldDescriptor*, const pb::FieldDescriptor*>>& fields) {
  for (int k = 0; k < message.field_count(); ++k) {
    const pb::FieldDescriptor& field = *message.field(k);
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE) fields.insert({&field, parent});
    if (field.message_type() != nullptr) collect(*field.message_type(), &field, fields);
  }
}

// Directions, Euler parameters and numbers that no unit belongs to.
const std::set<std::string> kPlain{"Orientation.e0",
                                   "Orientation.e1",
                                   "Orientation.e2",
                                   "Orientation.e3",
                                   "AxisAngle.axis",
                                   "TwoAxes.x",
                                   "TwoAxes.y",
                                   "TwoAxes.z",
                                   "Cylinder.axis",
                                   "Tube.axis",
                                   "Rod.axis",
                                   "Capsule.axis",
                                   "JointAtStart.axis",
                                   "JointSide.axis",
                                   "JointAtStart.second_axis",
                                   "JointAtStart.normal",
                                   "JointSide.normal",
                                   "BodyForce.direction",
                                   "Tyre.axis",
                                   "AlongDirection.direction",
                                   "BodyTorque.direction",
                                   "InputAtStart.direction",
                                   "Tyre.road_normal",
                                   "TyreAtStart.axis",
                                   "SlipCurve.b",
                                   "SlipCurve.c",
                                   "SlipCurve.e",
                                   "SlipCurve.friction",
                                   "Mesh.scale",
                                   "Solver.relative_compliance",
                                   "Parameter.factor",
                                   "ReferenceSolvers.penalty_factor"};

}  // namespace

TEST_CASE("decimal units give the number that the SI text gives, to the bit") {
  CHECK(in_si("250", "mm") == 0.25);
  CHECK(in_si("0.1", "mm") == 0.0001);
  CHECK(in_si("3", "um") == 3e-6);
  CHECK(in_si("2.5e3", "g") == 2.5);
  CHECK(in_si("35.7", "cm") == 0.357);
  CHECK(in_si("7.85", "g/cm^3") == 7850.0);
  CHECK(in_si("2", "kN/m") == 2000.0);
  CHECK(in_si("2", "N/mm") == 2000.0);
  CHECK(in_si("1.5", "kN mm") == 1.5);
  CHECK(in_si("4", "kN m s/rad") == 4000.0);
  CHECK(in_si("4", "Nm/rad") == 4.0);
  CHECK(in_si("9.81", "m/s2") == 9.81);
  CHECK(in_si("5.", "mm") == 0.005);
  CHECK(in_si("1e-3", "km") == 1.0);
}

TEST_CASE("degrees, turns and minutes are what they are") {
  constexpr double kPi = std::numbers::pi;
  CHECK(in_si("180", "deg") == kPi);
  CHECK(in_si("90", "\u00b0") == 0.5 * kPi);
  CHECK(in_si("30", "rpm") == doctest::Approx(kPi).epsilon(1e-15));
  CHECK(in_si("5", "min") == 300.0);
  CHECK(in_si("1", "N m/deg") == doctest::Approx(180.0 / kPi).epsilon(1e-15));
  CHECK(in_si("2", "deg/s^2") == doctest::Approx(kPi / 90.0).epsilon(1e-15));
}

TEST_CASE("what is no unit is told with the nearest ones") {
  for (const char* text : {"mmm", "furlong", "N/", "/m", "N//m", "m^", "3", "N/(m)", "m^12"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_unit(text).has_value());
  }
  CHECK(find_unknown("N/mmm").written == "mmm");
  CHECK(find_unknown("N/mmm").nearest.starts_with("mm"));
}

TEST_CASE("a number goes back into its unit with the digits that lead to it again") {
  const Unit mm = *parse_unit("mm"), metre = *parse_unit("m"), degree = *parse_unit("deg"), radian = *parse_unit("rad");
  CHECK(shortest(0.25, mm, metre) == "250");
  CHECK(shortest(0.1234567, mm, metre) == "123.4567");
  CHECK(shortest(-1e-7, mm, metre) == "-1e-04");
  for (const double value : {0.1, 1.0 / 3.0, -2.7182818284590452, 1e-9, 12345.678}) {
    CHECK(std::strtod(converted(shortest(value, mm, metre), mm, metre).c_str(), nullptr) == value);
    CHECK(std::strtod(converted(shortest(value, degree, radian), degree, radian).c_str(), nullptr) ==
          doctest::Approx(value).epsilon(4e-16));
  }
}

TEST_CASE("every floating-point field of both files has its dimension, and no plain number has one") {
  std::set<std::pair<const pb::FieldDescriptor*, const pb::FieldDescriptor*>> fields;
  collect(*wire::Mechanism::descriptor(), nullptr, fields);
  collect(*wire::Rig::descriptor(), nullptr, fields);
  CHECK(fields.size() > 100);
  for (const auto& [field, parent] : fields) {
    const bool is_vector = parent != nullptr && parent->message_type()->name() == "Vector";
    const pb::FieldDescriptor& of = is_vector ? *parent : *field;
    const std::string name = of.containing_type()->name() + "." + of.name();
    const std::string& field_name = field->full_name();
    CAPTURE(field_name);
    CAPTURE(name);
    const std::string dimension = dimension_of(*field, parent, 0);
    CHECK(dimension.empty() == kPlain.contains(name));
    if (!is_open(dimension)) CHECK(parse_unit(dimension).has_value());
  }
}

TEST_CASE("a file in units of all kinds is the mechanism of the file in SI") {
  const std::string units =
      "gravity { z: -981 cm/s^2 }\n"
      "body { name: \"C\" mass: 250 g inertia { xx: 1 kg m^2 yy: 1e7 g cm^2 zz: 1 } position { x: 250 mm y: -1 km }\n"
      "  velocity { x: 3 mm/s } angular_velocity { z: 3e3 mrad/s } orientation { euler { sequence: \"zyx\" angle: [90 "
      "deg, "
      "0, 180 "
      "\u00b0] } } }\n"
      "spring { name: \"s\" in_joint { joint: \"slide\" } stiffness: 2 kN/m damping: 5 N s/m rest: 10 mm preload: 2 kN "
      "}\n"
      "spring { name: \"t\" in_joint { joint: \"hinge\" } stiffness: 2 kN m/rad damping: 5 N m s/rad rest: 180 deg }\n"
      "effort { name: \"e\" joint: \"slide\" polynomial { coefficient: [1 kN, 2 N/s, 3 N/s^2] } }\n"
      "driver { name: \"d\" joint: \"hinge\" table { time: [0, 100 ms] value: [0, 180 deg] } }\n"
      "bushing { name: \"b\" first: \"A\" second: \"B\" at_start { point {} }\n"
      "  stiffness { diagonal: [1 kN/mm, 1e6, 1e6, 1 kN m/rad, 1e3, 1e3] } damping { diagonal: [1 kN s/m, 1, 1, 1 N m "
      "s/rad, 1, 1] } }\n";
  const std::string si =
      "gravity { z: -9.81 }\n"
      "body { name: \"C\" mass: 0.25 inertia { xx: 1 yy: 1 zz: 1 } position { x: 0.25 y: -1000 }\n"
      "  velocity { x: 0.003 } angular_velocity { z: 3 } orientation { euler { sequence: \"zyx\" "
      "angle: "
      "[1.5707963267948966, 0, 3.141592653589793] } } }\n"
      "spring { name: \"s\" in_joint { joint: \"slide\" } stiffness: 2000 damping: 5 rest: 0.01 preload: 2000 }\n"
      "spring { name: \"t\" in_joint { joint: \"hinge\" } stiffness: 2000 damping: 5 rest: 3.141592653589793 }\n"
      "effort { name: \"e\" joint: \"slide\" polynomial { coefficient: [1000, 2, 3] } }\n"
      "driver { name: \"d\" joint: \"hinge\" table { time: [0, 0.1] value: [0, 3.141592653589793] } }\n"
      "bushing { name: \"b\" first: \"A\" second: \"B\" at_start { point {} }\n"
      "  stiffness { diagonal: [1e6, 1e6, 1e6, 1e3, 1e3, 1e3] } damping { diagonal: [1e3, 1, 1, 1, 1, 1] } }\n";
  CHECK(in_units(units).id() == in_units(si).id());
}

TEST_CASE("a unit of another kind is refused with the line, what is meant, and what would do") {
  CHECK(unit_complaint("body { name: \"C\" mass: 250 mm }")
            .starts_with("m.textproto:6: body.mass: is in mm, a length, but takes kg, a mass: write g, kg or t"));
  CHECK(tells(unit_complaint("gravity {\n z: -9.81 m/s }"), "m.textproto:7: gravity.z: is in m/s, a velocity"));
  CHECK(tells(unit_complaint("body { name: \"C\" mass: 250 gram }"),
              "\"gram\" is no unit that is known: the nearest are"));
  CHECK(tells(unit_complaint("tyre { longitudinal { friction: 0.8 N } }"), "takes a plain number"));
  CHECK(tells(unit_complaint("joint { at_start { axis { x: 1 m } } }"), "takes a plain number"));
}

TEST_CASE("where the joint decides about the kind of a unit, it does") {
  const auto spring = [](const char* joint, const char* unit) {
    return unit_complaint("spring {\n name: \"s\" in_joint { joint: \"" + std::string(joint) + "\" }\n stiffness: 2 " +
                          unit + " }");
  };
  CHECK(spring("slide", "kN/m").empty());
  CHECK(spring("hinge", "kN m/rad").empty());
  CHECK(spring("hinge", "N m/deg").empty());
  CHECK(spring("hinge", "kN/m") ==
        "m.textproto:8: spring \"s\".stiffness: is in kN/m, the stiffness of a displacement, but takes N m/rad, the "
        "stiffness of "
        "an angle here: write N m/rad, N m/deg or kN m/rad, or a plain number in N m/rad");
  CHECK(tells(spring("slide", "N m/rad"), "takes N/m, the stiffness of a displacement here"));
  CHECK(tells(unit_complaint("joint_friction { name: \"f\" joint: \"hinge\" coulomb: 2 N }"),
              "takes N m, a torque here"));
  CHECK(tells(unit_complaint("motor { name: \"f\" joint: \"slide\" effort_limit: 1 no_load_speed: 2 rpm }"),
              "takes m/s, a velocity here"));
  CHECK(tells(unit_complaint("stop { name: \"f\" in_joint { joint: \"slide\" } lower: 2 deg stiffness: 1 }"),
              "stop \"f\".lower"));
  CHECK(tells(unit_complaint("effort { name: \"f\" joint: \"slide\" polynomial { coefficient: [0, 2 N] } }"),
              "takes N/s^1"));
  CHECK(tells(unit_complaint("driver { name: \"f\" joint: \"slide\" harmonic { constant: 2 deg } }"),
              "takes m, a length here"));
  CHECK(tells(unit_complaint("start { joint: \"slide\" displacement: 0 rate: 2 rad/s }"), "takes m/s"));
  CHECK(tells(
      unit_complaint(
          "bushing { name: \"b\" first: \"A\" second: \"B\" at_start { point {} } stiffness { diagonal: [1, 1, 1, "
          "1 N/m, 1, 1] } }"),
      "takes N m/rad"));
  CHECK(tells(unit_complaint("coupling { name: \"c\" first_joint: \"hinge\" second_joint: \"slide\" ratio: 3 m/rad }"),
              "takes rad/m"));
  CHECK(
      unit_complaint("coupling { name: \"c\" first_joint: \"hinge\" second_joint: \"slide\" ratio: 3 rad/m }").empty());
  CHECK(tells(
      unit_complaint(
          "spring { name: \"s\" between_points { first: \"A\" second: \"B\" second_point { x: 1 } } stiffness: 1 N "
          "m/rad }"),
      "takes N/m"));
}

TEST_CASE("units end where fields begin, and comments, texts and other numbers stay") {
  const std::string text =
      "name: \"5 mm\"  # 5 mm\nbody { mass: 5 kg name: 'x: 3 deg' position { x:1 m y : 2 m, z: -3 m; } }\n"
      "body { mass: 1.5e3 g# a comment\n name: \"B\" inertia { xx: 1 } orientation { e0: 0.8 e3: 0.6 } }\n";
  const TextInSi si = without_units(text, "m", *wire::Mechanism::descriptor());
  CHECK(si.text ==
        "name: \"5 mm\"  # 5 mm\nbody { mass: 5 name: 'x: 3 deg' position { x:1 y : 2, z: -3; } }\n"
        "body { mass: 1.5# a comment\n name: \"B\" inertia { xx: 1 } orientation { e0: 0.8 e3: 0.6 } }\n");
  REQUIRE(si.units.size() == 5);
  for (const WrittenUnit& unit : si.units) {
    CHECK(si.place_in_file(si.units[0].si_end) == si.units[0].end);
    CHECK(text.substr(unit.begin, unit.end - unit.begin).ends_with(unit.text));
    CHECK(si.place_in_file(unit.si_begin) == unit.begin);
  }
  CHECK(si.units.back().element == "body");
  CHECK(si.units.back().index == 1);
  CHECK(si.units.back().line == 3);
}

TEST_CASE("any text is read to its end") {
  for (const std::string text :
       {"", "{{{{", "}}}}", "mass: ", "body { mass: 5", "body { mass: -", "body: [", "body [ { mass: 5 kg", "name: \"",
        "name: '\\", "body { mass: 5 kg /", "body { mass: 5 * }", "#", "x: 5 mm"})
    try {
      without_units(text, "m", *wire::Mechanism::descriptor());
    } catch (const ConfigError&) {
    }
  std::string deep;
  for (int k = 0; k < 100'000; ++k) deep += "body { ";
  CHECK(without_units(deep, "m", *wire::Mechanism::descriptor()).text == deep);
}

TEST_CASE("times of a rig file take units, and whole numbers stay whole") {
  const auto rig = [](const std::string& lines) { return parse_rig("mechanism: \"m\"\n" + lines, "rig.textproto"); };
  CHECK(rig("period_us: 2 ms").period_ns == 2'000'000);
  CHECK(rig("period_us: 0.5 ms").period_ns == 500'000);
  CHECK(rig("link { max_input_delay_ms: 1 s }").max_input_delay_ms == 1000);
  CHECK(rig("black_box { folder: \".\" seconds: 0.5 min }").black_box_seconds == 30.0);
  CHECK_THROWS_WITH_AS(rig("period_us: 0.1 us"),
                       doctest::Contains("rig.textproto:2: period_us: is 0.1 us, but takes whole us"), ConfigError);
  CHECK_THROWS_WITH_AS(rig("period_us: 1 mm"), doctest::Contains("is in mm, a length, but takes us, a time"),
                       ConfigError);
}

TEST_CASE("ranges and start values of parameters take units of what the parameter moves") {
  const std::string spring =
      "spring { name: \"s\" in_joint { joint: \"hinge\" } stiffness: 5 damping: 1 }\n"
      "effort { name: \"e\" joint: \"slide\" polynomial { coefficient: [0, 2] } }\n";
  const auto range = [&](const char* of, const char* minimum, const char* maximum) {
    return spring + "parameter {\n name: \"p\" of: \"" + of + "\"\n minimum: " + minimum + " maximum: " + maximum +
           " }\n";
  };
  const Parameter stiffness = in_units(range("s.stiffness", "500 N mm/rad", "2 kN m/rad")).parameters()[0];
  CHECK(stiffness.minimum == 0.5);
  CHECK(stiffness.maximum == 2000.0);
  CHECK(in_units(range("e.polynomial.coefficient[1]", "1", "1 kN/s")).parameters()[0].maximum == 1000.0);
  CHECK(unit_complaint(range("s.stiffness", "1", "2 kN/m")) ==
        "m.textproto:10: parameter \"p\".maximum: is in kN/m, the stiffness of a displacement, but takes N m/rad, the "
        "stiffness of an angle here: write N m/rad, N m/deg or kN m/rad, or a plain number in N m/rad");
  CHECK(tells(unit_complaint(range("A.mass", "900 mm", "1")), "parameter \"p\".minimum: is in mm, a length"));
  CHECK(tells(unit_complaint(range("e.polynomial.coefficient[1]", "1", "5 N")), "takes N/s^1"));

  const LoadedMechanism loaded =
      parse_mechanism(mechanism_with(range("s.stiffness", "1", "5000") +
                                     "parameter { name: \"q\" of: \"A.mass\" minimum: 0.1 maximum: 9 }"),
                      "m.textproto");
  const auto start = [&](const std::string& text) {
    LoadedMechanism mechanism = loaded;
    set_start_parameters(mechanism, parse_rig("mechanism: \"m\"\nstart {\n" + text + "\n}", "rig.textproto"));
    return std::pair(mechanism.mechanism.parameters()[0].value, mechanism.mechanism.parameters()[1].value);
  };
  CHECK(start("parameter { name: \"q\" value: 250 g }\nparameter { name: \"p\" value: 2 kN m/rad }") ==
        std::pair(2000.0, 0.25));
  CHECK_THROWS_WITH_AS(
      start("parameter { name: \"p\" value: 2 }\nparameter { name: \"q\" value: 3 mm }"),
      doctest::Contains("rig.textproto:4: start.parameter.value: is in mm, but parameter \"q\" is in kg: "
                        "write g, kg or t"),
      ConfigError);
  CHECK_THROWS_WITH_AS(start("parameter { name: \"q\" value: 20 kg }"), doctest::Contains("rig.textproto:3: "),
                       ConfigError);
}

TEST_CASE("values of channels take units of the channel's kind") {
  const Mechanism m = in_units(
      "input { name: \"push\" joint_effort { joint: \"slide\" } }\n"
      "input { name: \"odd\" signal { unit: \"bar\" } }\n"
      "output { name: \"speed\" joint_rate { joint: \"slide\" } }\n");
  const auto rig = [](const std::string& lines) { return parse_rig("mechanism: \"m\"\n" + lines, "rig.textproto"); };
  CHECK(input_policies(rig("input { channel: \"push\" maximum: 2 kN }"), m)[0].maximum == 2000.0);
  CHECK(safe_outputs(rig("safe_output { channel: \"speed\" value: 5 mm/s }"), m)[0].value == 0.005);
  CHECK_THROWS_WITH_AS(input_policies(rig("input {\n channel: \"push\"\n maximum: 2 kN m }"), m),
                       doctest::Contains("rig.textproto:4: maximum: is in kN m, but channel \"push\" is in N"),
                       ConfigError);
  CHECK_THROWS_WITH_AS(input_policies(rig("input { channel: \"odd\" maximum: 2 N }"), m),
                       doctest::Contains("which is not SI"), ConfigError);
  CHECK_THROWS_WITH_AS(safe_outputs(rig("safe_output { channel: \"speed\" value: 5 mm }"), m),
                       doctest::Contains("is in m/s"), ConfigError);
}

}  // namespace rigstep::config
