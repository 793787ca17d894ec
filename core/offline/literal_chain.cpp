#include "core/offline/literal_chain.h"

#include <Eigen/LU>
#include <algorithm>
#include <utility>

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
  std::vector<std::size_t> height(leaf.size() + merge.size(), 0);
  for (std::size_t k = 0; k < merge.size(); ++k) {
    const std::size_t level = std::max(height[merge[k].left], height[merge[k].right]);
    height[leaf.size() + k] = level + 1;
    if (levels.size() <= level) levels.emplace_back();
    levels[level].push_back(static_cast<int>(k));
  }
  const std::size_t nodes = leaf.size() + merge.size();
  for (int side = 0; side < 2; ++side) {
    motion[side].assign(nodes, Lanes{});
    load[side].assign(nodes, Lanes{});
  }
  x.assign(static_cast<std::size_t>(n()), Lanes{});
  qd_hat.resize(x.size());
  qdd_hat.resize(x.size());
}

LiteralStepper::LiteralStepper(const Mechanism& mechanism, const LiteralSettings& settings, Loads loads)
    : chain_(std::make_unique<Chain>()) {
  if (!loads && has_more_than_gravity(mechanism)) refuse("spring", "loads other than gravity are left out");
  chain_->settings = settings;
  set_step(1e-9 * static_cast<double>(settings.dt_ns), settings.alpha);
  chain_->read(mechanism);
  chain_->size_buffers();
  if (loads) {
    chain_->gravity.setZero();
    chain_->moving.resize(mechanism.bodies().size());
    chain_->wrench.resize(mechanism.bodies().size());
    chain_->applied = std::move(loads);
  }
  chain_->find_start();
}

void LiteralStepper::set_step(double dt, double alpha) {
  chain_->settings.alpha = alpha;
  chain_->dt = dt;
  chain_->h2 = 0.25 * dt * dt;
}

void LiteralStepper::start_afresh(std::span<const BodyMotion> bodies) {
  for (std::size_t b = 0; b < bodies.size(); ++b) chain_->set_motion(b, bodies[b]);
  std::fill(chain_->state.lambda.begin(), chain_->state.lambda.end(), 0.0);
  std::fill(chain_->state.mu.begin(), chain_->state.mu.end(), 0.0);
  chain_->find_start();
}

std::string LiteralStepper::unsupported_reason(const Mechanism& mechanism) {
  try {
    Chain().read(mechanism);
  } catch (const MechanismError& error) {
    return error.problem;
  }
  return {};
}

BodyMotion LiteralStepper::motion(int body) const { return chain_->motion_of(static_cast<std::size_t>(body)); }

LiteralStepper::~LiteralStepper() = default;
LiteralStepper::LiteralStepper(LiteralStepper&&) noexcept = default;

const LiteralState& LiteralStepper::state() const noexcept { return chain_->state; }

void LiteralStepper::restore(const LiteralState& state) noexcept { chain_->state = state; }

Vec3 LiteralStepper::position_0(int body) const { return chain_->state.q[chain_->place[body]].head<3>(); }

EulerParameters LiteralStepper::orientation(int body) const { return chain_->state.q[chain_->place[body]].tail<4>(); }

Vec3 LiteralStepper::velocity_0(int body) const { return chain_->state.qd[chain_->place[body]].head<3>(); }

Vec3 LiteralStepper::angular_velocity_0(int body) const { return motion(body).omega_0; }

Vec3 LiteralStepper::acceleration_0(int body) const { return chain_->state.qdd[chain_->place[body]].head<3>(); }

Vec3 LiteralStepper::angular_acceleration_0(int body) const {
  const Vec4 p = orientation(body), pdd = chain_->state.qdd[chain_->place[body]].tail<4>();
  return rotated(p, Vec3(2.0 * (G_of(p) * pdd)));
}

const LiteralPhases& LiteralStepper::phases() const noexcept { return chain_->phases; }

std::size_t LiteralStepper::bytes() const noexcept {
  const Chain& c = *chain_;
  const auto size = [](const auto& v) { return v.size() * sizeof(v[0]); };
  return size(c.leaf) + size(c.hinge) + size(c.merge) + size(c.compound) + 2 * size(c.motion[0]) + 2 * size(c.load[0]) +
         size(c.x) + size(c.qd_hat) + size(c.qdd_hat) + size(c.state.q) * 3 + size(c.state.lambda) + size(c.state.mu);
}

}  // namespace rigstep::offline
