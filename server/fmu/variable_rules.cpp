// What variables say of their values, of each other, of units and types; and what <ModelStructure> lists of them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "server/fmu/rules.h"
#include "server/fmu/schema.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

// Variables by the number with which others name them: the index from 1 on in FMI 2.0, the value reference in FMI 3.0.
class Numbers {
 public:
  explicit Numbers(const Fmu& fmu) : fmu_(fmu) {
    for (std::size_t i = 0; i < fmu.variables.size(); ++i)
      places_.emplace(fmu.version == FmiVersion::fmi2 ? i + 1 : fmu.variables[i].reference, i);
  }
  // null: there is none
  const FmuVariable* find(const std::string& number) const {
    const std::optional<std::size_t> place = place_of(number);
    return place ? &fmu_.variables[*place] : nullptr;
  }
  std::optional<std::size_t> place_of(const std::string& number) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) return {};
    const auto found = places_.find(value);
    return found == places_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  const Fmu& fmu_;
  std::map<std::uint64_t, std::size_t> places_;
};

// Its own, or that of its declared type.
std::string unit_of(const FmuVariable& v, pugi::xml_node node, const Definitions& definitions) {
  const auto type = definitions.types.find(text_of(node, "declaredType"));
  return v.unit.empty() && type != definitions.types.end() ? type->second.unit : v.unit;
}

// Tables of the combinations: FMI 2.0, 2.2.7; FMI 3.0, 2.4.7.4 and 2.4.7.5.
void check_combination(const FmuVariable& v, const std::string& where, Rules& rules) {
  const auto wrong = [&](const std::string& text) { rules.broken(Rule::variable, where + ": " + text); };
  if (v.is_parameter() && !is_one_of(v.variability, {"fixed", "tunable"}))
    wrong("a parameter is fixed or tunable, not " + in_quotes(v.variability));
  if (v.causality == "input" && !is_one_of(v.variability, {"discrete", "continuous"}))
    wrong("an input is not " + in_quotes(v.variability));
  if (v.causality == "output" && is_one_of(v.variability, {"fixed", "tunable"}))
    wrong("an output is not " + in_quotes(v.variability));
  if (v.causality == "independent" && v.variability != "continuous") wrong("the independent variable is continuous");
  if (v.variability == "continuous" && !v.is_float()) wrong("only real variables are continuous");
  if (is_one_of(v.causality, {"input", "independent"}) && v.has_initial) wrong("an " + v.causality + " has no initial");
  if (v.is_exact() && v.initial != "exact") wrong("initial is exact, not " + in_quotes(v.initial));
  const bool is_held = is_one_of(v.variability, {"fixed", "tunable"});
  if (!v.is_exact() && is_held && v.initial == "exact") wrong("what others determine is not exact at the start");
}

void check_start(const FmuVariable& v, pugi::xml_node node, const std::string& where, Rules& rules) {
  const auto wrong = [&](const std::string& text) { rules.broken(Rule::variable, where + ": " + text); };
  const bool has_start = node.attribute("start") || node.child("Start");
  const bool needs_start = v.causality == "input" || is_one_of(v.initial, {"exact", "approx"});
  if (needs_start && !has_start && v.type != "Clock") wrong("needs a start value");
  if (v.initial == "calculated" && has_start) wrong("is calculated, so it has no start value");
  if (v.causality == "independent" && has_start) wrong("the independent variable has no start value");
  const std::optional<double> low = finite_number(text_of(node, "min")), high = finite_number(text_of(node, "max")),
                              nominal = finite_number(text_of(node, "nominal"));
  if (low && high && *low > *high) wrong("min is above max");
  if (nominal && *nominal <= 0.0) wrong("nominal is not above zero");
  const std::vector<std::string> starts = words_of(text_of(node, "start"));
  if (v.type != "String" && starts.size() > 1 && v.elements > 0 && starts.size() != v.elements)
    wrong(fmt::format("has {} start values for {} elements", starts.size(), v.elements));
  if (v.type == "Boolean" || v.type == "String" || v.type == "Binary") return;
  for (const std::string& each : starts)
    if (const std::optional<double> start = finite_number(each);
        start && ((low && *start < *low) || (high && *start > *high))) {
      wrong("start lies outside min and max");
      break;
    }
}

void check_unit_and_type(const FmuVariable& v, pugi::xml_node node, const std::string& where,
                         const Definitions& definitions, Rules& rules) {
  const std::string type = text_of(node, "declaredType"), unit_name = unit_of(v, node, definitions);
  const auto unit = definitions.units.find(unit_name);
  if (!v.unit.empty() && unit == definitions.units.end())
    rules.broken(Rule::unit, where + ": unit " + in_quotes(v.unit) + " is not defined");
  const auto shows = [&](pugi::xml_node of) {
    const std::string shown = text_of(of, "displayUnit");
    if (!shown.empty() && unit_name.empty())
      rules.broken(Rule::unit, where + ": displayUnit " + in_quotes(shown) + " without a unit");
    else if (shown != unit_name && !shown.empty() && unit != definitions.units.end() && unit->second.count(shown) == 0)
      rules.broken(Rule::unit, where + ": displayUnit " + in_quotes(shown) + " is none of its unit");
  };
  shows(node);
  for (const pugi::xml_node alias : node.children("Alias")) shows(alias);
  if (type.empty()) return;
  const auto found = definitions.types.find(type);
  if (found == definitions.types.end())
    rules.broken(Rule::variable, where + ": declaredType " + in_quotes(type) + " is not defined");
  else if (found->second.of != v.type)
    rules.broken(Rule::variable,
                 fmt::format("{}: declaredType {} is a type of {}", where, in_quotes(type), found->second.of));
}

// derivative, previous, clocks and the sizes of arrays
void check_others(const FmuVariable& v, pugi::xml_node node, const std::string& where, const Numbers& numbers,
                  Rules& rules) {
  const auto wrong = [&](const std::string& text) { rules.broken(Rule::variable, where + ": " + text); };
  const auto named = [&](const char* attribute, const std::string& number) {
    const FmuVariable* const other = numbers.find(number);
    if (other == nullptr) wrong(fmt::format("{} {} is no variable", attribute, in_quotes(number)));
    return other;
  };
  if (node.attribute("derivative")) {
    const FmuVariable* const state = named("derivative", text_of(node, "derivative"));
    if (state != nullptr && state->variability != "continuous")
      wrong("is the derivative of " + in_quotes(state->name) + ", which is not continuous");
  }
  if (node.attribute("previous")) {
    const FmuVariable* const previous = named("previous", text_of(node, "previous"));
    if (previous != nullptr && previous->type != v.type) wrong("previous is of another type");
  }
  for (const std::string& number : words_of(text_of(node, "clocks")))
    if (const FmuVariable* const clock = named("clocks", number); clock != nullptr && clock->type != "Clock")
      wrong(in_quotes(clock->name) + " is no clock");
  for (const pugi::xml_node dimension : node.children("Dimension")) {
    const bool has_start = dimension.attribute("start"), has_reference = dimension.attribute("valueReference");
    if (has_start == has_reference) wrong("a dimension has either start or valueReference");
    if (has_start && text_of(dimension, "start") == "0") wrong("a dimension is zero");
    if (!has_reference) continue;
    const FmuVariable* const size = named("valueReference", text_of(dimension, "valueReference"));
    if (size != nullptr &&
        (size->type != "UInt64" || (size->causality != "structuralParameter" && size->variability != "constant")))
      wrong("a dimension is no constant and no structural parameter of type UInt64");
  }
}

// Of FMI 2.0: variables of one type with one reference have one value.
// unit, first_unit: as unit_of() has them
void check_alias(const FmuVariable& first, const std::string& first_unit, const FmuVariable& v, const std::string& unit,
                 const std::string& where, Rules& rules) {
  const auto is_set = [](const FmuVariable& each) { return is_one_of(each.causality, {"input", "parameter"}); };
  if (is_set(first) && is_set(v))
    rules.broken(Rule::variable, where + ": and its alias " + in_quotes(first.name) + " can both be set");
  if (first_unit != unit)
    rules.broken(Rule::variable, where + ": has another unit than its alias " + in_quotes(first.name));
}

// What one element of <ModelStructure> says that others determine it.
void check_dependencies(pugi::xml_node unknown, const std::string& where, FmiVersion version, const Numbers& numbers,
                        Rules& rules) {
  const auto wrong = [&](const std::string& text) { rules.broken(Rule::structure, where + ": " + text); };
  const std::vector<std::string> dependencies = words_of(text_of(unknown, "dependencies"));
  std::optional<std::size_t> last;
  std::set<std::size_t> seen;
  for (const std::string& number : dependencies) {
    const std::optional<std::size_t> place = numbers.place_of(number);
    if (!place) {
      wrong("depends on " + in_quotes(number) + ", which is no variable");
      continue;
    }
    if (!seen.insert(*place).second) wrong("depends on " + in_quotes(number) + " twice");
    if (version == FmiVersion::fmi2 && last && *place < *last) wrong("dependencies are not in ascending order");
    last = place;
  }
  const pugi::xml_attribute kinds = unknown.attribute("dependenciesKind");
  if (kinds && !unknown.attribute("dependencies")) wrong("dependenciesKind without dependencies");
  if (const std::size_t count = words_of(text_of(unknown, "dependenciesKind")).size();
      kinds && count != dependencies.size())
    wrong(fmt::format("has {} kinds of {} dependencies", count, dependencies.size()));
}

// list: of FMI 2.0; element: of FMI 3.0. Returns the places of the variables in it.
std::set<std::size_t> check_list(pugi::xml_node structure, const char* list, const char* element, const Fmu& fmu,
                                 const Numbers& numbers, Rules& rules) {
  const bool is_2 = fmu.version == FmiVersion::fmi2;
  const char* const name = is_2 ? list : element;
  std::set<std::size_t> found;
  for (const pugi::xml_node node : (is_2 ? structure.child(list) : structure).children(is_2 ? "Unknown" : element)) {
    const std::string number = text_of(node, is_2 ? "index" : "valueReference");
    const std::optional<std::size_t> place = numbers.place_of(number);
    if (!place) {
      rules.broken(Rule::structure, fmt::format("<{}> {} is no variable", name, in_quotes(number)));
      continue;
    }
    const std::string where = fmt::format("<{}> {}", name, in_quotes(fmu.variables[*place].name));
    if (is_2 && std::string_view(list) == "InitialUnknowns" && !found.empty() && *place < *found.rbegin())
      rules.broken(Rule::structure, where + ": is not in ascending order");
    if (!found.insert(*place).second) rules.broken(Rule::structure, where + ": stands there twice");
    check_dependencies(node, where, fmu.version, numbers, rules);
  }
  return found;
}

void check_variable_names(const FmuVariable& v, pugi::xml_node node, const std::string& where, bool is_structured,
                          std::set<std::string>& names, Rules& rules) {
  std::vector<std::string> all{v.name};
  for (const pugi::xml_node alias : node.children("Alias")) all.push_back(text_of(alias, "name"));
  for (const std::string& name : all) {
    if (name.empty()) rules.broken(Rule::variable, "a variable has no name");
    if (!names.insert(name).second)
      rules.broken(Rule::variable, "variable " + in_quotes(name) + ": another one has this name");
    const bool has_own_grammar = name.find('\'') != name.npos || name.starts_with("der(");
    if (is_structured && !has_own_grammar && !is_structured_name(name))
      rules.broken(Rule::naming, where + ": is no structured name");
  }
}

void check_structure(pugi::xml_node structure, const Fmu& fmu, const Numbers& numbers, Rules& rules) {
  const auto list = [&](const char* name, const char* element) {
    return check_list(structure, name, element, fmu, numbers, rules);
  };
  const std::set<std::size_t> outputs = list("Outputs", "Output"),
                              derivatives = list("Derivatives", "ContinuousStateDerivative"),
                              initial = list("InitialUnknowns", "InitialUnknown");
  if (fmu.version == FmiVersion::fmi3)
    for (const char* const element : {"ClockedState", "EventIndicator"}) list("", element);
  for (std::size_t i = 0; i < fmu.variables.size(); ++i) {
    const FmuVariable& v = fmu.variables[i];
    if ((v.causality == "output") != (outputs.count(i) > 0))
      rules.broken(Rule::structure,
                   in_quotes(v.name) + (outputs.count(i) > 0 ? " is listed as an output and is none"
                                                             : " is an output and is not listed as one"));
    if (derivatives.count(i) > 0 && !v.is_derivative)
      rules.broken(Rule::structure, in_quotes(v.name) + " is listed as a derivative and says not of what");
    const bool is_unknown = (v.causality == "output" && v.initial != "exact") || v.causality == "calculatedParameter";
    const bool is_of_clock = v.is_clocked || v.type == "Clock";  // has no value at the start
    if (is_unknown && !is_of_clock && initial.count(i) == 0)
      rules.broken(Rule::structure, in_quotes(v.name) + " is missing among the initial unknowns");
  }
}

}  // namespace

void check_variables(pugi::xml_node root, const Fmu& fmu, const Definitions& definitions, Rules& rules) {
  const bool is_2 = fmu.version == FmiVersion::fmi2;
  const bool is_structured = text_of(root, "variableNamingConvention") == "structured";
  const Numbers numbers(fmu);
  std::set<std::string> names;
  for (const auto& [name, type] : definitions.types)
    if (is_2) names.insert(name);  // FMI 2.0: no variable is called like a type
  std::map<std::pair<std::uint32_t, std::string>, std::pair<const FmuVariable*, std::string>>
      references;  // FMI 2.0: one list for each type
  int independent = 0;
  auto next = fmu.variables.begin();
  for (const pugi::xml_node node : root.child("ModelVariables").children()) {
    if (node.type() != pugi::node_element) continue;
    const FmuVariable& v = *next++;
    const std::string where = "variable " + in_quotes(v.name);
    const pugi::xml_node typed = typed_node(node, fmu.version);
    check_variable_names(v, node, where, is_structured, names, rules);
    const std::string unit = unit_of(v, typed, definitions);
    const auto [first, is_new] = references.try_emplace({v.reference, is_2 ? v.type : ""}, &v, unit);
    if (!is_new && !is_2)
      rules.broken(Rule::variable, fmt::format("{}: valueReference {} is that of {}", where, v.reference,
                                               in_quotes(first->second.first->name)));
    if (!is_new && is_2) check_alias(*first->second.first, first->second.second, v, unit, where, rules);
    independent += v.causality == "independent";
    check_combination(v, where, rules);
    check_start(v, typed, where, rules);
    check_unit_and_type(v, typed, where, definitions, rules);
    check_others(v, typed, where, numbers, rules);
  }
  if (independent > 1 || (independent == 0 && !is_2))
    rules.broken(Rule::variable, fmt::format("{} variables are independent, one must be", independent));
  check_structure(root.child("ModelStructure"), fmu, numbers, rules);
}

}  // namespace rigstep::server
