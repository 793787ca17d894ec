// What iterates evaluate one by one and what in lanes: of joint coordinates, force elements and inputs;
// and what a step's end needs. Load time.
//
// In lanes: what acts along the own coordinates of revolute and prismatic joints (measured joints), and springs and
// stops between points, tyres, bushings and drags where there are several. One by one are stops and ropes at both ends
// of a step, for what they keep of its begin and for the accelerations that it ends with, and all elements at the end
// of a step of order 4.
#pragma once

#include "core/index3/compile/plan.h"

namespace rigstep::index3 {

// After the choice of the constraints' rows, before anything is laid out.
void divide_evaluations(Plan& plan);

}  // namespace rigstep::index3
