#include "core/index3/compile/planar_motion.h"

#include <algorithm>

#include "core/index3/compile/plan.h"
#include "core/index3/physics/constraints.h"
#include "core/mechanism/body_groups.h"

namespace rigstep::index3 {
namespace {

// Whether component k of a vector with a displacement and a rotation, or a force and a torque, leaves the plane.
bool is_out_of_plane(int normal, int k) { return (k < 3) == (k % 3 == normal); }

bool stays_in_plane(int normal, const Vec6& v) {
  for (int k = 0; k < 6; ++k)
    if (is_out_of_plane(normal, k) && v[k] != 0.0) return false;
  return true;
}
bool acts_across_plane(int normal, const Vec6& v) { return in_plane(normal, v).isZero(0.0); }

Vec6 stacked(const Vec3& force, const Vec3& torque) {
  Vec6 both;
  both << force, torque;
  return both;
}

// f(Jacobians of the bodies that move) of each row of a joint, at the start pose
template <class F>
void for_each_row(const Mechanism& m, const Joint& joint, const F& f) {
  const JointPlacement at = place_joint(joint, placement_at_start(m, joint.first), placement_at_start(m, joint.second));
  for (const Row& row : rows_of(joint.type)) {
    RowValue value = evaluate(row, at);
    if (joint.first == kGround) value.J_first.setZero();
    if (joint.second == kGround) value.J_second.setZero();
    f(value);
  }
}

bool is_idle(int normal, const RowValue& row) {
  return acts_across_plane(normal, row.J_first) && acts_across_plane(normal, row.J_second);
}

// What leaves the planes normal to one axis, of a mechanism with some values of its parameters.
class Spatial {
 public:
  Spatial(const Plan& plan, const Mechanism& m, int normal, BodyGroups& groups, std::vector<bool>& leaves)
      : m_(m), normal_(normal), groups_(groups), leaves_(leaves) {
    for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i) look_at({i}, starts_in_plane(m.bodies()[i]));
    for (const Joint& joint : m.joints())
      if (!rows_of(joint.type).empty()) look_at({joint.first, joint.second}, holds_in_plane(joint));
    for (const Coupling& coupling : m.couplings()) {
      const Joint &first = joint_of(coupling.first), &second = joint_of(coupling.second);
      look_at({first.first, first.second, second.first, second.second},
              acts_along(coupling.first) && acts_along(coupling.second));
    }
    for (const Driver& driver : m.drivers()) look_along(driver.coordinate);
    for (const AppliedLoad& load : m.loads())
      look_at({load.body}, stays(load.force, load.torque) && is_in_plane(load.body, load.point_b));
    for (const Input& input : m.inputs()) look_at(input);
    for_each_kind([&]<class Kind>() {
      for (std::size_t k = 0; k < m.all<Kind>().size(); ++k) {
        const Kind& element = m.all<Kind>()[k];
        const Connectivity connects = connectivity(element, plan.constants<Kind>()[k]);
        look_at(connects.bodies, connects.coordinate >= 0 ? acts_along(connects.coordinate) : acts_in_plane(element));
      }
    });
  }

 private:
  // Something that acts on all of these, or between them.
  void look_at(const std::vector<int>& bodies, bool is_planar) {
    int last = kGround;
    for (const int body : bodies) {
      if (body == kGround) continue;
      if (last != kGround) groups_.join(last, body);
      if (!is_planar) leaves_[body] = true;
      last = body;
    }
  }
  void look_along(int coordinate) {
    look_at({joint_of(coordinate).first, joint_of(coordinate).second}, acts_along(coordinate));
  }
  void look_at(const Input& input) {
    const Vec3 none = Vec3::Zero();
    switch (input.kind) {
      case Input::Kind::body_force:
        return look_at({input.body}, stays(input.direction, none) && is_in_plane(input.body, input.point_b));
      case Input::Kind::body_torque:
        return look_at({input.body}, stays(none, input.direction));
      case Input::Kind::joint_effort:
        return look_at({m_.joints()[input.joint].first, m_.joints()[input.joint].second},
                       acts_along(m_.joints()[input.joint], input.freedom));
      case Input::Kind::signal:
        return;
    }
  }

  const Joint& joint_of(int coordinate) const { return m_.joints()[m_.coordinates()[coordinate].joint]; }
  bool stays(const Vec3& force, const Vec3& torque) const { return stays_in_plane(normal_, stacked(force, torque)); }

  // Along the normal: where the plane of a body lies, or a point of the ground.
  double level(int body, const Vec3& point_b) const {
    return body == kGround ? point_b[normal_] : m_.bodies()[body].position_0[normal_];
  }
  bool is_in_plane(int body, const Vec3& point_b) const { return body == kGround || point_b[normal_] == 0.0; }
  bool are_in_one_plane(int first, const Vec3& first_point_b, int second, const Vec3& second_point_b) const {
    return is_in_plane(first, first_point_b) && is_in_plane(second, second_point_b) &&
           level(first, first_point_b) == level(second, second_point_b);
  }

  bool starts_in_plane(const Body& body) const {
    const int i = (normal_ + 1) % 3, k = (normal_ + 2) % 3;
    return body.orientation[1 + i] == 0.0 && body.orientation[1 + k] == 0.0 && body.inertia_b(normal_, i) == 0.0 &&
           body.inertia_b(normal_, k) == 0.0 && stays(body.velocity_0, body.angular_velocity_0) &&
           m_.gravity_0()[normal_] == 0.0;
  }
  // Its rows act in the plane or hold bodies in it, none does both.
  bool holds_in_plane(const Joint& joint) const {
    bool separate = true;
    for_each_row(m_, joint, [&](const RowValue& row) {
      const bool acts = stays_in_plane(normal_, row.J_first) && stays_in_plane(normal_, row.J_second);
      separate = separate && (acts || is_idle(normal_, row));
    });
    return separate && are_in_one_plane(joint.first, joint.in_first.point_b, joint.second, joint.in_second.point_b);
  }
  bool acts_along(int coordinate) const {
    return acts_along(joint_of(coordinate), m_.coordinates()[coordinate].freedom);
  }
  bool acts_along(const Joint& joint, Freedom freedom) const {
    const JointPlacement at =
        place_joint(joint, placement_at_start(m_, joint.first), placement_at_start(m_, joint.second));
    Vec6 on_first, on_second;
    coordinate_gradient(freedom, at, on_first, on_second);
    return (joint.first == kGround || stays_in_plane(normal_, on_first)) &&
           (joint.second == kGround || stays_in_plane(normal_, on_second));
  }
  // Elements that act along no coordinate.
  template <class Kind>
  bool acts_in_plane(const Kind&) const {
    return false;
  }
  bool acts_in_plane(const Spring& spring) const {
    const bool is_along_plane = spring.kind == Spring::Kind::between_points || spring.direction_0[normal_] == 0.0;
    return is_along_plane && are_in_one_plane(spring.first, spring.first_point_b, spring.second, spring.second_point_b);
  }
  bool acts_in_plane(const Stop& stop) const {
    return are_in_one_plane(stop.first, stop.first_point_b, stop.second, stop.second_point_b);
  }

  const Mechanism& m_;
  int normal_;
  BodyGroups& groups_;
  std::vector<bool>& leaves_;  // (bodies) something moves it out of the plane
};

// The mechanism with all tunable parameters at one end of their ranges.
Mechanism at_end(Mechanism m, bool maximum) {
  for (int k = 0; k < static_cast<int>(m.parameters().size()); ++k) {
    const Parameter& p = m.parameters()[k];
    if (p.tunable) m.set_parameter(k, maximum ? p.maximum : p.minimum);
  }
  return m;
}

// (bodies) whether it stays in a plane normal to the axis
std::vector<bool> stay_in_plane(const Plan& plan, int normal) {
  const int bodies = static_cast<int>(plan.mechanism.bodies().size());
  BodyGroups groups(plan.mechanism.bodies().size());
  std::vector<bool> leaves(plan.mechanism.bodies().size(), false), group_leaves(leaves.size() + 1, false);
  for (const bool maximum : {false, true}) Spatial(plan, at_end(plan.mechanism, maximum), normal, groups, leaves);
  for (int i = 0; i < bodies; ++i)
    if (leaves[i]) group_leaves[groups.group_of(i)] = true;
  std::vector<bool> stay;
  for (int i = 0; i < bodies; ++i) stay.push_back(!group_leaves[groups.group_of(i)]);
  return stay;
}

void put(double value, double& number) {
  if (number != value) number = value;  // a zero keeps its sign
}

void keep_in_plane(int normal, double level, BodyState& body, Vec3& r_low) {
  const int i = (normal + 1) % 3, k = (normal + 2) % 3;
  put(level, body.r[normal]), put(0.0, r_low[normal]);
  if (body.p[1 + i] != 0.0 || body.p[1 + k] != 0.0) {
    body.p[1 + i] = body.p[1 + k] = 0.0;
    body.p.normalize();
  }
  put(0.0, body.v[normal]), put(0.0, body.a[normal]);
  for (const int across : {i, k}) put(0.0, body.w_b[across]), put(0.0, body.alpha_b[across]);
}

}  // namespace

PlanarMotion planar_motion(const Plan& plan) {
  const Mechanism& m = plan.mechanism;
  PlanarMotion planar{std::vector<int>(m.bodies().size(), -1), std::vector<bool>(plan.first_row.back(), false)};
  for (const int normal : {2, 1, 0}) {
    const std::vector<bool> stay = stay_in_plane(plan, normal);
    for (std::size_t i = 0; i < stay.size(); ++i)
      if (stay[i]) planar.normal[i] = normal;
  }
  for (std::size_t j = 0; j < m.joints().size(); ++j) {
    const Joint& joint = m.joints()[j];
    const int normal = planar.normal[joint.first == kGround ? joint.second : joint.first];
    int row = plan.first_row[j];
    if (normal >= 0)
      for_each_row(m, joint, [&](const RowValue& value) { planar.is_idle[row++] = is_idle(normal, value); });
  }
  return planar;
}

Vec6 in_plane(int normal, Vec6 motion) noexcept {
  for (int k = 0; k < 6; ++k)
    if (normal >= 0 && is_out_of_plane(normal, k)) motion[k] = 0.0;
  return motion;
}

Eigen::VectorXd in_planes(const PlanarMotion& planar, Eigen::VectorXd motions) {
  for (int i = 0; i < static_cast<int>(planar.normal.size()); ++i)
    motions.segment<6>(6 * i) = in_plane(planar.normal[i], motions.segment<6>(6 * i));
  return motions;
}

void keep_planar(const Mechanism& mechanism, const PlanarMotion& planar, State& x) noexcept {
  for (std::size_t i = 0; i < x.body.size(); ++i)
    if (const int normal = planar.normal[i]; normal >= 0)
      keep_in_plane(normal, mechanism.bodies()[i].position_0[normal], x.body[i], x.r_low[i]);
  for (std::size_t row = 0; row < x.lambda.size(); ++row)
    if (planar.is_idle[row]) put(0.0, x.lambda[row]), put(0.0, x.kappa[row]);
}

}  // namespace rigstep::index3
