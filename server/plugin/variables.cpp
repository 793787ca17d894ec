#include "server/plugin/variables.h"

#include <set>

namespace rigstep::plugin {

namespace {

// Adds rows in the order of their references; names that stand in the table get a mark, since they must differ.
class Table {
 public:
  void add(Variable variable) {
    while (!names_.insert(variable.name).second) variable.name += "_";
    variable.reference = next_;
    next_ += static_cast<std::uint32_t>(variable.elements());
    rows_.push_back(std::move(variable));
  }
  std::vector<Variable> take() { return std::move(rows_); }

 private:
  std::set<std::string> names_;
  std::vector<Variable> rows_;
  std::uint32_t next_ = 0;
};

}  // namespace

std::vector<Variable> variables_of(const Mechanism& mechanism, std::span<const InputPolicy> policies) {
  using Source = Variable::Source;
  Table table;
  // channels first: they keep the names that they have in the service
  for (std::size_t i = 0; i < mechanism.input_channels().size(); ++i) {
    const Channel& channel = mechanism.input_channels()[i];
    Variable input{Source::input, static_cast<int>(i), channel.name, channel.unit, ""};
    input.start = policies[i].safe;
    input.minimum = policies[i].minimum;
    input.maximum = policies[i].maximum;
    table.add(std::move(input));
  }
  for (std::size_t i = 0; i < mechanism.output_channels().size(); ++i) {
    const Channel& channel = mechanism.output_channels()[i];
    table.add({Source::output, static_cast<int>(i), channel.name, channel.unit, ""});
  }
  for (std::size_t i = 0; i < mechanism.parameters().size(); ++i) {
    const Parameter& parameter = mechanism.parameters()[i];
    Variable variable{Source::parameter, static_cast<int>(i), parameter.name, parameter.unit,
                      parameter.tunable ? "may change between two steps" : "only before the start"};
    variable.start = parameter.value;
    variable.minimum = parameter.minimum;
    variable.maximum = parameter.maximum;
    table.add(std::move(variable));
  }
  table.add({Source::time, 0, "time", "s", "simulated time"});
  table.add({Source::step_status, 0, "rigstep.step_status", "",
             "of the last step: 0 ok, 1 not converged, from 2 on failed and not made"});
  table.add({Source::state_hash, 0, "rigstep.state_hash", "", "equal for equal states; that of rigstep's recordings"});
  for (std::size_t i = 0; i < mechanism.bodies().size(); ++i) {
    const std::string name = "bodies." + mechanism.bodies()[i].name;
    table.add({Source::position, static_cast<int>(i), name + ".position", "m", "of the mass centre, world frame", 3});
    table.add({Source::orientation, static_cast<int>(i), name + ".orientation", "-",
               "Euler parameters e0 e1 e2 e3 from body to world", 4});
  }
  return table.take();
}

}  // namespace rigstep::plugin
