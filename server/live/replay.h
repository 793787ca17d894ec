// Re-runs a recording as fast as it can and compares the state after every step, bit for bit. Offline.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/index3/stepper.h"
#include "core/mechanism/signals.h"

namespace rigstep::server {

struct ReplayReport {
  enum class Verdict { bit_exact, within_tolerance, differs, nothing_replayed };
  Verdict verdict = Verdict::bit_exact;
  std::string recording;
  std::string mechanism;
  std::uint64_t steps = 0;             // compared
  std::uint64_t not_converged = 0;     // of the steps compared
  std::uint64_t inaccurate = 0;        // recorded as above the error limit of the rig file
  std::uint64_t states = 0;            // full states compared
  std::uint64_t not_recorded = 0;      // steps that the recorder lost
  std::uint64_t not_compared = 0;      // recorded steps between such a gap and the next full state
  std::uint64_t first_difference = 0;  // step whose hash differs, if it does
  std::uint64_t states_after_difference = 0;
  std::uint64_t difference_step = 0;  // first full state that differs, 0 if none does
  std::string difference_body;        // where it is largest
  double difference = 0.0;            // largest difference of a position [m], velocity or acceleration there
  bool same_build = true;             // compiler and processor as recorded
  std::string recorded_on;            // build and processor of the recording, if they are others
  std::string damage;                 // why the file could not be read to its end, empty if it could
  std::string reason;                 // why the run ended, empty if it did not end cleanly
  std::string fault;                  // how the run faulted, empty if it did not
  nlohmann::json commissioning;       // the verdict of rigstep commission that the recording holds, null: none
  double seconds = 0.0;

  nlohmann::json json() const;
  std::string text() const;
};

// A recorded step that ran, and what came out when it was repeated. Between a gap in the recording and the next full
// state nothing can be repeated.
struct ReplayedStep {
  const StepRecord& recorded;
  const index3::State* state;      // nullptr: not repeated
  const Outputs* outputs;          // all output channels of the mechanism; nullptr likewise
  const index3::Stepper* stepper;  // that has made it; nullptr likewise
};
using OnReplayedStep = std::function<bool(const ReplayedStep& step)>;  // false: no more is wanted

// progress: called now and then with the step reached; may be empty. on_step: of every step that ran; may be empty.
// from: repeats from the last full state before this step on, whose steps are not compared; 0: from the start.
// Throws wire::RecordingError for files that are no recording, MechanismFileError for a mechanism this version refuses.
ReplayReport replay(const std::string& path, const std::function<void(std::uint64_t)>& progress,
                    const OnReplayedStep& on_step = {}, std::uint64_t from = 0);

}  // namespace rigstep::server
