// Which output channels a rig file selects, for the link and for the recording.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/mechanism/signals.h"
#include "proto/load_rig.h"

namespace rigstep::server {

// Output channels of the outputs that a list of the rig file names, in its order; of all outputs where it is empty.
// field: of the list, for errors: "output". Throws config::ConfigError for a name that is no output.
std::vector<int> selected_channels(const config::RigConfig& rig, const std::string& field,
                                   const std::vector<std::string>& names, const Mechanism& mechanism);

// What a recording holds of the outputs.
struct RecordedOutputs {
  std::vector<int> channel;  // those recorded, in this order
  std::uint32_t every = 1;   // [steps]

  // Those of all output channels that are recorded after this step; none between. Valid until the next call.
  std::span<const double> of(std::uint64_t step, const Outputs& outputs);

 private:
  std::vector<double> value_;
};

RecordedOutputs recorded_outputs(const config::RigConfig& rig, const Mechanism& mechanism);
RecordedOutputs all_outputs(const Mechanism& mechanism);

}  // namespace rigstep::server
