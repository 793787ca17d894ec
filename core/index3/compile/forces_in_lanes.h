// Force elements that iterates evaluate in lanes: along the own coordinates of revolute and prismatic joints (measured
// joints), springs between points, and tyres. All others are evaluated one by one, and so are all where steps of order
// 4 or forces over a step look at other poses than iterates. Load time, but for the last function.
#pragma once

#include <initializer_list>

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

bool may_evaluate_in_lanes(const Plan& plan);

// Divides the elements, and the inputs along joints; after the measured joints are found.
void divide_elements(Plan& plan);

// Batches, laws and constants; after the bodies have their lanes.
void place_forces_in_lanes(Plan& plan);

// One behind the other into a lane.
void write_vectors(std::initializer_list<Vec3> vectors, int width, double* to);

// Whether a force element is not among those that are evaluated one by one; nor among those applied so.
bool is_evaluated_in_lanes(const Plan& plan, int kind, int index);
bool acts_along_measured_joint(const Plan& plan, int kind, int index);
// The same of an input; in the loop, too.
bool acts_along_measured_joint(const Plan& plan, const Input& input) noexcept;

}  // namespace rigstep::index3
