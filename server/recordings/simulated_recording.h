// A run that was computed offline, as a recording like those of live runs. Offline.
#pragma once

#include <cstdint>
#include <string>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
#include "proto/recording_writer.h"
#include "server/live/output_selection.h"

namespace rigstep::server {

// Where the run comes from, for people; empty: from nowhere else.
struct Origin {
  std::string variant_of = {};  // what run this is a variant of
  std::string snapshot = {};    // file that it started from
};

class SimulatedRecording {
 public:
  // Begins with the stepper's present state; mechanism: with the values of its parameters that the run started with.
  // Where `path` is a file already, the time goes into the new one's name. Throws wire::RecordingWriteError, also
  // later.
  SimulatedRecording(const std::string& path, const config::LoadedMechanism& mechanism, const index3::Stepper& stepper,
                     const Origin& origin);

  const std::string& path() const { return path_; }
  // A step that succeeded, with the state after it if asked for.
  void write(const index3::Stepper& stepper, const StepReport& report, const Inputs& inputs, const Outputs& outputs,
             bool with_state);
  // The stepper's parameters have changed after its newest step.
  void write_parameters(const index3::Stepper& stepper);
  void close(const std::string& reason);

 private:
  std::string path_;
  std::int64_t start_ns_;  // wall clock [ns since 1970] where simulated time is 0
  RecordedOutputs outputs_;
  wire::RecordingWriter writer_;
  wire::RecordedState state_;
  std::uint64_t steps_ = 0;
  std::uint32_t changes_ = 0;  // of parameters
};

}  // namespace rigstep::server
