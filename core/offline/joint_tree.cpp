#include "core/offline/joint_tree.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace rigstep::offline {

namespace {

using Turn = Freeness::Turn;

Freeness freeness_of(const Joint& joint) {
  switch (joint.type) {
    case JointType::spherical:
    case JointType::gimbal:
    case JointType::point_on_point:
      return {{false, false, false}, Turn::ball};
    case JointType::revolute:
      return {{false, false, false}, Turn::about_axis};
    case JointType::prismatic:
      return {{false, false, true}, Turn::none};
    case JointType::cylindrical:
      return {{false, false, true}, Turn::about_axis};
    case JointType::universal:
      return {{false, false, false}, Turn::about_both};
    case JointType::fixed:
      return {};
    case JointType::point_on_line:
      return {{false, false, true}, Turn::ball};
    case JointType::perpendicular_axes:
      return {{true, true, true}, Turn::about_both};
    case JointType::parallel_axes:
      return {{true, true, true}, Turn::about_axis};
    case JointType::planar:
      return {{true, true, false}, Turn::about_axis};
    case JointType::screw:
      return {{false, false, false}, Turn::about_axis, joint.lead / (2.0 * std::numbers::pi)};
    case JointType::point_on_plane:
      return {{true, true, false}, Turn::ball};
    case JointType::distance:
      return {{true, true, true}, Turn::ball, 0.0, true};
    case JointType::floating:
      break;
  }
  return {{true, true, true}, Turn::ball};
}

int shifts(const Freeness& f) { return f.shift[0] + f.shift[1] + f.shift[2]; }
int turn_rates(Turn turn) { return static_cast<int>(turn); }
int turn_coordinates(Turn turn) { return turn == Turn::ball ? 4 : turn_rates(turn); }

Mat3 about_z(double angle) { return Eigen::AngleAxisd(angle, Vec3::UnitZ()).toRotationMatrix(); }

// A universal joint where both angles are zero: the second z is the first x.
Mat3 crossed() {
  Mat3 axes;
  axes << 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, -1.0, 0.0, 0.0;
  return axes;
}

// The second frame in the first one.
struct Relative {
  Vec3 shift = Vec3::Zero();
  Mat3 turn = Mat3::Identity();
};

Relative relative(const Freeness& f, std::span<const double> q) {
  Relative at;
  if (f.pitch != 0.0) {
    const double angle = q[0] / std::hypot(1.0, f.pitch);
    return {f.pitch * angle * Vec3::UnitZ(), about_z(angle)};
  }
  std::size_t k = 0;
  for (int i = 0; i < 3; ++i)
    if (f.shift[i]) at.shift[i] = q[k++];
  if (f.turn == Turn::about_axis) at.turn = about_z(q[k]);
  if (f.turn == Turn::about_both) at.turn = about_z(q[k]) * crossed() * about_z(q[k + 1]);
  if (f.turn == Turn::ball)
    at.turn = Eigen::Quaterniond(q[k], q[k + 1], q[k + 2], q[k + 3]).normalized().toRotationMatrix();
  return at;
}

std::vector<double> coordinates_of(const Freeness& f, const Relative& at) {
  if (f.pitch != 0.0) return {at.shift.z() / f.pitch * std::hypot(1.0, f.pitch)};
  std::vector<double> q;
  for (int i = 0; i < 3; ++i)
    if (f.shift[i]) q.push_back(at.shift[i]);
  if (f.turn == Turn::about_axis) q.push_back(std::atan2(at.turn(1, 0), at.turn(0, 0)));
  if (f.turn == Turn::about_both) {
    const double first = std::atan2(at.turn(1, 2), at.turn(0, 2));
    const Mat3 rest = crossed().transpose() * about_z(-first) * at.turn;
    q.insert(q.end(), {first, std::atan2(rest(1, 0), rest(0, 0))});
  }
  if (f.turn == Turn::ball) {
    const Eigen::Quaterniond e(at.turn);
    q.insert(q.end(), {e.w(), e.x(), e.y(), e.z()});
  }
  return q;
}

Vec3 point_of(const Pose& pose, const JointFrame& frame) { return pose.r_0 + pose.A * frame.point_b; }

// Axes of both frames, and the direction that a rod, or a universal joint against turning, needs beside them; or the
// rates of all of them: H and D are linear in these.
struct Directions {
  Mat3 first, second;
  Vec3 extra = Vec3::Zero();
};

Vec6 column(const Vec3& linear, const Vec3& angular) {
  Vec6 v;
  v << linear, angular;
  return v;
}

void push(Columns& columns, const Vec3& linear, const Vec3& angular) {
  columns.conservativeResize(6, columns.cols() + 1);
  columns.rightCols<1>() = column(linear, angular);
}

void fill(const Freeness& f, const Directions& d, Columns& H, Columns& D) {
  const Vec3 zero = Vec3::Zero();
  H.resize(6, 0);
  D.resize(6, 0);
  if (f.rod) return push(D, d.extra, zero);
  for (int i = 0; i < 3; ++i) {
    if (i == 2 && f.pitch != 0.0) continue;
    push(f.shift[i] ? H : D, d.first.col(i), zero);
  }
  if (f.pitch != 0.0) {
    const double norm = std::hypot(1.0, f.pitch);
    push(H, f.pitch / norm * d.first.col(2), d.first.col(2) / norm);
    push(D, d.first.col(2) / norm, -f.pitch / norm * d.first.col(2));
  } else if (f.turn == Turn::about_axis) {
    push(H, zero, d.first.col(2));
  }
  if (f.turn == Turn::about_axis || f.turn == Turn::none)
    for (int i = 0; i < (f.turn == Turn::none ? 3 : 2); ++i) push(D, zero, d.first.col(i));
  if (f.turn == Turn::about_both) {
    push(H, zero, d.first.col(2));
    push(H, zero, d.second.col(2));
    push(D, zero, d.extra);
  }
  if (f.turn == Turn::ball)
    for (int i = 0; i < 3; ++i) push(H, zero, d.second.col(i));
}

Directions directions(const Link& link, const Pose& first, const Pose& second) {
  Directions d{first.A * link.in_first.axes_b, second.A * link.in_second.axes_b};
  if (link.freeness.rod) d.extra = (point_of(second, link.in_second) - point_of(first, link.in_first)).normalized();
  if (link.freeness.turn == Turn::about_both) d.extra = d.first.col(2).cross(d.second.col(2)).normalized();
  return d;
}

Vec3 turned(const Vec6& motion, const Vec3& direction) { return motion.tail<3>().cross(direction); }

// Rate of a / |a| from a and its rate.
Vec3 normalized_rate(const Vec3& a, const Vec3& rate) {
  const Vec3 n = a.normalized();
  return (rate - n * n.dot(rate)) / a.norm();
}

Link make_link(const Mechanism& mechanism, int index) {
  const Joint& joint = mechanism.joints()[static_cast<std::size_t>(index)];
  Link link;
  link.joint = index;
  link.first = joint.first;
  link.second = joint.second;
  link.in_first = joint.in_first;
  link.in_second = joint.in_second;
  link.freeness = freeness_of(joint);
  const Freeness& f = link.freeness;
  link.constraints = f.rod ? 1 : 6 - (shifts(f) + turn_rates(f.turn));
  return link;
}

}  // namespace

std::string joint_tree_unsupported_reason(const Mechanism& mechanism) {
  if (!mechanism.couplings().empty())
    return "it couples joint coordinates (coupling \"" + mechanism.couplings().front().name + "\")";
  if (!mechanism.drivers().empty())
    return "it prescribes joint coordinates (driver \"" + mechanism.drivers().front().name + "\")";
  return {};
}

JointTree::JointTree(const Mechanism& mechanism) {
  std::vector<Link> candidates;
  for (int j = 0; j < static_cast<int>(mechanism.joints().size()); ++j)
    if (mechanism.joints()[static_cast<std::size_t>(j)].type != JointType::floating)
      candidates.push_back(make_link(mechanism, j));
  // joints that leave little free make a tree of few coordinates
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Link& a, const Link& b) { return a.constraints > b.constraints; });
  grow(std::move(candidates), static_cast<int>(mechanism.bodies().size()));
  number();
}

// Kruskal's spanning forest, joined to the ground by floating links; then ordered from the ground outwards.
void JointTree::grow(std::vector<Link> candidates, int bodies) {
  std::vector<int> set(static_cast<std::size_t>(bodies) + 1);  // of bodies, the ground last
  std::iota(set.begin(), set.end(), 0);
  const auto slot = [bodies](int body) { return static_cast<std::size_t>(body == kGround ? bodies : body); };
  const auto join = [&](const Link& link) {
    const int from = set[slot(link.first)], to = set[slot(link.second)];
    if (from == to) return false;
    std::replace(set.begin(), set.end(), from, to);
    return true;
  };
  std::vector<Link> tree, cut;
  for (Link& link : candidates) {
    link.cut = link.freeness.rod || !join(link);
    (link.cut ? cut : tree).push_back(link);
  }
  for (int body = 0; body < bodies; ++body) {
    Link floating;
    floating.second = body;
    floating.freeness = {{true, true, true}, Turn::ball};
    if (join(floating)) tree.push_back(floating);
  }
  std::vector<bool> reached(static_cast<std::size_t>(bodies) + 1, false);
  reached[slot(kGround)] = true;
  while (links_.size() < tree.size())
    for (Link& link : tree) {
      if (reached[slot(link.first)] == reached[slot(link.second)]) continue;
      link.outer = reached[slot(link.first)] ? link.second : link.first;
      reached[slot(link.outer)] = true;
      links_.push_back(link);
    }
  tree_links_ = static_cast<int>(links_.size());
  links_.insert(links_.end(), cut.begin(), cut.end());
}

void JointTree::number() {
  for (int k = 0; k < tree_links_; ++k) {
    Link& link = links_[static_cast<std::size_t>(k)];
    const Freeness& f = link.freeness;
    link.coordinate = coordinates_;
    link.rate = rates_;
    link.coordinates = shifts(f) + turn_coordinates(f.turn);
    link.rates = shifts(f) + turn_rates(f.turn);
    coordinates_ += link.coordinates;
    rates_ += link.rates;
  }
}

std::vector<double> JointTree::coordinates_of(std::span<const Pose> bodies) const {
  std::vector<double> q;
  for (const Link& link : links()) {
    if (link.cut) break;
    const Pose first = of_body(bodies, link.first, Pose{}), second = of_body(bodies, link.second, Pose{});
    const Mat3 axes = first.A * link.in_first.axes_b;
    const Relative at{axes.transpose() * (point_of(second, link.in_second) - point_of(first, link.in_first)),
                      axes.transpose() * second.A * link.in_second.axes_b};
    const std::vector<double> own = offline::coordinates_of(link.freeness, at);
    q.insert(q.end(), own.begin(), own.end());
  }
  return q;
}

void JointTree::place(std::span<const double> q, std::span<Pose> bodies) const {
  for (int k = 0; k < tree_links_; ++k) {
    const Link& link = links_[static_cast<std::size_t>(k)];
    const Relative at = relative(link.freeness, q.subspan(static_cast<std::size_t>(link.coordinate)));
    Pose& outer = bodies[static_cast<std::size_t>(link.outer)];
    const Pose inner = of_body<Pose>(bodies, link.outward() ? link.first : link.second, Pose{});
    const Mat3 turn = link.in_first.axes_b * at.turn * link.in_second.axes_b.transpose();  // second -> first body
    if (link.outward()) {
      outer.A = inner.A * turn;
      outer.r_0 = inner.r_0 + inner.A * (link.in_first.point_b + link.in_first.axes_b * at.shift) -
                  outer.A * link.in_second.point_b;
    } else {
      outer.A = inner.A * turn.transpose();
      outer.r_0 = inner.r_0 + inner.A * link.in_second.point_b -
                  outer.A * (link.in_first.point_b + link.in_first.axes_b * at.shift);
    }
  }
}

void JointTree::differentiate(std::span<const double> q, std::span<const double> rates, std::span<double> qd) const {
  for (int k = 0; k < tree_links_; ++k) {
    const Link& link = links_[static_cast<std::size_t>(k)];
    const bool ball = link.freeness.turn == Turn::ball;
    const int plain = ball ? link.rates - 3 : link.rates;
    const double* from = rates.data() + link.rate;
    double* to = qd.data() + link.coordinate;
    std::copy(from, from + plain, to);
    if (!ball) continue;
    const double* e = q.data() + link.coordinate + plain;
    const Eigen::Quaterniond turn(e[0], e[1], e[2], e[3]);
    const Eigen::Quaterniond half(0.0, 0.5 * from[plain], 0.5 * from[plain + 1], 0.5 * from[plain + 2]);
    const Eigen::Quaterniond rate = turn * half;
    const double values[] = {rate.w(), rate.x(), rate.y(), rate.z()};
    std::copy(std::begin(values), std::end(values), to + plain);
  }
}

Subspaces subspaces(const Link& link, const Pose& first, const Pose& second) {
  Subspaces at;
  at.point_0 = point_of(second, link.in_second);
  fill(link.freeness, directions(link, first, second), at.H, at.D);
  return at;
}

SubspaceRates subspace_rates(const Link& link, const Pose& first, const Vec6& first_motion, const Pose& second,
                             const Vec6& second_motion) {
  const Directions d = directions(link, first, second);
  Directions rate;
  for (int i = 0; i < 3; ++i) {
    rate.first.col(i) = turned(first_motion, d.first.col(i));
    rate.second.col(i) = turned(second_motion, d.second.col(i));
  }
  SubspaceRates rates;
  const Vec3 point = point_of(second, link.in_second), from = point_of(first, link.in_first);
  rates.point_0 = motion_at(second_motion, second.r_0, point).head<3>();
  if (link.freeness.rod)
    rate.extra = normalized_rate(point - from, rates.point_0 - motion_at(first_motion, first.r_0, from).head<3>());
  if (link.freeness.turn == Turn::about_both)
    rate.extra = normalized_rate(d.first.col(2).cross(d.second.col(2)),
                                 rate.first.col(2).cross(d.second.col(2)) + d.first.col(2).cross(rate.second.col(2)));
  fill(link.freeness, rate, rates.H, rates.D);
  return rates;
}

}  // namespace rigstep::offline
