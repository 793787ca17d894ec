// What if: the inputs of a recorded run on another plant, with another period, from a step in its middle, or other
// inputs on the same plant. Offline.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "server/recordings/recorded_run.h"

namespace rigstep::server {

struct VariantRequest {
  std::string mechanism;   // file; empty: that of the recording
  std::string inputs;      // table or recording; empty: those of the recording
  double period = 0.0;     // [s]; 0: that of the recording
  std::uint64_t from = 0;  // step whose recorded state is the start; 0: where the recording starts
  std::string output;      // recording to write
};

struct Variant {
  std::string recording;  // written
  std::uint64_t steps = 0;
  std::string failure;       // why a step failed, empty: none did
  bool interrupted = false;  // before the end of the run
};

// Steps from the start to the end of the run, or to where it was reset. Another period begins at its multiple nearest
// to the time of the start. progress: false ends the variant there, as a whole recording. Throws config::ConfigError
// for a state that does not fit the mechanism or a step that is not there, wire::RecordingError for a recording that is
// damaged, Error where the replay to `from` differs from the recording.
Variant make_variant(const RecordedRun& run, const VariantRequest& request,
                     const std::function<bool(std::uint64_t step)>& progress);

}  // namespace rigstep::server
