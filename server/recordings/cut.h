// A piece of a recording as a recording of its own, which replays like any other. Offline.
#pragma once

#include <cstdint>
#include <string>

#include "proto/recording_reader.h"

namespace rigstep::server {

struct Cut {
  std::uint64_t first_step = 0, last_step = 0, steps = 0;
  std::string damage;  // why the recording could not be read to its end, empty: it could
};

// Copies the steps with from <= t <= to [s of simulated time]. The piece begins behind the newest full state that is
// not later than `from`, since a replay needs one. Throws wire::RecordingError for a file that cannot be read or
// written, config::ConfigError where no step lies between.
Cut cut_recording(const std::string& recording, double from, double to, const std::string& output);

}  // namespace rigstep::server
