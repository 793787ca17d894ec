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

// w.evaluated: of every force element, and what those in elastic rows do together, w.along_joint; from w.placement
// and w.joint at time t [s], after it has followed the joint coordinates along which they act. Call it before
// apply_forces, follow_iterate, force_tangent and evaluate_rows whenever poses or velocities have changed.
void evaluate_elements(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                       Workspace& w) noexcept;
// ... without those that evaluate_in_lanes evaluates: at iterates.
void evaluate_one_by_one(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                         Workspace& w) noexcept;

// Sums every load at an instant, time t [s], on the loaded bodies into w.Q, and leaves in w.readings what each force
// element does.
void apply_forces(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept;

// Sums into w.Q of plan.loaded_one_by_one what iterates apply one by one, without weights. Elements that act over a
// step add their loads in Newton's equations, not those of an instant.
void apply_one_by_one(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept;

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

// w.tangent = factors.stiffness K + factors.damping C of the elements that act on one body, of those between a body and
// the ground, and of pulled springs as strings; own-body blocks, positive semidefinite. The others are in element rows,
// or in the elastic rows of joints. After the elements that act over a step have followed the iterate.
void force_tangent(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept;
// ... of the elements that iterates apply one by one, on the bodies that they load.
void tangent_one_by_one(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept;

// factors.stiffness K + factors.damping C of all that acts along the elastic row of a joint.
double elastic_tangent(const Plan& plan, int joint, const TangentFactors& factors, const Workspace& w) noexcept;

// w.element_rows: the rows of an element, see ElementRows. factors.damping is 2/dt factors.stiffness.
void evaluate_rows(const Plan& plan, const Element& element, const TangentFactors& factors, Workspace& w) noexcept;

// Energy stored in gravity, springs, bushings and tyres [J]; zero height is the world's origin. Of all but springs in
// joints as of the last readings.
double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept;

}  // namespace rigstep::index3
