#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

const std::string kPole =
    "# The pole is drawn upright.\n"
    "name: \"pole\"\n"
    "body {\n"
    "  name: \"cart\"  mass: 2 kg  # the cart\n"
    "  inertia { xx: 1 yy: 1 zz: 1 }\n"
    "}\n"
    "body {\n"
    "  name: \"pole\"\n"
    "  mass: 500 g\n"
    "  inertia { xx: 0.001 yy: 0.001 zz: 0.001 }\n"
    "  position { x: 0 mm z: 500 mm }   # of the mass centre\n"
    "}\n"
    "joint { name: \"rail\" type: PRISMATIC first: \"ground\" second: \"cart\" at_start { point {} axis { x: 1 } } }\n"
    "joint {\n"
    "  name: \"hinge\" type: REVOLUTE first: \"cart\" second: \"pole\"\n"
    "  at_start { point {} axis { y: 1 } }  # where it turns\n"
    "}\n"
    "output { name: \"angle\" joint_coordinate { joint: \"hinge\" } }\n";

Mechanism started(const std::string& more) { return parse_mechanism(kPole + more, "m.textproto").mechanism; }

std::string start_complaint(const std::string& more) {
  try {
    started(more);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

bool has_text(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("start places bodies by joint coordinates, and is part of the mechanism's identity") {
  const Mechanism drawn = started(""), leaning = started("start { joint: \"hinge\" angle: 0.1 rate: 2 rad/s }\n");
  const Body& pole = leaning.bodies()[1];
  CHECK((pole.position_0 - 0.5 * Vec3(std::sin(0.1), 0.0, std::cos(0.1))).norm() < 1e-15);
  CHECK((pole.angular_velocity_0 - Vec3(0.0, 2.0, 0.0)).norm() < 1e-12);
  CHECK(leaning.bodies()[0].position_0 == drawn.bodies()[0].position_0);
  CHECK(leaning.id() != drawn.id());
  CHECK(leaning.id() != started("start { joint: \"hinge\" angle: 0.1 }\n").id());
  CHECK(leaning.id() == started("start { joint: \"hinge\" angle: 100 mrad rate: 2 }\n").id());
  CHECK(leaning.coordinates()[0].offset == 0.1);
  CHECK(started("start { joint: \"rail\" displacement: 250 mm }\n").bodies()[1].position_0 == Vec3(0.25, 0.0, 0.5));
}

TEST_CASE("without start entries nothing moves, and with them the drawn pose is kept beside") {
  CHECK_FALSE(parse_mechanism(kPole, "m").as_written.has_value());
  const LoadedMechanism held =
      parse_mechanism(kPole + "start { body: \"cart\" } start { joint: \"hinge\" angle: 1 }\n", "m");
  REQUIRE(held.as_written.has_value());
  CHECK(held.as_written->bodies()[1].position_0 == Vec3(0.0, 0.0, 0.5));
  CHECK(held.as_written->id() == parse_mechanism(kPole, "m").mechanism.id());
  CHECK(held.mechanism.bodies()[0].position_0 == Vec3::Zero());
}

TEST_CASE("errors of start entries tell line and field") {
  CHECK(start_complaint("start {\n  joint: \"hing\"\n  angle: 1 }").starts_with("m.textproto:20: start"));
  CHECK(has_text(start_complaint("start { joint: \"hinge\" displacement: 1 }"),
                 "displacement: a revolute joint has no freedom"));
  CHECK(has_text(start_complaint("start { angle: 1 }"), "joint: is missing"));
  CHECK(has_text(start_complaint("start { body: \"cart\" angle: 1 }"), "is held beside a coordinate"));
  CHECK(has_text(start_complaint("start { joint: \"hinge\" freedom: ANGLE }"), "stands without a value"));
  CHECK(has_text(start_complaint("start { joint: \"hinge\" angle: 1 }\nstart { joint: \"hinge\" angle: 2 }"),
                 "m.textproto:20"));
  CHECK(has_text(start_complaint("start { joint: \"hinge\" angle: 5 mm }"),
                 "is in mm, a length, but takes rad, an angle"));
  const std::string driven = start_complaint(
      "driver { name: \"d\" joint: \"hinge\" polynomial { coefficient: [0.3] } }\nstart {\n joint: \"hinge\"\n angle: "
      "0.2 }");
  CHECK(
      driven.starts_with("m.textproto:22: start[0].angle: is 0.2 rad, and driver \"d\" prescribes 0.3 rad at time 0"));
}

TEST_CASE("writing a start replaces the numbers that moved and nothing else, in the author's units") {
  const LoadedMechanism start =
      parse_mechanism(kPole + "start { joint: \"rail\" displacement: 250 mm }  # to the right\n", "m");
  const EditedText written = with_start(start, start.mechanism.bodies());
  CHECK(has_text(written.text, "# The pole is drawn upright.\n"));
  CHECK(has_text(written.text, "  position { x: 250 mm z: 500 mm }   # of the mass centre\n"));
  CHECK(has_text(written.text, "  inertia { xx: 1 yy: 1 zz: 1 }\n  position { x: 0.25 }\n}\n"));
  CHECK(has_text(written.text, "}  # where it turns\n"));
  CHECK(has_text(written.text, "start { joint: \"rail\" displacement: 250 mm }  # to the right\n"));
  CHECK(written.changed > 0);
  const LoadedMechanism again = parse_mechanism(written.text, "m");
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK((again.mechanism.bodies()[i].position_0 - start.mechanism.bodies()[i].position_0).norm() < 1e-15);
    CHECK((again.as_written->bodies()[i].position_0 - start.mechanism.bodies()[i].position_0).norm() < 1e-15);
  }
}

TEST_CASE("writing a start that is the one of the file changes no letter") {
  const LoadedMechanism pole = parse_mechanism(kPole, "m");
  const EditedText written = with_start(pole, pole.mechanism.bodies());
  CHECK(written.text == kPole);
  CHECK(written.changed == 0);
}

TEST_CASE("velocities alone are written without touching joints") {
  const LoadedMechanism start = parse_mechanism(kPole + "start { joint: \"hinge\" freedom: ANGLE rate: 2 }\n", "m");
  const std::string text = with_start(start, start.mechanism.bodies()).text;
  CHECK(has_text(text, "  at_start { point {} axis { y: 1 } }  # where it turns\n"));
  CHECK(has_text(text, "angular_velocity { "));
}

}  // namespace rigstep::config
