// The one table of the variables of a functional mock-up unit, for FMI 2.0 and 3.0 alike: `rigstep export-fmu` writes
// it into the description, and the unit answers from it. Load time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"

namespace rigstep::plugin {

struct Variable {
  enum class Source {
    time,
    parameter,
    input,
    output,
    position,     // of a body's mass centre, world frame
    orientation,  // of a body: Euler parameters from body to world
    step_status,  // StepStatus as a number
    state_hash,   // of the state, 16 hexadecimal digits
  };
  enum class Type { real, integer, text };

  Source source = Source::time;
  int index = 0;  // among parameters, input channels, output channels or bodies of the mechanism
  std::string name, unit, description;
  int dimension = 0;  // 0: a scalar; else a vector of so many elements, which FMI 2.0 has as scalars NAME[1] to NAME[n]
  std::uint32_t reference = 0;  // value reference; in FMI 2.0 that of the first element, the others follow
  // of an input or a parameter [unit]
  double start = 0.0;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();

  Type type() const {
    return source == Source::step_status ? Type::integer : source == Source::state_hash ? Type::text : Type::real;
  }
  int elements() const { return dimension == 0 ? 1 : dimension; }
};

// In the order of their value references. policies: of each input channel; its safe value is the start value.
std::vector<Variable> variables_of(const Mechanism& mechanism, std::span<const InputPolicy> policies);

}  // namespace rigstep::plugin
