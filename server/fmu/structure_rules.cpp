// What <ModelStructure> lists of variables: outputs, derivatives of states, what is unknown at the start, and on what
// they depend.
#include <fmt/format.h>

#include <algorithm>

#include "server/fmu/rules.h"

namespace rigstep::server {

namespace {

// One list: <Outputs><Unknown index="..."/></Outputs> in FMI 2.0, <Output valueReference="..."/> in FMI 3.0.
struct List {
  const char* name;  // of its elements, for messages
  const char *list_of_2, *element_of_3;
  bool is_initial = false;
};

constexpr List kOutputs{"output", "Outputs", "Output"};
constexpr List kDerivatives{"derivative", "Derivatives", "ContinuousStateDerivative"};
constexpr List kInitialUnknowns{"initial unknown", "InitialUnknowns", "InitialUnknown", true};
constexpr List kClockedStates{"clocked state", "", "ClockedState"};
constexpr List kEventIndicators{"event indicator", "", "EventIndicator"};  // what these depend on is free

class Structure {
 public:
  Structure(pugi::xml_node structure, const Fmu& fmu, const Numbers& numbers, Rules& rules)
      : structure_(structure), fmu_(fmu), numbers_(numbers), rules_(rules) {
    for (const FmuVariable& v : fmu.variables) {
      if (!v.derivative.empty()) may_be_known_.insert(numbers.find(v.derivative));
      if (!v.previous.empty()) may_be_known_.insert({&v, numbers.find(v.previous)});
    }
  }

  void check() {
    const std::set<const FmuVariable*> derivatives = variables_in(kDerivatives);
    for (const FmuVariable* const v : derivatives) {
      if (v->derivative.empty()) wrong(*v, "is listed as a derivative and says not of what");
      if (!v->is_float() || v->variability != "continuous")
        wrong(*v, "is listed as a derivative and is no continuous float");
      if (const FmuVariable* const state = numbers_.find(v->derivative)) states_.insert(state);
    }
    for (const FmuVariable* const state : states_)
      if (!is_one_of(state->causality, {"local", "output"}))
        wrong(*state, "is a state, which is local or output, not " + in_quotes(state->causality));
    const std::set<const FmuVariable*> outputs = variables_in(kOutputs), unknowns = variables_in(kInitialUnknowns);
    for (const FmuVariable& v : fmu_.variables) {
      const bool is_listed = outputs.count(&v) > 0;
      if (is_listed && v.causality != "output") wrong(v, "is listed as an output and is none");
      if (!is_listed && v.causality == "output") wrong(v, "is an output and is not listed as one");
      check_initial(v, derivatives.count(&v) > 0, unknowns.count(&v) > 0);
    }
    for (const FmuVariable* const v : variables_in(kClockedStates))
      if (v->previous.empty()) wrong(*v, "is listed as a clocked state and has no previous value");
    for (const FmuVariable* const v : variables_in(kEventIndicators))
      if (!v->is_float() || v->variability != "continuous")
        wrong(*v, "is listed as an event indicator and is no continuous float");
      else if (!is_one_of(v->causality, {"local", "output"}))
        wrong(*v, "is an event indicator, which is local or output, not " + in_quotes(v->causality));
    for (const List& list : {kOutputs, kDerivatives, kInitialUnknowns, kClockedStates})
      for (const pugi::xml_node node : elements_of(list)) check_dependencies(node, list);
  }

 private:
  bool is_2() const { return fmu_.version == FmiVersion::fmi2; }
  void wrong(const FmuVariable& v, const std::string& text) const {
    rules_.broken(Rule::structure, in_quotes(v.name) + " " + text);
  }
  pugi::xml_object_range<pugi::xml_named_node_iterator> elements_of(const List& list) const {
    return is_2() ? structure_.child(list.list_of_2).children("Unknown") : structure_.children(list.element_of_3);
  }
  std::string number_of_element(pugi::xml_node node) const {
    return text_of(node, is_2() ? "index" : "valueReference");
  }
  std::string where(pugi::xml_node node, const List& list) const {
    const FmuVariable* const v = numbers_.find(number_of_element(node));
    return fmt::format("{} {}", list.name, in_quotes(v == nullptr ? number_of_element(node) : v->name));
  }

  std::set<const FmuVariable*> variables_in(const List& list) const {
    std::set<const FmuVariable*> found;
    const FmuVariable* last = nullptr;
    for (const pugi::xml_node node : elements_of(list)) {
      const FmuVariable* const v = numbers_.find(number_of_element(node));
      const auto say = [&](const char* text) { rules_.broken(Rule::structure, where(node, list) + text); };
      if (v == nullptr) {
        say(" is no variable");
        continue;
      }
      if (is_2() && list.is_initial && last != nullptr && v < last) say(": is not in ascending order");
      if (!found.insert(v).second) say(": stands there twice");
      last = v;
    }
    return found;
  }

  // What is unknown at the start: FMI 2.0, 2.2.8; FMI 3.0, 2.4.8.
  void check_initial(const FmuVariable& v, bool is_derivative, bool is_listed) const {
    const bool is_computed = is_one_of(v.initial, {"approx", "calculated"});
    const bool is_of_state = is_derivative || states_.count(&v) > 0;
    const bool is_unknown =
        v.causality == "calculatedParameter" || ((v.causality == "output" || is_of_state) && is_computed);
    const bool is_of_clock = v.is_clocked || v.type == "Clock";  // which a unit may list
    if (is_unknown && !is_listed && !is_of_clock) wrong(v, "is missing among the initial unknowns");
    if (is_listed && !is_unknown && !is_of_clock) wrong(v, "is listed as an initial unknown and is none");
  }

  // What an unknown may depend on.
  bool is_known(const FmuVariable& v, const List& list) const {
    if (is_one_of(v.causality, {"input", "independent"})) return true;
    if (list.is_initial) return v.initial == "exact";
    if (!is_2() && v.variability == "discrete") return true;  // may be a state of a time without clocks
    return v.causality == "parameter" || v.causality == "structuralParameter" || v.type == "Clock" ||
           may_be_known_.count(&v) > 0;
  }

  void check_dependencies(pugi::xml_node unknown, const List& list) const {
    const auto say = [&](const std::string& text) {
      rules_.broken(Rule::structure, where(unknown, list) + ": " + text);
    };
    const std::vector<std::string> dependencies = words_of(text_of(unknown, "dependencies"));
    std::set<const FmuVariable*> seen;
    const FmuVariable* last = nullptr;
    for (const std::string& number : dependencies) {
      const FmuVariable* const v = numbers_.find(number);
      if (v == nullptr) {
        say("depends on " + in_quotes(number) + ", which is no variable");
        continue;
      }
      if (!seen.insert(v).second) say("depends on " + in_quotes(v->name) + " twice");
      if (!is_known(*v, list)) say("depends on " + in_quotes(v->name) + ", which is unknown itself");
      if (is_2() && last != nullptr && v < last) say("dependencies are not in ascending order");
      last = v;
    }
    const std::vector<std::string> kinds = words_of(text_of(unknown, "dependenciesKind"));
    if (!unknown.attribute("dependenciesKind")) return;
    if (!unknown.attribute("dependencies")) say("dependenciesKind without dependencies");
    if (kinds.size() != dependencies.size())
      say(fmt::format("has {} kinds of {} dependencies", kinds.size(), dependencies.size()));
    const FmuVariable* const v = numbers_.find(number_of_element(unknown));
    for (const std::string& kind : kinds)
      if (kind != "dependent" && v != nullptr && !v->is_float())
        return say("its dependencies are dependent, as it is no float, not " + kind);
      else if (list.is_initial && is_one_of(kind, {"fixed", "tunable", "discrete"}))
        return say("its dependencies are dependent or constant, not " + kind);
  }

  const pugi::xml_node structure_;
  const Fmu& fmu_;
  const Numbers& numbers_;
  Rules& rules_;
  std::set<const FmuVariable*> states_;        // continuous ones, whose derivatives are listed
  std::set<const FmuVariable*> may_be_known_;  // continuous and discrete states, as far as variables tell
};

}  // namespace

void check_structure(pugi::xml_node structure, const Fmu& fmu, const Numbers& numbers, Rules& rules) {
  Structure(structure, fmu, numbers, rules).check();
}

}  // namespace rigstep::server
