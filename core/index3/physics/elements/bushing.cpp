#include "core/index3/physics/elements/bushing.h"

#include <cmath>

namespace rigstep::index3 {

namespace {

constexpr double kPivotTolerance = 1e-12;  // pivot that counts as zero, with the diagonal scaled to 1

}  // namespace

BushingDeflection deflection(const Bushing& bushing, const Placement& first, const Placement& second) noexcept {
  const Vec3 s_first = first.A * bushing.in_first.point_b, s_second = second.A * bushing.in_second.point_b;
  const Mat3 a = first.A * bushing.in_first.axes_b, b = second.A * bushing.in_second.axes_b;
  const Vec3 gap = (second.r - first.r) + (s_second - s_first);
  const Vec3 turn = 0.5 * (a.col(0).cross(b.col(0)) + a.col(1).cross(b.col(1)) + a.col(2).cross(b.col(2)));
  const Mat3 to_first = a.transpose();
  // sum of (a.b) E - b a': what a rotation of either body does to the axial vector
  const Mat3 S = b * a.transpose();
  const Mat3 rotation = 0.5 * (S.trace() * Mat3::Identity() - S);

  BushingDeflection at;
  at.x << to_first * gap, to_first * turn;
  at.J_first.setZero();
  at.J_second.setZero();
  at.J_first.topLeftCorner<3, 3>() = -to_first;
  at.J_first.topRightCorner<3, 3>() = to_first * skew(s_first + gap);
  at.J_first.bottomRightCorner<3, 3>() = -to_first * rotation;
  at.J_second.topLeftCorner<3, 3>() = to_first;
  at.J_second.topRightCorner<3, 3>() = -to_first * skew(s_second);
  at.J_second.bottomRightCorner<3, 3>() = to_first * rotation;
  Vec6 motion_first, motion_second;
  motion_first << first.v, first.w;
  motion_second << second.v, second.w;
  at.rate = at.J_first * motion_first + at.J_second * motion_second;
  return at;
}

LaneNumbersOf<Bushing> lane_numbers(const Bushing& bushing) noexcept {
  const JointFrame &first = bushing.in_first, &second = bushing.in_second;
  return LaneNumbers<kBushingNumbers>::of(first.point_b, Vec3(first.axes_b.col(0)), Vec3(first.axes_b.col(1)),
                                          second.point_b, Vec3(second.axes_b.col(0)), Vec3(second.axes_b.col(1)),
                                          bushing.stiffness, bushing.damping);
}

BushingDeflection from_lane(const Bushing&, const FoundInLane& found) noexcept {
  const Vec3 arm_first = found.three(kArmsOfBushing), arm_second = found.three(kArmsOfBushing + 3);
  BushingDeflection at;
  at.x = found.six(0), at.rate = found.six(kRateOfBushing);
  at.J_first.setZero();
  at.J_second.setZero();
  for (int k = 0; k < 3; ++k) {
    const Vec3 axis = found.three(kAxesOfBushing + 3 * k), turning = found.three(kTurningOfBushing + 3 * k);
    at.J_first.row(k) << -axis.transpose(), axis.cross(arm_first).transpose();
    at.J_second.row(k) << axis.transpose(), arm_second.cross(axis).transpose();
    at.J_first.row(3 + k).tail<3>() = -turning;
    at.J_second.row(3 + k).tail<3>() = turning;
  }
  return at;
}

Vec6 opposing_load(const Bushing& bushing, const BushingDeflection& at) noexcept {
  return bushing.stiffness * at.x + bushing.damping * at.rate;
}

// Cholesky with diagonal pivoting: stops where only rounding is left.
BushingRows bushing_rows(const Bushing& bushing, double dt) noexcept {
  Mat6 S = bushing.stiffness + 2.0 / dt * bushing.damping;
  Vec6 scale;
  for (int i = 0; i < 6; ++i) {
    scale[i] = S(i, i) > 0.0 ? std::sqrt(S(i, i)) : 0.0;
    for (int k = 0; k < 6; ++k) {
      S(i, k) = scale[i] > 0.0 ? S(i, k) / scale[i] : 0.0;
      S(k, i) = scale[i] > 0.0 ? S(k, i) / scale[i] : 0.0;
    }
  }
  BushingRows rows;
  for (; rows.count < 6; ++rows.count) {
    Eigen::Index pivot = 0;
    const double largest = S.diagonal().maxCoeff(&pivot);
    if (!(largest > kPivotTolerance)) break;
    const Vec6 column = S.col(pivot) / std::sqrt(largest);
    rows.L.col(rows.count) = scale.cwiseProduct(column);
    S -= column * column.transpose();
    S.row(pivot).setZero();  // rounding would leave a trace
    S.col(pivot).setZero();
  }
  return rows;
}

Connectivity connectivity(const Bushing& bushing, const BushingRows& rows) {
  Connectivity connects;
  connects.bodies = {bushing.first, bushing.second};
  connects.rows = rows.count;
  connects.keeps_energy_in_reading = true;
  return connects;
}

bool slopes_change(const Bushing&) { return false; }

BushingReading apply(const Bushing& bushing, const BushingRows&, const BushingDeflection& now, const Surroundings&,
                     const Loads& loads) noexcept {
  const Vec6 load = -opposing_load(bushing, now);
  loads.add(bushing.first, now.J_first.transpose() * load);
  loads.add(bushing.second, now.J_second.transpose() * load);
  return {now.x, load};
}

void evaluate_rows(const Bushing&, const BushingRows& of_bushing, const BushingDeflection& now, const Surroundings&,
                   const TangentFactors& factors, ElementRows rows) noexcept {
  for (int i = 0; i < Stepped<Bushing>::kMostRows; ++i) {  // zero beyond its count: parameters may change that
    const Vec6 column = std::sqrt(factors.stiffness) * of_bushing.L.col(i);
    rows[0][i] = now.J_first.transpose() * column;
    rows[1][i] = now.J_second.transpose() * column;
  }
}

double energy(const Bushing& bushing, const BushingReading& reading, const Surroundings&) noexcept {
  return 0.5 * reading.deflection.dot(bushing.stiffness * reading.deflection);
}

void write(const BushingReading& reading, double* to) noexcept {
  for (int k = 0; k < 6; ++k) to[k] = reading.deflection[k];
  for (int k = 0; k < 6; ++k) to[6 + k] = reading.load[k];
}

}  // namespace rigstep::index3
