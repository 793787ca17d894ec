// Applied forces Q and their partial derivatives, [001] (8): gravity, loads, springs and dampers, inputs, bushings,
// joint friction, efforts, motors, drag, tyres. Called in the loop.
#pragma once

#include "core/index3/compile/plan.h"
#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// One spring's scalar: x, dx/dt, the gradients of x with respect to both bodies' delta.
// coordinate: current value of a joint spring's coordinate, unwrapped.
Coordinate spring_coordinate(const Spring& spring, const Workspace& w, const Mechanism& mechanism,
                             const std::vector<double>& coordinate) noexcept;

// Keeps the inputs of a step for force_tangent; before the first factorisation of the step.
void take_inputs(const Plan& plan, const Inputs& inputs, Workspace& w) noexcept;

// Effort and slopes of an element that acts along one scalar x with rate v; slopes are -d effort / dx and dv, clipped
// to what keeps the tangent positive semidefinite.
struct ScalarEffort {
  double effort;
  double stiffness;
  double damping;
};
ScalarEffort spring_effort(const Spring& spring, double x, double v) noexcept;
// damping is the secant -effort / v: it bounds the slope, and holds when the step brings the joint to rest
ScalarEffort friction_effort(const JointFriction& friction, double v) noexcept;
// inputs: values of the input channels; at a limit the gains have no slope
ScalarEffort motor_effort(const Motor& motor, double x, double v, const double* inputs) noexcept;

// Force on the point for its velocity u against the wind, and minus its derivative with respect to u.
Vec3 drag_force(const Drag& drag, const Vec3& u) noexcept;
Mat3 drag_damping(const Drag& drag, const Vec3& u) noexcept;

// w.coordinate: the followed joint coordinates, unwrapped from their values at the last instant.
void follow_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept;

// An effort about an axis that is fixed in the ground: it loads its body alike in all poses.
bool turns_about_ground(const Mechanism& mechanism, const Input& input) noexcept;

// Follows the joint coordinates, and sums every load at time t [s] on the loaded bodies into w.Q. Leaves what each
// force element does in w.spring, w.friction, w.effort, w.motor, w.bushing, w.tyre and w.drag.
void apply_forces(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                  Workspace& w) noexcept;

// w.tangent = stiffness_factor K + damping_factor C of the elements that act on one body, of those between a body and
// the ground, and of pulled springs as strings; own-body blocks, positive semidefinite. The others are in element rows.
void force_tangent(const Plan& plan, double stiffness_factor, double damping_factor, Workspace& w) noexcept;

// Rows of an element for its two bodies.
struct ElementRows {
  Vec6 first[kMaxRows], second[kMaxRows];
};

// The tangent of bushings, and of springs, friction and motors between two moving bodies, is the sum of J' J over these
// rows, the blocks across both bodies included; own-body blocks alone would not converge where an element is stiffer
// than its bodies are heavy. damping_factor is 2/dt stiffness_factor, as bushing_rows assumes.
void evaluate_element(const Plan& plan, const Element& element, double stiffness_factor, double damping_factor,
                      const Workspace& w, ElementRows& rows) noexcept;

// Energy stored in gravity, springs, bushings and tyres [J]; zero height is the world's origin. Of the last two as of
// the last apply_forces.
double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept;

}  // namespace rigstep::index3
