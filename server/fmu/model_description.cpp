#include "server/fmu/model_description.h"

#include <fmt/format.h>

#include <cmath>
#include <pugixml.hpp>
#include <set>
#include <sstream>

#include "server/fmu/forms.h"
#include "server/fmu/units.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

using plugin::Instance;
using plugin::Variable;
using Source = Variable::Source;

void set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(value.c_str());
}

std::string shortest(double value) { return fmt::format("{}", value); }

bool has_unit(const Variable& variable) { return !variable.unit.empty() && variable.unit != "-"; }

const char* causality(Source source) {
  switch (source) {
    case Source::time:
      return "independent";
    case Source::parameter:
      return "parameter";
    case Source::input:
      return "input";
    case Source::output:
      return "output";
    case Source::position:
    case Source::orientation:
    case Source::step_status:
    case Source::state_hash:
      break;
  }
  return "local";
}

const char* variability(const Variable& variable, const Mechanism& mechanism) {
  if (variable.source == Source::parameter)
    return mechanism.parameters()[static_cast<std::size_t>(variable.index)].tunable ? "tunable" : "fixed";
  return variable.type() == Variable::Type::real ? "continuous" : "discrete";
}

bool is_calculated(Source source) {
  return source != Source::time && source != Source::parameter && source != Source::input;
}

void add_units(pugi::xml_node root, const std::vector<Variable>& variables) {
  pugi::xml_node definitions;
  std::set<std::string> added;
  for (const Variable& variable : variables) {
    if (!has_unit(variable) || !added.insert(variable.unit).second) continue;
    if (!definitions) definitions = root.append_child("UnitDefinitions");
    pugi::xml_node unit = definitions.append_child("Unit");
    set(unit, "name", variable.unit);
    const std::optional<BaseUnit> base = base_unit_of(variable.unit);
    if (!base) continue;  // a signal's own
    pugi::xml_node base_unit = unit.append_child("BaseUnit");
    for (std::size_t k = 0; k < base->exponent.size(); ++k)
      if (base->exponent[k] != 0) set(base_unit, BaseUnit::kNames[k], std::to_string(base->exponent[k]));
    if (base->factor != 1.0) set(base_unit, "factor", shortest(base->factor));
  }
}

void add_log_categories(pugi::xml_node root) {
  pugi::xml_node categories = root.append_child("LogCategories");
  const std::pair<const char*, const char*> all[] = {
      {"logStatusWarning", "what is less exact than it should be"},
      {"logStatusDiscard", "steps that were not made, and why"},
      {"logStatusError", "calls and values that were refused, and why"},
      {"logStatusFatal", "nothing: this unit corrupts no other instance"},
      {"logAll", "everything"}};
  for (const auto& [name, text] : all) {
    pugi::xml_node category = categories.append_child("Category");
    set(category, "name", name);
    set(category, "description", text);
  }
}

// name, causality and so on, which both standards call alike
void add_common(pugi::xml_node node, const Variable& variable, const std::string& name, std::uint32_t reference,
                const Mechanism& mechanism) {
  set(node, "name", name);
  set(node, "valueReference", std::to_string(reference));
  if (!variable.description.empty()) set(node, "description", variable.description);
  set(node, "causality", causality(variable.source));
  set(node, "variability", variability(variable, mechanism));
  if (is_calculated(variable.source)) set(node, "initial", "calculated");
  if (variable.source == Source::parameter) set(node, "initial", "exact");
}

// unit, range and start of a real variable
void add_numbers(pugi::xml_node node, const Variable& variable) {
  if (has_unit(variable)) set(node, "unit", variable.unit);
  if (variable.source != Source::input && variable.source != Source::parameter) return;
  if (std::isfinite(variable.minimum)) set(node, "min", shortest(variable.minimum));
  if (std::isfinite(variable.maximum)) set(node, "max", shortest(variable.maximum));
  set(node, "start", shortest(variable.start));
}

void add_variables_2(pugi::xml_node root, const Mechanism& mechanism, const std::vector<Variable>& variables) {
  pugi::xml_node all = root.append_child("ModelVariables");
  for (const Variable& variable : variables)
    for (int element = 0; element < variable.elements(); ++element) {
      pugi::xml_node scalar = all.append_child("ScalarVariable");
      add_common(scalar, variable, element_name(variable, element),
                 variable.reference + static_cast<std::uint32_t>(element), mechanism);
      const char* const type = variable.type() == Variable::Type::real      ? "Real"
                               : variable.type() == Variable::Type::integer ? "Integer"
                                                                            : "String";
      pugi::xml_node value = scalar.append_child(type);
      if (variable.type() == Variable::Type::real) add_numbers(value, variable);
    }
}

void add_variables_3(pugi::xml_node root, const Mechanism& mechanism, const std::vector<Variable>& variables) {
  pugi::xml_node all = root.append_child("ModelVariables");
  for (const Variable& variable : variables) {
    const char* const type = variable.type() == Variable::Type::real      ? "Float64"
                             : variable.type() == Variable::Type::integer ? "Int32"
                                                                          : "String";
    pugi::xml_node node = all.append_child(type);
    add_common(node, variable, variable.name, variable.reference, mechanism);
    if (variable.type() == Variable::Type::real) add_numbers(node, variable);
    if (variable.dimension > 0) set(node.append_child("Dimension"), "start", std::to_string(variable.dimension));
  }
}

// Outputs are those of the state: inputs that are set act on them through a step alone.
void add_structure(pugi::xml_node root, FmiVersion version, const std::vector<Variable>& variables) {
  pugi::xml_node structure = root.append_child("ModelStructure");
  const bool is_2 = version == FmiVersion::fmi2;
  const auto add_all = [&](pugi::xml_node parent, const char* element, bool with_dependencies) {
    int index = 1;  // FMI 2.0 counts scalars
    for (const Variable& variable : variables) {
      if (variable.source == Source::output) {
        pugi::xml_node unknown = parent.append_child(element);
        set(unknown, is_2 ? "index" : "valueReference",
            std::to_string(is_2 ? index : static_cast<int>(variable.reference)));
        if (with_dependencies) set(unknown, "dependencies", "");
      }
      index += variable.elements();
    }
  };
  const bool has_outputs =
      std::any_of(variables.begin(), variables.end(), [](const Variable& v) { return v.source == Source::output; });
  if (!has_outputs) return;
  add_all(is_2 ? structure.append_child("Outputs") : structure, is_2 ? "Unknown" : "Output", true);
  add_all(is_2 ? structure.append_child("InitialUnknowns") : structure, is_2 ? "Unknown" : "InitialUnknown", false);
}

void add_root_attributes(pugi::xml_node root, const ModelDescription& d, const Mechanism& mechanism,
                         bool is_structured) {
  const bool is_2 = d.version == FmiVersion::fmi2;
  set(root, "fmiVersion", is_2 ? "2.0" : "3.0");
  set(root, "modelName", mechanism.name());
  set(root, is_2 ? "guid" : "instantiationToken", d.token);
  set(root, "description", "The mechanism " + mechanism.name() + ", stepped by Rigstep");
  set(root, "license", is_2 ? "see licenses/license.txt" : "see documentation/licenses/license.txt");
  set(root, "generationTool", std::string("Rigstep ") + product_version());
  set(root, "generationDateAndTime", d.made_at);
  set(root, "variableNamingConvention", is_structured ? "structured" : "flat");
}

void add_co_simulation(pugi::xml_node root, const ModelDescription& d, double period) {
  const bool is_2 = d.version == FmiVersion::fmi2;
  pugi::xml_node node = root.append_child("CoSimulation");
  set(node, "modelIdentifier", d.model_identifier);
  set(node, "canHandleVariableCommunicationStepSize", "false");  // multiples of the period alone
  set(node, is_2 ? "canGetAndSetFMUstate" : "canGetAndSetFMUState", "true");
  set(node, is_2 ? "canSerializeFMUstate" : "canSerializeFMUState", "true");
  if (is_2) {
    set(node, "canNotUseMemoryManagementFunctions", "true");
  } else {
    set(node, "fixedInternalStepSize", shortest(period));
    set(node, "mightReturnEarlyFromDoStep", "true");
  }
}

}  // namespace

std::string model_identifier_of(const std::string& mechanism_name) {
  std::string name = mechanism_name.substr(0, 200);
  for (char& c : name)
    if (!is_name_character(c)) c = '_';
  return is_c_name(name) ? name : "mechanism_" + name;
}

std::string element_name(const Variable& variable, int element) {
  return variable.dimension == 0 ? variable.name : fmt::format("{}[{}]", variable.name, element + 1);
}

std::string model_description(const ModelDescription& d, const Instance& instance,
                              const std::vector<Variable>& variables) {
  const double period = static_cast<double>(instance.settings().dt_ns) / 1e9;
  bool is_structured = true;
  for (const Variable& variable : variables) is_structured = is_structured && is_structured_name(variable.name);
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("fmiModelDescription");
  add_root_attributes(root, d, instance.mechanism(), is_structured);
  add_co_simulation(root, d, period);
  add_units(root, variables);
  add_log_categories(root);
  pugi::xml_node experiment = root.append_child("DefaultExperiment");
  set(experiment, "startTime", "0");
  set(experiment, "stopTime", "10");
  set(experiment, "stepSize", shortest(period));
  d.version == FmiVersion::fmi2 ? add_variables_2(root, instance.mechanism(), variables)
                                : add_variables_3(root, instance.mechanism(), variables);
  add_structure(root, d.version, variables);
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace rigstep::server
