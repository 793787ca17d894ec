// What terminals of FMI 3.0 say of variables, of each other and of files.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "server/fmu/rules.h"
#include "server/fmu/schema.h"

namespace rigstep::server {

namespace {

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
bool is_known_or_of_others(const std::string& name, std::initializer_list<std::string_view> known) {
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
    check_members(terminal, where, fmu, rules);
    if (const pugi::xml_node picture = terminal.child("TerminalGraphicalRepresentation")) {
      const std::string icon = std::string("terminalsAndIcons/") + picture.attribute("iconBaseName").value() + ".png";
      if (!has_file(extracted, icon)) rules.broken(Rule::terminals, where + ": " + in_quotes(icon) + " is missing");
    }
    if (depth < kDeepest) check_terminal_list(terminal, path + name + ".", depth + 1, fmu, extracted, rules);
  }
}

}  // namespace

void check_terminals(pugi::xml_node root, const Fmu& fmu, const Extracted& extracted, Rules& rules) {
  check_schema(root, FmiVersion::fmi3, rules);
  const std::string version = root.attribute("fmiVersion").value();
  if (!is_version_3(version))
    rules.broken(Rule::terminals, "fmiVersion " + in_quotes(version) + " is not that of modelDescription.xml");
  check_terminal_list(root.child("Terminals"), "", 0, fmu, extracted, rules);
}

}  // namespace rigstep::server
