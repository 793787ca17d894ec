#include "core/mechanism/elements/effort.h"

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

// a single constant in the file
int constants(const AppliedEffort& effort) {
  const auto& terms = effort.function.terms;
  return terms.size() == 1 && terms[0].kind == TimeFunction::Term::Kind::harmonic && terms[0].amplitude == 0.0 &&
                 terms[0].angular_frequency == 0.0
             ? 1
             : 0;
}

}  // namespace

void check_numbers(const AppliedEffort& effort) { checks::check_time_function(effort.function); }

std::span<const Number<AppliedEffort>> numbers(const AppliedEffort&) {
  static constexpr Number<AppliedEffort> kNumbers[] = {
      {"constant", kEffort, Changes::tunable,
       of_harmonic<AppliedEffort, &AppliedEffort::function, &TimeFunction::Term::constant>, constants},
      {"harmonic[].constant", kEffort, Changes::tunable,
       of_harmonic<AppliedEffort, &AppliedEffort::function, &TimeFunction::Term::constant>,
       harmonics<AppliedEffort, &AppliedEffort::function>},
      {"harmonic[].amplitude", kEffort, Changes::tunable,
       of_harmonic<AppliedEffort, &AppliedEffort::function, &TimeFunction::Term::amplitude>,
       harmonics<AppliedEffort, &AppliedEffort::function>},
      {"harmonic[].angular_frequency", unit_of("rad/s"), Changes::tunable,
       of_harmonic<AppliedEffort, &AppliedEffort::function, &TimeFunction::Term::angular_frequency>,
       harmonics<AppliedEffort, &AppliedEffort::function>},
      {"harmonic[].phase", unit_of("rad"), Changes::tunable,
       of_harmonic<AppliedEffort, &AppliedEffort::function, &TimeFunction::Term::phase>,
       harmonics<AppliedEffort, &AppliedEffort::function>},
      {"polynomial.coefficient[]", kEffort, Changes::tunable, of_polynomial<AppliedEffort, &AppliedEffort::function>,
       coefficients<AppliedEffort, &AppliedEffort::function>},
  };
  return kNumbers;
}

void connect(AppliedEffort& effort, MechanismBuilder& builder, const std::string& joint, Freedom freedom) {
  if (effort.function.terms.empty()) throw MechanismError("sum", "has no terms", "give one at least");
  check_numbers(effort);
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
