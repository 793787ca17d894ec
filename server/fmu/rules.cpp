#include "server/fmu/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <sstream>

#include "proto/printable.h"
#include "server/fmu/forms.h"
#include "server/fmu/schema.h"

namespace rigstep::server {

namespace {

bool is_utf_8(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name == "utf-8";
}

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
    case Rule::model_exchange:
      return is_2 ? "FMI 2.0, 3.3.1" : "FMI 3.0, Model Exchange Schema";
    case Rule::co_simulation:
      return is_2 ? "FMI 2.0, 4.3.1" : "FMI 3.0, Co-Simulation Schema";
    case Rule::scheduled_execution:
      return "FMI 3.0, Scheduled Execution Schema";
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
  const bool is_2 = fmu.version == FmiVersion::fmi2;
  if (fmu.model_name.empty()) rules.broken(Rule::root, "modelName is empty");
  if (fmu.token.empty()) rules.broken(Rule::root, is_2 ? "guid is empty" : "instantiationToken is empty");
  if (!fmu.encoding.empty() && !is_utf_8(fmu.encoding))
    rules.broken(Rule::root, "the encoding is UTF-8, not " + in_quotes(fmu.encoding));
  for (const auto& [interface, rule] : {std::pair{"ModelExchange", Rule::model_exchange},
                                        {"CoSimulation", Rule::co_simulation},
                                        {"ScheduledExecution", Rule::scheduled_execution}})
    for (const pugi::xml_node node : root.children(interface)) {
      if (!is_c_name(text_of(node, "modelIdentifier")))
        rules.broken(rule, "modelIdentifier " + in_quotes(text_of(node, "modelIdentifier")) + " is no name of C");
      const bool saves = node.attribute(is_2 ? "canSerializeFMUstate" : "canSerializeFMUState").as_bool(),
                 gets = node.attribute(is_2 ? "canGetAndSetFMUstate" : "canGetAndSetFMUState").as_bool();
      if (saves && !gets)
        rules.broken(rule, is_2 ? "canSerializeFMUstate without canGetAndSetFMUstate"
                                : "canSerializeFMUState without canGetAndSetFMUState");
    }
  const std::optional<double> step = number_in(root.child("CoSimulation"), "fixedInternalStepSize");
  if (step && *step <= 0.0) rules.broken(Rule::co_simulation, "fixedInternalStepSize is not above zero");
}

void check_experiment(pugi::xml_node experiment, Rules& rules) {
  for (const char* const name : {"tolerance", "stepSize"})
    if (const std::optional<double> value = number_in(experiment, name); value && *value <= 0.0)
      rules.broken(Rule::experiment, fmt::format("<DefaultExperiment>: {} is not above zero", name));
  const std::optional<double> stop = number_in(experiment, "stopTime");
  if (stop && *stop < number_in(experiment, "startTime").value_or(0.0))
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
        if (number_in(node, "factor") == 0.0)
          rules.broken(Rule::unit, fmt::format("unit {}: <{}>: factor is zero", in_quotes(name), element));
    for (const pugi::xml_node shown : unit.children("DisplayUnit"))
      if (shown.attribute("inverse").as_bool() && number_in(shown, "offset").value_or(0.0) != 0.0)
        rules.broken(Rule::unit, fmt::format("unit {}: display unit {} is inverse and has an offset", in_quotes(name),
                                             in_quotes(text_of(shown, "name"))));
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
    const std::string unit = text_of(typed, "unit");
    if (!definitions.types.emplace(name, Definitions::Type{of, typed}).second)
      rules.broken(Rule::type, where + " is defined twice");
    if (!unit.empty() && definitions.units.count(unit) == 0)
      rules.broken(Rule::type, where + ": unit " + in_quotes(unit) + " is not defined");
    const std::optional<double> low = number_in(typed, "min"), high = number_in(typed, "max");
    if (low && high && *low > *high) rules.broken(Rule::type, where + ": min is above max");
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

std::optional<double> number_in(pugi::xml_node node, const char* attribute) {
  return number_of(node.attribute(attribute).value());
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::string in_quotes(const std::string& text) { return "\"" + wire::printable(text) + "\""; }

void Rules::broken(Rule rule, const std::string& text) {
  if (!is_full()) violations_.push_back(std::string(clause(version_, rule)) + ": " + text);
}

Numbers::Numbers(const Fmu& fmu) : fmu_(fmu) {
  for (std::size_t i = 0; i < fmu.variables.size(); ++i)
    places_.emplace(fmu.version == FmiVersion::fmi2 ? i + 1 : fmu.variables[i].reference, i);
}

std::optional<std::size_t> Numbers::place_of(const std::string& number) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return {};
  const auto found = places_.find(value);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

const FmuVariable* Numbers::find(const std::string& number) const {
  const std::optional<std::size_t> place = place_of(number);
  return place ? &fmu_.variables[*place] : nullptr;
}

void check_description(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  check_schema(root, fmu.version, rules);
  check_root(root, fmu, rules);
  check_experiment(root.child("DefaultExperiment"), rules);
  check_names(root.child("LogCategories"), "Category", "category", Rule::log_category, rules);
  Definitions definitions;
  check_units(root, definitions, rules);
  check_types(root, fmu.version, definitions, rules);
  const Numbers numbers(fmu);
  check_variables(root, fmu, definitions, numbers, rules);
  check_structure(root.child("ModelStructure"), fmu, numbers, rules);
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
