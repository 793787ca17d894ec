// What terminals of FMI 3.0 say of variables, of each other and of files.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "server/fmu/rules.h"
#include "server/fmu/schema.h"

namespace rigstep::server {

namespace {

// Those of a standard or tool of its own have a name with its domain or vendor in front.
bool is_known_or_of_others(const std::string& name, std::initializer_list<std::string_view> known) {
  return is_one_of(name, known) || name.find('.') != std::string::npos || name.rfind('_', 0) == 0;
}

// terminal "leg.foot"; of deeper ones the last names
std::string path_of(pugi::xml_node terminal) {
  constexpr int kMostNames = 10;
  std::string path = text_of(terminal, "name");
  int names = 1;
  for (pugi::xml_node outer = terminal.parent(); std::string_view(outer.name()) == "Terminal"; outer = outer.parent()) {
    if (++names > kMostNames) return "terminal " + in_quotes("..." + path);
    path.insert(0, text_of(outer, "name") + ".");
  }
  return "terminal " + in_quotes(path);
}

// uri: a relative one. The file in the archive that it names: without "." and "..", and with "%20" as a space.
std::string file_of(const std::string& uri) {
  std::string path;
  for (std::size_t i = 0; i < uri.size(); ++i) {
    unsigned char byte = 0;
    const char* const digits = uri.data() + i + 1;
    const bool is_escape =
        uri[i] == '%' && i + 2 < uri.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    path += is_escape ? static_cast<char>(byte) : uri[i];
    i += is_escape ? 2 : 0;
  }
  return std::filesystem::path(path).lexically_normal().string();
}

class TerminalRules {
 public:
  TerminalRules(const Fmu& fmu, const Extracted& extracted, Rules& rules) : extracted_(extracted), rules_(rules) {
    for (const FmuVariable& v : fmu.variables) {
      variables_.emplace(v.name, &v);
      for (const std::string& alias : v.aliases) variables_.emplace(alias, &v);
    }
  }

  // Without recursion: terminals may stand in each other to any depth.
  void check(pugi::xml_node top) {
    std::vector<pugi::xml_node> waiting{top};
    while (!waiting.empty() && !rules_.is_full()) {
      const pugi::xml_node parent = waiting.back();
      waiting.pop_back();
      std::set<std::string> names;
      for (const pugi::xml_node terminal : parent.children("Terminal")) {
        if (!names.insert(text_of(terminal, "name")).second) wrong(terminal, "another one has this name");
        check_terminal(terminal);
        check_members(terminal);
        check_streams(terminal);
        waiting.push_back(terminal);
      }
    }
  }

 private:
  void wrong(pugi::xml_node terminal, const std::string& text) {
    rules_.broken(Rule::terminals, path_of(terminal) + ": " + text);
  }

  void check_terminal(pugi::xml_node terminal) {
    if (text_of(terminal, "name").empty()) rules_.broken(Rule::terminals, "a terminal has no name");
    const std::string rule = text_of(terminal, "matchingRule");
    if (!is_known_or_of_others(rule, {"plug", "bus", "sequence"}))
      wrong(terminal, "matchingRule " + in_quotes(rule) + " is none");
    if (const pugi::xml_node picture = terminal.child("TerminalGraphicalRepresentation")) {
      const std::string icon = file_of("terminalsAndIcons/" + text_of(picture, "iconBaseName") + ".png");
      if (!has_file(extracted_, icon)) wrong(terminal, in_quotes(icon) + " is missing");
    }
  }

  // attribute: that names a variable; null: there is none, which is told
  const FmuVariable* member_variable(pugi::xml_node terminal, pugi::xml_node member, const char* attribute) {
    const std::string name = text_of(member, attribute);
    const auto found = variables_.find(name);
    if (found == variables_.end()) {
      wrong(terminal, fmt::format("{} {} is no variable", attribute, in_quotes(name)));
      return nullptr;
    }
    return found->second;
  }

  void check_causality(pugi::xml_node terminal, const FmuVariable* v) {
    if (v != nullptr && !is_one_of(v->causality, {"input", "output", "parameter", "calculatedParameter"}))
      wrong(terminal, in_quotes(v->name) + " is neither input nor output nor parameter");
  }

  void check_members(pugi::xml_node terminal) {
    const bool needs_names = text_of(terminal, "matchingRule") != "sequence";
    std::set<std::string> names;
    for (const pugi::xml_node member : terminal.children("TerminalMemberVariable")) {
      const std::string kind = text_of(member, "variableKind"), name = text_of(member, "memberName");
      const FmuVariable* const variable = member_variable(terminal, member, "variableName");
      if (is_one_of(kind, {"signal", "inflow", "outflow"}))
        check_causality(terminal, variable);  // others define theirs
      if (needs_names && name.empty()) wrong(terminal, "a member has no memberName");
      if (!name.empty() && !names.insert(name).second)
        wrong(terminal, "memberName " + in_quotes(name) + " stands there twice");
    }
  }

  void check_streams(pugi::xml_node terminal) {
    const auto members = terminal.children("TerminalMemberVariable");
    const auto flows = std::count_if(members.begin(), members.end(), is_flow);
    for (const pugi::xml_node member : terminal.children("TerminalStreamMemberVariable")) {
      const FmuVariable* const in = member_variable(terminal, member, "inStreamVariableName");
      const FmuVariable* const out = member_variable(terminal, member, "outStreamVariableName");
      check_causality(terminal, in);
      check_causality(terminal, out);
      if (in != nullptr && out != nullptr && in->elements != out->elements)
        wrong(terminal, "a stream has unequal sizes in and out");
      if (flows > 1) wrong(terminal, "has a stream and more than one flow");
    }
  }

  static bool is_flow(pugi::xml_node member) {
    return is_one_of(text_of(member, "variableKind"), {"inflow", "outflow"});
  }

  const Extracted& extracted_;
  Rules& rules_;
  std::map<std::string, const FmuVariable*> variables_;  // by all of their names
};

}  // namespace

void check_terminals(pugi::xml_node root, const Fmu& fmu, const Extracted& extracted, Rules& rules) {
  check_schema(root, FmiVersion::fmi3, rules);
  const std::string version = text_of(root, "fmiVersion");
  if (version != fmu.version_text)
    rules.broken(Rule::terminals, "fmiVersion " + in_quotes(version) + " is not that of modelDescription.xml");
  if (const pugi::xml_node system = root.child("GraphicalRepresentation").child("CoordinateSystem"))
    if (number_in(system, "x1") >= number_in(system, "x2") || number_in(system, "y1") >= number_in(system, "y2"))
      rules.broken(Rule::terminals, "<CoordinateSystem>: its first corner is not left of and below its second");
  TerminalRules(fmu, extracted, rules).check(root.child("Terminals"));
}

}  // namespace rigstep::server
