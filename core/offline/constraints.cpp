#include "core/offline/constraints.h"

#include <cmath>
#include <numbers>

namespace rigstep::offline {

namespace {

// Collects the rows of one joint: each quantity is to vanish.
class JointRows {
 public:
  JointRows(const Joint& joint, const JointMotion& at) : joint_(joint), at_(at) {}

  void same_point() {
    for (int i = 0; i < 3; ++i) {
      JetVec3 direction;
      direction.value = Vec3::Unit(i);
      quantities.push_back(dot(at_.gap, direction));
    }
  }
  void on_axis() {
    quantities.push_back(dot(at_.first_axes[0], at_.gap));
    quantities.push_back(dot(at_.first_axes[1], at_.gap));
  }
  void on_plane() { quantities.push_back(dot(at_.first_axes[2], at_.gap)); }
  void parallel() {
    quantities.push_back(dot(at_.first_axes[0], at_.second_axes[2]));
    quantities.push_back(dot(at_.first_axes[1], at_.second_axes[2]));
  }
  void perpendicular() { quantities.push_back(dot(at_.first_axes[2], at_.second_axes[2])); }
  void unturned() {
    parallel();
    quantities.push_back(dot(at_.first_axes[1], at_.second_axes[0]));
  }
  void screwed() {
    const Jet angle = measured(joint_, Freedom::angle, at_);
    quantities.push_back(measured(joint_, Freedom::displacement, at_) - joint_.lead / (2.0 * std::numbers::pi) * angle);
  }
  void apart() { quantities.push_back(norm(at_.gap) + -joint_.length); }

  std::vector<Jet> quantities;

 private:
  const Joint& joint_;
  const JointMotion& at_;
};

std::vector<Jet> joint_quantities(const Joint& joint, const JointMotion& at) {
  JointRows rows(joint, at);
  switch (joint.type) {
    case JointType::spherical:
    case JointType::gimbal:
    case JointType::point_on_point:
      rows.same_point();
      break;
    case JointType::revolute:
      rows.same_point();
      rows.parallel();
      break;
    case JointType::prismatic:
      rows.on_axis();
      rows.unturned();
      break;
    case JointType::cylindrical:
      rows.on_axis();
      rows.parallel();
      break;
    case JointType::universal:
      rows.same_point();
      rows.perpendicular();
      break;
    case JointType::fixed:
      rows.same_point();
      rows.unturned();
      break;
    case JointType::point_on_line:
      rows.on_axis();
      break;
    case JointType::perpendicular_axes:
      rows.perpendicular();
      break;
    case JointType::parallel_axes:
      rows.parallel();
      break;
    case JointType::planar:
      rows.on_plane();
      rows.parallel();
      break;
    case JointType::screw:
      rows.on_axis();
      rows.parallel();
      rows.screwed();
      break;
    case JointType::point_on_plane:
      rows.on_plane();
      break;
    case JointType::distance:
      rows.apart();
      break;
    case JointType::floating:
      break;
  }
  return rows.quantities;
}

// Adds factor * the quantity of a joint's two bodies to a row.
void add(ConstraintRow& row, const Jet& quantity, double factor, const Joint& joint) {
  row.Phi += factor * quantity.value;
  row.gamma -= factor * quantity.curvature;
  for (const auto& [body, J] :
       {std::pair<int, Vec6>(joint.first, quantity.on_first()), {joint.second, quantity.on_second()}}) {
    if (body == kGround) continue;
    int at = 0;
    while (at < row.parts && row.part[at].body != body) ++at;
    if (at == row.parts) row.part[row.parts++].body = body;
    row.part[at].J += factor * J;
  }
}

}  // namespace

double ConstraintRow::times(std::span<const Vec6> motion) const {
  double sum = 0.0;
  for (int i = 0; i < parts; ++i) sum += part[i].J.dot(motion[static_cast<std::size_t>(part[i].body)]);
  return sum;
}

Constraints::Constraints(const Mechanism& mechanism) : mechanism_(&mechanism) {
  const std::vector<BodyMotion> start = start_motion(mechanism);
  const std::vector<Jet> coordinate = CoordinateFollower(mechanism).follow(start);
  for (const Coupling& coupling : mechanism.couplings())
    coupling_constant_.push_back(coordinate[coupling.first].value + coupling.ratio * coordinate[coupling.second].value);
}

std::vector<ConstraintRow> Constraints::rows(const Situation& at, std::span<const Prescribed> drives) const {
  std::vector<ConstraintRow> rows;
  int constraint = 0;
  const auto next_row = [&]() -> ConstraintRow& {
    rows.emplace_back().constraint = constraint;
    return rows.back();
  };
  const auto joint_of = [this](int coordinate) -> const Joint& {
    return mechanism_->joints()[mechanism_->coordinates()[coordinate].joint];
  };
  for (const Joint& joint : mechanism_->joints()) {
    for (const Jet& quantity : joint_quantities(joint, joint_motion(joint, at.body)))
      add(next_row(), quantity, 1.0, joint);
    ++constraint;
  }
  for (std::size_t i = 0; i < mechanism_->couplings().size(); ++i, ++constraint) {
    const Coupling& coupling = mechanism_->couplings()[i];
    ConstraintRow& row = next_row();
    row.Phi = -coupling_constant_[i];
    add(row, at.coordinate[static_cast<std::size_t>(coupling.first)], 1.0, joint_of(coupling.first));
    add(row, at.coordinate[static_cast<std::size_t>(coupling.second)], coupling.ratio, joint_of(coupling.second));
  }
  for (std::size_t i = 0; i < mechanism_->drivers().size(); ++i, ++constraint) {
    const int coordinate = mechanism_->drivers()[i].coordinate;
    ConstraintRow& row = next_row();
    add(row, at.coordinate[static_cast<std::size_t>(coordinate)], 1.0, joint_of(coordinate));
    row.Phi -= drives[i].value;
    if (!is_length(mechanism_->coordinates()[coordinate].freedom))
      row.Phi = std::remainder(row.Phi, 2.0 * std::numbers::pi);
    row.Phi_t = -drives[i].rate;
    row.gamma += drives[i].acceleration;
  }
  return rows;
}

std::vector<Vec6> velocities(std::span<const BodyMotion> bodies) {
  std::vector<Vec6> v(bodies.size());
  for (std::size_t i = 0; i < v.size(); ++i) v[i] << bodies[i].v_0, bodies[i].omega_0;
  return v;
}

std::vector<Reaction> reactions(const Mechanism& mechanism, std::span<const BodyMotion> bodies,
                                std::span<const ConstraintRow> rows, std::span<const double> lambda) {
  std::vector<Reaction> loads(mechanism.joints().size());
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const ConstraintRow& row = rows[k];
    if (row.constraint >= static_cast<int>(loads.size())) break;
    const Joint& joint = mechanism.joints()[row.constraint];
    const bool second_moves = joint.second != kGround;
    const int body = second_moves ? joint.second : joint.first;
    const Vec6& J = row.part[row.part[0].body == body ? 0 : 1].J;
    // what acts on one body acts on the other with the opposite sign
    const Vec6 on_second = (second_moves ? -lambda[k] : lambda[k]) * J;
    const Vec3 point = joint.second == kGround
                           ? joint.in_second.point_b
                           : Vec3(bodies[body].r_0 + rotation(bodies[body].p) * joint.in_second.point_b);
    loads[row.constraint].force_0 += on_second.head<3>();
    loads[row.constraint].torque_0 += on_second.tail<3>() + (bodies[body].r_0 - point).cross(on_second.head<3>());
  }
  return loads;
}

std::vector<double> efforts(const Mechanism& mechanism, std::span<const ConstraintRow> rows,
                            std::span<const double> lambda) {
  const int joints = static_cast<int>(mechanism.joints().size());
  std::vector<double> efforts(mechanism.couplings().size() + mechanism.drivers().size(), 0.0);
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (rows[k].constraint >= joints) efforts[static_cast<std::size_t>(rows[k].constraint - joints)] = -lambda[k];
  return efforts;
}

std::vector<Vec6> constraint_loads(const Mechanism& mechanism, const Instant& at) {
  std::vector<Vec6> loads(at.body.size(), Vec6::Zero());
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j) {
    const Joint& joint = mechanism.joints()[j];
    const JointFrame& frame = joint.in_second;
    const Vec3 point = joint.second == kGround
                           ? frame.point_b
                           : Vec3(at.body[static_cast<std::size_t>(joint.second)].r_0 +
                                  rotation(at.body[static_cast<std::size_t>(joint.second)].p) * frame.point_b);
    const auto add = [&](int body, double sign) {
      if (body == kGround) return;
      const Vec3 arm = point - at.body[static_cast<std::size_t>(body)].r_0;
      loads[body].head<3>() += sign * at.reaction[j].force_0;
      loads[body].tail<3>() += sign * (at.reaction[j].torque_0 + arm.cross(at.reaction[j].force_0));
    };
    add(joint.second, 1.0);
    add(joint.first, -1.0);
  }
  if (at.effort.empty()) return loads;
  const std::vector<Jet> coordinates = CoordinateFollower(mechanism).follow(at.body);
  const auto add_along = [&](int coordinate, double effort) {
    const Joint& joint = mechanism.joints()[mechanism.coordinates()[coordinate].joint];
    const Jet& gradient = coordinates[static_cast<std::size_t>(coordinate)];
    if (joint.first != kGround) loads[joint.first] += effort * gradient.on_first();
    if (joint.second != kGround) loads[joint.second] += effort * gradient.on_second();
  };
  auto effort = at.effort.begin();
  for (const Coupling& coupling : mechanism.couplings()) {
    add_along(coupling.first, *effort);
    add_along(coupling.second, coupling.ratio * *effort++);
  }
  for (const Driver& driver : mechanism.drivers()) add_along(driver.coordinate, *effort++);
  return loads;
}

}  // namespace rigstep::offline
