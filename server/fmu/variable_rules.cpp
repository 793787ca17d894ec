// What variables say of their values, of each other, of units and types.
#include <fmt/format.h>

#include <algorithm>

#include "server/fmu/forms.h"
#include "server/fmu/rules.h"

namespace rigstep::server {

namespace {

// A variable with what describes it.
struct Described {
  const FmuVariable& v;
  pugi::xml_node node;  // that holds the attributes of its type
  pugi::xml_node type;  // that its declaredType names; null: none
  FmiVersion version;
  Rules& rules;

  std::string where() const { return "variable " + in_quotes(v.name); }
  void wrong(const std::string& text, Rule rule = Rule::variable) const { rules.broken(rule, where() + ": " + text); }
  // Its own attribute, or that of its declared type.
  std::string text(const char* attribute) const { return text_of(node.attribute(attribute) ? node : type, attribute); }
  std::optional<double> number(const char* attribute) const { return number_of(text(attribute)); }
  bool is_held() const { return is_one_of(v.variability, {"fixed", "tunable"}); }
};

// Tables of the combinations: FMI 2.0, 2.2.7; FMI 3.0, 2.4.7.4 and 2.4.7.5.
void check_combination(const Described& d) {
  const FmuVariable& v = d.v;
  if (v.is_parameter() && !d.is_held()) d.wrong("a parameter is fixed or tunable, not " + in_quotes(v.variability));
  if (v.causality == "input" && !is_one_of(v.variability, {"discrete", "continuous"}) && v.type != "Clock")
    d.wrong("an input is not " + in_quotes(v.variability));
  if (v.causality == "output" && d.is_held() && v.type != "Clock")
    d.wrong("an output is not " + in_quotes(v.variability));
  if (v.causality == "independent" && v.variability != "continuous") d.wrong("the independent variable is continuous");
  if (v.variability == "continuous" && !v.is_float()) d.wrong("only real variables are continuous");
  const bool may_be_exact = d.version == FmiVersion::fmi3 && v.causality == "input" && v.initial == "exact";
  if (is_one_of(v.causality, {"input", "independent"}) && v.has_initial && !may_be_exact)
    d.wrong("an " + v.causality + " has no initial");
  if (v.is_exact() && v.initial != "exact") d.wrong("initial is exact, not " + in_quotes(v.initial));
  const bool is_of_others = d.is_held() || v.causality == "calculatedParameter";
  if (!v.is_exact() && is_of_others && v.initial == "exact") d.wrong("what others determine is not exact at the start");
  if (v.causality != "input" && d.node.attribute("canHandleMultipleSetPerTimeInstant"))
    d.wrong("canHandleMultipleSetPerTimeInstant is for inputs");
  if (v.causality == "parameter" && d.node.attribute("intermediateUpdate").as_bool())
    d.wrong("a parameter has no intermediateUpdate");
}

void check_range(const Described& d) {
  const std::optional<double> low = d.number("min"), high = d.number("max"), nominal = d.number("nominal");
  if (low && high && *low > *high) d.wrong("min is above max");
  if (d.version == FmiVersion::fmi2 && nominal && *nominal <= 0.0) d.wrong("nominal is not above zero");
  if (is_one_of(d.v.type, {"Boolean", "String", "Binary"})) return;
  std::set<double> items;
  for (const pugi::xml_node item : d.type.children("Item")) items.insert(number_in(item, "value").value_or(0.0));
  for (const std::string& each : words_of(text_of(d.node, "start"))) {
    const std::optional<double> start = number_of(each);
    if (!start) continue;  // its form is wrong, which is told
    const bool is_item = d.v.type != "Enumeration" || items.empty() || items.count(*start) > 0;
    if (!is_item) return d.wrong(fmt::format("start {} is no item of its type", each));
    if ((low && *start < *low) || (high && *start > *high)) return d.wrong("start lies outside min and max");
  }
}

// How many start values stand there.
std::size_t starts_of(const Described& d) {
  const auto texts = d.node.children("Start");  // of strings and binaries, FMI 3.0
  const auto count = static_cast<std::size_t>(std::distance(texts.begin(), texts.end()));
  if (d.v.type == "String") return count + (d.node.attribute("start") ? 1 : 0);
  return count + words_of(text_of(d.node, "start")).size();
}

void check_start(const Described& d) {
  const FmuVariable& v = d.v;
  const bool has_start = starts_of(d) > 0;
  const bool needs_start = v.causality == "input" || is_one_of(v.initial, {"exact", "approx"});
  if (needs_start && !has_start && v.type != "Clock") d.wrong("needs a start value");
  if (v.initial == "calculated" && has_start) d.wrong("is calculated, so it has no start value");
  if (v.causality == "independent" && has_start) d.wrong("the independent variable has no start value");
}

void check_unit(const Described& d, const Definitions& definitions) {
  const std::string unit_name = d.text("unit");
  if (!d.v.unit.empty() && definitions.units.count(unit_name) == 0)
    d.wrong("unit " + in_quotes(d.v.unit) + " is not defined", Rule::unit);
  check_display_unit(d.node, unit_name, d.where(), Rule::unit, definitions, d.rules);
  for (const pugi::xml_node alias : d.node.children("Alias"))
    check_display_unit(alias, unit_name, d.where(), Rule::unit, definitions, d.rules);
}

void check_type(const Described& d, const Definitions& definitions) {
  const std::string name = text_of(d.node, "declaredType");
  if (name.empty()) return;
  const auto type = definitions.types.find(name);
  if (type == definitions.types.end())
    d.wrong("declaredType " + in_quotes(name) + " is not defined");
  else if (type->second.of != d.v.type)
    d.wrong(fmt::format("declaredType {} is a type of {}", in_quotes(name), type->second.of));
}

// null: there is none, which is told
const FmuVariable* named(const Described& d, const char* attribute, const std::string& number, const Numbers& numbers) {
  const FmuVariable* const other = numbers.find(number);
  if (other == nullptr) d.wrong(fmt::format("{} {} is no variable", attribute, in_quotes(number)));
  return other;
}

// The sizes of arrays, and that they have as many start values, or one for all elements.
void check_sizes(const Described& d, const Numbers& numbers) {
  if (d.v.causality == "structuralParameter" && d.node.child("Dimension"))
    d.wrong("a structural parameter has no dimension");
  double elements = 1.0;
  for (const pugi::xml_node dimension : d.node.children("Dimension")) {
    const bool has_start = dimension.attribute("start"), has_reference = dimension.attribute("valueReference");
    if (has_start == has_reference) d.wrong("a dimension has either start or valueReference");
    if (has_start && number_in(dimension, "start") == 0.0) d.wrong("a dimension is zero");
    elements *= number_in(dimension, "start").value_or(1.0);
    if (!has_reference) continue;
    const FmuVariable* const size = named(d, "valueReference", text_of(dimension, "valueReference"), numbers);
    if (size == nullptr) return;
    if (size->type != "UInt64" || (size->causality != "structuralParameter" && size->variability != "constant"))
      d.wrong("a dimension is no constant and no structural parameter of type UInt64");
    if (number_of(size->start) == 0.0)
      d.wrong("a dimension is zero at the start, which " + in_quotes(size->name) + " says");
    elements *= number_of(size->start).value_or(1.0);
  }
  const std::size_t starts = starts_of(d);
  if (starts > 1 && static_cast<double>(starts) != elements)
    d.wrong(fmt::format("has {} start values for {} elements", starts, elements));
}

void check_derivative(const Described& d, const Numbers& numbers) {
  if (d.v.derivative.empty()) return;
  const FmuVariable* const state = named(d, "derivative", d.v.derivative, numbers);
  if (state == &d.v) d.wrong("is its own derivative");
  if (state != nullptr && state->variability != "continuous")
    d.wrong("is the derivative of " + in_quotes(state->name) + ", which is not continuous");
}

// Clocks, and what changes with them: FMI 3.0, 2.4.4 and 2.4.7.4.
void check_clocks(const Described& d, const Numbers& numbers) {
  const FmuVariable& v = d.v;
  for (const std::string& number : words_of(text_of(d.node, "clocks")))
    if (const FmuVariable* const clock = named(d, "clocks", number, numbers);
        clock != nullptr && clock->type != "Clock")
      d.wrong(in_quotes(clock->name) + " is no clock");
  if (v.is_clocked && !is_one_of(v.variability, {"discrete", "tunable"}))
    d.wrong("what clocks drive is discrete or tunable, not " + in_quotes(v.variability));
  if (!v.previous.empty()) {
    if (!v.is_clocked || v.variability != "discrete") d.wrong("has a previous value and is not discrete with a clock");
    const FmuVariable* const previous = named(d, "previous", v.previous, numbers);
    if (previous == &v) d.wrong("is its own previous value");
    if (previous != nullptr && previous->type != v.type) d.wrong("previous is of another type");
    if (previous != nullptr && (previous->variability != "discrete" || previous->causality == "input"))
      d.wrong("previous is an input or not discrete");
  }
  if (v.type != "Clock") return;
  if (!is_one_of(v.causality, {"input", "output", "local"}))
    d.wrong("a clock is input, output or local, not " + in_quotes(v.causality));
  check_interval(
      d.where(), [&](const char* attribute) { return d.text(attribute); }, Rule::variable, d.rules);
}

void check_names(const Described& d, bool is_structured, std::set<std::string>& names) {
  std::vector<std::string> all{d.v.name};
  all.insert(all.end(), d.v.aliases.begin(), d.v.aliases.end());
  for (const std::string& name : all) {
    if (name.empty()) d.rules.broken(Rule::variable, "a variable has no name");
    if (!names.insert(name).second)
      d.rules.broken(Rule::variable, "variable " + in_quotes(name) + ": another one has this name");
    if (is_structured && !is_structured_name(name))
      d.rules.broken(Rule::naming, "variable " + in_quotes(name) + ": is no structured name");
  }
}

bool have_equal_starts(const Described& a, const Described& b) {
  const std::string first = text_of(a.node, "start"), second = text_of(b.node, "start");
  return first == second || (number_of(first) && number_of(first) == number_of(second));
}

// Of FMI 2.0: variables of one type with one reference have one value.
void check_aliases(const std::vector<Described>& all) {
  const Described *settable = nullptr, *constant = nullptr, *started = nullptr;
  for (const Described& d : all) {
    if (d.text("unit") != all.front().text("unit"))
      d.wrong("has another unit than its alias " + in_quotes(all.front().v.name));
    if (is_one_of(d.v.causality, {"input", "parameter"})) {
      if (settable != nullptr) d.wrong("and its alias " + in_quotes(settable->v.name) + " can both be set");
      settable = &d;
    }
    if (d.v.variability == "constant") {
      if (constant != nullptr && !have_equal_starts(d, *constant))
        d.wrong("is another constant than its alias " + in_quotes(constant->v.name));
      constant = &d;
    } else if (d.node.attribute("start")) {
      if (started != nullptr) d.wrong("and its alias " + in_quotes(started->v.name) + " both have a start value");
      started = &d;
    }
  }
  if (constant == nullptr) return;
  for (const Described& d : all)
    if (d.v.variability != "constant") d.wrong("changes and has a constant alias " + in_quotes(constant->v.name));
}

// Which variables share a reference. In FMI 2.0 each base type has references of its own: integers and enumerations
// are read by one function.
std::pair<std::uint32_t, std::string> reference_of(const FmuVariable& v, FmiVersion version) {
  if (version == FmiVersion::fmi3) return {v.reference, ""};
  return {v.reference, v.type == "Enumeration" ? "Integer" : v.type};
}

// What interfaces say of clocks: FMI 3.0.
void check_interfaces(pugi::xml_node root, const Fmu& fmu, Rules& rules) {
  const auto is_clock = [](const FmuVariable& v) { return v.type == "Clock"; };
  const pugi::xml_node co_simulation = root.child("CoSimulation");
  if (std::ranges::any_of(fmu.variables, is_clock) && !co_simulation.attribute("hasEventMode").as_bool())
    rules.broken(Rule::co_simulation, "a unit with clocks has hasEventMode");
  if (!root.child("ScheduledExecution")) return;
  for (const pugi::xml_node clock : root.child("ModelVariables").children("Clock"))
    if (text_of(clock, "causality") == "input" && !clock.attribute("priority"))
      rules.broken(Rule::scheduled_execution, "clock " + in_quotes(text_of(clock, "name")) + " has no priority");
}

}  // namespace

void check_variables(pugi::xml_node root, const Fmu& fmu, const Definitions& definitions, const Numbers& numbers,
                     Rules& rules) {
  const bool is_structured = text_of(root, "variableNamingConvention") == "structured";
  std::set<std::string> names;
  for (const auto& [name, type] : definitions.types) names.insert(name);  // no variable is called like a type
  std::map<std::pair<std::uint32_t, std::string>, std::vector<Described>> by_reference;
  std::set<std::string> previous;
  long independent = 0;
  auto next = fmu.variables.begin();
  for (const pugi::xml_node node : root.child("ModelVariables").children()) {
    if (node.type() != pugi::node_element) continue;
    const FmuVariable& v = *next++;
    const pugi::xml_node typed = typed_node(node, fmu.version);
    const auto type = definitions.types.find(text_of(typed, "declaredType"));
    const Described d{v, typed, type == definitions.types.end() ? pugi::xml_node() : type->second.node, fmu.version,
                      rules};
    by_reference[reference_of(v, fmu.version)].push_back(d);
    independent += v.causality == "independent";
    check_names(d, is_structured, names);
    check_combination(d);
    check_start(d);
    check_range(d);
    check_unit(d, definitions);
    check_type(d, definitions);
    check_derivative(d, numbers);
    check_sizes(d, numbers);
    check_clocks(d, numbers);
    if (!v.previous.empty() && !previous.insert(v.previous).second)
      d.wrong("its previous value is that of another one");
  }
  for (const auto& [reference, all] : by_reference) {
    if (fmu.version == FmiVersion::fmi2) check_aliases(all);
    for (std::size_t i = 1; i < all.size() && fmu.version == FmiVersion::fmi3; ++i)
      all[i].wrong(fmt::format("valueReference {} is that of {}", reference.first, in_quotes(all.front().v.name)));
  }
  check_interfaces(root, fmu, rules);
  if (independent > 1 || (independent == 0 && fmu.version == FmiVersion::fmi3))
    rules.broken(Rule::variable, fmt::format("{} variables are independent, one must be", independent));
}

}  // namespace rigstep::server
