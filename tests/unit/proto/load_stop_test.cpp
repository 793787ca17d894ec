// End stops in mechanism files: what is read, and what a mistake is told as.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "proto/load_mechanism.h"
#include "proto/write_mechanism.h"
#include "tests/support/complaint.h"

namespace rigstep::config {
namespace {

constexpr const char* kStops = R"(name: "stops"
body { name: "A" mass: 2 inertia { xx: 1 yy: 1 zz: 1 } position { x: 1 } }
joint { name: "rail" type: PRISMATIC first: "ground" second: "A" at_start { point {} axis { x: 1 } } }
stop { name: "ends" in_joint { joint: "rail" } lower: -0.2 upper: 0.3 stiffness: 1e6 damping: 0.5 }
stop {
  name: "strap"
  between_points { first: "ground" second: "A" at_start { first_point { z: 1 } second_point { x: 2 } } }
  upper: 3
  stiffness: 1e4
  restitution { coefficient: 0.5 at_speed: 2 }
}
output { name: "ends" force_element { element: "ends" } }
)";

void check_stops_complaint(const std::string& from, const std::string& to, int line, const std::string& field,
                           const std::string& problem) {
  test::check_complaint(test::replaced(kStops, from, to), line, field, problem);
}

}  // namespace

TEST_CASE("stops are read with their limits, and a restitution as the damping that does it") {
  const Mechanism m = parse_mechanism(kStops, "m").mechanism;
  REQUIRE(m.all<Stop>().size() == 2);
  const Stop &ends = m.all<Stop>()[0], &strap = m.all<Stop>()[1];
  CHECK(ends.is_along_freedom());
  CHECK(ends.lower == -0.2);
  CHECK(ends.upper == 0.3);
  CHECK(ends.damping == 0.5);
  CHECK_FALSE(strap.is_along_freedom());
  CHECK(strap.second_point_b == Vec3(1.0, 0.0, 0.0));
  CHECK(std::isinf(strap.lower));
  const double u = strap.damping * 2.0;
  CHECK(u * 1.5 == doctest::Approx(std::log((1.0 + u) / (1.0 - 0.5 * u))));
  CHECK(m.output_channels()[0].name == "ends.deflection");
  CHECK(m.output_channels()[2].unit == "N");
}

TEST_CASE("every number of a stop is part of the mechanism's id") {
  const std::uint64_t good = parse_mechanism(kStops, "m").mechanism.id();
  const char* const changes[][2] = {
      {"lower: -0.2", "lower: -0.1"},           {"upper: 0.3", "upper: 0.4"},
      {"stiffness: 1e6", "stiffness: 2e6"},     {"damping: 0.5", "damping: 1"},
      {"coefficient: 0.5", "coefficient: 0.6"}, {"second_point { x: 2 }", "second_point { x: 3 }"}};
  for (const auto& [from, to] : changes) {
    const char* change = to;
    CAPTURE(change);
    CHECK(parse_mechanism(test::replaced(kStops, from, to), "m").mechanism.id() != good);
  }
}

TEST_CASE("mistakes in stops are told at their lines") {
  check_stops_complaint("lower: -0.2 upper: 0.3 ", "", 4, "stop \"ends\".lower", "both missing");
  check_stops_complaint("lower: -0.2", "lower: 0.5", 4, "stop \"ends\".upper", "not above lower");
  check_stops_complaint("stiffness: 1e6", "stiffness: 0", 4, "stop \"ends\".stiffness", "is 0");
  check_stops_complaint("damping: 0.5", "damping: -1", 4, "stop \"ends\".damping", "-1");
  check_stops_complaint("in_joint { joint: \"rail\" }", "", 4, "stop \"ends\".in_joint", "is missing");
  check_stops_complaint("upper: 3", "upper: -3", 8, "stop \"strap\".upper", "distance");
  check_stops_complaint("coefficient: 0.5", "coefficient: 1.5", 10, "stop \"strap\".restitution.coefficient", "1.5");
  check_stops_complaint("at_speed: 2", "at_speed: 0", 10, "stop \"strap\".restitution.at_speed", "is 0");
  check_stops_complaint("name: \"strap\"", "name: \"ends\"", 6, "stop \"ends\".name", "another stop is named");
}

TEST_CASE("a stop placed at the start keeps its points when the file is written with another start") {
  const LoadedMechanism loaded = parse_mechanism(kStops, "m");
  std::vector<rigstep::Body> moved = loaded.mechanism.bodies();
  moved[0].position_0 = {1.1, 0.0, 0.0};
  const Mechanism again = parse_mechanism(with_start(loaded, moved).text, "again").mechanism;
  CHECK(again.all<Stop>()[1].second_point_b == Vec3(1.0, 0.0, 0.0));
  CHECK(again.all<Stop>()[1].first_point_b == Vec3(0.0, 0.0, 1.0));
}

}  // namespace rigstep::config
