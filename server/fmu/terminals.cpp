#include "server/fmu/terminals.h"

#include <algorithm>
#include <array>
#include <pugixml.hpp>
#include <sstream>

namespace rigstep::server {

namespace {

using plugin::Variable;
using Source = Variable::Source;

enum Member { kCoordinate, kRate, kAcceleration, kEffort };

const char* name_of(Member member, Freedom freedom) {
  constexpr std::array<const char*, 4> kRotation{"phi", "w", "a", "tau"}, kTranslation{"s", "v", "a", "f"};
  return (is_length(freedom) ? kTranslation : kRotation)[member];
}

void put(pugi::xml_node node, const char* attribute, const std::string& value) {
  node.append_attribute(attribute).set_value(value.c_str());
}

// One terminal, which joins the document where it has two members at least.
class Terminal {
 public:
  Terminal(const Mechanism& mechanism, const std::vector<Variable>& variables, int joint, Freedom freedom)
      : mechanism_(mechanism), variables_(variables), joint_(joint), freedom_(freedom) {}

  // The first of each member counts.
  void add(Member member, Source source, int index) {
    const auto variable = std::find_if(variables_.begin(), variables_.end(),
                                       [=](const Variable& v) { return v.source == source && v.index == index; });
    if (members_[member].empty() && variable != variables_.end()) members_[member] = variable->name;
  }
  void add_measured() {
    for (const Output& output : mechanism_.outputs()) {
      if (output.kind != Output::Kind::joint_coordinate && output.kind != Output::Kind::joint_rate) continue;
      const JointCoordinate& of = mechanism_.coordinates()[static_cast<std::size_t>(output.coordinate)];
      if (of.joint == joint_ && of.freedom == freedom_)
        add(output.kind == Output::Kind::joint_rate ? kRate : kCoordinate, Source::output, output.first_channel);
    }
  }
  void write(pugi::xml_node terminals, const std::string& name, const char* what) const {
    if (std::count(members_.begin(), members_.end(), std::string()) > 2) return;
    const bool is_taken = terminals.find_child_by_attribute("name", name.c_str());
    pugi::xml_node terminal = terminals.append_child("Terminal");
    put(terminal, "name", is_taken ? name + "_" : name);
    put(terminal, "matchingRule", "bus");
    put(terminal, "description", what + mechanism_.joints()[static_cast<std::size_t>(joint_)].name);
    for (const Member member : {kCoordinate, kRate, kAcceleration, kEffort}) {
      if (members_[member].empty()) continue;
      pugi::xml_node node = terminal.append_child("TerminalMemberVariable");
      put(node, "variableName", members_[member]);
      put(node, "memberName", name_of(member, freedom_));
      put(node, "variableKind", member == kEffort ? "inflow" : "signal");
    }
  }

 private:
  const Mechanism& mechanism_;
  const std::vector<Variable>& variables_;
  int joint_;
  Freedom freedom_;
  std::array<std::string, 4> members_;  // names of variables
};

}  // namespace

std::string terminals_description(const Mechanism& m, const std::vector<Variable>& variables) {
  pugi::xml_document document;
  pugi::xml_node declaration = document.append_child(pugi::node_declaration);
  put(declaration, "version", "1.0");
  put(declaration, "encoding", "UTF-8");
  pugi::xml_node root = document.append_child("fmiTerminalsAndIcons");
  put(root, "fmiVersion", "3.0");
  pugi::xml_node terminals = root.append_child("Terminals");
  for (std::size_t i = 0; i < m.inputs().size(); ++i) {
    const Input& input = m.inputs()[i];
    if (input.kind != Input::Kind::joint_effort) continue;
    Terminal terminal(m, variables, input.joint, input.freedom);
    terminal.add(kEffort, Source::input, static_cast<int>(i));
    terminal.add_measured();
    terminal.write(terminals, input.name, "effort in, motion out: joint ");
  }
  for (std::size_t i = 0; i < m.drivers().size(); ++i) {
    const Driver& driver = m.drivers()[i];
    const JointCoordinate& of = m.coordinates()[static_cast<std::size_t>(driver.coordinate)];
    Terminal terminal(m, variables, of.joint, of.freedom);
    for (int k = 0; k < driver.channels(); ++k)
      terminal.add(static_cast<Member>(k), Source::input, driver.first_channel + k);
    for (const Output& output : m.outputs())
      if (output.kind == Output::Kind::driver_effort && output.driver == static_cast<int>(i))
        terminal.add(kEffort, Source::output, output.first_channel);
    terminal.write(terminals, driver.name, "motion in, effort out: joint ");
  }
  if (!terminals.first_child()) return {};
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace rigstep::server
