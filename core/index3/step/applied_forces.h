// Applied forces Q and their partial derivatives, [001] (8): gravity, loads, inputs and force elements of all kinds,
// each of which is in its own file of physics/elements. Called in the loop.
#pragma once

#include "core/index3/compile/plan.h"
#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// What force elements see of the iterate, with the inputs of take_inputs.
Surroundings surroundings(const Plan& plan, const Workspace& w) noexcept;

// Keeps the inputs of a step for surroundings() and for the elements that act over a step.
void take_inputs(const Plan& plan, const Inputs& inputs, Workspace& w) noexcept;

// w.coordinate: the followed joint coordinates, their values unwrapped from those at the last instant; from w.placement
// and w.joint.
void follow_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept;

// ... of the instant that a step has reached, once its begin and end have changed places.
void follow_reached_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept;

// The loads at an instant, or those that stand in Newton's equations of a step: the same but for elements that act over
// a step.
enum class ActingAt { instant, step };

// w.evaluated: of every force element, and what those in elastic rows do together, w.along_joint; from w.placement
// and w.joint at time t [s], after it has followed the joint coordinates along which they act. Call it before
// apply_forces, follow_iterate, force_tangent and evaluate_rows whenever poses or velocities have changed.
void evaluate_elements(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                       Workspace& w) noexcept;
// ... without those that evaluate_in_lanes evaluates: at iterates.
void evaluate_one_by_one(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                         Workspace& w) noexcept;

// Sums every load at time t [s] on the loaded bodies into w.Q: over a step, those along measured joints as of
// evaluate_in_lanes. Leaves in w.readings what each force element does that is applied one by one.
void apply_forces(const Plan& plan, const Inputs& inputs, double t, ActingAt acting, Workspace& w) noexcept;

// After follow_reached_coordinates: w.readings of the force elements that outputs or the energy read, at that instant,
// t [s], with the step's inputs. What it leaves in w.Q is nothing.
void read_elements(const Plan& plan, double t, Workspace& w) noexcept;

// w.starts: what elements that act over a step keep of its begin, from the poses and velocities of the last instant in
// w.placement and w.joint. Evaluates these elements.
void start_elements(const Plan& plan, Workspace& w) noexcept;

// ... and of the iterate; before its tangent and its loads.
void follow_iterate(const Plan& plan, Workspace& w) noexcept;

// w.Q = the loads at this instant, less those over the step, of the elements that act over a step; evaluates these.
void replace_loads_over_step(const Plan& plan, Workspace& w) noexcept;

// w.tangent = stiffness_factor K + damping_factor C of the elements that act on one body, of those between a body and
// the ground, and of pulled springs as strings; own-body blocks, positive semidefinite. The others are in element rows,
// or in the elastic rows of joints.
void force_tangent(const Plan& plan, double stiffness_factor, double damping_factor, Workspace& w) noexcept;

// stiffness_factor K + damping_factor C of all that acts along the elastic row of a joint.
double elastic_tangent(const Plan& plan, int joint, double stiffness_factor, double damping_factor,
                       const Workspace& w) noexcept;

// w.element_rows: the rows of an element, see ElementRows. damping_factor is 2/dt stiffness_factor.
void evaluate_rows(const Plan& plan, const Element& element, double stiffness_factor, double damping_factor,
                   Workspace& w) noexcept;

// Energy stored in gravity, springs, bushings and tyres [J]; zero height is the world's origin. Of all but springs in
// joints as of the last readings.
double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept;

}  // namespace rigstep::index3
