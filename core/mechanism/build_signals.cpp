#include <algorithm>
#include <cstring>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"

// Inputs and outputs.
namespace rigstep {

namespace {

using checks::append_names;
using checks::index_of;
using checks::names_of;
using checks::quoted;
using checks::require_finite;
using checks::require_new_name;
using checks::unit;

// The output that shows elements of this kind.
template <class Kind>
constexpr Output::Kind shown_by() {
  if constexpr (std::is_same_v<Kind, Bushing>)
    return Output::Kind::bushing;
  else if constexpr (std::is_same_v<Kind, Drag>)
    return Output::Kind::drag;
  else if constexpr (std::is_same_v<Kind, Tyre>)
    return Output::Kind::tyre;
  else {
    static_assert(Kind::kIsScalar, "an element that is not scalar needs an output of its own");
    return Output::Kind::force_element;
  }
}

}  // namespace

int MechanismBuilder::find_input(const std::string& name, const char* field) const {
  if (name.empty()) return -1;
  const int found = index_of(mechanism_.inputs_, name);
  std::string list;
  append_names(mechanism_.inputs_, list);
  if (found < 0)
    throw MechanismError(field, "no input is named " + quoted(name),
                         list.empty() ? "add `input { name: " + quoted(name) + " signal {} }`" : "use one of: " + list);
  if (mechanism_.inputs_[found].kind != Input::Kind::signal)
    throw MechanismError(field, "input " + quoted(name) + " is a load of its own already",
                         "give the input `signal {}` instead of its load");
  return found;
}

void MechanismBuilder::add_signal_input(Input input) {
  check_name(input.name, "input");
  const auto breaks_a_table = [](unsigned char c) {
    return c < ' ' || c == 0x7F || std::strchr(",\"[]", c) != nullptr;
  };
  if (std::any_of(input.unit.begin(), input.unit.end(), breaks_a_table))
    throw MechanismError("unit", quoted(input.unit) + " has a character that titles of columns cannot carry",
                         "leave out control characters, commas, quotation marks and square brackets");
  if (index_of(mechanism_.inputs_, input.name) >= 0)
    throw MechanismError("name", "another input is named " + quoted(input.name), "rename one of them");
  input.kind = Input::Kind::signal;
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::add_body_input(Input input, const std::string& body) {
  check_name(input.name, "input");
  require_new_name(mechanism_.inputs_, input.name, "input");
  input.body = require_moving(find_body(body, "body"), "an input");
  input.direction = unit(input.direction, "direction");
  require_finite(input.point_b, "point");
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::add_joint_input(Input input, const std::string& joint, Freedom freedom) {
  check_name(input.name, "input");
  require_new_name(mechanism_.inputs_, input.name, "input");
  input.kind = Input::Kind::joint_effort;
  input.joint = find_joint(joint);
  input.freedom = freedom;
  require_freedom(input.joint, freedom, "freedom");
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::push_output(Output output) { mechanism_.outputs_.push_back(std::move(output)); }

void MechanismBuilder::add_element_output(Output output, const std::string& element) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  std::string list;
  for_each_kind([&]<class Element>() {
    if (shown_by<Element>() != output.kind) return;
    append_names(mechanism_.all<Element>(), list);
    const int index = index_of(mechanism_.all<Element>(), element);
    if (index < 0) return;
    output.element_kind = kind_of<Element>;
    output.element = index;
  });
  if (output.element < 0)
    throw MechanismError("element", element.empty() ? "is missing" : "no such element is named " + quoted(element),
                         list.empty() ? "add one" : "use one of: " + list);
  push_output(std::move(output));
}

void MechanismBuilder::add_driver_output(Output output, const std::string& driver) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  for (std::size_t i = 0; i < mechanism_.drivers_.size(); ++i)
    if (mechanism_.drivers_[i].name == driver) output.driver = static_cast<int>(i);
  if (output.driver < 0)
    throw MechanismError(
        "driver", driver.empty() ? "is missing" : "no driver is named " + quoted(driver),
        mechanism_.drivers_.empty() ? "describe a driver first" : "use one of: " + names_of(mechanism_.drivers_));
  push_output(std::move(output));
}

void MechanismBuilder::add_body_output(Output output, const std::string& body) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  output.body = require_moving(find_body(body, "body"), "a sensor");
  require_finite(output.point_b, "point");
  push_output(std::move(output));
}

void MechanismBuilder::add_joint_output(Output output, const std::string& joint, Freedom freedom) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  output.joint = find_joint(joint);
  if (output.kind != Output::Kind::joint_reaction) output.coordinate = follow_coordinate(output.joint, freedom);
  push_output(std::move(output));
}

void MechanismBuilder::add_output(Output output) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  push_output(std::move(output));
}

}  // namespace rigstep
