#include "core/index3/physics/elements/rope.h"

namespace rigstep::index3 {

namespace {

struct PointMotion {
  Vec3 arm;       // from the mass centre [m]
  Vec3 position;  // [m]
  Vec3 velocity;  // [m/s]
};

PointMotion motion_of(const Rope::Point& point, const Surroundings& at) noexcept {
  const Placement& body = at.placement(point.body);
  const Vec3 arm = body.A * point.point_b;
  return {arm, body.r + arm, body.v + body.w.cross(arm)};
}

// f(segment, from, to, direction, length) of every part between two points; the direction of a part without length is
// zero
template <class F>
void for_each_segment(const Rope& rope, const Surroundings& at, const F& f) noexcept {
  PointMotion from = motion_of(rope.points.front(), at);
  for (std::size_t k = 0; k + 1 < rope.points.size(); ++k) {
    const PointMotion to = motion_of(rope.points[k + 1], at);
    const Vec3 d = to.position - from.position;
    const double length = d.norm();
    f(k, from, to, length > 0.0 ? Vec3(d / length) : Vec3(Vec3::Zero()), length);
    from = to;
  }
}

// f(point, gradient of the length with respect to its body's delta)
template <class F>
void for_each_gradient(const Rope& rope, const Surroundings& at, const F& f) noexcept {
  for_each_segment(rope, at,
                   [&](std::size_t k, const PointMotion& from, const PointMotion& to, const Vec3& direction, double) {
                     f(k, load_at(-direction, Vec3::Zero(), from.arm));
                     f(k + 1, load_at(direction, Vec3::Zero(), to.arm));
                   });
}

void pull(const Rope& rope, double effort, const Surroundings& at, const Loads& loads) noexcept {
  if (effort == 0.0) return;
  for_each_gradient(rope, at, [&](std::size_t point, const Vec6& gradient) {
    loads.add(rope.points[point].body, effort * gradient);
  });
}

}  // namespace

Stretch evaluate(const Rope& rope, const RopeConstants&, const Surroundings& at) noexcept {
  Stretch stretch{std::max(Rope::kShortest, rope.length + at.held(rope.pay_out_input)), 0.0, 0.0};
  double length = 0.0;
  for_each_segment(
      rope, at,
      [&](std::size_t, const PointMotion& from, const PointMotion& to, const Vec3& direction, double of_segment) {
        length += of_segment;
        stretch.rate += direction.dot(to.velocity - from.velocity);
      });
  stretch.value = length - stretch.unstretched;
  return stretch;
}

double rope_effort(const Rope& rope, const Stretch& stretch) noexcept {
  if (!(stretch.value > 0.0)) return 0.0;
  return -std::max(0.0, rope.stiffness * stretch.value + rope.damping * stretch.rate) / stretch.unstretched;
}

ScalarEffort rope_effort_over_step(const Rope& rope, double unstretched, const OverStep& over, double stretch,
                                   double dt) noexcept {
  const MeanEffort spring = mean_of_spring(rope.stiffness / unstretched, over.start_x, stretch);
  const double damping = rope.damping / unstretched / dt;  // of what is stretched more than at the begin
  const double tension = spring.effort + damping * (std::max(0.0, stretch) - std::max(0.0, over.start_x));
  if (!(tension > 0.0)) return in_newtons_equations(over, {0.0, 0.0});
  return in_newtons_equations(over, {-tension, spring.slope + (stretch > 0.0 ? damping : 0.0)});
}

RopeConstants prepare(const Rope& rope, double dt) {
  RopeConstants constants{dt, {}, {}};
  std::vector<int>& bodies = constants.bodies;
  for (const Rope::Point& point : rope.points) {
    auto found = std::find(bodies.begin(), bodies.end(), point.body);
    if (found == bodies.end() && point.body != kGround) found = bodies.insert(bodies.end(), point.body);
    constants.side_of.push_back(point.body == kGround ? -1 : static_cast<int>(found - bodies.begin()));
  }
  if (bodies.size() == 1) bodies.push_back(kGround);
  return constants;
}

Connectivity connectivity(const Rope&, const RopeConstants& constants) {
  Connectivity connects;
  connects.bodies = connects.own_tangent = constants.bodies;  // a taut part is a string
  connects.rows = 1;
  connects.keeps_energy_in_reading = true;
  return connects;
}

OverStep start_step(const Rope& rope, const Stretch& now) noexcept {
  return at_start(now.value, rope_effort(rope, now));
}

void follow_iterate(const Rope& rope, const RopeConstants& constants, const Stretch& now, OverStep& over) noexcept {
  const auto force = [&](double x) { return rope_effort_over_step(rope, now.unstretched, over, x, constants.dt); };
  linearise(now.value, force, over);
}

RopeReading apply(const Rope& rope, const RopeConstants&, const Stretch& now, const Surroundings& at,
                  const Loads& loads) noexcept {
  const double effort = rope_effort(rope, now);
  pull(rope, effort, at, loads);
  return {{now.value, now.rate, effort}, now.unstretched};
}

void apply_over_step(const Rope& rope, const OverStep& over, const Stretch& now, const Surroundings& at,
                     const Loads& loads) noexcept {
  pull(rope, over.effort_at(now.value), at, loads);
}

void add_tangent(const Rope& rope, const OverStep& over, const Stretch& now, const Surroundings& at,
                 const TangentFactors& factors, const OwnTangents& tangents) noexcept {
  const double tension = -over.effort_at(now.value);
  for_each_segment(
      rope, at,
      [&](std::size_t k, const PointMotion& from, const PointMotion& to, const Vec3& direction, double length) {
        const int first = rope.points[k].body, second = rope.points[k + 1].body;
        if (first != second)
          add_string({first, second, from.arm, to.arm, direction, length}, tension, factors.stiffness, tangents);
      });
}

void evaluate_rows(const Rope& rope, const RopeConstants& constants, const OverStep& over, const Stretch&,
                   const Surroundings& at, const TangentFactors& factors, ElementRows rows) noexcept {
  for (std::size_t side = 0; side < constants.bodies.size(); ++side) rows[side][0].setZero();
  const double root = std::sqrt(factors.stiffness * over.stiffness);
  for_each_gradient(rope, at, [&](std::size_t point, const Vec6& gradient) {
    const int side = constants.side_of[point];
    if (side >= 0) rows[side][0] += root * gradient;
  });
}

double energy(const Rope& rope, const RopeReading& reading, const Surroundings&) noexcept {
  const double stretch = std::max(0.0, reading.deflection);
  return 0.5 * rope.stiffness / reading.unstretched * stretch * stretch;
}

}  // namespace rigstep::index3
