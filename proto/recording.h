// Recordings: MCAP files (https://mcap.dev/spec) with protobuf messages on the topics /header, /steps, /states and
// /footer, so that every MCAP tool opens them. Chunks are uncompressed and carry a CRC: a killed process leaves a
// file that is whole up to its last flush. recording_writer.h writes them, recording_reader.h reads them.
#pragma once

#include <cstdint>
#include <string>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"
#include "proto/recording.pb.h"

namespace rigstep::wire {

// A recording that cannot be written or read. what() is "path: problem; remedy".
struct RecordingError : Error {
  RecordingError(std::string path, std::string problem, std::string remedy);
  std::string path;
  std::string problem;  // for a reader it begins with the byte offset, where there is one
  std::string remedy;
};

// A recording that cannot be written.
struct RecordingWriteError : RecordingError {
  using RecordingError::RecordingError;
};

// As StepRecord::is_step().
inline bool is_step(const RecordedStep& step) { return (step.flags() & kFaulted) == 0 && step.transition() == 0; }

inline constexpr std::uint32_t kRecordingFormat = 1;  // RecordingHeader.format_version that this code reads

}  // namespace rigstep::wire
