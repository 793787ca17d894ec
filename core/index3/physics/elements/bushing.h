// A bushing's deflection, its rate and gradients, and how its stiffness and damping enter the elimination: as rows
// without a multiplier of their own.
//
// The load K x + C xd is an ordinary applied force. What the trapezoidal rule makes of it in Newton's tangent is
// (dt^2/4) J' S J with S = K + (2/dt) C, which couples both bodies. With S = L L' and rows R = (dt/2) L' J it is
// eliminated exactly like a joint whose rows have the compliance 1, no position error and no memory:
//
//   (1 + R M^-1 R') Lambda = R bias,    motion = bias - M^-1 R' Lambda,
//
// which is (M + R' R)^-1 M bias. So a stiffness far above m / dt^2 is as harmless as a rigid joint.
// Deflection and gradients are called in the loop; bushing_rows at load time.
#pragma once

#include "core/index3/physics/elements/element.h"
#include "core/mechanism/elements/bushing.h"

namespace rigstep::index3 {

// Deflection of the second frame against the first, in the first frame's axes; see Bushing.
struct BushingDeflection {
  Vec6 x;                  // [m] and [-]
  Vec6 rate;               // [m/s] and [1/s]
  Mat6 J_first, J_second;  // dx with respect to (dr, dtheta) of each body, world frame
};
BushingDeflection deflection(const Bushing& bushing, const Placement& first, const Placement& second) noexcept;

// K x + C xd: what the bushing exerts against the deflection, first frame's axes [N] and [N m].
Vec6 opposing_load(const Bushing& bushing, const BushingDeflection& at) noexcept;

// L of K + (2/dt) C = L L', its columns beyond `count` zero: a singular matrix gives fewer rows.
struct BushingRows {
  Mat6 L = Mat6::Zero();
  int count = 0;
};
BushingRows bushing_rows(const Bushing& bushing, double dt) noexcept;

struct BushingReading {
  Vec6 deflection;  // first frame's axes [m] and [-]
  Vec6 load;        // on the second body, first frame's axes [N] and [N m]
};

template <>
struct Stepped<Bushing> {
  using Reading = BushingReading;
  using Constants = BushingRows;
  using Evaluated = BushingDeflection;
  static constexpr int kMostRows = 6;
  static constexpr int kLaneNumbers = kBushingNumbers, kLaneFound = kBushingFound;
  static constexpr std::array kActions{kActionsOfBushing, kActionsOfBushing + kLoadNumbers};
};

LaneNumbersOf<Bushing> lane_numbers(const Bushing& bushing) noexcept;
BushingDeflection from_lane(const Bushing& bushing, const FoundInLane& found) noexcept;

inline BushingRows prepare(const Bushing& bushing, double dt) { return bushing_rows(bushing, dt); }
inline void renew(const Bushing& bushing, double dt, BushingRows& constants) noexcept {
  constants = bushing_rows(bushing, dt);
}
Connectivity connectivity(const Bushing& bushing, const BushingRows& constants);
bool slopes_change(const Bushing& bushing);
inline BushingDeflection evaluate(const Bushing& bushing, const BushingRows&, const Surroundings& at) noexcept {
  return deflection(bushing, at.placement(bushing.first), at.placement(bushing.second));
}
BushingReading apply(const Bushing& bushing, const BushingRows& constants, const BushingDeflection& now,
                     const Surroundings& at, const Loads& loads) noexcept;
inline void add_tangent(const Bushing&, const BushingRows&, const BushingDeflection&, const Surroundings&,
                        const TangentFactors&, const OwnTangents&) noexcept {}
void evaluate_rows(const Bushing& bushing, const BushingRows& constants, const BushingDeflection& now,
                   const Surroundings& at, const TangentFactors& factors, ElementRows rows) noexcept;
double energy(const Bushing& bushing, const BushingReading& reading, const Surroundings& at) noexcept;
void write(const BushingReading& reading, double* to) noexcept;

}  // namespace rigstep::index3
