// Parameters: numbers of a description with a name and a range. Tunable ones change between two steps of a running
// loop, fixed ones only before the start. Declared by MechanismBuilder; part of the description.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rigstep {

class Mechanism;

// The number that a parameter moves: factor times the parameter's value.
struct Target {
  std::string of;       // as the file names it: OWNER.NUMBER
  double factor = 1.0;  // [unit of the number per unit of the parameter]
  int owner_kind = 0;   // place of its owner's type in NumberOwners (core/mechanism/numbers.h)
  int owner = 0;        // index among those
  int number = 0;       // place in their table of numbers
  int index = 0;        // of a repeated field
};

struct Parameter {
  std::string name;
  std::string unit;      // of its first target
  double value = 0.0;    // declared [unit]; of a stepper's mechanism: what acts now
  double minimum = 0.0;  // [unit]
  double maximum = 0.0;  // [unit]
  bool tunable = false;  // else fixed; tunable where all targets are
  std::vector<Target> targets;

  bool allows(double x) const noexcept { return x >= minimum && x <= maximum; }
};

inline constexpr int kMaxParameters = 128;  // of a mechanism

struct ParameterValue {
  int index = -1;      // in Mechanism::parameters()
  double value = 0.0;  // [unit of the parameter]
};

// A copy with these values, tunable and fixed ones, declared; its id stays, since values belong to a run. Before the
// start. Throws MechanismError that names the parameter whose value is out of range or not finite. A start pose that
// does not go with a fixed value is found when a stepper is made.
Mechanism with_parameters(const Mechanism& mechanism, std::span<const ParameterValue> values);

// Throws MechanismError with the parameter's name and range where it does not allow the value.
void require_allowed(const Parameter& parameter, double value);

}  // namespace rigstep
