// What tunable parameters move of a mechanism: a plan's structure must hold over their whole ranges. Load time only.
#pragma once

#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/numbers.h"

namespace rigstep::index3 {

// Whether some tunable parameter moves a number of this owner (numbers.h).
template <class Owner>
bool is_tuned(const Mechanism& mechanism, int owner) {
  for (const Parameter& parameter : mechanism.parameters())
    for (const Target& target : parameter.targets)
      if (parameter.tunable && target.owner_kind == owner_kind_of<Owner> && target.owner == owner) return true;
  return false;
}

// (bodies) whose mass or moments of inertia are tunable
inline std::vector<bool> tuned_bodies(const Mechanism& mechanism) {
  std::vector<bool> tuned(mechanism.bodies().size());
  for (std::size_t i = 0; i < tuned.size(); ++i) tuned[i] = is_tuned<Body>(mechanism, static_cast<int>(i));
  return tuned;
}

// Whether this tunable parameter moves a mass, a moment of inertia or gravity.
inline bool moves_weights(const Parameter& parameter) {
  for (const Target& target : parameter.targets)
    if (parameter.tunable && (target.owner_kind == owner_kind_of<Body> || target.owner_kind == owner_kind_of<Vec3>))
      return true;
  return false;
}

}  // namespace rigstep::index3
