// The stepper against the reference solvers: the same mechanism under the same inputs, by solvers that share no code
// with it. Offline.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/load_mechanism.h"
#include "server/verify/report.h"

namespace rigstep::server {

struct VerifyRequest {
  std::string path;                                  // mechanism file, or recording (.mcap)
  std::vector<config::ParameterSetting> parameters;  // values instead of those that the mechanism file declares
  std::string inputs;                                // table of input channels over time, or empty: zero
  std::vector<std::string> solvers;                  // none, or "all": every one
  double tolerance = 1e-9;                           // of the reference solvers' integrators, absolute and relative
  double duration = 0.0;        // [s]; 0: one second, less for many bodies, the whole of a recording
  double dt = 0.0;              // of the stepper [s]; 0: 1 ms, or a tenth or hundredth of it where that is too
                                // long to compare anything, and of the duration; a recording has its own
  int order = 2;                // of the stepper's accuracy: 2 or 4; a recording has its own
  std::optional<double> alpha;  // penalty factor of index3_literal, 0: its own choice; absent: the mechanism file's
  double limit = 5.0;  // processor time that a reference solver gets, and the stepper with steps below dt/4 [s]
};

// progress: what is running and how far it is, 0..1; may throw to stop. Throws MechanismFileError, config::ConfigError,
// wire::RecordingError, and offline::SolverError when the stepper itself fails.
VerifyReport verify(const VerifyRequest& request,
                    const std::function<void(std::string_view what, double done)>& progress);

}  // namespace rigstep::server
