#include "server/live/output_selection.h"

#include <algorithm>
#include <numeric>

namespace rigstep::server {

std::vector<int> selected_channels(const config::RigConfig& rig, const std::string& field,
                                   const std::vector<std::string>& names, const Mechanism& mechanism) {
  const std::vector<Output>& outputs = mechanism.outputs();
  std::vector<int> channels;
  for (std::size_t k = 0; k < names.size(); ++k) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const Output& output) { return output.name == names[k]; });
    if (found == outputs.end())
      throw config::ConfigError(config::place_in(rig, field, static_cast<int>(k)) + ": \"" + names[k] +
                                "\" is no output of " + mechanism.name() +
                                ": list names of its outputs, or none for all");
    const auto next = found + 1;
    const int end = next < outputs.end() ? next->first_channel : static_cast<int>(mechanism.output_channels().size());
    for (int channel = found->first_channel; channel < end; ++channel) channels.push_back(channel);
  }
  return names.empty() ? all_outputs(mechanism).channel : channels;
}

std::span<const double> RecordedOutputs::of(std::uint64_t step, const Outputs& outputs) {
  if (every == 0 || step % every != 0) return {};
  value_.clear();
  for (const int k : channel) value_.push_back(k < outputs.count ? outputs.value[k] : 0.0);
  return value_;
}

RecordedOutputs all_outputs(const Mechanism& mechanism) {
  RecordedOutputs all;
  all.channel.resize(mechanism.output_channels().size());
  std::iota(all.channel.begin(), all.channel.end(), 0);
  return all;
}

RecordedOutputs recorded_outputs(const config::RigConfig& rig, const Mechanism& mechanism) {
  RecordedOutputs recorded;
  recorded.channel = selected_channels(rig, "recording.output", rig.recorded_outputs, mechanism);
  recorded.every = rig.outputs_every;
  return recorded;
}

}  // namespace rigstep::server
