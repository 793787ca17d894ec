#include "core/mechanism/parameter.h"

#include <cmath>

#include "core/mechanism/checks.h"
#include "core/mechanism/nearest_names.h"
#include "core/mechanism/numbers.h"

namespace rigstep {

int Mechanism::parameter(std::string_view name) const {
  std::vector<std::string> names;
  for (const Parameter& each : parameters_) {
    if (each.name == name) return static_cast<int>(names.size());
    names.push_back(each.name);
  }
  throw MechanismError("parameter", "none is named " + checks::quoted(name),
                       names.empty() ? "the mechanism has none; declare it with `parameter { ... }`"
                                     : "the nearest names are " + quoted_list(nearest_names(names, name)));
}

bool Mechanism::set_parameter(int index, double value) noexcept {
  if (index < 0 || index >= static_cast<int>(parameters_.size())) return false;
  Parameter& parameter = parameters_[static_cast<std::size_t>(index)];
  if (!parameter.allows(value)) return false;
  parameter.value = value;
  for (const Target& target : parameter.targets)
    visit_owner(target.owner_kind, [&]<class Owner>() {
      Owner& owner = owners<Owner>()[static_cast<std::size_t>(target.owner)];
      *numbers(owner)[static_cast<std::size_t>(target.number)].at(owner, target.index) = target.factor * value;
    });
  return true;
}

void require_allowed(const Parameter& parameter, double value) {
  if (parameter.allows(value)) return;
  throw MechanismError("parameter " + checks::quoted(parameter.name),
                       std::isnan(value) ? "is not a number" : "is " + checks::number(value) + " " + parameter.unit,
                       "give a value from " + checks::number(parameter.minimum) + " to " +
                           checks::number(parameter.maximum) + " " + parameter.unit);
}

Mechanism with_parameters(const Mechanism& mechanism, std::span<const ParameterValue> values) {
  Mechanism result = mechanism;
  for (const ParameterValue& each : values) {
    if (each.index < 0 || each.index >= static_cast<int>(mechanism.parameters().size()))
      throw MechanismError("parameter", "there is none of index " + std::to_string(each.index),
                           "the mechanism has " + std::to_string(mechanism.parameters().size()));
    require_allowed(mechanism.parameters()[static_cast<std::size_t>(each.index)], each.value);
    result.set_parameter(each.index, each.value);
  }
  return result;
}

}  // namespace rigstep
