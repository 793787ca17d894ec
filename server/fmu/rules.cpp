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
      return is_2 ? "FMI 2.0, 2.3" : "FMI 3.0, 2.5";
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
      return is_2 ? "FMI 2.0, 2.2.9" : "FMI 3.0, 2.4.7.5.1";
    case Rule::functions:
      return is_2 ? "FMI 2.0, 2.1.1" : "FMI 3.0, Header Files and Naming of Functions";
    case Rule::terminals:
      return "FMI 3.0, 2.4.9";
  }
  return "";
}

bool is_one_of(const std::string& value, std::initializer_list<const char*> all) {
  return std::find(all.begin(), all.end(), value) != all.end();
}

bool has_file(const Extracted& extracted, const std::string& name) {
  return std::find(extracted.names.begin(), extracted.names.end(), name) != extracted.names.end();
}

std::string in_quotes(const std::string& text) { return "\"" + wire::printable(text) + "\""; }

// The elements below `parent`: known, in the order of the schema, and each once but those of `lists`.
void check_order(pugi::xml_node parent, const std::vector<std::string>& order, const std::set<std::string>& lists,
                 Rule rule, Rules& rules) {
  std::size_t last = 0;
  std::set<std::string> seen;
  for (const pugi::xml_node child : parent.children()) {
    if (child.type() != pugi::node_element) continue;
    const std::string name = child.name();
    const auto at = static_cast<std::size_t>(std::find(order.begin(), order.end(), name) - order.begin());
    if (at == order.size())
      rules.broken(rule, "<" + wire::printable(name) + "> is no element of " + parent.name());
    else if (!seen.insert(name).second && lists.count(name) == 0)
      rules.broken(rule, "<" + name + "> stands there twice");
    else if (at < last)
      rules.broken(rule, "<" + name + "> stands after <" + order[last] + ">, the order is fixed");
    last = at == order.size() ? last : std::max(last, at);
  }
}

void check_elements(pugi::xml_node root, FmiVersion version, Rules& rules) {
  if (version == FmiVersion::fmi2)
    check_order(root,
                {"ModelExchange", "CoSimulation", "UnitDefinitions", "TypeDefinitions", "LogCategories",
                 "DefaultExperiment", "VendorAnnotations", "ModelVariables", "ModelStructure"},
                {}, Rule::root, rules);
  else
    check_order(root,
                {"ModelExchange", "CoSimulation", "ScheduledExecution", "UnitDefinitions", "TypeDefinitions",
                 "LogCategories", "DefaultExperiment", "ModelVariables", "ModelStructure", "Annotations"},
                {}, Rule::root, rules);
  for (const char* needed : {"ModelVariables", "ModelStructure"})
    if (!root.child(needed)) rules.broken(Rule::root, fmt::format("<{}> is missing", needed));
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

// attribute: that names a variable; null: there is none, which is told
const FmuVariable* member_variable(pugi::xml_node member, const char* attribute, const std::string& where,
                                   const Fmu& fmu, Rules& rules) {
  const std::string name = member.attribute(attribute).value();
  const auto v = std::find_if(fmu.variables.begin(), fmu.variables.end(),
                              [&](const FmuVariable& variable) { return variable.name == name; });
  if (v == fmu.variables.end()) {
    rules.broken(Rule::terminals, fmt::format("{}: {} {} is no variable", where, attribute, in_quotes(name)));
    return nullptr;
  }
  if (!is_one_of(v->causality, {"input", "output", "parameter", "calculatedParameter"}))
    rules.broken(Rule::terminals, where + ": " + in_quotes(name) + " is neither input nor output nor parameter");
  return &*v;
}

// Those of a standard or tool of its own have a name with its domain or vendor in front.
bool is_known_or_of_others(const std::string& name, std::initializer_list<const char*> known) {
  return is_one_of(name, known) || name.find('.') != std::string::npos || name.rfind('_', 0) == 0;
}

void check_members(pugi::xml_node terminal, const std::string& where, const Fmu& fmu, Rules& rules) {
  const bool needs_names = std::string(terminal.attribute("matchingRule").value()) != "sequence";
  std::set<std::string> names;
  int flows = 0;
  for (const pugi::xml_node member : terminal.children("TerminalMemberVariable")) {
    const std::string kind = member.attribute("variableKind").value(), name = member.attribute("memberName").value();
    const FmuVariable* const variable = member_variable(member, "variableName", where, fmu, rules);
    if (!is_known_or_of_others(kind, {"signal", "inflow", "outflow"}))
      rules.broken(Rule::terminals, where + ": variableKind " + in_quotes(kind) + " is none");
    if (needs_names && name.empty()) rules.broken(Rule::terminals, where + ": a member has no memberName");
    if (!name.empty() && !names.insert(name).second)
      rules.broken(Rule::terminals, where + ": memberName " + in_quotes(name) + " stands there twice");
    const bool is_flow = is_one_of(kind, {"inflow", "outflow"});
    flows += is_flow;
    if (is_flow && variable != nullptr && variable->elements != 1)
      rules.broken(Rule::terminals, where + ": " + in_quotes(variable->name) + " flows and is no scalar");
  }
  for (const pugi::xml_node member : terminal.children("TerminalStreamMemberVariable")) {
    const FmuVariable* const in = member_variable(member, "inStreamVariableName", where, fmu, rules);
    const FmuVariable* const out = member_variable(member, "outStreamVariableName", where, fmu, rules);
    if (in != nullptr && out != nullptr && in->elements != out->elements)
      rules.broken(Rule::terminals, where + ": a stream has unequal sizes in and out");
    if (flows > 1) rules.broken(Rule::terminals, where + ": has a stream and more than one flow");
  }
}

// path: of the terminals around it, with dots behind; at most kDeepest of them
void check_terminal_list(pugi::xml_node parent, const std::string& path, int depth, const Fmu& fmu,
                         const Extracted& extracted, Rules& rules) {
  constexpr int kDeepest = 20;
  std::set<std::string> names;
  for (const pugi::xml_node terminal : parent.children("Terminal")) {
    const std::string name = terminal.attribute("name").value(), where = "terminal " + in_quotes(path + name);
    if (name.empty()) rules.broken(Rule::terminals, "a terminal has no name");
    if (!names.insert(name).second) rules.broken(Rule::terminals, where + ": another one has this name");
    const std::string rule = terminal.attribute("matchingRule").value();
    if (!is_known_or_of_others(rule, {"plug", "bus", "sequence"}))
      rules.broken(Rule::terminals, where + ": matchingRule " + in_quotes(rule) + " is none");
    check_order(terminal,
                {"TerminalMemberVariable", "TerminalStreamMemberVariable", "Terminal",
                 "TerminalGraphicalRepresentation", "Annotations"},
                {"TerminalMemberVariable", "TerminalStreamMemberVariable", "Terminal"}, Rule::terminals, rules);
    check_members(terminal, where, fmu, rules);
    if (const pugi::xml_node picture = terminal.child("TerminalGraphicalRepresentation")) {
      const std::string icon = std::string("terminalsAndIcons/") + picture.attribute("iconBaseName").value() + ".png";
      if (!has_file(extracted, icon)) rules.broken(Rule::terminals, where + ": " + in_quotes(icon) + " is missing");
    }
    if (depth < kDeepest) check_terminal_list(terminal, path + name + ".", depth + 1, fmu, extracted, rules);
  }
}

}  // namespace

void Rules::broken(Rule rule, const std::string& text) {
  if (violations_.size() < kMostViolations) violations_.push_back(std::string(clause(version_, rule)) + ": " + text);
}

void check_description(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  check_elements(root, fmu.version, rules);
  check_root(root, fmu, rules);
  const std::set<std::string> units = check_units(root, rules);
  const bool is_structured = std::string(root.attribute("variableNamingConvention").value()) == "structured";
  check_variables(fmu, is_structured, units, rules);
  check_structure(root, fmu, rules);
}

void check_terminals(pugi::xml_node root, const Fmu& fmu, const Extracted& extracted, Rules& rules) {
  check_order(root, {"GraphicalRepresentation", "Terminals", "Annotations"}, {}, Rule::terminals, rules);
  const std::string version = root.attribute("fmiVersion").value();
  if (version != "3.0" && version.rfind("3.0.", 0) != 0)
    rules.broken(Rule::terminals, "fmiVersion " + in_quotes(version) + " is not that of modelDescription.xml");
  check_order(root.child("Terminals"), {"Terminal"}, {"Terminal"}, Rule::terminals, rules);
  check_terminal_list(root.child("Terminals"), "", 0, fmu, extracted, rules);
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
