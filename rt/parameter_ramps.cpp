#include "rt/parameter_ramps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rigstep::rt {

ParameterRamps::ParameterRamps(const Mechanism& mechanism)
    : ramp_(mechanism.parameters().size()), due_(mechanism.parameters().size()), value_(mechanism.parameters().size()) {
  note(mechanism.parameters());
}

void ParameterRamps::take(const ParameterRequest& request, std::uint64_t next) noexcept {
  for (int k = 0; k < request.count; ++k) {
    const ParameterValue& wanted = request.value[static_cast<std::size_t>(k)];
    const std::uint32_t steps = request.ramp_steps == 0 ? 1 : request.ramp_steps;
    ramp_[static_cast<std::size_t>(wanted.index)] = {value(wanted.index), wanted.value, steps, 0};
  }
  applications_.publish({request.number, next});
}

std::span<const ParameterValue> ParameterRamps::due(std::uint64_t next, bool stands) noexcept {
  if (requests_.take(newest_)) take(newest_, next);
  std::size_t count = 0;
  for (std::size_t k = 0; k < ramp_.size(); ++k) {
    Ramp& ramp = ramp_[k];
    if (ramp.done == ramp.steps || (stands && ramp.steps > 1)) continue;
    ++ramp.done;
    const double part = static_cast<double>(ramp.done) / ramp.steps;
    due_[count++] = {static_cast<int>(k), ramp.done == ramp.steps ? ramp.to : std::lerp(ramp.from, ramp.to, part)};
  }
  return {due_.data(), count};
}

void ParameterRamps::note(std::span<const Parameter> parameters) noexcept {
  for (std::size_t k = 0; k < parameters.size(); ++k) value_[k].store(parameters[k].value, std::memory_order_relaxed);
}

void ParameterRamps::stop() noexcept {
  for (Ramp& ramp : ramp_) ramp.done = ramp.steps;
}

void ParameterRamps::resume(std::span<const Ramp> ramps) noexcept {
  stop();
  if (ramps.size() == ramp_.size()) std::copy(ramps.begin(), ramps.end(), ramp_.begin());
}

}  // namespace rigstep::rt
