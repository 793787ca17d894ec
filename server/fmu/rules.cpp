#include "server/fmu/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "proto/printable.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

const char* clause(FmiVersion version, Rule rule) {
  const bool is_2 = version == FmiVersion::fmi2;
  switch (rule) {
    case Rule::archive:
      return is_2 ? "FMI 2.0, 2.3" : "FMI 3.0, 2.5.1";
    case Rule::root:
      return is_2 ? "FMI 2.0, 2.2.1" : "FMI 3.0, 2.4.1";
    case Rule::unit:
      return is_2 ? "FMI 2.0, 2.2.2" : "FMI 3.0, 2.4.3";
    case Rule::co_simulation:
      return is_2 ? "FMI 2.0, 4.3.1" : "FMI 3.0, Co-Simulation Schema";
    case Rule::variable:
      return is_2 ? "FMI 2.0, 2.2.7" : "FMI 3.0, 2.4.7";
    case Rule::structure:
      return is_2 ? "FMI 2.0, 2.2.8" : "FMI 3.0, 2.4.8";
    case Rule::naming:
      return is_2 ? "FMI 2.0, 2.2.9" : "FMI 3.0, Variable Naming Conventions";
    case Rule::functions:
      return is_2 ? "FMI 2.0, 2.1.1" : "FMI 3.0, Header Files and Naming of Functions";
  }
  return "";
}

bool is_one_of(const std::string& value, std::initializer_list<const char*> all) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

bool is_c_name(const std::string& name) {
  return !name.empty() && is_structured_name(name) && name.find_first_of(".[") == std::string::npos;
}

std::string in_quotes(const std::string& text) { return "\"" + wire::printable(text) + "\""; }

// The elements below the root: known, and in the order of the schema.
void check_order(pugi::xml_node root, FmiVersion version, Rules& rules) {
  const std::vector<std::string> order =
      version == FmiVersion::fmi2
          ? std::vector<std::string>{"ModelExchange",     "CoSimulation",   "UnitDefinitions",
                                     "TypeDefinitions",   "LogCategories",  "DefaultExperiment",
                                     "VendorAnnotations", "ModelVariables", "ModelStructure"}
          : std::vector<std::string>{"ModelExchange",   "CoSimulation",  "ScheduledExecution", "UnitDefinitions",
                                     "TypeDefinitions", "LogCategories", "DefaultExperiment",  "ModelVariables",
                                     "ModelStructure",  "Annotations"};
  std::size_t last = 0;
  std::set<std::string> seen;
  for (const pugi::xml_node child : root.children()) {
    if (child.type() != pugi::node_element) continue;
    const std::string name = child.name();
    const auto at = static_cast<std::size_t>(std::find(order.begin(), order.end(), name) - order.begin());
    if (at == order.size())
      rules.broken(Rule::root, "<" + wire::printable(name) + "> is no element of fmiModelDescription");
    else if (!seen.insert(name).second)
      rules.broken(Rule::root, "<" + name + "> stands there twice");
    else if (at < last)
      rules.broken(Rule::root, "<" + name + "> stands after <" + order[last] + ">, the order is fixed");
    last = at == order.size() ? last : std::max(last, at);
  }
  for (const char* needed : {"ModelVariables", "ModelStructure"})
    if (seen.count(needed) == 0) rules.broken(Rule::root, fmt::format("<{}> is missing", needed));
}

void check_root(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  if (fmu.model_name.empty()) rules.broken(Rule::root, "modelName is missing");
  if (fmu.token.empty())
    rules.broken(Rule::root, fmu.version == FmiVersion::fmi2 ? "guid is missing" : "instantiationToken is missing");
  const std::string convention = root.attribute("variableNamingConvention").value();
  if (!convention.empty() && !is_one_of(convention, {"flat", "structured"}))
    rules.broken(Rule::root, "variableNamingConvention " + in_quotes(convention) + " is neither flat nor structured");
  if (!is_c_name(fmu.model_identifier))
    rules.broken(Rule::co_simulation, "modelIdentifier " + in_quotes(fmu.model_identifier) + " is no name of C");
  for (const pugi::xml_attribute attribute : root.child("CoSimulation").attributes()) {
    const std::string name = attribute.name(), value = attribute.value();
    const bool is_flag = name.rfind("can", 0) == 0 || name.rfind("needs", 0) == 0 || name.rfind("has", 0) == 0;
    if (is_flag && !is_one_of(value, {"true", "false", "1", "0"}))
      rules.broken(Rule::co_simulation, name + " = " + in_quotes(value) + " is no boolean");
  }
}

std::set<std::string> check_units(pugi::xml_node root, Rules& rules) {
  std::set<std::string> units;
  for (const pugi::xml_node unit : root.child("UnitDefinitions").children("Unit")) {
    const std::string name = unit.attribute("name").value();
    if (name.empty()) rules.broken(Rule::unit, "a unit has no name");
    if (!units.insert(name).second) rules.broken(Rule::unit, "unit " + in_quotes(name) + " is defined twice");
    for (const pugi::xml_attribute attribute : unit.child("BaseUnit").attributes()) {
      const std::string of = attribute.name(), value = attribute.value();
      const std::optional<double> number = finite_number(value);
      const bool is_exponent = is_one_of(of, {"kg", "m", "s", "A", "K", "mol", "cd", "rad"});
      if (!is_exponent && of != "factor" && of != "offset")
        rules.broken(Rule::unit, "unit " + in_quotes(name) + ": " + wire::printable(of) + " is no base unit");
      else if (!number || (is_exponent && *number != std::round(*number)))
        rules.broken(Rule::unit,
                     "unit " + in_quotes(name) + ": " + of + " = " + in_quotes(value) + " is no exponent or factor");
    }
  }
  return units;
}

// The combinations of causality, variability and initial that there are, and what needs a start value.
void check_combination(const FmuVariable& v, const std::string& where, Rules& rules) {
  const bool is_fixed = is_one_of(v.variability, {"fixed", "tunable"});
  if (!is_one_of(v.causality, {"parameter", "calculatedParameter", "structuralParameter", "input", "output", "local",
                               "independent"}))
    rules.broken(Rule::variable, where + ": causality " + in_quotes(v.causality) + " is none");
  if (!is_one_of(v.variability, {"constant", "fixed", "tunable", "discrete", "continuous"}))
    rules.broken(Rule::variable, where + ": variability " + in_quotes(v.variability) + " is none");
  if (!v.initial.empty() && !is_one_of(v.initial, {"exact", "approx", "calculated"}))
    rules.broken(Rule::variable, where + ": initial " + in_quotes(v.initial) + " is none");
  if (is_one_of(v.causality, {"parameter", "calculatedParameter", "structuralParameter"}) && !is_fixed)
    rules.broken(Rule::variable, where + ": a parameter is fixed or tunable, not " + in_quotes(v.variability));
  if (is_one_of(v.causality, {"input", "output"}) && is_fixed)
    rules.broken(Rule::variable, where + ": an input or output is not " + in_quotes(v.variability));
  if (v.variability == "continuous" && !is_one_of(v.type, {"Real", "Float64", "Float32"}))
    rules.broken(Rule::variable, where + ": only real variables are continuous");
  if (is_one_of(v.causality, {"input", "independent"}) && !v.initial.empty())
    rules.broken(Rule::variable, where + ": an " + v.causality + " has no initial");
  const bool needs_start = v.causality == "input" || is_one_of(v.initial, {"exact", "approx"});
  const bool has_child_start = is_one_of(v.type, {"String", "Binary", "Clock"});
  if (needs_start && v.start.empty() && !has_child_start) rules.broken(Rule::variable, where + ": needs a start value");
  if (v.initial == "calculated" && !v.start.empty())
    rules.broken(Rule::variable, where + ": is calculated, so it has no start value");
  if (v.causality == "independent" && !v.start.empty())
    rules.broken(Rule::variable, where + ": the independent variable has no start value");
}

void check_range(const FmuVariable& v, const std::string& where, Rules& rules) {
  if (!v.is_real()) return;
  if (v.minimum && v.maximum && *v.minimum > *v.maximum) rules.broken(Rule::variable, where + ": min is above max");
  if (v.start.empty() || v.elements != 1) return;
  const std::optional<double> start = finite_number(v.start);
  if (!start)
    rules.broken(Rule::variable, where + ": start = " + in_quotes(v.start) + " is no number");
  else if ((v.minimum && *start < *v.minimum) || (v.maximum && *start > *v.maximum))
    rules.broken(Rule::variable, where + ": start lies outside min and max");
}

void check_variables(const Fmu& fmu, bool is_structured, const std::set<std::string>& units, Rules& rules) {
  std::set<std::string> names;
  std::map<std::uint32_t, std::string> references;
  int independent = 0;
  for (const FmuVariable& v : fmu.variables) {
    const std::string where = "variable " + in_quotes(v.name);
    if (v.name.empty()) rules.broken(Rule::variable, "a variable has no name");
    if (!names.insert(v.name).second) rules.broken(Rule::variable, where + ": another one has this name");
    if (v.type.empty()) rules.broken(Rule::variable, where + ": has no type");
    const bool is_new = references.emplace(v.reference, v.name).second;
    if (!is_new && fmu.version == FmiVersion::fmi3)
      rules.broken(Rule::variable, fmt::format("{}: valueReference {} is that of {}", where, v.reference,
                                               in_quotes(references[v.reference])));
    if (!v.unit.empty() && units.count(v.unit) == 0)
      rules.broken(Rule::unit, where + ": unit " + in_quotes(v.unit) + " is not defined");
    if (is_structured && v.name.find('\'') == std::string::npos && v.name.rfind("der(", 0) != 0 &&
        !is_structured_name(v.name))
      rules.broken(Rule::naming, where + ": is no structured name");
    independent += v.causality == "independent";
    check_combination(v, where, rules);
    check_range(v, where, rules);
  }
  if (independent > 1 || (independent == 0 && fmu.version == FmiVersion::fmi3))
    rules.broken(Rule::variable, fmt::format("{} variables are independent, one must be", independent));
}

// What stands in <ModelStructure> must be the outputs, and what is calculated at the start.
void check_structure(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  const pugi::xml_node structure = root.child("ModelStructure");
  const bool is_2 = fmu.version == FmiVersion::fmi2;
  const auto listed = [&](const char* list, const char* element) {
    std::set<std::size_t> found;  // places among the variables
    for (const pugi::xml_node node : (is_2 ? structure.child(list) : structure).children(is_2 ? "Unknown" : element)) {
      const std::uint64_t number = node.attribute(is_2 ? "index" : "valueReference").as_ullong(~0ULL);
      std::size_t place = fmu.variables.size();
      if (is_2 && number >= 1 && number <= fmu.variables.size()) place = number - 1;
      for (std::size_t i = 0; !is_2 && i < fmu.variables.size(); ++i)
        if (fmu.variables[i].reference == number) place = i;
      if (place == fmu.variables.size())
        rules.broken(Rule::structure,
                     fmt::format("<{}> {} is no variable", is_2 ? list : element,
                                 wire::printable(node.attribute(is_2 ? "index" : "valueReference").value())));
      else if (!found.insert(place).second)
        rules.broken(Rule::structure,
                     fmt::format("<{}> has {} twice", is_2 ? list : element, in_quotes(fmu.variables[place].name)));
    }
    return found;
  };
  const std::set<std::size_t> outputs = listed("Outputs", "Output"),
                              initial = listed("InitialUnknowns", "InitialUnknown");
  for (std::size_t i = 0; i < fmu.variables.size(); ++i) {
    const FmuVariable& v = fmu.variables[i];
    if ((v.causality == "output") != (outputs.count(i) > 0) && v.causality != "clock")
      rules.broken(Rule::structure,
                   in_quotes(v.name) + (outputs.count(i) > 0 ? " is listed as an output and is none"
                                                             : " is an output and is not listed as one"));
    const bool is_unknown = (v.causality == "output" && v.initial != "exact") || v.causality == "calculatedParameter";
    if (is_unknown && initial.count(i) == 0)
      rules.broken(Rule::structure, in_quotes(v.name) + " is missing among the initial unknowns");
  }
}

}  // namespace

void Rules::broken(Rule rule, const std::string& text) {
  if (violations_.size() < kMostViolations) violations_.push_back(std::string(clause(version_, rule)) + ": " + text);
}

void check_description(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  check_order(root, fmu.version, rules);
  check_root(root, fmu, rules);
  const std::set<std::string> units = check_units(root, rules);
  const bool is_structured = std::string(root.attribute("variableNamingConvention").value()) == "structured";
  check_variables(fmu, is_structured, units, rules);
  check_structure(root, fmu, rules);
}

void check_files(const Extracted& extracted, const Fmu& fmu, Rules& rules) {
  const auto has = [&](const std::string& name) {
    return std::find(extracted.names.begin(), extracted.names.end(), name) != extracted.names.end();
  };
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
