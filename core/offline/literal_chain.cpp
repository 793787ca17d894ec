#include "core/offline/literal_chain.h"

#include <Eigen/LU>

namespace rigstep::offline {

void literal::refuse(const std::string& field, const std::string& problem) {
  throw MechanismError(field, problem, "the literal form takes serial chains of spherical and revolute joints");
}

bool literal::has_more_than_gravity(const Mechanism& m) {
  bool more = !m.loads().empty();
  for_each_kind([&]<class Kind>() { more = more || !m.all<Kind>().empty(); });
  return more;
}

namespace {

// Joints in their order along the chain, which begins at the first joint of the ground.
std::vector<int> order_along_chain(const Mechanism& mechanism) {
  const auto& joints = mechanism.joints();
  std::vector<bool> used(joints.size(), false);
  std::vector<int> order;
  int at = kGround;
  do {
    int next = -1;
    for (std::size_t k = 0; k < joints.size(); ++k) {
      if (used[k] || (joints[k].first != at && joints[k].second != at)) continue;
      if (next >= 0 && at != kGround) refuse("joint", "\"" + joints[k].name + "\" makes a branch");
      if (next < 0) next = static_cast<int>(k);
    }
    if (next < 0) break;
    used[next] = true;
    order.push_back(next);
    at = joints[next].first == at ? joints[next].second : joints[next].first;
  } while (at != kGround);
  if (order.size() != joints.size()) refuse("joint", "not all joints are on one chain from the ground");
  return order;
}

}  // namespace

void LiteralStepper::Chain::read(const Mechanism& mechanism) {
  if (!mechanism.couplings().empty()) refuse("coupling", "\"" + mechanism.couplings().front().name + "\" is left out");
  if (!mechanism.drivers().empty()) refuse("driver", "\"" + mechanism.drivers().front().name + "\" is left out");
  gravity = mechanism.gravity_0();
  const std::size_t bodies = mechanism.bodies().size();
  place.assign(bodies, -1);
  int at = kGround, rows = 0, count = 0;
  for (const int index : order_along_chain(mechanism)) {
    const Joint& joint = mechanism.joints()[index];
    if (joint.type != JointType::spherical && joint.type != JointType::revolute)
      refuse("type", "joint \"" + joint.name + "\" is " + std::string(to_string(joint.type)));
    const bool forward = joint.first == at;
    const int next = forward ? joint.second : joint.first;
    Hinge j{};
    j.rows = joint.type == JointType::spherical ? 3 : 5;
    j.first_row = rows;
    j.left_ground = at == kGround;
    j.right_ground = next == kGround;
    j.left = forward ? joint.in_first : joint.in_second;
    j.right = forward ? joint.in_second : joint.in_first;
    hinge.push_back(j);
    rows += j.rows;
    if (next != kGround) place[next] = count++;
    at = next;
  }
  if (count != static_cast<int>(bodies)) refuse("body", "not all bodies are on one chain from the ground");
  leaf.resize(bodies + 1);
  leaf.back().delta = {};
  state.q.resize(bodies);
  state.qd.resize(bodies);
  state.qdd.assign(bodies, Vec7::Zero());
  state.mu.assign(bodies, 0.0);
  state.lambda.assign(static_cast<std::size_t>(rows), 0.0);
  for (std::size_t b = 0; b < bodies; ++b) {
    const Body& body = mechanism.bodies()[b];
    const int i = place[b];
    leaf[i].index = b;
    leaf[i].mass = body.mass;
    leaf[i].J_b = body.inertia_b;
    leaf[i].J_b_inverse = body.inertia_b.inverse();
    set_motion(b, {body.position_0, body.orientation, body.velocity_0, body.angular_velocity_0});
  }
}

// Balanced tree over the leaves first .. last - 1; returns its node.
int LiteralStepper::Chain::add_merges(int first, int last) {
  if (last - first == 1) return first;
  const int middle = first + (last - first) / 2;
  const int left = add_merges(first, middle), right = add_merges(middle, last);
  merge.push_back({left, right, middle});
  return n() + static_cast<int>(merge.size());
}

void LiteralStepper::Chain::size_buffers() {
  const int root = add_merges(0, n());
  const int ground = n();
  int whole = root;
  if (static_cast<int>(hinge.size()) > n()) {
    merge.push_back({root, ground, n()});
    whole = n() + static_cast<int>(merge.size());
  }
  merge.push_back({ground, whole, 0});
  compound.resize(merge.size());
  const std::size_t nodes = leaf.size() + merge.size();
  for (int side = 0; side < 2; ++side) {
    motion[side].assign(nodes, Lanes{});
    load[side].assign(nodes, Lanes{});
  }
  x.assign(static_cast<std::size_t>(n()), Lanes{});
  qd_hat.resize(x.size());
  qdd_hat.resize(x.size());
}

}  // namespace rigstep::offline
