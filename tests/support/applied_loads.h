// A second evaluation of all applied loads, which shares no code with core/offline/forces.cpp: wrenches by virtual
// power. Whatever acts along a scalar x does the power effort dx/dt, so that its wrench on a body is the effort times
// the change of x with each of the body's six motions; x is geometry in positions alone, and its changes are central
// differences. The laws of the elements are those of their descriptions in core/mechanism/elements. Exact to 1e-7 or
// so.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/offline/solver.h"

namespace rigstep::test {

class AppliedLoads {
 public:
  AppliedLoads(const Mechanism& mechanism, std::vector<double> inputs)
      : mechanism_(mechanism), input_(std::move(inputs)) {}

  // Force and torque about the mass centre of every body, world frame [N] [N m].
  std::vector<Vec6> wrenches(double t, const std::vector<offline::BodyMotion>& at) {
    at_ = at;
    wrench_.assign(at.size(), Vec6::Zero());
    for (std::size_t i = 0; i < at.size(); ++i)
      wrench_[i].head<3>() = mechanism_.bodies()[i].mass * mechanism_.gravity_0();
    for (const AppliedLoad& load : mechanism_.loads()) add(load, t);
    for (std::size_t k = 0; k < input_.size(); ++k) add(mechanism_.inputs()[k], input_[k]);
    for (const Spring& spring : mechanism_.springs()) add(spring);
    for (const Bushing& bushing : mechanism_.bushings()) add(bushing);
    for (const JointFriction& friction : mechanism_.frictions()) add(friction);
    for (const Motor& motor : mechanism_.motors()) add(motor);
    for (const AppliedEffort& effort : mechanism_.all<AppliedEffort>())
      act_along(coordinate(effort.coordinate), value_of(effort.function, t));
    for (const Drag& drag : mechanism_.drags()) add(drag);
    for (const Tyre& tyre : mechanism_.tyres()) add(tyre);
    for (const Stop& stop : mechanism_.all<Stop>()) add(stop);
    for (const Rope& rope : mechanism_.all<Rope>()) add(rope);
    return wrench_;
  }

 private:
  using Motions = std::vector<offline::BodyMotion>;
  using Scalar = std::function<double(const Motions&)>;
  static constexpr double kSmall = 1e-5;  // of a central difference [m], [rad] or [s]

  static Mat3 turn(const offline::BodyMotion& body) {
    return Eigen::Quaterniond(body.p[0], body.p[1], body.p[2], body.p[3]).normalized().toRotationMatrix();
  }
  static void displace(offline::BodyMotion& body, const Vec3& along, const Vec3& about) {
    body.r_0 += along;
    const double angle = about.norm();
    if (angle == 0.0) return;
    const Eigen::Quaterniond by(Eigen::AngleAxisd(angle, about / angle));
    const Eigen::Quaterniond now = by * Eigen::Quaterniond(body.p[0], body.p[1], body.p[2], body.p[3]);
    body.p << now.w(), now.x(), now.y(), now.z();
  }
  static Vec3 point(const Motions& at, int body, const Vec3& point_b) {
    return body == kGround ? point_b : Vec3(at[body].r_0 + turn(at[body]) * point_b);
  }
  static Mat3 axes(const Motions& at, int body, const JointFrame& frame) {
    return body == kGround ? frame.axes_b : Mat3(turn(at[body]) * frame.axes_b);
  }

  double rate(const Scalar& x) const {
    Motions before = at_, after = at_;
    for (std::size_t i = 0; i < at_.size(); ++i) {
      displace(before[i], -kSmall * at_[i].v_0, -kSmall * at_[i].omega_0);
      displace(after[i], kSmall * at_[i].v_0, kSmall * at_[i].omega_0);
    }
    return (x(after) - x(before)) / (2.0 * kSmall);
  }

  void act_along(const Scalar& x, double effort) {
    for (std::size_t i = 0; i < at_.size(); ++i)
      for (int k = 0; k < 6; ++k) {
        Vec6 motion = Vec6::Zero();
        motion[k] = kSmall;
        Motions less = at_, more = at_;
        displace(less[i], -motion.head<3>(), -motion.tail<3>());
        displace(more[i], motion.head<3>(), motion.tail<3>());
        wrench_[i][k] += effort * (x(more) - x(less)) / (2.0 * kSmall);
      }
  }

  void act_at(int body, const Vec3& where, const Vec3& force) {
    wrench_[body].head<3>() += force;
    wrench_[body].tail<3>() += (where - at_[body].r_0).cross(force);
  }
  Vec3 velocity(int body, const Vec3& where) const {
    return at_[body].v_0 + at_[body].omega_0.cross(where - at_[body].r_0);
  }
  double input(int channel) const { return channel < 0 ? 0.0 : input_[static_cast<std::size_t>(channel)]; }

  // Displacements along the first frame's axis, angles about it: what the mechanisms of the tests have.
  Scalar freedom_of(int index, Freedom freedom) const {
    const Joint& joint = mechanism_.joints()[static_cast<std::size_t>(index)];
    return [&joint, freedom](const Motions& at) {
      const Mat3 first = axes(at, joint.first, joint.in_first), second = axes(at, joint.second, joint.in_second);
      if (freedom == Freedom::displacement)
        return first.col(2).dot(point(at, joint.second, joint.in_second.point_b) -
                                point(at, joint.first, joint.in_first.point_b));
      return std::atan2(first.col(1).dot(second.col(0)), first.col(0).dot(second.col(0)));
    };
  }
  Scalar coordinate(int index) const {
    const JointCoordinate& of = mechanism_.coordinates()[static_cast<std::size_t>(index)];
    return [x = freedom_of(of.joint, of.freedom), of](const Motions& at) { return of.offset + x(at); };
  }

  void add(const AppliedLoad& load, double t) {
    const double scale = load.constant + load.amplitude * std::sin(load.angular_frequency * t + load.phase);
    const Mat3 A = load.frame == Frame::body ? turn(at_[load.body]) : Mat3(Mat3::Identity());
    act_at(load.body, point(at_, load.body, load.point_b), scale * (A * load.force));
    wrench_[load.body].tail<3>() += scale * (A * load.torque);
  }

  void add(const Input& channel, double value) {
    if (channel.kind == Input::Kind::signal) return;
    if (channel.kind == Input::Kind::joint_effort) return act_along(freedom_of(channel.joint, channel.freedom), value);
    const Mat3 A = channel.frame == Frame::body ? turn(at_[channel.body]) : Mat3(Mat3::Identity());
    const Vec3 load = value * (A * channel.direction);
    if (channel.kind == Input::Kind::body_force)
      act_at(channel.body, point(at_, channel.body, channel.point_b), load);
    else
      wrench_[channel.body].tail<3>() += load;
  }

  // Without tables: no mechanism of these tests has one.
  static double value_of(const TimeFunction& function, double t) {
    double sum = 0.0;
    for (const TimeFunction::Term& term : function.terms) {
      if (term.kind == TimeFunction::Term::Kind::harmonic)
        sum += term.constant + term.amplitude * std::sin(term.angular_frequency * t + term.phase);
      for (std::size_t k = 0; k < term.coefficient.size(); ++k)
        sum += term.coefficient[k] * std::pow(t, static_cast<double>(k));
    }
    return sum;
  }

  void add(const Spring& spring) {
    Scalar x = [&spring](const Motions& at) {
      const Vec3 gap = point(at, spring.second, spring.second_point_b) - point(at, spring.first, spring.first_point_b);
      return spring.kind == Spring::Kind::between_points ? gap.norm() : gap.dot(spring.direction_0);
    };
    if (spring.kind == Spring::Kind::in_joint) x = coordinate(spring.coordinate);
    const double deflection = x(at_) - spring.rest, v = rate(x);
    act_along(x, spring.preload - spring.stiffness * deflection - spring.stiffness_table.value(deflection) -
                     spring.damping * v - spring.damping_table.value(v));
  }

  void add(const Bushing& bushing) {
    std::vector<Scalar> x;
    for (int k = 0; k < 6; ++k)
      x.push_back([&bushing, k](const Motions& at) {
        const Mat3 a = axes(at, bushing.first, bushing.in_first), b = axes(at, bushing.second, bushing.in_second);
        if (k < 3)
          return a.col(k).dot(point(at, bushing.second, bushing.in_second.point_b) -
                              point(at, bushing.first, bushing.in_first.point_b));
        const Mat3 R = a.transpose() * b;  // of the second frame in the first
        return (Vec3(R(2, 1) - R(1, 2), R(0, 2) - R(2, 0), R(1, 0) - R(0, 1)) / 2.0)[k - 3];
      });
    Vec6 value, v;
    for (int k = 0; k < 6; ++k) value[k] = x[k](at_), v[k] = rate(x[k]);
    const Vec6 load = -(bushing.stiffness * value + bushing.damping * v);
    for (int k = 0; k < 6; ++k) act_along(x[k], load[k]);
  }

  void add(const JointFriction& friction) {
    const Scalar x = coordinate(friction.coordinate);
    const double v = rate(x), v_r = friction.regularisation_speed;
    act_along(x, -friction.coulomb * v / std::sqrt(v * v + v_r * v_r) - friction.viscous * v);
  }

  void add(const Motor& motor) {
    const Scalar x = coordinate(motor.coordinate);
    const double v = rate(x);
    const auto limit = [&motor](double speed) {
      if (motor.no_load_speed == 0.0) return motor.effort_limit;
      return motor.effort_limit * std::clamp(1.0 - speed / motor.no_load_speed, 0.0, 1.0);
    };
    double command = motor.constant + input(motor.effort_input) +
                     motor.position_gain * (input(motor.position_input) - x(at_)) +
                     motor.rate_gain * (input(motor.rate_input) - v);
    if (motor.effort_limit > 0.0) command = std::min(std::max(command, -limit(-v)), limit(v));
    act_along(x, command);
  }

  void add(const Drag& drag) {
    const Vec3 where = point(at_, drag.body, drag.point_b), u = velocity(drag.body, where) - drag.wind_0;
    act_at(drag.body, where, -0.5 * drag.density * drag.drag_area * u.norm() * u);
  }

  void add(const Stop& stop) {
    Scalar x = [&stop](const Motions& at) {
      return (point(at, stop.second, stop.second_point_b) - point(at, stop.first, stop.first_point_b)).norm();
    };
    if (stop.is_along_freedom()) x = coordinate(stop.coordinate);
    const double value = x(at_), v = rate(x);
    if (value > stop.upper)
      act_along(x, -stop.stiffness * (value - stop.upper) * std::max(0.0, 1.0 + stop.damping * v));
    if (value < stop.lower) act_along(x, stop.stiffness * (stop.lower - value) * std::max(0.0, 1.0 - stop.damping * v));
  }

  void add(const Rope& rope) {
    const Scalar x = [&rope](const Motions& at) {
      double length = 0.0;
      for (std::size_t k = 1; k < rope.points.size(); ++k)
        length += (point(at, rope.points[k].body, rope.points[k].point_b) -
                   point(at, rope.points[k - 1].body, rope.points[k - 1].point_b))
                      .norm();
      return length;
    };
    const double unstretched = std::max(Rope::kShortest, rope.length + input(rope.pay_out_input));
    const double stretch = x(at_) - unstretched;
    if (stretch > 0.0) act_along(x, -std::max(0.0, (rope.stiffness * stretch + rope.damping * rate(x)) / unstretched));
  }

  // The lowest point of the undeflected disc is looked for around its rim.
  void add(const Tyre& tyre) {
    const Vec3 n = tyre.road_normal_0;
    const auto height = [&tyre, &n](const Vec3& at) { return n.dot(at - tyre.road_point_0); };
    const Vec3 axis = turn(at_[tyre.body]) * tyre.axis_b, centre = point(at_, tyre.body, tyre.centre_b);
    const Vec3 u = axis.unitOrthogonal(), w = axis.cross(u);
    const auto rim = [&](double angle) {
      return Vec3(centre + tyre.radius * (std::cos(angle) * u + std::sin(angle) * w));
    };
    double lowest = 0.0;
    for (double step = 0.1, from = 0.0, until = 6.3; step > 1e-9;
         from = lowest - step, until = lowest + step, step *= 0.1)
      for (double angle = from; angle <= until; angle += step)
        if (height(rim(angle)) < height(rim(lowest))) lowest = angle;
    const double road = input(tyre.height_input), depth = road - height(rim(lowest));
    if (!(depth > 0.0)) return;
    const double closing = input(tyre.height_rate_input) - n.dot(velocity(tyre.body, rim(lowest)));
    const double fading = std::min(1.0, depth / (0.01 * tyre.radius));
    const double normal = std::max(0.0, tyre.stiffness * depth + tyre.damping * fading * closing);
    act_at(tyre.body, rim(lowest), normal * n);
    // where the line from the centre to the lowest point meets the road
    const Vec3 down = (rim(lowest) - centre) / tyre.radius;
    const Vec3 contact = centre + (height(centre) - road) / -n.dot(down) * down;
    const Vec3 forward = axis.cross(n).normalized(), sideways = n.cross(forward);
    const double vx = forward.dot(velocity(tyre.body, centre)),
                 v = std::sqrt(vx * vx + tyre.low_speed * tyre.low_speed);
    const Vec3 slip = velocity(tyre.body, contact);
    const double x = tyre.longitudinal.B * -forward.dot(slip) / v, y = tyre.lateral.B * -sideways.dot(slip) / v;
    const double q = std::sqrt(x * x + y * y);
    const auto share = [q](const SlipCurve& curve) {
      const double inner = q - curve.E * (q - std::atan(q));
      return q > 0.0 ? std::sin(curve.C * std::atan(inner)) / q : curve.C;
    };
    act_at(tyre.body, contact,
           normal * (tyre.longitudinal.friction * share(tyre.longitudinal) * x * forward +
                     tyre.lateral.friction * share(tyre.lateral) * y * sideways));
  }

  const Mechanism& mechanism_;
  const std::vector<double> input_;
  Motions at_;
  std::vector<Vec6> wrench_;
};

}  // namespace rigstep::test
