// Every load of a mechanism as wrenches on its bodies, written from the meaning of the fields in core/mechanism, for
// the reference solvers in absolute and in relative coordinates. Efforts act along the gradient of the scalar that they
// belong to. Offline only.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/offline/joint_motion.h"

namespace rigstep::offline {

// What loads depend on.
struct Situation {
  double time = 0.0;                 // [s]
  std::span<const BodyMotion> body;  // (bodies)
  std::span<const Jet> coordinate;   // (joint coordinates) from CoordinateFollower
  std::span<const double> input;     // (input channels) held

  double held(int channel) const { return channel < 0 ? 0.0 : input[static_cast<std::size_t>(channel)]; }
};

// Force and torque about the mass centre of every body, world frame [N] [N m]: gravity, loads, inputs, springs,
// bushings, friction, motors, efforts, drag, tyres, stops, ropes.
std::vector<Vec6> wrenches(const Mechanism& mechanism, const Situation& at);

// What the force elements do, for wrenches() and for output channels.
struct ScalarReading {
  Jet along;                // what the effort acts along
  double deflection = 0.0;  // x - rest of a spring, depth in a stop, else the joint coordinate [m] or [rad]
  double effort = 0.0;      // positive increases it [N] or [N m]
};
ScalarReading read(const Spring& spring, const Situation& at);
ScalarReading read(const JointFriction& friction, const Situation& at);
ScalarReading read(const Motor& motor, const Situation& at);
ScalarReading read(const AppliedEffort& effort, const Situation& at);
ScalarReading read(const Stop& stop, const Situation& at);

// Tension of a rope, which is the same in all its parts.
struct RopeReading {
  double deflection = 0.0;   // longer than unstretched [m]
  double rate = 0.0;         // [m/s]
  double effort = 0.0;       // minus the tension [N]
  double unstretched = 0.0;  // [m]
};
RopeReading read(const Rope& rope, const Situation& at);

struct BushingReading {
  std::array<Jet, 6> deflection;  // first frame's axes [m] and [rad for small ones]
  Vec6 load = Vec6::Zero();       // along them, on the second body [N] and [N m]
};
BushingReading read(const Bushing& bushing, const Situation& at);

struct DragReading {
  Vec3 arm_0 = Vec3::Zero();    // of the point, from the mass centre [m]
  Vec3 force_0 = Vec3::Zero();  // [N]
  double speed = 0.0;           // of the point against the air [m/s]
};
DragReading read(const Drag& drag, const Situation& at);

// The wheel as a thin disc on the road.
struct TyreReading {
  double depth = 0.0;         // of the undeflected disc's lowest point below the road, negative in the air [m]
  Vec3 centre, lowest;        // from the mass centre [m]
  Vec3 road;                  // where the wheel's plane and the road meet, below the centre, from the mass centre [m]
  Vec3 forward, sideways;     // unit, in the road
  Vec3 force = Vec3::Zero();  // on the wheel along forward, sideways and the road's normal [N]
  double slip = 0.0, tangent_of_slip = 0.0;  // longitudinal, and of the slip angle [-]
};
TyreReading read(const Tyre& tyre, const Situation& at);

// Where loads have a jump in their second derivative by themselves [s].
std::vector<double> load_jumps(const Mechanism& mechanism);

// Of gravity, springs, bushings, tyres, stops and ropes; dampers, friction, motors, efforts, drag, loads and inputs
// have none [J].
double potential_energy(const Mechanism& mechanism, const Situation& at);

double kinetic_energy(const Mechanism& mechanism, std::span<const BodyMotion> bodies);  // [J]

Mat3 inertia_0(const Body& body, const BodyMotion& motion);  // about the mass centre, world axes [kg m^2]

}  // namespace rigstep::offline
