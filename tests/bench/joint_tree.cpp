#include "tests/bench/peer.h"

namespace rigstep::bench {

Mat3 start_rotation(const Mechanism& mechanism, int body) {
  if (body == kGround) return Mat3::Identity();
  const EulerParameters& p = mechanism.bodies()[static_cast<std::size_t>(body)].orientation;
  return Eigen::Quaterniond(p[0], p[1], p[2], p[3]).toRotationMatrix();
}

Vec3 start_position(const Mechanism& mechanism, int body) {
  return body == kGround ? Vec3(Vec3::Zero()) : mechanism.bodies()[static_cast<std::size_t>(body)].position_0;
}

namespace {

TreeJoint hung(const Mechanism& mechanism, const Joint& joint, bool reversed) {
  TreeJoint t;
  t.type = joint.type;
  t.parent = reversed ? joint.second : joint.first;
  t.body = reversed ? joint.first : joint.second;
  const JointFrame &in_parent = reversed ? joint.in_second : joint.in_first,
                   &in_body = reversed ? joint.in_first : joint.in_second;
  t.point_in_parent = in_parent.point_b;
  t.point_in_body = in_body.point_b;
  const Mat3 parent = start_rotation(mechanism, t.parent), body = start_rotation(mechanism, t.body);
  t.axes_in_parent = in_parent.axes_b;
  t.axes_in_body = body.transpose() * parent * in_parent.axes_b;
  return t;
}

}  // namespace

JointTree joint_tree(const Mechanism& mechanism) {
  if (!mechanism.springs().empty() || !mechanism.loads().empty()) throw Unsupported("springs and loads are left out");
  for (const Body& body : mechanism.bodies())
    if (!body.velocity_0.isZero() || !body.angular_velocity_0.isZero())
      throw Unsupported("starts in motion are left out");
  for (const Joint& joint : mechanism.joints())
    if (joint.type != JointType::spherical && joint.type != JointType::revolute)
      throw Unsupported(std::string(to_string(joint.type)) + " joints are left out");
  JointTree result;
  std::vector<bool> hangs(mechanism.bodies().size(), false), used(mechanism.joints().size(), false);
  const auto held = [&](int body) { return body == kGround || hangs[static_cast<std::size_t>(body)]; };
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t j = 0; j < used.size(); ++j) {
      const Joint& joint = mechanism.joints()[j];
      if (used[j] || held(joint.first) == held(joint.second)) continue;
      result.tree.push_back(hung(mechanism, joint, held(joint.second)));
      hangs[static_cast<std::size_t>(result.tree.back().body)] = true;
      used[j] = grown = true;
    }
  }
  if (result.tree.size() != mechanism.bodies().size()) throw Unsupported("free bodies are left out");
  for (std::size_t j = 0; j < used.size(); ++j)
    if (!used[j])
      result.loops.push_back(hung(mechanism, mechanism.joints()[j], mechanism.joints()[j].second == kGround));
  return result;
}

}  // namespace rigstep::bench
