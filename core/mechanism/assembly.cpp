#include "core/mechanism/assembly.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/mechanism/joint_geometry.h"
#include "core/mechanism/joint_paths.h"
#include "core/mechanism/nearest_motion.h"
#include "core/mechanism/orientation.h"
#include "core/mechanism/portable_math.h"

namespace rigstep {

namespace {

constexpr double kRounding = 1e-14;   // of a closed joint, times the size of the mechanism
constexpr double kClosed = 1e-12;     // likewise, where rounding adds up
constexpr double kRateClosed = 1e-9;  // of velocities, times the largest one
constexpr double kAtRest = 1e-12;     // of velocities [m/s], [rad/s]: rounding, also where nothing can move
constexpr double kAngleStep = 0.1;    // of a held angle on its way [rad]
constexpr double kLengthStep = 0.05;  // of a held displacement, times the size of the mechanism
constexpr int kMostSteps = 1000;      // on that way
constexpr double kLeastStep = 1e-3;   // of that many, where loops do not close any more
constexpr int kIterations = 60;       // of one step
constexpr double kLargestTurn = 0.5;  // of a body in one iteration [rad]

// A joint coordinate that is followed on the way.
struct Followed {
  int joint = 0;
  Freedom freedom = Freedom::angle;
  double offset = 0.0;
  double value = 0.0;  // where it was last
};

// first coordinate + ratio * second is led from where it is to `target`.
struct Condition {
  std::size_t first = 0;  // of those followed
  std::optional<std::size_t> second = std::nullopt;
  double ratio = 0.0;
  bool holds_value = true, holds_rate = false;
  double given = 0.0, target = 0.0;  // of the value
  double rate = 0.0;
};

class Assembly {
 public:
  Assembly(const Mechanism& m, const Held& held);
  Assembled run();

 private:
  Pose pose(int body) const { return body == kGround ? Pose{} : poses_[static_cast<std::size_t>(body)]; }
  JointAt at(int j) const;
  JointScalar followed_at(const Followed& f) const;
  std::size_t follow(int joint, Freedom freedom, double offset);
  double rate_of(const Followed& f) const;
  void add_conditions(const Held& held);
  void hold_bridges(const Held& held);
  int steps() const;
  void place_trees(double share);
  void place_outer(const JointPaths::Edge& edge, double share);
  std::vector<MotionRow> rows(double share, bool for_rates) const;
  void append(MotionRow& row, const Joint& joint, const JointScalar& scalar, double factor = 1.0) const;
  double close(double share);
  double lead();
  bool is_closed(double gap) const { return gap < kClosed * std::max(1.0, size_); }
  double close_rates();
  std::vector<Vec6> nearest(const std::vector<MotionRow>& all, const std::vector<Vec6>& motion, int passes) const;
  bool has_velocities() const;

  const Mechanism& m_;
  JointPaths paths_;
  std::vector<Pose> poses_;
  std::vector<EulerParameters> turns_;
  std::vector<Vec6> twists_;  // (v_0, w_0)
  std::vector<bool> is_held_, is_moved_;
  std::vector<Followed> followed_;
  std::vector<Condition> conditions_;
  std::size_t held_count_ = 0;
  double size_ = 1.0;    // of the mechanism [m]
  bool is_led_ = false;  // something is held
};

std::vector<bool> marked(const Mechanism& m, const std::vector<int>& bodies) {
  std::vector<bool> marks(m.bodies().size());
  for (const int body : bodies) marks[static_cast<std::size_t>(body)] = true;
  return marks;
}

Assembly::Assembly(const Mechanism& m, const Held& held)
    : m_(m), paths_(m, marked(m, held.bodies)), is_held_(marked(m, held.bodies)), is_moved_(m.bodies().size()) {
  for (const Body& b : m.bodies()) {
    poses_.push_back({b.position_0, axes_of(b.orientation)});
    turns_.push_back(b.orientation);
    twists_.emplace_back();
    twists_.back() << b.velocity_0, b.angular_velocity_0;
  }
  double reach = 0.0;
  for (int j = 0; j < static_cast<int>(m.joints().size()); ++j) {
    const Joint& joint = m.joints()[static_cast<std::size_t>(j)];
    if (joint.first != kGround) reach = std::max(reach, joint.in_first.point_b.norm());
    if (joint.second != kGround) reach = std::max(reach, joint.in_second.point_b.norm());
  }
  if (reach > 0.0) size_ = reach;
  add_conditions(held);
  hold_bridges(held);
}

JointAt Assembly::at(int j) const {
  const Joint& joint = m_.joints()[static_cast<std::size_t>(j)];
  return joint_at(joint, pose(joint.first), pose(joint.second));
}

// With its angle unwrapped from where it was last.
JointScalar Assembly::followed_at(const Followed& f) const {
  const Joint& joint = m_.joints()[static_cast<std::size_t>(f.joint)];
  JointScalar x = joint_freedom(joint, f.freedom, at(f.joint));
  x.value += f.offset;
  if (!is_length(f.freedom) && joint.type != JointType::screw)
    x.value += 2.0 * kPi * std::nearbyint((f.value - x.value) / (2.0 * kPi));
  return x;
}

std::size_t Assembly::follow(int joint, Freedom freedom, double offset) {
  const Joint& of = m_.joints()[static_cast<std::size_t>(joint)];
  followed_.push_back({joint, freedom, offset, joint_freedom(of, freedom, at(joint)).value + offset});
  return followed_.size() - 1;
}

double Assembly::rate_of(const Followed& f) const {
  const Joint& joint = m_.joints()[static_cast<std::size_t>(f.joint)];
  const JointScalar x = followed_at(f);
  double rate = 0.0;
  if (joint.first != kGround) rate += x.first.dot(twists_[static_cast<std::size_t>(joint.first)]);
  if (joint.second != kGround) rate += x.second.dot(twists_[static_cast<std::size_t>(joint.second)]);
  return rate;
}

void Assembly::add_conditions(const Held& held) {
  for (const HeldCoordinate& h : held.coordinates) {
    Condition c{.first = follow(h.joint, h.freedom, h.offset), .holds_value = h.holds_value};
    c.given = followed_.back().value;
    c.target = h.value.value_or(c.given);
    c.holds_rate = h.rate.has_value() || !h.value;
    c.rate = h.rate.value_or(rate_of(followed_.back()));
    conditions_.push_back(c);
  }
  held_count_ = conditions_.size();
  const auto follow_coordinate = [this](int k) {
    const JointCoordinate& x = m_.coordinates()[static_cast<std::size_t>(k)];
    return follow(x.joint, x.freedom, x.offset);
  };
  for (const Coupling& coupling : m_.couplings()) {
    Condition c{.first = follow_coordinate(coupling.first), .ratio = coupling.ratio, .holds_rate = true};
    c.second = follow_coordinate(coupling.second);
    c.given = c.target = followed_[c.first].value + c.ratio * followed_[*c.second].value;
    conditions_.push_back(c);
  }
  for (const Driver& driver : m_.drivers()) {
    const auto [value, rate] = at_time_zero(driver.function);
    Condition c{.first = follow_coordinate(driver.coordinate), .holds_rate = true, .rate = rate};
    c.holds_value = driver.from_input == Driver::FromInput::nothing;
    c.given = followed_.back().value;
    c.target = c.holds_value ? value : c.given;
    conditions_.push_back(c);
  }
}

// Joints without loops keep what they measure, but for couplings and for what is held already.
void Assembly::hold_bridges(const Held& held) {
  is_led_ = !held.empty();
  if (!is_led_) return;
  std::vector<std::pair<int, Freedom>> known;
  for (const Condition& c : conditions_) {
    known.emplace_back(followed_[c.first].joint, followed_[c.first].freedom);
    if (c.second) known.emplace_back(followed_[*c.second].joint, followed_[*c.second].freedom);
  }
  std::sort(known.begin(), known.end());
  for (const JointPaths::Edge& edge : paths_.edges()) {
    if (edge.is_in_loop) continue;
    const JointType type = m_.joints()[static_cast<std::size_t>(edge.joint)].type;
    const auto is_known = [&](Freedom freedom) {
      return std::binary_search(known.begin(), known.end(), std::pair{edge.joint, freedom});
    };
    for (const Freedom freedom : freedoms(type)) {
      if (is_known(freedom)) continue;
      if (type == JointType::screw && (freedom == Freedom::angle || is_known(Freedom::angle))) continue;  // it follows
      Condition c{.first = follow(edge.joint, freedom, 0.0), .holds_rate = true};
      c.given = c.target = followed_.back().value;
      c.rate = rate_of(followed_.back());
      conditions_.push_back(c);
    }
  }
}

// Of the way to the held values: one where nothing but trees has to follow.
int Assembly::steps() const {
  if (!paths_.has_loops() && m_.couplings().empty()) return 1;
  double most = 1.0;
  for (const Condition& c : conditions_) {
    const double step = is_length(followed_[c.first].freedom) ? kLengthStep * size_ : kAngleStep;
    if (c.holds_value) most = std::max(most, std::abs(c.target - c.given) / step);
  }
  return static_cast<int>(std::ceil(std::min(most, static_cast<double>(kMostSteps))));
}

void Assembly::place_trees(double share) {
  for (const JointPaths::Edge& edge : paths_.edges())
    if (!edge.is_in_loop) place_outer(edge, share);
}

// The outer body of a joint without loops, unless it stands where it belongs.
void Assembly::place_outer(const JointPaths::Edge& edge, double share) {
  const Joint& joint = m_.joints()[static_cast<std::size_t>(edge.joint)];
  const JointAt now = at(edge.joint);
  const std::vector<Freedom> open = freedoms(joint.type);
  std::vector<double> value;
  bool is_there = edge.inner == kGround || !is_moved_[static_cast<std::size_t>(edge.inner)];
  for (const Freedom freedom : open) value.push_back(joint_freedom(joint, freedom, now).value);
  for (const Condition& c : conditions_) {
    Followed& f = followed_[c.first];
    if (f.joint != edge.joint || c.second || !c.holds_value) continue;
    const std::size_t k = static_cast<std::size_t>(std::find(open.begin(), open.end(), f.freedom) - open.begin());
    f.value = c.given + share * (c.target - c.given);
    is_there = is_there && f.value - f.offset == value[k];
    value[k] = f.value - f.offset;
    if (joint.type == JointType::screw && k == 1) value[0] = value[1] * joint.lead / (2.0 * kPi);
  }
  if (joint.type == JointType::screw) value[1] = value[0] * (2.0 * kPi / joint.lead);
  for (const JointScalar& row : joint_constraints(joint, now))
    is_there = is_there && std::abs(row.value) < kRounding * std::max(1.0, size_);
  if (is_there) return;
  const RelativePose closed = closed_joint(joint, value, now);
  const std::size_t i = static_cast<std::size_t>(edge.outer);
  const bool is_second = joint.second == edge.outer;
  const JointFrame& frame = is_second ? joint.in_second : joint.in_first;
  const Mat3 axes = is_second ? Mat3(now.a * closed.turn) : Mat3(now.b * closed.turn.transpose());
  turns_[i] = from_axes(axes * frame.axes_b.transpose()).normalized();
  poses_[i].A = axes_of(turns_[i]);
  const Pose inner = pose(edge.inner);
  const Vec3 inner_point = inner.r_0 + (is_second ? now.first_arm : now.second_arm);
  const Vec3 point = is_second ? Vec3(inner_point + now.a * closed.shift) : Vec3(inner_point - axes * closed.shift);
  poses_[i].r_0 = point - poses_[i].A * frame.point_b;
  is_moved_[i] = true;
}

// What a held body moves with goes to the right-hand side.
void Assembly::append(MotionRow& row, const Joint& joint, const JointScalar& scalar, double factor) const {
  for (const auto& [body, J] : {std::pair{joint.first, scalar.first}, std::pair{joint.second, scalar.second}}) {
    if (body == kGround) continue;
    if (is_held_[static_cast<std::size_t>(body)])
      row.rate -= factor * J.dot(twists_[static_cast<std::size_t>(body)]);
    else
      row.on.emplace_back(body, factor * J);
  }
}

// share: of the way from the given values to those that are held.
std::vector<MotionRow> Assembly::rows(double share, bool for_rates) const {
  std::vector<MotionRow> all;
  for (int j = 0; j < static_cast<int>(m_.joints().size()); ++j) {
    const Joint& joint = m_.joints()[static_cast<std::size_t>(j)];
    for (const JointScalar& scalar : joint_constraints(joint, at(j))) {
      all.push_back({scalar.value, 0.0, {}});
      append(all.back(), joint, scalar);
    }
  }
  for (const Condition& c : conditions_) {
    if (for_rates ? !c.holds_rate : !c.holds_value) continue;
    const JointScalar x = followed_at(followed_[c.first]);
    all.push_back({x.value - (c.given + share * (c.target - c.given)), c.rate, {}});
    append(all.back(), m_.joints()[static_cast<std::size_t>(followed_[c.first].joint)], x);
    if (!c.second) continue;
    const JointScalar y = followed_at(followed_[*c.second]);
    all.back().gap += c.ratio * y.value;
    append(all.back(), m_.joints()[static_cast<std::size_t>(followed_[*c.second].joint)], y, c.ratio);
  }
  return all;
}

std::vector<Vec6> Assembly::nearest(const std::vector<MotionRow>& all, const std::vector<Vec6>& motion,
                                    int passes) const {
  std::vector<InverseMass> inverse;
  for (std::size_t i = 0; i < poses_.size(); ++i) {
    const Body& body = m_.bodies()[i];
    inverse.push_back(InverseMass::Zero());
    inverse.back().topLeftCorner<3, 3>().diagonal().setConstant(1.0 / body.mass);
    inverse.back().bottomRightCorner<3, 3>() = poses_[i].A * body.inertia_b.inverse() * poses_[i].A.transpose();
  }
  return nearest_motion(all, inverse, motion, passes);
}

// Newton's iterations from the present poses; returns the largest gap that is left.
double Assembly::close(double share) {
  double last = std::numeric_limits<double>::infinity();
  for (int iteration = 0;; ++iteration) {
    std::vector<MotionRow> all = rows(share, false);
    double gap = 0.0;
    for (const MotionRow& row : all) gap = std::max(gap, std::abs(row.gap));
    const double unit = std::max(1.0, size_);
    const bool stands_still = gap < kClosed * unit && gap >= 0.5 * last;
    if (gap < kRounding * unit || stands_still || iteration == kIterations || !std::isfinite(gap)) return gap;
    last = gap;
    for (MotionRow& row : all) row.rate = -row.gap;
    const std::vector<Vec6> move = nearest(all, std::vector<Vec6>(poses_.size(), Vec6::Zero()), 1);
    double turn = 0.0;
    for (const Vec6& d : move) turn = std::max(turn, d.tail<3>().norm());
    const double damping = turn > kLargestTurn ? kLargestTurn / turn : 1.0;
    for (std::size_t i = 0; i < poses_.size(); ++i) {
      if (is_held_[i]) continue;
      const Vec3 theta = damping * move[i].tail<3>();
      const double angle = theta.norm();
      poses_[i].r_0 += damping * move[i].head<3>();
      if (angle > 0.0) turns_[i] = product(turned_about(theta / angle, angle), turns_[i]).normalized();
      poses_[i].A = axes_of(turns_[i]);
      is_moved_[i] = true;
    }
  }
}

bool Assembly::has_velocities() const {
  const auto moves = [](const Vec6& twist) { return !twist.isZero(0.0); };
  const auto leads = [](const Condition& c) { return c.holds_rate && c.rate != 0.0; };
  return std::any_of(twists_.begin(), twists_.end(), moves) ||
         std::any_of(conditions_.begin(), conditions_.end(), leads);
}

// Velocities turn with their bodies and are then made to agree; returns the largest gap left, over the largest
// velocity.
double Assembly::close_rates() {
  constexpr int kPasses = 20;
  if (!has_velocities()) return 0.0;
  for (std::size_t i = 0; i < poses_.size(); ++i) {
    if (!is_moved_[i]) continue;
    const Mat3 turned = poses_[i].A * axes_of(m_.bodies()[i].orientation).transpose();
    twists_[i] << turned * twists_[i].head<3>(), turned * twists_[i].tail<3>();
  }
  const std::vector<MotionRow> all = rows(1.0, true);
  twists_ = nearest(all, twists_, kPasses);
  double gap = 0.0, speed = 0.0;
  for (const MotionRow& row : all) {
    double rate = -row.rate;
    for (const auto& [body, J] : row.on) rate += J.dot(twists_[static_cast<std::size_t>(body)]);
    gap = std::max(gap, std::abs(rate));
    speed = std::max(speed, std::abs(row.rate));
  }
  for (const Vec6& twist : twists_) speed = std::max(speed, twist.cwiseAbs().maxCoeff());
  return gap < kAtRest ? 0.0 : gap / speed;
}

// To the held values; shorter steps where one of them does not close.
double Assembly::lead() {
  double step = 1.0 / steps(), first_gap = 0.0;
  const double least = kLeastStep * step;
  if (step < 1.0) close(0.0);  // as given, joints may be open
  for (double share = 0.0; share < 1.0;) {
    const double next = share + step > 1.0 - least ? 1.0 : share + step;
    const auto poses = poses_;
    const auto turns = turns_;
    const auto followed = followed_;
    if (is_led_) place_trees(next);
    const double gap = close(next);
    if (is_closed(gap)) {
      for (Followed& f : followed_) f.value = followed_at(f).value;
      share = next;
      continue;
    }
    if (first_gap == 0.0) first_gap = gap;
    if (!is_led_ || step < least) return first_gap;
    step *= 0.5;
    poses_ = poses;
    turns_ = turns;
    followed_ = followed;
  }
  return 0.0;
}

Assembled Assembly::run() {
  Assembled result;
  result.gap = lead();
  for (std::size_t k = 0; k < held_count_; ++k) result.coordinate.push_back(followed_[k].value);
  result.poses_closed = is_closed(result.gap);
  const double rate_gap = result.poses_closed ? close_rates() : 0.0;
  result.rate_gap = rate_gap;
  result.closed = result.poses_closed && rate_gap < kRateClosed;
  result.bodies = m_.bodies();
  for (std::size_t i = 0; i < poses_.size(); ++i) {
    Body& b = result.bodies[i];
    if (is_moved_[i]) b.position_0 = poses_[i].r_0, b.orientation = turns_[i];
    b.velocity_0 = twists_[i].head<3>();
    b.angular_velocity_0 = twists_[i].tail<3>();
  }
  return result;
}

}  // namespace

Assembled assemble(const Mechanism& mechanism, const Held& held) { return Assembly(mechanism, held).run(); }

}  // namespace rigstep
