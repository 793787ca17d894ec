// What is verified: a mechanism and the inputs of every step, from a mechanism file or from a recording. Offline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/index3/stepper.h"
#include "core/offline/solver.h"
#include "proto/load_mechanism.h"

namespace rigstep::server {

struct VerifyRequest;  // verify.h

struct VerifyCase {
  config::LoadedMechanism mechanism;
  index3::Settings settings;
  std::uint64_t steps = 0;
  std::vector<Inputs> applied;  // (steps), empty: none has an input
  struct Change {
    std::uint64_t after = 0;     // step
    ParameterValues parameters;  // that act from the next step on
  };
  std::vector<Change> changes = {};  // of parameters, ascending
  std::string cut = {};              // why not all of a recording is used; empty: all of it is

  const Mechanism& described() const { return mechanism.mechanism; }
  const Inputs& inputs(std::uint64_t step) const;
  bool has_many_bodies() const;  // so that it is compared for a shorter time, at fewer instants
  double duration() const;       // [s]
};

// Of whole nanoseconds, so that instants and jumps of inputs that coincide do so to the bit.
inline double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

// Throws MechanismFileError, config::ConfigError and wire::RecordingError.
VerifyCase load_case(const VerifyRequest& request);

// Inputs as the reference solvers take them: one entry where they change.
std::vector<offline::HeldInputs> held_inputs(const VerifyCase& a);

// Those of tunable parameters, for Stepper::set_parameters.
std::vector<ParameterValue> tunable_values(const Mechanism& mechanism, const ParameterValues& values);

// Of the stepper's error: that of its scheme is 2. Where an input or a parameter jumps the trapezoidal rule takes the
// mean of both values for one step, as if the jump came half a step later: 1.
double expected_order(const VerifyCase& a);

}  // namespace rigstep::server
