// Mechanisms around bodies with many joints, for the hybrid elimination.
#pragma once

#include "tests/support/mechanisms.h"

namespace rigstep::test {

// `legs` legs of `links` rods of 0.5 m in a plane around a primal body; revolutes with axes across the legs and along z
// by turns. Nothing holds it; it starts as one rigid body that tumbles.
Description star(int legs, int links);

// The same on a pin, in the field of gravity.
Description carousel(int legs, int links);

}  // namespace rigstep::test
