#include "core/index3/compile/planar_motion.h"

#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <span>

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

// Each of these columns lies along the normal or across it.
bool are_aligned(int normal, const Mat3& axes) {
  for (int column = 0; column < 3; ++column) {
    const Vec3 axis = axes.col(column), along = axis[normal] * Vec3::Unit(normal);
    if (axis[normal] != 0.0 && axis != along) return false;
  }
  return true;
}

// Whether parts of a mechanism act in the planes normal to one axis, at the start pose and so at all poses in the
// plane.
struct ActsInPlane {
  const Mechanism& m;
  int normal;

  bool stays(const Vec3& force, const Vec3& torque) const {
    return stays_in_plane(normal, load_at(force, torque, Vec3::Zero()));
  }

  // Along the normal: where the plane of a body lies, or a point of the ground.
  double level(int body, const Vec3& point_b) const {
    return body == kGround ? point_b[normal] : m.bodies()[body].position_0[normal];
  }
  bool has_point(int body, const Vec3& point_b) const { return body == kGround || point_b[normal] == 0.0; }
  bool has_points(int first, const Vec3& first_point_b, int second, const Vec3& second_point_b) const {
    return has_point(first, first_point_b) && has_point(second, second_point_b) &&
           level(first, first_point_b) == level(second, second_point_b);
  }
  bool has_axes(const Joint& joint) const {
    return are_aligned(normal, joint.in_first.axes_b) && are_aligned(normal, joint.in_second.axes_b);
  }

  // It lies and moves there, and its weight and inertia forces do not turn it out.
  bool body(const Body& body) const {
    const int i = (normal + 1) % 3, k = (normal + 2) % 3;
    return body.orientation[1 + i] == 0.0 && body.orientation[1 + k] == 0.0 && body.inertia_b(normal, i) == 0.0 &&
           body.inertia_b(normal, k) == 0.0 && stays(body.velocity_0, body.angular_velocity_0) &&
           m.gravity_0()[normal] == 0.0;
  }
  // Each of its rows acts in the plane, or holds bodies in it.
  bool joint(const Joint& joint) const {
    bool separate = true;
    for_each_row(m, joint, [&](const RowValue& row) {
      const bool acts = stays_in_plane(normal, row.J_first) && stays_in_plane(normal, row.J_second);
      separate = separate && (acts || is_idle(normal, row));
    });
    const auto needs_axes = [](const Row& row) {
      return row.form != Row::Form::point && row.form != Row::Form::distance;
    };
    const std::span<const Row> rows = rows_of(joint.type);
    return separate && (has_axes(joint) || std::none_of(rows.begin(), rows.end(), needs_axes)) &&
           has_points(joint.first, joint.in_first.point_b, joint.second, joint.in_second.point_b);
  }
  // One of its bodies does not leave the plane of the other: idle rows hold its displacement along the normal and its
  // rotations about the axes across it.
  bool holds(const Joint& joint) const {
    Mat3 products = Mat3::Zero();
    for_each_row(m, joint, [&](const RowValue& row) {
      if (!is_idle(normal, row)) return;
      const Vec6& J = joint.second == kGround ? row.J_first : row.J_second;
      const Vec3 held{J[normal], J[3 + (normal + 1) % 3], J[3 + (normal + 2) % 3]};
      products += held * held.transpose();
    });
    return products.fullPivLu().rank() == 3;
  }
  bool along(const Joint& joint, Freedom freedom) const {
    const JointPlacement at =
        place_joint(joint, placement_at_start(m, joint.first), placement_at_start(m, joint.second));
    Vec6 on_first, on_second;
    coordinate_gradient(freedom, at, on_first, on_second);
    return has_axes(joint) && (joint.first == kGround || stays_in_plane(normal, on_first)) &&
           (joint.second == kGround || stays_in_plane(normal, on_second));
  }
  bool input(const Input& input) const {
    switch (input.kind) {
      case Input::Kind::body_force:
        return stays(input.direction, Vec3::Zero()) && has_point(input.body, input.point_b);
      case Input::Kind::body_torque:
        return stays(Vec3::Zero(), input.direction);
      case Input::Kind::joint_effort:
        return along(m.joints()[input.joint], input.freedom);
      case Input::Kind::signal:
        return true;
    }
    return false;
  }
  // Elements that act along no coordinate.
  template <class Kind>
  bool element(const Kind&) const {
    return false;
  }
  bool element(const Spring& spring) const {
    return (spring.kind == Spring::Kind::between_points || spring.direction_0[normal] == 0.0) &&
           has_points(spring.first, spring.first_point_b, spring.second, spring.second_point_b);
  }
  bool element(const Stop& stop) const {
    return has_points(stop.first, stop.first_point_b, stop.second, stop.second_point_b);
  }
};

// Finds the bodies that stay in planes normal to one axis: joints hold them there, and nothing that acts on them, or on
// what they are connected with, acts out of it.
class PlaneSearch {
 public:
  PlaneSearch(const Plan& plan, int normal)
      : plan_(plan), normal_(normal), connected_(bodies()), held_(bodies()), leaves_(bodies()) {}

  // The plan's mechanism with some values of its parameters.
  void examine(const Mechanism& m) {
    const ActsInPlane in_plane{m, normal_};
    const auto along = [&](int coordinate) {
      const JointCoordinate& x = m.coordinates()[coordinate];
      return in_plane.along(m.joints()[x.joint], x.freedom);
    };
    for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i) note(std::array{i}, in_plane.body(m.bodies()[i]));
    auto bodies = plan_.bodies_of_constraint.begin();
    for (const Joint& joint : m.joints()) {
      note(*bodies++, in_plane.joint(joint));
      if (in_plane.holds(joint)) held_.join(joint.first, joint.second);
    }
    for (const Coupling& coupling : m.couplings()) note(*bodies++, along(coupling.first) && along(coupling.second));
    for (const Driver& driver : m.drivers()) note(*bodies++, along(driver.coordinate));
    for (const AppliedLoad& load : m.loads())
      note(std::array{load.body},
           in_plane.stays(load.force, load.torque) && in_plane.has_point(load.body, load.point_b));
    for (const Input& input : m.inputs()) note(bodies_of(m, input), in_plane.input(input));
    for_each_kind([&]<class Kind>() {
      for (std::size_t k = 0; k < m.all<Kind>().size(); ++k) {
        const Kind& element = m.all<Kind>()[k];
        const Connectivity connects = connectivity(element, plan_.constants<Kind>()[k]);
        note(connects.bodies, connects.coordinate >= 0 ? along(connects.coordinate) : in_plane.element(element));
      }
    });
  }

  // (bodies)
  std::vector<bool> staying() const {
    const int count = static_cast<int>(bodies());
    std::vector<bool> group_leaves(bodies() + 1), staying(bodies());
    for (int i = 0; i < count; ++i)
      if (leaves_[i] || held_.group_of(i) != held_.group_of(kGround)) group_leaves[connected_.group_of(i)] = true;
    for (int i = 0; i < count; ++i) staying[i] = !group_leaves[connected_.group_of(i)];
    return staying;
  }

 private:
  std::size_t bodies() const { return plan_.mechanism.bodies().size(); }
  // Something that acts on all of these, or between them.
  void note(std::span<const int> bodies, bool acts_in_plane) {
    int last = kGround;
    for (const int body : bodies) {
      if (body == kGround) continue;
      if (last != kGround) connected_.join(last, body);
      if (!acts_in_plane) leaves_[body] = true;
      last = body;
    }
  }
  static std::vector<int> bodies_of(const Mechanism& m, const Input& input) {
    if (input.kind == Input::Kind::signal) return {};
    if (input.kind != Input::Kind::joint_effort) return {input.body};
    return {m.joints()[input.joint].first, m.joints()[input.joint].second};
  }

  const Plan& plan_;
  int normal_;
  BodyGroups connected_;      // not counting the ground
  BodyGroups held_;           // with what they stay in one plane with, the ground included
  std::vector<bool> leaves_;  // (bodies) something acts on it out of the plane
};

// The mechanism, or, where parameters are tunable, what it is at both ends of their ranges.
std::vector<Mechanism> at_ends(const Mechanism& m) {
  const std::vector<Parameter>& all = m.parameters();
  if (std::none_of(all.begin(), all.end(), [](const Parameter& p) { return p.tunable; })) return {m};
  std::vector<Mechanism> ends(2, m);
  for (int k = 0; k < static_cast<int>(all.size()); ++k)
    if (all[k].tunable) ends[0].set_parameter(k, all[k].minimum), ends[1].set_parameter(k, all[k].maximum);
  return ends;
}

// A zero keeps its sign.
void set_unless_equal(double value, double& number) {
  if (number != value) number = value;
}

void keep_in_plane(int normal, double level, BodyState& body, Vec3& r_low) {
  const int i = (normal + 1) % 3, k = (normal + 2) % 3;
  set_unless_equal(level, body.r[normal]), set_unless_equal(0.0, r_low[normal]);
  if (body.p[1 + i] != 0.0 || body.p[1 + k] != 0.0) {
    body.p[1 + i] = body.p[1 + k] = 0.0;
    if (body.p.isZero(0.0)) body.p[0] = 1.0;  // upside down
    body.p.normalize();
  }
  set_unless_equal(0.0, body.v[normal]), set_unless_equal(0.0, body.a[normal]);
  for (const int across : {i, k}) set_unless_equal(0.0, body.w_b[across]), set_unless_equal(0.0, body.alpha_b[across]);
}

}  // namespace

PlanarMotion planar_motion(const Plan& plan) {
  const Mechanism& m = plan.mechanism;
  PlanarMotion planar{std::vector<int>(m.bodies().size(), -1), std::vector<bool>(plan.first_row.back(), false)};
  const std::vector<Mechanism> ends = at_ends(m);
  for (const int normal : {2, 1, 0}) {
    PlaneSearch search(plan, normal);
    for (const Mechanism& end : ends) search.examine(end);
    const std::vector<bool> staying = search.staying();
    for (std::size_t i = 0; i < staying.size(); ++i)
      if (staying[i]) planar.normal[i] = normal;
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
    if (planar.is_idle[row]) set_unless_equal(0.0, x.lambda[row]), set_unless_equal(0.0, x.kappa[row]);
}

}  // namespace rigstep::index3
