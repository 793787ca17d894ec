// Ropes in mechanism files: what is read, and what a mistake is told as.
#include <doctest/doctest.h>

#include <string>

#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

constexpr const char* kRopes = R"(name: "ropes"
body { name: "A" mass: 2 inertia { xx: 1 yy: 1 zz: 1 } position { z: -1 } }
input { name: "winch" signal { unit: "m" } }
input { name: "push" body_force { body: "A" direction { x: 1 } } }
rope {
  name: "rope"
  point { body: "ground" point { x: 1 } }
  point { body: "A" at_start { point { z: -0.9 } } }
  length: 1.2
  pay_out_input: "winch"
  stiffness: 1e6
  damping: 10
}
output { name: "rope" force_element { element: "rope" } }
)";

void check_ropes_complaint(const std::string& from, const std::string& to, int line, const std::string& field,
                           const std::string& problem) {
  test::check_complaint(test::replaced(kRopes, from, to), line, field, problem);
}

}  // namespace

TEST_CASE("a rope is read with its points, and its output carries units") {
  const Mechanism m = parse_mechanism(kRopes, "m").mechanism;
  REQUIRE(m.all<Rope>().size() == 1);
  const Rope& rope = m.all<Rope>()[0];
  REQUIRE(rope.points.size() == 2);
  CHECK(rope.points[0].body == kGround);
  CHECK(rope.points[0].point_b == Vec3(1.0, 0.0, 0.0));
  CHECK((rope.points[1].point_b - Vec3(0.0, 0.0, 0.1)).norm() < 1e-15);
  CHECK(rope.pay_out_input == 0);
  CHECK(m.output_channels()[0].unit == "m");
  CHECK(m.output_channels()[2].name == "rope.effort");
}

TEST_CASE("every number of a rope is part of the mechanism's id") {
  const std::uint64_t good = parse_mechanism(kRopes, "m").mechanism.id();
  const char* const changes[][2] = {{"point { x: 1 }", "point { x: 2 }"},
                                    {"length: 1.2", "length: 1.3"},
                                    {"stiffness: 1e6", "stiffness: 2e6"},
                                    {"damping: 10", "damping: 11"},
                                    {"  pay_out_input: \"winch\"\n", ""}};
  for (const auto& [from, to] : changes) {
    const char* change = to;
    CAPTURE(change);
    CHECK(parse_mechanism(test::replaced(kRopes, from, to), "m").mechanism.id() != good);
  }
}

TEST_CASE("mistakes in ropes are told at their lines") {
  check_ropes_complaint("  point { body: \"A\" at_start { point { z: -0.9 } } }\n", "", 7, "rope \"rope\".point",
                        "1 times");
  check_ropes_complaint("body: \"A\" at_start", "body: \"B\" at_start", 8, "rope \"rope\".point[1].body", "\"B\"");
  check_ropes_complaint("body: \"A\" at_start", "body: \"ground\" at_start", 7, "rope \"rope\".point", "same body");
  check_ropes_complaint("length: 1.2", "length: 0", 9, "rope \"rope\".length", "is 0");
  check_ropes_complaint("stiffness: 1e6", "stiffness: -1", 11, "rope \"rope\".stiffness", "-1");
  check_ropes_complaint("damping: 10", "damping: -1", 12, "rope \"rope\".damping", "-1");
  check_ropes_complaint("pay_out_input: \"winch\"", "pay_out_input: \"push\"", 10, "rope \"rope\".pay_out_input",
                        "load of its own");
}

TEST_CASE("a rope whose points are placed at the start keeps them when the file is written with another start") {
  const LoadedMechanism loaded = parse_mechanism(kRopes, "m");
  std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
  moved[0].position_0 = {0.0, 0.3, -1.0};
  const Mechanism again = parse_mechanism(with_start(loaded, moved).text, "again").mechanism;
  CHECK(again.all<Rope>()[0].points[1].point_b == loaded.mechanism.all<Rope>()[0].points[1].point_b);
  CHECK(again.all<Rope>()[0].points[0].point_b == Vec3(1.0, 0.0, 0.0));
}

}  // namespace rigstep::config
