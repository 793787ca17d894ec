#include "server/fmu/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "proto/printable.h"
#include "server/fmu/schema.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

const char* clause(FmiVersion version, Rule rule) {
  const bool is_2 = version == FmiVersion::fmi2;
  switch (rule) {
    case Rule::archive:
      return is_2 ? "FMI 2.0, 2.3" : "FMI 3.0, 2.5";
    case Rule::root:
      return is_2 ? "FMI 2.0, 2.2.1" : "FMI 3.0, 2.4.1";
    case Rule::unit:
      return is_2 ? "FMI 2.0, 2.2.2" : "FMI 3.0, 2.4.3";
    case Rule::type:
      return is_2 ? "FMI 2.0, 2.2.3" : "FMI 3.0, 2.4.4";
    case Rule::log_category:
      return is_2 ? "FMI 2.0, 2.2.4" : "FMI 3.0, 2.4.5";
    case Rule::experiment:
      return is_2 ? "FMI 2.0, 2.2.5" : "FMI 3.0, 2.4.6";
    case Rule::co_simulation:
      return is_2 ? "FMI 2.0, 4.3.1" : "FMI 3.0, Co-Simulation Schema";
    case Rule::variable:
      return is_2 ? "FMI 2.0, 2.2.7" : "FMI 3.0, 2.4.7";
    case Rule::structure:
      return is_2 ? "FMI 2.0, 2.2.8" : "FMI 3.0, 2.4.8";
    case Rule::naming:
      return is_2 ? "FMI 2.0, 2.2.9" : "FMI 3.0, 2.4.7.5.1";
    case Rule::functions:
      return is_2 ? "FMI 2.0, 2.1.1" : "FMI 3.0, Header Files and Naming of Functions";
    case Rule::terminals:
      return "FMI 3.0, 2.4.9";
  }
  return "";
}

void check_root(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  if (fmu.model_name.empty()) rules.broken(Rule::root, "modelName is empty");
  if (fmu.token.empty())
    rules.broken(Rule::root, fmu.version == FmiVersion::fmi2 ? "guid is empty" : "instantiationToken is empty");
  if (!is_c_name(fmu.model_identifier))
    rules.broken(Rule::co_simulation, "modelIdentifier " + in_quotes(fmu.model_identifier) + " is no name of C");
  const pugi::xml_node co_simulation = root.child("CoSimulation");
  const std::optional<double> step = finite_number(co_simulation.attribute("fixedInternalStepSize").value());
  if (step && *step <= 0.0) rules.broken(Rule::co_simulation, "fixedInternalStepSize is not above zero");
  if (co_simulation.attribute("canSerializeFMUState").as_bool() && !fmu.can_save_state)
    rules.broken(Rule::co_simulation, "canSerializeFMUState without canGetAndSetFMUState");
}

void check_experiment(pugi::xml_node experiment, Rules& rules) {
  const auto number = [&](const char* name) { return finite_number(experiment.attribute(name).value()); };
  for (const char* const name : {"tolerance", "stepSize"})
    if (const std::optional<double> value = number(name); value && *value <= 0.0)
      rules.broken(Rule::experiment, fmt::format("<DefaultExperiment>: {} is not above zero", name));
  const std::optional<double> stop = number("stopTime");
  if (stop && *stop < number("startTime").value_or(0.0))
    rules.broken(Rule::experiment, "<DefaultExperiment>: stopTime is before startTime");
}

// the names of a list, each of which may stand there once
std::set<std::string> check_names(pugi::xml_node list, const char* element, const char* what, Rule rule, Rules& rules) {
  std::set<std::string> names;
  for (const pugi::xml_node node : list.children(element))
    if (const std::string name = node.attribute("name").value(); !names.insert(name).second)
      rules.broken(rule, fmt::format("{} {} is defined twice", what, in_quotes(name)));
  return names;
}

void check_units(pugi::xml_node root, Definitions& definitions, Rules& rules) {
  const pugi::xml_node units = root.child("UnitDefinitions");
  check_names(units, "Unit", "unit", Rule::unit, rules);
  for (const pugi::xml_node unit : units.children("Unit")) {
    const std::string name = unit.attribute("name").value();
    if (name.empty()) rules.broken(Rule::unit, "a unit has no name");
    definitions.units[name] =
        check_names(unit, "DisplayUnit", ("unit " + in_quotes(name) + ": display unit").c_str(), Rule::unit, rules);
    for (const char* const element : {"BaseUnit", "DisplayUnit"})
      for (const pugi::xml_node node : unit.children(element))
        if (finite_number(node.attribute("factor").value()) == 0.0)
          rules.broken(Rule::unit, fmt::format("unit {}: <{}>: factor is zero", in_quotes(name), element));
  }
}

// FMI 2.0: <SimpleType name="..."><Real/></SimpleType>; FMI 3.0: <Float64Type name="..."/>
void check_types(pugi::xml_node root, FmiVersion version, Definitions& definitions, Rules& rules) {
  for (const pugi::xml_node type : root.child("TypeDefinitions").children()) {
    if (type.type() != pugi::node_element) continue;
    const std::string name = type.attribute("name").value(), where = "type " + in_quotes(name);
    const pugi::xml_node typed = typed_node(type, version);
    std::string of = typed.name();
    if (of.ends_with("Type")) of.resize(of.size() - 4);
    const std::string unit = typed.attribute("unit").value();
    if (!definitions.types.emplace(name, Definitions::Type{of, unit}).second)
      rules.broken(Rule::type, where + " is defined twice");
    if (!unit.empty() && definitions.units.count(unit) == 0)
      rules.broken(Rule::type, where + ": unit " + in_quotes(unit) + " is not defined");
    check_names(typed, "Item", (where + ": item").c_str(), Rule::type, rules);
    std::set<std::string> values;
    for (const pugi::xml_node item : typed.children("Item"))
      if (const std::string value = item.attribute("value").value(); !values.insert(value).second)
        rules.broken(Rule::type, where + ": value " + in_quotes(value) + " stands there twice");
  }
}

}  // namespace

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

bool is_version_3(std::string_view version) { return version == "3.0" || version.starts_with("3.0."); }

pugi::xml_node typed_node(pugi::xml_node node, FmiVersion version) {
  const auto is_type = [](pugi::xml_node child) {
    return is_one_of(child.name(), {"Real", "Integer", "Boolean", "String", "Enumeration"});
  };
  return version == FmiVersion::fmi2 ? node.find_child(is_type) : node;
}

bool has_file(const Extracted& extracted, const std::string& name) {
  return std::find(extracted.names.begin(), extracted.names.end(), name) != extracted.names.end();
}

std::string text_of(pugi::xml_node node, const char* attribute) { return node.attribute(attribute).value(); }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string in_quotes(const std::string& text) { return "\"" + wire::printable(text) + "\""; }

void Rules::broken(Rule rule, const std::string& text) {
  if (!is_full()) violations_.push_back(std::string(clause(version_, rule)) + ": " + text);
}

void check_description(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  check_schema(root, fmu.version, rules);
  check_root(root, fmu, rules);
  check_experiment(root.child("DefaultExperiment"), rules);
  check_names(root.child("LogCategories"), "Category", "category", Rule::log_category, rules);
  Definitions definitions;
  check_units(root, definitions, rules);
  check_types(root, fmu.version, definitions, rules);
  check_variables(root, fmu, definitions, rules);
}

void check_files(const Extracted& extracted, const Fmu& fmu, Rules& rules) {
  const auto has = [&](const std::string& name) { return has_file(extracted, name); };
  const auto has_folder = [&](const std::string& folder) {
    return std::any_of(extracted.names.begin(), extracted.names.end(),
                       [&](const std::string& name) { return name.rfind(folder, 0) == 0; });
  };
  if (!has_folder("binaries/") && !has_folder("sources/"))
    rules.broken(Rule::archive, "has neither binaries nor sources");
  const std::string binary = fmu.binary().lexically_relative(fmu.folder).string();
  if (!has(binary))
    rules.broken(Rule::archive, wire::printable(binary) + " is missing: the unit cannot run on this machine");
  const std::string licenses = fmu.version == FmiVersion::fmi2 ? "licenses/" : "documentation/licenses/";
  if (has_folder(licenses) && !has(licenses + "license.txt") && !has(licenses + "license.html") &&
      !has(licenses + "license.spdx"))
    rules.broken(Rule::archive, licenses + " has no license.txt or license.html to begin with");
  if (has_folder("documentation/") && !has("documentation/index.html") &&
      !(fmu.version == FmiVersion::fmi3 && has_folder("documentation/licenses/")))
    rules.broken(Rule::archive, "documentation/ has no index.html to begin with");
}

}  // namespace rigstep::server
