// Which forces and torques act on bodies beside the joints: loads, inputs and force elements, one by one, for arrows.
// Gravity is left out. Load time and display rate, never the loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/index3/step/workspace.h"
#include "core/index3/stepper.h"

namespace rigstep::server {

// Of one force element, load or input on one body.
struct ActingForce {
  std::string name;
  int body = 0;
};

class ActingForces {
 public:
  explicit ActingForces(const Mechanism& mechanism);

  // First of the force elements, then of loads and inputs.
  const std::vector<ActingForce>& list() const { return list_; }

  // Numbers of each, at the stepper's state with these inputs held: a point on the line along which the force acts (x y
  // z [m]), the force (x y z [N]) and the torque beside it (x y z [N m]), all in the world frame. stepper: of the
  // mechanism, or of one with more inputs, which have more of them at the end.
  std::vector<float> read(const index3::Stepper& stepper, const Inputs& inputs);

 private:
  std::vector<ActingForce> list_;
  std::unique_ptr<index3::Workspace> workspace_;
};

}  // namespace rigstep::server
