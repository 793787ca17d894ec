// Force elements that iterates evaluate in lanes (compile/forces_in_lanes.h), by kernels/scalar_forces.h, tyres.h and
// bushings.h. Called in the loop.
#pragma once

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// Their memory, with what no parameter and no step changes. Load time.
void make_room_in_lanes(const Plan& plan, Workspace& w);
// Takes over from the plan the numbers of elements that only parameters change.
void follow_elements_in_lanes(const Plan& plan, Workspace& w) noexcept;

// What a step holds whose forces are those of time t [s], its end or, of order 4, its middle: numbers of the elements
// as of these inputs, efforts of inputs and those given over time, and from where angles are unwrapped.
void hold_forces_in_lanes(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                          Workspace& w) noexcept;

// At the iterate, finds w.found of all that is in lanes, with own-body blocks by these factors where there are any. Out
// of the lanes it takes w.evaluated of what acts over a step, and with factors what rows follow from: w.along_joint of
// measured joints, and w.evaluated of elements with rows of their own.
void evaluate_in_lanes(const Plan& plan, const TangentFactors* factors, Workspace& w) noexcept;
// w.evaluated of all that is in lanes, as lanes have found it last.
void read_lanes(const Plan& plan, Workspace& w) noexcept;

// At the instant that a step has reached, once begin and end have changed places: the coordinates of measured joints;
// and, after these, w.evaluated of all that is in lanes.
void measure_joints_at_end(const Plan& plan, Workspace& w) noexcept;
void evaluate_at_end(const Plan& plan, Workspace& w) noexcept;

// The coordinate of a measured joint, out of its lane: the followed one, or with any offset where there is none.
Coordinate measured_coordinate(const Plan& plan, const Workspace& w, int joint) noexcept;

}  // namespace rigstep::index3
