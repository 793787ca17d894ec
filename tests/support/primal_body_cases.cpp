#include "tests/support/primal_body_cases.h"

#include <cmath>
#include <string>

#include "core/mechanism/portable_math.h"

namespace rigstep::test {

Description star(int legs, int links) {
  const Vec3 omega{0.3, -0.2, 1.1};
  Description d;
  d.name = "star";
  d.bodies = {make_body("hub", Vec3::Zero(), 10.0, Vec3(2.0, 2.5, 4.0).asDiagonal())};
  for (int leg = 0; leg < legs; ++leg) {
    const double angle = 2.0 * kPi * leg / legs;
    const Vec3 along{std::cos(angle), std::sin(angle), 0.0}, across{-std::sin(angle), std::cos(angle), 0.0};
    std::string inner = "hub";
    for (int link = 0; link < links; ++link) {
      const std::string name = "link" + std::to_string(leg) + "_" + std::to_string(link);
      const Vec3 from = (0.5 + 0.5 * link) * along;
      d.bodies.push_back(make_body(name, from + 0.25 * along, 1.0, Vec3(0.02, 0.03, 0.04).asDiagonal()));
      d.joints.push_back(make_joint("to_" + name, JointType::revolute, inner, name, from,
                                    link % 2 == 0 ? across : Vec3(Vec3::UnitZ()), along));
      inner = name;
    }
  }
  for (Body& body : d.bodies) {
    body.velocity_0 = omega.cross(body.position_0);
    body.angular_velocity_0 = omega;
  }
  return d;
}

Description carousel(int legs, int links) {
  Description d = star(legs, links);
  d.name = "carousel";
  d.gravity = {0.0, 0.0, -9.81};
  for (Body& body : d.bodies) body.velocity_0 = body.angular_velocity_0 = Vec3::Zero();
  d.joints.push_back(make_joint("pin", JointType::revolute, "ground", "hub", Vec3::Zero(), {0.6, 0.0, 0.8}, {0, 1, 0}));
  return d;
}

}  // namespace rigstep::test
