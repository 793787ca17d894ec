// Reference solutions kept under tests/data/reference, and how far a stepper's run is from them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/index3/stepper.h"
#include "core/offline/solver.h"
#include "proto/load_mechanism.h"

namespace rigstep::test {

std::string source_path(const std::string& relative);

Mechanism mechanism(const std::string& name);

nlohmann::json reference(const std::string& name);

Vec3 vec3(const nlohmann::json& v);

// Largest deviations over the reference times up to `until` [m, -, m/s, rad/s], and what the run said about itself.
struct Deviation {
  double position = 0.0;
  double orientation = 0.0;  // of Euler parameters, up to their common sign
  double velocity = 0.0;
  double angular_velocity = 0.0;
  double force = 0.0;  // of joint reactions, relative to the largest of that instant
  double lowest_energy_change = 0.0, highest_energy_change = 0.0;  // against the start [J]
  double position_residual = 0.0, velocity_residual = 0.0, acceleration_residual = 0.0;
  double last_increment = 0.0;
  StepStatus worst = StepStatus::ok;
};

// Runs `name` with step dt_ns and compares with the reference of the same name at every reference instant that the
// step hits.
Deviation deviation(const Mechanism& m, const nlohmann::json& ref, std::int64_t dt_ns, double until,
                    index3::Settings settings = {}, bool forces = false);

// Slope of log(error) over log(dt) between two steps, where the second is half the first.
double slope(double coarse, double fine);

offline::Options at_tolerance(double tolerance);

}  // namespace rigstep::test
