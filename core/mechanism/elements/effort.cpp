#include "core/mechanism/elements/effort.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

void connect(AppliedEffort& effort, MechanismBuilder& builder, const std::string& joint, Freedom freedom) {
  if (effort.function.terms.empty()) throw MechanismError("sum", "has no terms", "give one at least");
  checks::check_time_function(effort.function);
  const AlongFreedom along = builder.along(joint, freedom);
  effort.coordinate = along.coordinate;
  effort.first = along.first;
  effort.second = along.second;
}

void add(ContentHash& hash, const AppliedEffort& effort) {
  hash.add(effort.name);
  hash.integers({effort.coordinate});
  add_function(hash, effort.function);
}

std::vector<Channel> channels(const AppliedEffort& effort, const Mechanism& mechanism) {
  return scalar_channels(mechanism, effort.coordinate);
}

}  // namespace rigstep
