// What a step of any force element is made of.
//
// For each kind of core/mechanism/elements/list.h its file here has Stepped<Kind>, which names what the element leaves
// behind in a step and what is prepared for it at load time, and these functions, found by the type of the element:
//
//   prepare       constants of the element; load time
//   connectivity  what the plan must know of it; load time
//   renew         brings the constants to other numbers of the element, where they follow from any; in the loop
//   slopes_change whether it is stiffer or softer at the end of a step than at its begin; load time
//   evaluate      finds Stepped<Kind>::Evaluated, what all functions below it start from: once for each iterate
//   apply         adds its loads, and tells what it does
//   add_tangent   adds its own-body blocks of the tangent
//   evaluate_rows its rows: see ElementRows
//   energy        that it stores [J]
//   coordinate_of_tangent  the followed coordinate along which all of its tangent acts, if there is one; load time
// and `write`, which puts a reading into the channels of its output.
//
// A kind that acts along a scalar by a formula of laws.h names it, Stepped<Kind>::kLaw, and has
//   law_numbers     the numbers of the formula, as of these inputs
// so that iterates evaluate it in lanes where they measure its scalar there (effort_of in kernels/scalar_forces.h).
//
// A kind that lanes evaluate otherwise names how many numbers its kernel takes and finds, Stepped<Kind>::kLaneNumbers
// and kLaneFound, and where among the latter its actions begin, kActions, one for each body of its connectivity: an
// action on a body of own_tangent holds its block of the tangent, too (kActionNumbers), others the load alone
// (kLoadNumbers). It has
//   lane_numbers    what it takes, in the order of laws.h: of an element and these inputs, for each step; or of an
//                   element alone, at load time and after parameters, where no input moves any
//   from_lane       what it has found, as Evaluated
//
// A kind that acts over a step as a whole, because its law has a kink that a step may jump over, also names
// Stepped<Kind>::Start, what it keeps of the begin of the step, and has
//   start_step      makes it, of what is evaluated at the last instant
//   follow_iterate  brings it to the iterate
//   apply_over_step adds the loads of Newton's equations: twice the mean over the step less those of the last instant
// and its add_tangent and evaluate_rows, which belong to apply_over_step, take the Start, too. Its `apply` tells what
// acts at an instant.
// Called in the loop, but for the first three.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "core/index3/physics/constraints.h"
#include "core/index3/physics/kinematics.h"
#include "core/index3/physics/laws.h"

namespace rigstep::index3 {

template <class Kind>
struct Stepped;  // Reading, Constants, Evaluated, kMostRows

struct NoConstants {};

template <class Kind>
concept ActsOverStep = requires {
  typename Stepped<Kind>::Start;
};

template <class Kind>
concept HasLaw = requires {
  Stepped<Kind>::kLaw;
};
using NumbersOfLaw = std::array<double, kLawNumbers>;

template <class Kind>
concept HasLanes = requires {
  Stepped<Kind>::kLaneFound;
};
template <class Kind>
using LaneNumbersOf = std::array<double, Stepped<Kind>::kLaneNumbers>;

// What a kernel has found of the element in one lane: its number k.
struct FoundInLane {
  const double* first;
  int stride;
  double operator[](int k) const noexcept { return first[k * stride]; }
  Vec3 three(int k) const noexcept { return {(*this)[k], (*this)[k + 1], (*this)[k + 2]}; }
  Vec6 six(int k) const noexcept {
    Vec6 values;
    values << three(k), three(k + 3);
    return values;
  }
};

// Numbers that a kernel takes, out of scalars and vectors.
template <std::size_t N>
class LaneNumbers {
 public:
  void add(double number) noexcept { numbers_[used_++] = number; }
  void add(const Vec3& v) noexcept { add(v[0]), add(v[1]), add(v[2]); }
  void add(const Mat6& symmetric) noexcept {
    for (const double number : symmetric.reshaped()) add(number);
  }
  template <class... More>
  static std::array<double, N> of(const More&... more) noexcept {
    static_assert((sizeof(More) + ...) == N * sizeof(double), "as many numbers as the kernel takes");
    LaneNumbers all;
    (all.add(more), ...);
    return all.numbers_;
  }

 private:
  std::array<double, N> numbers_{};
  std::size_t used_ = 0;
};

// Of kinds whose constants follow from no number that a parameter may move.
template <class Kind, class Constants>
void renew(const Kind&, double /*dt*/, Constants&) noexcept {}

// Of kinds whose tangent does not act along a joint coordinate.
template <class Kind>
int coordinate_of_tangent(const Kind&) {
  return -1;
}

// What an element sees: everything at the iterate. Of bodies and joints only the pose-dependent ones are up to
// date.
struct Surroundings {
  const Mechanism& mechanism;
  const Placement* body;
  const JointPlacement* joint;
  const Coordinate* coordinate;  // (followed coordinates) values unwrapped; at iterates not those of measured joints
  const double* input;           // (input channels) held
  double time;                   // [s], of loads over time

  const Placement& placement(int index) const noexcept { return index == kGround ? kGroundPlacement : body[index]; }
  double held(int channel) const noexcept { return channel < 0 ? 0.0 : input[channel]; }
};

// What the plan must know of an element.
struct Connectivity {
  std::vector<int> bodies;               // that it loads, the ground included
  std::vector<int> own_tangent;          // bodies with own-body blocks in the tangent
  int rows = 0;                          // between all of `bodies`, two at least
  int coordinate = -1;                   // followed coordinate that it acts along; -1: none
  bool keeps_energy_in_reading = false;  // energy() reads what apply() left
};

// Rows of an element on each of its bodies, in the order of Connectivity::bodies. The tangent of an element between
// moving bodies is the sum of J' J over its rows, the blocks across the bodies included; own-body blocks alone would
// not converge where an element is stiffer than its bodies are heavy. factors.damping is 2/dt factors.stiffness.
inline constexpr int kMostElementRows = 6;
using ElementRows = std::array<Vec6, kMostElementRows>*;

// (bodies) force [N] and torque [N m] about the mass centre, world frame.
struct Loads {
  Vec6* on;
  void add(int body, const Vec6& load) const noexcept {
    if (body != kGround) on[body] += load;
  }
};
inline Vec6 load_at(const Vec3& force_0, const Vec3& torque_0, const Vec3& arm_0) noexcept {
  Vec6 load;
  load << force_0, torque_0 + arm_0.cross(force_0);
  return load;
}

// (bodies) own-body blocks, world frame.
struct OwnTangents {
  Mat6* of;
  void add(int body, double factor, const Vec6& gradient) const noexcept {
    if (body != kGround) of[body] += factor * (gradient * gradient.transpose());
  }
};

// ---- elements along one scalar

// What one does.
struct ElementReading {
  double deflection;  // [m] or [rad]; the joint coordinate of what is no spring
  double rate;        // [m/s] or [rad/s]
  double effort;      // [N] or [N m]
};
inline void write(const ElementReading& reading, double* to) noexcept {
  to[0] = reading.deflection;
  to[1] = reading.rate;
  to[2] = reading.effort;
}

using ScalarEffort = EffortAlong<double>;

// What an effort along a scalar adds to the tangent is this times gradient gradient', over both bodies.
inline double along_scalar(const ScalarEffort& effort, const TangentFactors& factors) noexcept {
  return factors.stiffness * effort.stiffness + factors.damping * effort.damping;
}

// The scalar and what acts along it.
struct EvaluatedScalar {
  Coordinate x;
  ScalarEffort effort;

  double tangent(const TangentFactors& factors) const noexcept { return along_scalar(effort, factors); }
};

// A followed joint coordinate at the placements and joints of `at`, its value unwrapped from `reference`.
Coordinate follow_coordinate(int index, double reference, const Surroundings& at) noexcept;

// Distance of two points of bodies, with its rate and gradients; along a fixed direction where there is one.
Coordinate distance_of_points(int first, const Vec3& first_point_b, int second, const Vec3& second_point_b,
                              const Vec3* direction_0, const Surroundings& at) noexcept;

// The straight line between points of two bodies.
struct Span {
  int first, second;           // bodies
  Vec3 arm_first, arm_second;  // of the points about the mass centres, world frame [m]
  Vec3 direction;              // from the first to the second, unit
  double length;               // [m]
};

// What pulls two points together resists sideways motion of its ends like a string: adds its own-body blocks. What
// pushes them apart has the opposite sign and stays out, so that the tangent remains positive semidefinite.
void add_string(const Span& span, double tension, double stiffness_factor, const OwnTangents& tangents) noexcept;

inline ElementReading apply_scalar(int first, int second, const Coordinate& x, double deflection, double effort,
                                   const Loads& loads) noexcept {
  loads.add(first, effort * x.first);
  loads.add(second, effort * x.second);
  return {deflection, x.rate, effort};
}

template <class Kind>
bool on_ground(const Kind& element) noexcept {
  return element.first == kGround || element.second == kGround;
}

// factor gradient gradient' as own-body blocks: exact where one of the bodies is the ground.
template <class Kind>
void add_own_blocks(const Kind& element, const Coordinate& x, double factor, const OwnTangents& tangents) noexcept {
  tangents.add(element.first, factor, x.first);
  tangents.add(element.second, factor, x.second);
}

// factor gradient gradient' as a row over both bodies.
inline void set_row(const Coordinate& x, double factor, ElementRows rows) noexcept {
  const double root = std::sqrt(factor);
  rows[0][0] = root * x.first;
  rows[1][0] = root * x.second;
}

// Own-body blocks against the ground, a row between two moving bodies.
template <class Kind>
Connectivity connectivity_of_scalar(const Kind& element, int coordinate) {
  Connectivity connects;
  connects.bodies = {element.first, element.second};
  if (on_ground(element))
    connects.own_tangent = connects.bodies;
  else
    connects.rows = 1;
  connects.coordinate = coordinate;
  return connects;
}

}  // namespace rigstep::index3
