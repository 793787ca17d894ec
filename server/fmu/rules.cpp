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
  if (!is_utf_8(fmu.encoding))
    rules.broken(Rule::root, fmu.encoding.empty() ? "the first line does not say that the encoding is UTF-8"
                                                  : "the encoding is UTF-8, not " + in_quotes(fmu.encoding));
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
  const std::optional<double> stop = number_in(experiment, "stopTime");
  if (stop && *stop < number_in(experiment, "startTime").value_or(0.0))
    rules.broken(Rule::experiment, "<DefaultExperiment>: stopTime is before startTime");
}

// the names of a list, each of which may stand there once
std::set<std::string> check_names(pugi::xml_node list, const char* element, const char* what, Rule rule, Rules& rules) {
  std::set<std::string> names;
  for (const pugi::xml_node node : list.children(element))
    if (const std::string name = text_of(node, "name"); name.empty())
      rules.broken(rule, fmt::format("a <{}> has no name", element));
    else if (!names.insert(name).second)
      rules.broken(rule, fmt::format("{} {} is defined twice", what, in_quotes(name)));
  return names;
}

void check_units(pugi::xml_node root, Definitions& definitions, Rules& rules) {
  const pugi::xml_node units = root.child("UnitDefinitions");
  check_names(units, "Unit", "unit", Rule::unit, rules);
  for (const pugi::xml_node unit : units.children("Unit")) {
    const std::string name = unit.attribute("name").value();
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
  const bool is_structured = text_of(root, "variableNamingConvention") == "structured";
  for (const pugi::xml_node type : root.child("TypeDefinitions").children()) {
    if (type.type() != pugi::node_element) continue;
    const std::string name = type.attribute("name").value(), where = "type " + in_quotes(name);
    const pugi::xml_node typed = typed_node(type, version);
    std::string of = typed.name();
    if (of.ends_with("Type")) of.resize(of.size() - 4);
    const std::string unit = text_of(typed, "unit");
    if (!definitions.types.emplace(name, Definitions::Type{of, typed}).second)
      rules.broken(Rule::type, where + " is defined twice");
    if (name.empty()) rules.broken(Rule::type, "a type has no name");
    if (is_structured && !is_structured_name(name)) rules.broken(Rule::naming, where + ": is no structured name");
    if (!unit.empty() && definitions.units.count(unit) == 0)
      rules.broken(Rule::type, where + ": unit " + in_quotes(unit) + " is not defined");
    check_display_unit(typed, unit, where, Rule::type, definitions, rules);
    if (of == "Clock")
      check_interval(
          where, [&](const char* attribute) { return text_of(typed, attribute); }, Rule::type, rules);
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

Numbers::Numbers(const Fmu& fmu) {
  for (std::size_t i = 0; i < fmu.variables.size(); ++i)
    variables_.emplace(fmu.version == FmiVersion::fmi2 ? i + 1 : fmu.variables[i].reference, &fmu.variables[i]);
}

const FmuVariable* Numbers::find(const std::string& number) const {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return nullptr;
  const auto found = variables_.find(value);
  return found == variables_.end() ? nullptr : found->second;
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

void check_display_unit(pugi::xml_node node, const std::string& unit, const std::string& where, Rule rule,
                        const Definitions& definitions, Rules& rules) {
  const std::string shown = text_of(node, "displayUnit");
  if (shown.empty()) return;
  const auto defined = definitions.units.find(unit);
  if (unit.empty())
    rules.broken(rule, where + ": displayUnit " + in_quotes(shown) + " without a unit");
  else if (shown != unit && defined != definitions.units.end() && defined->second.count(shown) == 0)
    rules.broken(rule, where + ": displayUnit " + in_quotes(shown) + " is none of its unit");
}

void check_interval(const std::string& where, const std::function<std::string(const char*)>& text, Rule rule,
                    Rules& rules) {
  const auto wrong = [&](const std::string& what) { rules.broken(rule, where + ": " + what); };
  const std::string kind = text("intervalVariability");
  const bool is_fraction = is_one_of(text("supportsFraction"), {"true", "1"});
  if (is_one_of(kind, {"constant", "fixed"}) && text("intervalDecimal").empty() && text("intervalCounter").empty())
    wrong("a clock with a constant or fixed interval needs its length");
  if (number_of(text("intervalDecimal")).value_or(1.0) <= 0.0 ||
      number_of(text("intervalCounter")).value_or(1.0) == 0.0)
    wrong("the interval of a clock is not above zero");
  if (number_of(text("shiftDecimal")).value_or(0.0) < 0.0) wrong("the shift of a clock is below zero");
  for (const char* const attribute :
       {"intervalDecimal", "shiftDecimal", "resolution", "intervalCounter", "shiftCounter"})
    if (is_one_of(kind, {"changing", "countdown", "triggered"}) && !text(attribute).empty())
      wrong(fmt::format("a {} clock is not periodic, so it has no {}", kind, attribute));
  for (const char* const attribute : {"intervalCounter", "shiftCounter"})
    if (!text(attribute).empty() && !is_fraction) wrong(fmt::format("{} without supportsFraction", attribute));
  if (!text("intervalCounter").empty() && text("resolution").empty()) wrong("intervalCounter without resolution");
}

void check_files(pugi::xml_node root, const Extracted& extracted, const Fmu& fmu, Rules& rules) {
  const bool is_2 = fmu.version == FmiVersion::fmi2;
  const auto has = [&](const std::string& name) { return has_file(extracted, name); };
  const auto has_some = [&](const std::string& folder, const std::string& ending = "") {
    return std::ranges::any_of(
        extracted.names, [&](const std::string& name) { return name.starts_with(folder) && name.ends_with(ending); });
  };
  const auto wrong = [&](const std::string& text) { rules.broken(Rule::archive, text); };
  if (!has_some("binaries/") && !has_some("sources/")) wrong("has neither binaries nor sources");
  const std::string binary = fmu.binary().lexically_relative(fmu.folder).string();
  if (!has(binary)) wrong(wire::printable(binary) + " is missing: the unit cannot run on this machine");
  const std::string licenses = is_2 ? "licenses/" : "documentation/licenses/";
  if (has_some(licenses) && !has(licenses + "license.txt") && !has(licenses + "license.html") &&
      !has(licenses + "license.spdx"))
    wrong(licenses + " has no license.txt or license.html to begin with");
  const bool has_pages = has_some("documentation/", ".html") && !has_some("documentation/licenses/", ".html") &&
                         !has("documentation/externalDependencies.html");
  if (has_pages && !has("documentation/index.html")) wrong("documentation/ has no index.html to begin with");
  for (const pugi::xml_node file : root.child("CoSimulation").child("SourceFiles").children("File"))
    if (const std::string name = "sources/" + text_of(file, "name"); !has(name))
      wrong(wire::printable(name) + " is listed and missing");
  if (is_2) return;
  if (has_some("sources/") && !has("sources/buildDescription.xml")) wrong("sources/ has no buildDescription.xml");
  for (const char* const picture : {"terminalsAndIcons/icon", "documentation/diagram"})
    if (has(std::string(picture) + ".svg") && !has(std::string(picture) + ".png"))
      wrong(std::string(picture) + ".svg without a .png");
}

}  // namespace rigstep::server
