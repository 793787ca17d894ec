#include <algorithm>

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

bool is_driven(const Mechanism& mechanism, const Joint& joint) {
  return std::any_of(mechanism.drivers().begin(), mechanism.drivers().end(), [&](const Driver& d) {
    const int of = mechanism.coordinates()[static_cast<std::size_t>(d.coordinate)].joint;
    return &mechanism.joints()[static_cast<std::size_t>(of)] == &joint;
  });
}

// In the world at the start.
Mat3 axes_of(const TreeJoint& t, const Mat3& parent, const Mat3& body, const Mat3& in_parent, const Mat3& in_body) {
  if (t.type != JointType::universal) return parent * in_parent;
  Mat3 axes;
  axes.col(0) = parent * in_parent.col(2);
  axes.col(1) = body * in_body.col(2);
  axes.col(2) = axes.col(0).cross(axes.col(1));
  return axes;
}

TreeJoint hung(const Mechanism& mechanism, const Joint& joint, bool reversed) {
  TreeJoint t;
  t.type = joint.type;
  t.parent = reversed ? joint.second : joint.first;
  t.body = reversed ? joint.first : joint.second;
  const JointFrame &in_parent = reversed ? joint.in_second : joint.in_first,
                   &in_body = reversed ? joint.in_first : joint.in_second;
  t.point_in_parent = in_parent.point_b;
  t.point_in_body = in_body.point_b;
  t.is_driven = is_driven(mechanism, joint);
  const Mat3 parent = start_rotation(mechanism, t.parent), body = start_rotation(mechanism, t.body);
  const Mat3 axes = axes_of(t, parent, body, in_parent.axes_b, in_body.axes_b);
  t.axes_in_parent = parent.transpose() * axes;
  t.axes_in_body = body.transpose() * axes;
  return t;
}

// A body that nothing holds: it floats against the ground from its start pose.
TreeJoint afloat(const Mechanism& mechanism, int body) {
  TreeJoint t;
  t.type = JointType::floating;
  t.body = body;
  t.point_in_parent = start_position(mechanism, body);
  t.point_in_body = Vec3::Zero();
  t.axes_in_parent = start_rotation(mechanism, body);
  t.axes_in_body = Mat3::Identity();
  return t;
}

void require_supported(const Mechanism& mechanism) {
  for (const Body& body : mechanism.bodies())
    if (!body.velocity_0.isZero() || !body.angular_velocity_0.isZero())
      throw Unsupported("starts in motion are not set up for it");
  if (!mechanism.couplings().empty()) throw Unsupported("couplings are not set up for it");
  for (const Joint& joint : mechanism.joints()) {
    const bool known = joint.type == JointType::spherical || joint.type == JointType::revolute ||
                       joint.type == JointType::prismatic || joint.type == JointType::universal;
    if (!known) throw Unsupported(std::string(to_string(joint.type)) + " joints are not set up for it");
    if (is_driven(mechanism, joint) && joint.type != JointType::prismatic)
      throw Unsupported("drivers of other joints than prismatic ones are not set up for it");
  }
}

std::string what_is_left_out(const Mechanism& mechanism) {
  std::string list;
  const auto leave_out = [&list](std::size_t count, const char* what) {
    if (count > 0) list += (list.empty() ? "" : ", ") + std::string(what);
  };
  leave_out(mechanism.tyres().size(), "tyres");
  leave_out(mechanism.motors().size(), "motors");
  leave_out(mechanism.bushings().size(), "bushings");
  leave_out(mechanism.frictions().size(), "friction");
  leave_out(mechanism.drags().size(), "drag");
  leave_out(mechanism.efforts().size(), "efforts");
  leave_out(mechanism.all<Stop>().size(), "stops");
  leave_out(mechanism.all<Rope>().size(), "ropes");
  leave_out(mechanism.loads().size(), "loads");
  std::size_t springs = 0, tables = 0;
  for (const Spring& spring : mechanism.springs()) {
    springs += spring.kind != Spring::Kind::between_points;
    tables += !spring.stiffness_table.empty() || !spring.damping_table.empty();
  }
  leave_out(springs, "springs in joints");
  leave_out(tables, "tables of springs");
  return list;
}

}  // namespace

JointTree joint_tree(const Mechanism& mechanism) {
  require_supported(mechanism);
  JointTree result;
  result.left_out = what_is_left_out(mechanism);
  std::vector<bool> hangs(mechanism.bodies().size(), false), used(mechanism.joints().size(), false);
  const auto held = [&](int body) { return body == kGround || hangs[static_cast<std::size_t>(body)]; };
  const auto grow = [&] {
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
  };
  grow();
  for (int body = 0; body < static_cast<int>(hangs.size()); ++body) {
    if (held(body)) continue;
    result.tree.push_back(afloat(mechanism, body));
    hangs[static_cast<std::size_t>(body)] = true;
    grow();
  }
  for (std::size_t j = 0; j < used.size(); ++j)
    if (!used[j])
      result.loops.push_back(hung(mechanism, mechanism.joints()[j], mechanism.joints()[j].second == kGround));
  for (const TreeJoint& loop : result.loops)
    if (loop.type != JointType::spherical && loop.type != JointType::revolute)
      throw Unsupported("loops that close by a " + std::string(to_string(loop.type)) + " joint are not set up for it");
  return result;
}

void require_only_gravity_and_pins(const Mechanism& mechanism, const JointTree& tree) {
  for (const TreeJoint& joint : tree.tree)
    if (joint.type != JointType::spherical && joint.type != JointType::revolute)
      throw Unsupported(std::string(to_string(joint.type)) + " joints are not set up for it");
  if (!mechanism.springs().empty() || !tree.left_out.empty()) throw Unsupported("forces are not set up for it");
}

double largest_gap(const JointTree& tree, const std::function<Vec3(int body, const Vec3& point_b)>& point_0) {
  double largest = 0.0;
  for (const TreeJoint& j : tree.loops) {
    const Vec3 at_parent = j.parent == kGround ? j.point_in_parent : point_0(j.parent, j.point_in_parent);
    largest = std::max(largest, (point_0(j.body, j.point_in_body) - at_parent).norm());
  }
  return largest;
}

double free_length(const Spring& spring) { return spring.rest + spring.preload / spring.stiffness; }

}  // namespace rigstep::bench
