// Small mechanisms for one force element each.
#pragma once

#include <initializer_list>

#include "core/index3/stepper.h"
#include "tests/support/mechanisms.h"

namespace rigstep::test {

// A body on a slide along x without gravity, named "block".
MechanismBuilder slide(double mass, double speed = 0.0, const Vec3& gravity = Vec3::Zero());

// A cart on a wheel, with one force element of each kind; inputs: torque, angle, road height and its rate.
Mechanism every_force_element();

// Its inputs at a step: a driving and braking torque, a turning cart, a bumpy road.
Inputs every_input(std::uint64_t step);

index3::Settings step_of(double dt);

// What a force element along a scalar does, as an output of the same name: a step leaves the readings of its end.
void show_element(MechanismBuilder& builder, const std::string& element);

Inputs inputs_of(std::initializer_list<double> values);

// Steps to `time` and returns whether every step was committed.
bool run(index3::Stepper& stepper, double time, const Inputs& inputs = {});

// Kinetic and potential [J].
double total_energy(const index3::Stepper& stepper);

}  // namespace rigstep::test
