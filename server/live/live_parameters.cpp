#include "server/live/live_parameters.h"

#include <algorithm>

#include "proto/codec.h"

namespace rigstep::server {

void LiveParameters::note_applied() {
  const rt::AppliedParameters& newest = cycle_.parameters().applied();
  if (newest.number != pending_ || pending_ == 0) return;
  applied_[next_] = newest;
  next_ = (next_ + 1) % applied_.size();
  pending_ = 0;
}

std::uint64_t LiveParameters::acts_from(std::uint64_t number) const {
  const auto found = std::find_if(applied_.begin(), applied_.end(),
                                  [number](const rt::AppliedParameters& each) { return each.number == number; });
  return number == 0 || found == applied_.end() ? 0 : found->acts_from;
}

ParameterValue LiveParameters::wanted(const wire::ParameterSetting& setting) const {
  const std::vector<Parameter>& all = mechanism_.parameters();
  int index = static_cast<int>(std::min<std::uint32_t>(setting.index(), kMaxParameters));
  if (!setting.name().empty()) index = mechanism_.parameter(wire::printable(setting.name(), wire::kMaxTextBytes));
  if (index >= static_cast<int>(all.size()))
    throw MechanismError("parameter", "there is none of index " + std::to_string(setting.index()),
                         "the mechanism has " + std::to_string(all.size()));
  const Parameter& parameter = all[static_cast<std::size_t>(index)];
  if (!parameter.tunable)
    throw MechanismError("parameter \"" + parameter.name + "\"", "is fixed",
                         "give it before the start: `start { parameter { ... } }` in the rig file");
  require_allowed(parameter, setting.value());
  return {index, setting.value()};
}

std::string LiveParameters::set(const wire::ParameterSet& set) {
  note_applied();
  if (pending_ != 0 || acts_from(set.request()) != 0) return {};
  if (cycle_.fault().latched) return "a fault is latched, and no parameter changes then. Reset it first.";
  rt::ParameterRequest request{.number = set.request(), .ramp_steps = set.ramp_steps(), .count = 0, .value = {}};
  try {
    for (const wire::ParameterSetting& setting : set.setting())
      request.value[static_cast<std::size_t>(request.count++)] = wanted(setting);
  } catch (const MechanismError& error) {
    return error.what();
  }
  pending_ = request.number;
  cycle_.parameters().request(request);
  return {};
}

void LiveParameters::describe(wire::ParameterReport& report) {
  note_applied();
  const std::vector<Parameter>& all = mechanism_.parameters();
  report.set_acts_from(acts_from(report.request()));
  report.set_total(static_cast<std::uint32_t>(all.size()));
  for (std::size_t k = report.first(); k < all.size(); ++k) {
    wire::ParameterDescription& each = *report.add_parameter();
    each.set_name(all[k].name);
    each.set_unit(all[k].unit);
    each.set_value(cycle_.parameters().value(static_cast<int>(k)));
    each.set_minimum(all[k].minimum);
    each.set_maximum(all[k].maximum);
    each.set_tunable(all[k].tunable);
  }
}

void LiveParameters::describe(wire::StatusReport& report) const {
  const std::vector<Parameter>& all = mechanism_.parameters();
  for (std::size_t k = 0; k < all.size(); ++k) {
    wire::ParameterDescription& each = *report.add_parameter();
    each.set_name(all[k].name);
    each.set_unit(all[k].unit);
    each.set_value(cycle_.parameters().value(static_cast<int>(k)));
  }
}

}  // namespace rigstep::server
