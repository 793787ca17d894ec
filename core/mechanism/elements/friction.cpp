#include "core/mechanism/elements/friction.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

using checks::require_not_negative;
using checks::require_positive;

}  // namespace

void check_numbers(const JointFriction& friction) {
  require_not_negative(friction.coulomb, "coulomb");
  require_not_negative(friction.viscous, "viscous");
  require_positive(friction.regularisation_speed, "regularisation_speed");
}

std::span<const Number<JointFriction>> numbers(const JointFriction&) {
  static constexpr Number<JointFriction> kNumbers[] = {
      {"coulomb", kEffort, Changes::tunable, member<JointFriction, &JointFriction::coulomb>},
      {"viscous", kDamping, Changes::tunable, member<JointFriction, &JointFriction::viscous>},
      {"regularisation_speed", kRate, Changes::tunable, member<JointFriction, &JointFriction::regularisation_speed>},
  };
  return kNumbers;
}

void connect(JointFriction& friction, MechanismBuilder& builder, const std::string& joint, Freedom freedom) {
  check_numbers(friction);
  const AlongFreedom along = builder.along(joint, freedom);
  friction.coordinate = along.coordinate;
  friction.first = along.first;
  friction.second = along.second;
}

void add(ContentHash& hash, const JointFriction& friction) {
  hash.add(friction.name);
  hash.integers({friction.coordinate});
  hash.numbers({friction.coulomb, friction.viscous, friction.regularisation_speed});
}

std::vector<Channel> channels(const JointFriction& friction, const Mechanism& mechanism) {
  return scalar_channels(mechanism, friction.coordinate);
}

}  // namespace rigstep
