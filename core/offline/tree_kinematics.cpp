#include "core/offline/tree_kinematics.h"

#include <Eigen/LU>
#include <algorithm>
#include <map>
#include <numbers>
#include <numeric>

#include "core/offline/joint_motion.h"

namespace rigstep::offline {

namespace {

using Kind = HingeElement::Kind;

enum class HingeTurn { none, about_axis, about_both, ball, cardan };

// What a joint leaves free: shifts along x, y, z of its first frame, and a turn of the second frame against the first.
struct Leaves {
  bool shift[3] = {false, false, false};
  HingeTurn turn = HingeTurn::ball;
};

Leaves leaves(JointType type) {
  switch (type) {
    case JointType::revolute:
    case JointType::screw:  // its turn shifts
      return {{false, false, false}, HingeTurn::about_axis};
    case JointType::prismatic:
      return {{false, false, true}, HingeTurn::none};
    case JointType::cylindrical:
      return {{false, false, true}, HingeTurn::about_axis};
    case JointType::universal:
      return {{false, false, false}, HingeTurn::about_both};
    case JointType::fixed:
      return {{false, false, false}, HingeTurn::none};
    case JointType::point_on_line:
      return {{false, false, true}, HingeTurn::ball};
    case JointType::point_on_plane:
      return {{true, true, false}, HingeTurn::ball};
    case JointType::planar:
      return {{true, true, false}, HingeTurn::about_axis};
    case JointType::perpendicular_axes:
      return {{true, true, true}, HingeTurn::about_both};
    case JointType::parallel_axes:
      return {{true, true, true}, HingeTurn::about_axis};
    case JointType::floating:
      return {{true, true, true}, HingeTurn::ball};
    case JointType::spherical:
    case JointType::gimbal:
    case JointType::point_on_point:
    case JointType::distance:  // cut, never a hinge
      return {{false, false, false}, HingeTurn::ball};
  }
  return {};
}

bool holds_points_only(JointType type) {
  return leaves(type).turn == HingeTurn::ball && type != JointType::floating && type != JointType::distance;
}
bool holds_axes_only(JointType type) {
  return type == JointType::perpendicular_axes || type == JointType::parallel_axes;
}

bool is_driven(const Mechanism& m, int joint) {
  return std::any_of(m.drivers().begin(), m.drivers().end(), [&](const Driver& driver) {
    return m.coordinates()[static_cast<std::size_t>(driver.coordinate)].joint == joint;
  });
}

const Joint& joint_of(const Mechanism& m, int index) { return m.joints()[static_cast<std::size_t>(index)]; }

// A universal joint at zero: z of the second frame along x of the first.
Mat3 crossed_axes() {
  Mat3 axes;
  axes << 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0;
  return axes;
}

HingeElement constant(const Vec3& shift, const Mat3& turn) {
  HingeElement e;
  e.shift = shift;
  e.turn = turn;
  return e;
}

using Elements = std::vector<HingeElement>;

// From the other side: what was inner becomes outer, coordinates keep their values.
Elements inverted(Elements elements) {
  std::reverse(elements.begin(), elements.end());
  for (HingeElement& e : elements) {
    if (e.kind == Kind::constant) {
      e.shift = -(e.turn.transpose() * e.shift);
      e.turn.transposeInPlace();
    } else {
      e.shift = -e.shift;
      e.axis = -e.axis;
      e.inverted = !e.inverted;
    }
  }
  return elements;
}

HingeElement screw(const Vec3& shift, const Vec3& axis, int joint, Freedom freedom) {
  HingeElement e;
  e.kind = Kind::screw;
  e.shift = shift;
  e.axis = axis;
  e.freedom_joint = joint;
  e.freedom = freedom;
  return e;
}

// First to second body, in the axes of the joint's first frame
Elements shifts(const Mechanism& m, int index) {
  constexpr Freedom kAlong[] = {Freedom::displacement_x, Freedom::displacement_y, Freedom::displacement_z};
  const Joint& joint = joint_of(m, index);
  const bool single = joint.type == JointType::prismatic || joint.type == JointType::cylindrical ||
                      joint.type == JointType::point_on_line;
  Elements list;
  for (int k = 0; k < 3; ++k)
    if (leaves(joint.type).shift[k])
      list.push_back(
          screw(joint.in_first.axes_b.col(k), Vec3::Zero(), index, single ? Freedom::displacement : kAlong[k]));
  return list;
}

HingeTurn turn_of(const Mechanism& m, int index) {
  const HingeTurn turn = leaves(joint_of(m, index).type).turn;
  return turn == HingeTurn::ball && is_driven(m, index) && !freedoms(joint_of(m, index).type).empty() &&
                 joint_of(m, index).type != JointType::point_on_line &&
                 joint_of(m, index).type != JointType::point_on_plane
             ? HingeTurn::cardan
             : turn;
}

// Axes of the first body to those of the second
Elements turns(const Mechanism& m, int index) {
  const Joint& joint = joint_of(m, index);
  const Vec3 none = Vec3::Zero(), x = Vec3::UnitX(), y = Vec3::UnitY(), z = Vec3::UnitZ();
  const auto turn = [&](const Vec3& axis, Freedom freedom) { return screw(none, axis, index, freedom); };
  Elements list{constant(none, joint.in_first.axes_b)};
  switch (turn_of(m, index)) {
    case HingeTurn::none:
      break;
    case HingeTurn::about_axis:
      list.push_back(screw(joint.lead / (2.0 * std::numbers::pi) * z, z, index, Freedom::angle));
      break;
    case HingeTurn::about_both:
      list.insert(list.end(),
                  {turn(z, Freedom::first_angle), constant(none, crossed_axes()), turn(z, Freedom::second_angle)});
      break;
    case HingeTurn::cardan:
      list.insert(list.end(),
                  {turn(z, Freedom::first_angle), turn(y, Freedom::second_angle), turn(x, Freedom::third_angle)});
      break;
    case HingeTurn::ball:
      list.push_back(screw(none, none, index, Freedom::angle));
      list.back().kind = Kind::ball;
      break;
  }
  list.push_back(constant(none, joint.in_second.axes_b.transpose()));
  return list;
}

// A body that nothing holds
Elements floating() {
  Elements list;
  for (int k = 0; k < 3; ++k) list.push_back(screw(Vec3::Unit(k), Vec3::Zero(), -1, Freedom::displacement));
  list.push_back(screw(Vec3::Zero(), Vec3::Zero(), -1, Freedom::angle));
  list.back().kind = Kind::ball;
  return list;
}

// Bodies that are joined, and by what.
struct Bond {
  int position = -1, orientation = -1;
  bool touches(int body, const Mechanism& m) const {
    return joint_of(m, position).first == body || joint_of(m, position).second == body;
  }
};

struct Bonds {
  std::vector<Bond> list;
  std::string unsupported_reason;
};

// One bond for each pair of bodies; floating joints hold nothing, so they count where they are driven.
Bonds bonds(const Mechanism& m) {
  Bonds found;
  std::map<std::pair<int, int>, std::vector<int>> pairs;
  for (int j = 0; j < static_cast<int>(m.joints().size()); ++j) {
    const Joint& joint = joint_of(m, j);
    if (joint.type == JointType::distance) {
      found.unsupported_reason =
          "joint \"" + joint.name + "\" is a rod without mass, whose freedoms are no row of shifts and turns";
      return found;
    }
    if (joint.type != JointType::floating || is_driven(m, j))
      pairs[std::minmax(joint.first, joint.second)].push_back(j);
  }
  for (const auto& [bodies, joints] : pairs) {
    const int one = joints.front();
    if (joints.size() == 1) {
      found.list.push_back({one, one});
      continue;
    }
    const int other = joints[1];
    const JointType a = joint_of(m, one).type, b = joint_of(m, other).type;
    if (joints.size() == 2 && holds_points_only(a) && holds_axes_only(b)) {
      found.list.push_back({one, other});
    } else if (joints.size() == 2 && holds_axes_only(a) && holds_points_only(b)) {
      found.list.push_back({other, one});
    } else {
      found.unsupported_reason = "joints \"" + joint_of(m, one).name + "\" and \"" + joint_of(m, other).name +
                                 "\" between the same bodies close a loop, it is no open tree";
      return found;
    }
  }
  return found;
}

TreeHinge hang(const Mechanism& m, const Bond& bond, int body, const Vec3& inner_centre) {
  const Joint& position = joint_of(m, bond.position);
  TreeHinge hinge;
  hinge.body = body;
  hinge.position = bond.position;
  hinge.orientation = bond.orientation;
  hinge.reversed = position.first == body;
  hinge.inner = hinge.reversed ? position.second : position.first;
  Elements across = shifts(m, bond.position);
  Elements turned = turns(m, bond.orientation);
  if (joint_of(m, bond.orientation).first != position.first) turned = inverted(std::move(turned));
  across.insert(across.end(), turned.begin(), turned.end());
  for (std::size_t k = 0, value = 0; k < across.size(); ++k)
    if (across[k].kind != Kind::constant) across[k].measured = static_cast<int>(value++);
  if (hinge.reversed) across = inverted(std::move(across));
  const JointFrame &inner = hinge.reversed ? position.in_second : position.in_first,
                   &outer = hinge.reversed ? position.in_first : position.in_second;
  hinge.elements.push_back(constant(inner_centre + inner.point_b, Mat3::Identity()));
  hinge.elements.insert(hinge.elements.end(), across.begin(), across.end());
  hinge.mass_centre = -outer.point_b;
  return hinge;
}

struct Forest {
  std::vector<TreeHinge> hinges;
  std::string unsupported_reason;
};

// From the ground outwards; what is left floats, one body of each part.
Forest grow(const Mechanism& m) {
  Forest forest;
  Bonds all = bonds(m);
  forest.unsupported_reason = all.unsupported_reason;
  if (!forest.unsupported_reason.empty()) return forest;
  std::vector<bool> reached(m.bodies().size(), false);
  std::vector<bool> used(all.list.size(), false);
  const auto spread = [&](std::size_t from) {  // forest.hinges[from ...] and, before the first one, the ground
    for (std::size_t at = from; at <= forest.hinges.size(); ++at) {
      const int inner = at == 0 ? kGround : forest.hinges[at - 1].body;
      const Vec3 centre = at == 0 ? Vec3(Vec3::Zero()) : forest.hinges[at - 1].mass_centre;
      for (std::size_t k = 0; k < all.list.size(); ++k) {
        if (used[k] || !all.list[k].touches(inner, m)) continue;
        const Joint& joint = joint_of(m, all.list[k].position);
        const int outer = joint.first == inner ? joint.second : joint.first;
        if (outer == kGround || reached[static_cast<std::size_t>(outer)]) {
          forest.unsupported_reason = "joint \"" + joint.name + "\" closes a loop, it is no open tree";
          return;
        }
        used[k] = reached[static_cast<std::size_t>(outer)] = true;
        forest.hinges.push_back(hang(m, all.list[k], outer, centre));
      }
    }
  };
  spread(0);
  for (int body = 0; body < static_cast<int>(m.bodies().size()) && forest.unsupported_reason.empty(); ++body) {
    if (reached[static_cast<std::size_t>(body)]) continue;
    reached[static_cast<std::size_t>(body)] = true;
    TreeHinge hinge;
    hinge.body = body;
    hinge.elements = floating();
    for (std::size_t k = 0; k < hinge.elements.size(); ++k) hinge.elements[k].measured = static_cast<int>(k);
    forest.hinges.push_back(hinge);
    spread(forest.hinges.size());
  }
  return forest;
}

// Gives the driven elements their drivers; empty, or what cannot be driven.
std::string assign_drivers(const Mechanism& m, std::vector<TreeHinge>& hinges) {
  for (std::size_t d = 0; d < m.drivers().size(); ++d) {
    const JointCoordinate& what = m.coordinates()[static_cast<std::size_t>(m.drivers()[d].coordinate)];
    const Joint& joint = joint_of(m, what.joint);
    const bool lead = joint.type == JointType::screw && what.freedom == Freedom::displacement;
    HingeElement* found = nullptr;
    for (TreeHinge& hinge : hinges)
      for (HingeElement& e : hinge.elements)
        if (e.kind == Kind::screw && e.freedom_joint == what.joint && (e.freedom == what.freedom || lead)) found = &e;
    if (found == nullptr || found->driver >= 0)
      return "driver \"" + m.drivers()[d].name + "\" does not prescribe a freedom of a hinge of its own";
    found->driver = static_cast<int>(d);
    if (lead) found->per_drive = 2.0 * std::numbers::pi / joint.lead;
  }
  return {};
}

struct FramePose {
  Vec3 r_0 = Vec3::Zero();
  Mat3 A = Mat3::Identity();
};

FramePose pose_of(std::span<const BodyMotion> bodies, int body) {
  if (body == kGround) return {};
  const BodyMotion& at = bodies[static_cast<std::size_t>(body)];
  return {at.r_0, rotation(at.p)};
}

using HingeValues = std::vector<std::array<double, 4>>;  // a number, or Euler parameters

void measure_shift(const Mechanism& m, int joint, std::span<const BodyMotion> bodies, HingeValues& values) {
  const Joint& j = joint_of(m, joint);
  const FramePose first = pose_of(bodies, j.first), second = pose_of(bodies, j.second);
  const Vec3 gap = second.r_0 + second.A * j.in_second.point_b - first.r_0 - first.A * j.in_first.point_b;
  const Vec3 along = (first.A * j.in_first.axes_b).transpose() * gap;
  for (int k = 0; k < 3; ++k)
    if (leaves(j.type).shift[k]) values.push_back({along[k]});
}

void measure_turn(const Mechanism& m, int joint, std::span<const BodyMotion> bodies, HingeValues& values) {
  const Joint& j = joint_of(m, joint);
  const FramePose first = pose_of(bodies, j.first), second = pose_of(bodies, j.second);
  const Mat3 first_axes = first.A * j.in_first.axes_b, R = first_axes.transpose() * second.A * j.in_second.axes_b;
  switch (turn_of(m, joint)) {
    case HingeTurn::none:
      return;
    case HingeTurn::about_axis: {
      double angle = std::atan2(R(1, 0), R(0, 0));
      if (j.lead != 0.0) {  // on the turn that the displacement tells
        const Vec3 gap = second.r_0 + second.A * j.in_second.point_b - first.r_0 - first.A * j.in_first.point_b;
        angle = 2.0 * std::numbers::pi / j.lead * first_axes.col(2).dot(gap);
      }
      return values.push_back({angle});
    }
    case HingeTurn::about_both: {
      const double angle = std::atan2(R(1, 2), R(0, 2));
      const Mat3 rest = crossed_axes().transpose() * Eigen::AngleAxisd(-angle, Vec3::UnitZ()).toRotationMatrix() * R;
      values.push_back({angle});
      return values.push_back({std::atan2(rest(1, 0), rest(0, 0))});
    }
    case HingeTurn::cardan:
      values.push_back({std::atan2(R(1, 0), R(0, 0))});
      values.push_back({std::atan2(-R(2, 0), std::hypot(R(2, 1), R(2, 2)))});
      return values.push_back({std::atan2(R(2, 1), R(2, 2))});
    case HingeTurn::ball: {
      const Eigen::Quaterniond e(R);
      return values.push_back({e.w(), e.x(), e.y(), e.z()});
    }
  }
}

HingeValues measure(const Mechanism& m, const TreeHinge& hinge, std::span<const BodyMotion> bodies) {
  HingeValues values;
  if (hinge.position >= 0) {
    measure_shift(m, hinge.position, bodies, values);
    measure_turn(m, hinge.orientation, bodies, values);
    return values;
  }
  const FramePose at = pose_of(bodies, hinge.body);
  for (int k = 0; k < 3; ++k) values.push_back({at.r_0[k]});
  const Eigen::Quaterniond e(at.A);
  values.push_back({e.w(), e.x(), e.y(), e.z()});
  return values;
}

double coordinate_of(const HingeElement& e, std::span<const double> q, std::span<const Prescribed> drives) {
  if (e.driver < 0) return q[static_cast<std::size_t>(e.coordinate)];
  return e.start + e.per_drive * (drives[static_cast<std::size_t>(e.driver)].value - e.drive_start);
}

Eigen::Quaterniond ball_of(const HingeElement& e, std::span<const double> q) {
  const double* p = q.data() + e.coordinate;
  return Eigen::Quaterniond(p[0], p[1], p[2], p[3]).normalized();
}

// The outer frame of an element in its inner one
FramePose across(const HingeElement& e, std::span<const double> q, std::span<const Prescribed> drives) {
  if (e.kind == Kind::constant) return {e.shift, e.turn};
  if (e.kind == Kind::ball) return {Vec3::Zero(), ball_of(e, q).toRotationMatrix()};
  const double value = coordinate_of(e, q, drives);
  if (e.axis.isZero()) return {value * e.shift, Mat3::Identity()};
  return {value * e.shift, Eigen::AngleAxisd(value, e.axis).toRotationMatrix()};
}

// v less its part in the span of the first columns of Q, which are orthonormal; twice is enough. R: its coefficients.
Six<double> normal_part(Six<double> v, std::span<const Six<double>> Q, double* R) {
  for (int pass = 0; pass < 2; ++pass)
    for (std::size_t k = 0; k < Q.size(); ++k) {
      const double share = Q[k].dot(v);
      R[k] += share;
      v -= share * Q[k];
    }
  return v;
}

// An orthonormal basis of what is normal to A, and (A'A)^-1 A' = R^-1 Q', by the Gram-Schmidt process.
void complete(TreeBody<double>& body) {
  const std::size_t n = static_cast<std::size_t>(body.freedoms);
  std::array<Six<double>, 6> Q;
  double R[6][6] = {}, unused[6] = {};
  for (std::size_t k = 0; k < n; ++k) {
    Q[k] = normal_part(body.A[k], {Q.data(), k}, R[k]);
    R[k][k] = Q[k].norm();
    Q[k] /= R[k][k];
  }
  for (std::size_t k = n; k-- > 0;) {
    body.A_plus[k] = Q[k];
    for (std::size_t j = k + 1; j < n; ++j) body.A_plus[k] -= R[j][k] * body.A_plus[j];
    body.A_plus[k] /= R[k][k];
  }
  for (std::size_t k = n; k < 6; ++k) {
    double longest = -1.0;  // of the unit vectors the one that is least in the span so far
    for (int axis = 0; axis < 6; ++axis) {
      const Six<double> part = normal_part(Six<double>::Unit(axis), {Q.data(), k}, unused);
      if (part.norm() <= longest) continue;
      longest = part.norm();
      Q[k] = part / longest;
    }
    body.Z[k - n] = Q[k];
  }
}

Vec3 linear(const Six<double>& v) { return v.head<3>(); }
Vec3 angular(const Six<double>& v) { return v.tail<3>(); }

}  // namespace

std::string tree_unsupported_reason(const Mechanism& mechanism) {
  if (!mechanism.couplings().empty())
    return "it couples joint coordinates (coupling \"" + mechanism.couplings().front().name + "\")";
  Forest forest = grow(mechanism);
  if (!forest.unsupported_reason.empty()) return forest.unsupported_reason;
  const std::string drive = drive_unsupported_reason(mechanism);
  return drive.empty() ? assign_drivers(mechanism, forest.hinges) : drive;
}

TreeKinematics::TreeKinematics(const Mechanism& mechanism) : mechanism_(&mechanism) {
  const std::string unsupported_reason = tree_unsupported_reason(mechanism);
  if (!unsupported_reason.empty()) throw SolverError("cannot simulate " + mechanism.name() + ": " + unsupported_reason);
  hinges_ = grow(mechanism).hinges;
  assign_drivers(mechanism, hinges_);
  for (TreeHinge& hinge : hinges_)
    for (HingeElement& e : hinge.elements) {
      if (e.kind == Kind::constant || e.driver >= 0) continue;
      e.coordinate = coordinates_;
      e.rate = rates_;
      coordinates_ += e.kind == Kind::ball ? 4 : 1;
      rates_ += e.kind == Kind::ball ? 3 : 1;
    }
  poses_.resize(hinges_.size());
  columns_.resize(hinges_.size());
  A_rate_.resize(static_cast<std::size_t>(rates_));
  acceleration_bias_.resize(hinges_.size());
}

TreeSystem<double> TreeKinematics::system() const {
  const std::size_t n = hinges_.size();
  TreeSystem<double> system;
  std::vector<int> place_of(mechanism_->bodies().size());
  for (std::size_t i = 0; i < n; ++i) {
    const TreeHinge& hinge = hinges_[i];
    const Body& of = mechanism_->bodies()[static_cast<std::size_t>(hinge.body)];
    place_of[static_cast<std::size_t>(hinge.body)] = static_cast<int>(i);
    TreeBody<double>& body = system.body.emplace_back();
    if (hinge.inner != kGround) body.inner = place_of[static_cast<std::size_t>(hinge.inner)];
    body.rate = i == 0 ? 0 : system.body[i - 1].rate + system.body[i - 1].freedoms;
    for (const HingeElement& e : hinge.elements)
      if (e.rate >= 0) body.freedoms += e.kind == Kind::ball ? 3 : 1;
    const Vec3& c = hinge.mass_centre;
    body.mass = of.mass;
    body.moment = of.mass * c;
    body.inertia = of.inertia_b + of.mass * (c.squaredNorm() * Mat3::Identity() - c * c.transpose());
    // from its mass centre: [1 c~; 0 1] diag(1/m, J^-1) [1 0; -c~ 1]
    Mat3 cross;
    cross << 0.0, -c.z(), c.y(), c.z(), 0.0, -c.x(), -c.y(), c.x(), 0.0;
    const Mat3 J_inverse = of.inertia_b.inverse();
    body.M_inverse.topLeftCorner<3, 3>() = Mat3::Identity() / of.mass - cross * J_inverse * cross;
    body.M_inverse.topRightCorner<3, 3>() = cross * J_inverse;
    body.M_inverse.bottomLeftCorner<3, 3>() = -J_inverse * cross;
    body.M_inverse.bottomRightCorner<3, 3>() = J_inverse;
  }
  system.load.assign(n, Six<double>::Zero());
  system.bias = system.v = system.mu = system.load;
  system.p.assign(static_cast<std::size_t>(rates_), 0.0);
  system.u = system.p;
  return system;
}

std::vector<double> TreeKinematics::start(std::span<const BodyMotion> bodies, std::span<const double> driven) {
  std::vector<double> q(static_cast<std::size_t>(coordinates_));
  for (TreeHinge& hinge : hinges_) {
    const HingeValues values = measure(*mechanism_, hinge, bodies);
    for (HingeElement& e : hinge.elements) {
      if (e.kind == Kind::constant) continue;
      std::array<double, 4> value = values[static_cast<std::size_t>(e.measured)];
      if (e.kind == Kind::ball && e.inverted)
        for (std::size_t k = 1; k < 4; ++k) value[k] = -value[k];
      e.start = value[0];
      if (e.driver >= 0) e.drive_start = driven[static_cast<std::size_t>(e.driver)];
      if (e.driver < 0) std::copy_n(value.begin(), e.kind == Kind::ball ? 4 : 1, q.begin() + e.coordinate);
    }
  }
  return q;
}

void TreeKinematics::place(std::span<const double> q, std::span<const Prescribed> drives, TreeSystem<double>& system) {
  for (std::size_t i = 0; i < hinges_.size(); ++i) {
    const TreeHinge& hinge = hinges_[i];
    TreeBody<double>& body = system.body[i];
    std::vector<Column>& columns = columns_[i];
    columns.clear();
    FramePose rest;  // of the body in the outer frame of the element
    for (std::size_t k = hinge.elements.size(); k-- > 0;) {
      const HingeElement& e = hinge.elements[k];
      const auto add = [&](const Vec3& v, const Vec3& omega, int rate) {
        columns.push_back(
            {spatial<double>(rest.A.transpose() * (v + omega.cross(rest.r_0)), rest.A.transpose() * omega), rate,
             static_cast<int>(k)});
      };
      if (e.kind == Kind::screw) add(e.shift, e.axis, e.rate);
      if (e.kind == Kind::ball)
        for (int axis = 2; axis >= 0; --axis) add(Vec3::Zero(), Vec3::Unit(axis), e.rate + axis);
      const FramePose own = across(e, q, drives);
      rest = {own.r_0 + own.A * rest.r_0, own.A * rest.A};
    }
    std::reverse(columns.begin(), columns.end());
    body.G = rest.A.transpose();  // (10)
    body.rho = rest.r_0;
    system.bias[i].setZero();  // v^r
    for (const Column& column : columns) {
      const HingeElement& e = hinge.elements[static_cast<std::size_t>(column.element)];
      if (e.driver < 0)
        body.A[static_cast<std::size_t>(column.rate - body.rate)] = column.motion;
      else
        system.bias[i] += e.per_drive * drives[static_cast<std::size_t>(e.driver)].rate * column.motion;
    }
    complete(body);
    const TreePose inner = body.inner < 0 ? TreePose{} : poses_[static_cast<std::size_t>(body.inner)];
    poses_[i] = {inner.origin_0 + inner.axes_0 * rest.r_0, inner.axes_0 * rest.A};
  }
}

// A-dot of a column is what the motion of all that lies outside of it makes of it: Omega'A with the Omega of that
// motion.
void TreeKinematics::move(std::span<const double> rates, std::span<const Prescribed> drives,
                          const TreeSystem<double>& system) {
  for (std::size_t i = 0; i < hinges_.size(); ++i) {
    const TreeBody<double>& body = system.body[i];
    Six<double> outside = Six<double>::Zero(), bias = Six<double>::Zero(), own = Six<double>::Zero();
    for (std::size_t k = columns_[i].size(); k-- > 0;) {
      const Column& column = columns_[i][k];
      const HingeElement& e = hinges_[i].elements[static_cast<std::size_t>(column.element)];
      const Six<double> rate = omega_transposed<double>(outside, column.motion);
      const double qd = e.driver < 0 ? rates[static_cast<std::size_t>(column.rate)]
                                     : e.per_drive * drives[static_cast<std::size_t>(e.driver)].rate;
      if (e.driver < 0)
        A_rate_[static_cast<std::size_t>(column.rate)] = rate;
      else
        bias += e.per_drive * drives[static_cast<std::size_t>(e.driver)].acceleration * column.motion;
      bias += qd * rate;
      own += qd * column.motion;
      if (k == 0 || columns_[i][k - 1].element != column.element) {  // the three turns of a ball are one motion
        outside += own;
        own.setZero();
      }
    }
    const Six<double>& v = system.v[i];
    bias.head<3>() += angular(v).cross(linear(v));
    if (body.inner >= 0) {
      const Six<double>& inner = system.v[static_cast<std::size_t>(body.inner)];
      bias += omega_transposed<double>(v, outwards<double>(body, inner));  // C-dot v by (16)
      bias.head<3>() -= body.G * angular(inner).cross(linear(inner));
    }
    acceleration_bias_[i] = bias;
  }
}

void TreeKinematics::differentiate(std::span<const double> q, std::span<const double> rates,
                                   std::span<double> qd) const {
  for (const TreeHinge& hinge : hinges_)
    for (const HingeElement& e : hinge.elements) {
      if (e.kind == Kind::constant || e.driver >= 0) continue;
      const double* from = rates.data() + e.rate;
      double* to = qd.data() + e.coordinate;
      to[0] = from[0];
      if (e.kind != Kind::ball) continue;
      const double* p = q.data() + e.coordinate;
      const Eigen::Quaterniond half(0.0, 0.5 * from[0], 0.5 * from[1], 0.5 * from[2]);
      const Eigen::Quaterniond rate = Eigen::Quaterniond(p[0], p[1], p[2], p[3]) * half;
      to[0] = rate.w(), to[1] = rate.x(), to[2] = rate.y(), to[3] = rate.z();
    }
}

}  // namespace rigstep::offline
