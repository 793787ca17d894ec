#include "server/fmu/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "proto/printable.h"
#include "server/fmu/forms.h"

namespace rigstep::server {

namespace {

// A line is an element: its name, with its parent's in front where it is another one elsewhere; its attributes; behind
// ">" the elements in it, in their order. "!" behind an attribute: it must stand there; ":" and a type, as has_form()
// takes it. "?" behind an element: at most once; "*": any number; "+": at least once; else exactly once. "a|b": one of
// them. "$group" stands for the line of that name. "any": whatever a tool likes.
// Written from the schemas of FMI 2.0.4.
constexpr const char* kSchema2 = R"(
$real         quantity unit displayUnit relativeQuantity:boolean min:double max:double nominal:double unbounded:boolean
$integer      quantity min:int max:int
$capabilities modelIdentifier! needsExecutionTool:boolean canBeInstantiatedOnlyOncePerProcess:boolean canNotUseMemoryManagementFunctions:boolean canGetAndSetFMUstate:boolean canSerializeFMUstate:boolean providesDirectionalDerivative:boolean
fmiModelDescription fmiVersion!:2.0 modelName! guid! description author version copyright license generationTool generationDateAndTime:dateTime variableNamingConvention:flat|structured numberOfEventIndicators:unsignedInt > ModelExchange|CoSimulation* UnitDefinitions? TypeDefinitions? LogCategories? DefaultExperiment? VendorAnnotations? ModelVariables ModelStructure
ModelExchange $capabilities completedIntegratorStepNotNeeded:boolean > SourceFiles?
CoSimulation  $capabilities canHandleVariableCommunicationStepSize:boolean canInterpolateInputs:boolean maxOutputDerivativeOrder:unsignedInt canRunAsynchronuously:boolean > SourceFiles?
SourceFiles   > File+
File          name!
UnitDefinitions > Unit+
Unit          name! > BaseUnit? DisplayUnit*
BaseUnit      kg:int m:int s:int A:int K:int mol:int cd:int rad:int factor:double offset:double
DisplayUnit   name! factor:double offset:double
TypeDefinitions > SimpleType+
SimpleType    name! description > Real|Integer|Boolean|String|Enumeration
SimpleType/Real        $real
SimpleType/Integer     $integer
SimpleType/Boolean     any > any
SimpleType/String      any > any
SimpleType/Enumeration quantity > Item+
Item          name! value!:int description
LogCategories > Category+
Category      name! description
DefaultExperiment startTime:double stopTime:double tolerance:double stepSize:double
VendorAnnotations > Tool+
Annotations   > Tool+
Tool          name! > any
ModelVariables > ScalarVariable+
ScalarVariable name! valueReference!:unsignedInt description causality:parameter|calculatedParameter|input|output|local|independent variability:constant|fixed|tunable|discrete|continuous initial:exact|approx|calculated canHandleMultipleSetPerTimeInstant:boolean > Real|Integer|Boolean|String|Enumeration Annotations?
Real          declaredType $real start:double derivative:unsignedInt reinit:boolean
Integer       declaredType $integer start:int
Boolean       declaredType start:boolean
String        declaredType start
Enumeration   declaredType! $integer start:int
ModelStructure > Outputs? Derivatives? InitialUnknowns?
Outputs       > Unknown+
Derivatives   > Unknown+
InitialUnknowns > Unknown+
Unknown       index!:unsignedInt dependencies:*unsignedInt dependenciesKind:*dependent|constant|fixed|tunable|discrete
)";

// Written from the schemas of FMI 3.0.2. An interface may have any attribute: those of layered standards.
constexpr const char* kSchema3 = R"(
$real          quantity unit displayUnit relativeQuantity:boolean unbounded:boolean
$clock         canBeDeactivated:boolean priority:unsignedInt intervalVariability!:constant|fixed|tunable|changing|countdown|triggered intervalDecimal:float shiftDecimal:float supportsFraction:boolean resolution:unsignedLong intervalCounter:unsignedLong shiftCounter:unsignedLong
$variable      name! valueReference!:unsignedInt description causality:parameter|calculatedParameter|input|output|local|independent|structuralParameter variability:constant|fixed|tunable|discrete|continuous canHandleMultipleSetPerTimeInstant:boolean clocks:*unsignedInt
$array         $variable initial:exact|approx|calculated intermediateUpdate:boolean previous:unsignedInt
$initialised   $array declaredType
$capabilities  any modelIdentifier! needsExecutionTool:boolean canBeInstantiatedOnlyOncePerProcess:boolean canGetAndSetFMUState:boolean canSerializeFMUState:boolean providesDirectionalDerivatives:boolean providesAdjointDerivatives:boolean providesPerElementDependencies:boolean
fmiModelDescription fmiVersion! modelName! instantiationToken! description author version copyright license generationTool generationDateAndTime:dateTime variableNamingConvention:flat|structured > ModelExchange? CoSimulation? ScheduledExecution? UnitDefinitions? TypeDefinitions? LogCategories? DefaultExperiment? ModelVariables ModelStructure Annotations?
ModelExchange  $capabilities needsCompletedIntegratorStep:boolean providesEvaluateDiscreteStates:boolean > Annotations?
CoSimulation   $capabilities canHandleVariableCommunicationStepSize:boolean fixedInternalStepSize:double maxOutputDerivativeOrder:unsignedInt recommendedIntermediateInputSmoothness:int providesIntermediateUpdate:boolean mightReturnEarlyFromDoStep:boolean canReturnEarlyAfterIntermediateUpdate:boolean hasEventMode:boolean providesEvaluateDiscreteStates:boolean > Annotations?
ScheduledExecution $capabilities > Annotations?
UnitDefinitions > Unit+
Unit           name! > BaseUnit? DisplayUnit* Annotations?
BaseUnit       kg:int m:int s:int A:int K:int mol:int cd:int rad:int factor:double offset:double
DisplayUnit    name! factor:double offset:double inverse:boolean > Annotations?
TypeDefinitions > Float32Type|Float64Type|Int8Type|UInt8Type|Int16Type|UInt16Type|Int32Type|UInt32Type|Int64Type|UInt64Type|BooleanType|StringType|BinaryType|EnumerationType|ClockType+
Float32Type    name! description $real min:float max:float nominal:float > Annotations?
Float64Type    name! description $real min:double max:double nominal:double > Annotations?
Int8Type       name! description quantity min:byte max:byte > Annotations?
UInt8Type      name! description quantity min:unsignedByte max:unsignedByte > Annotations?
Int16Type      name! description quantity min:short max:short > Annotations?
UInt16Type     name! description quantity min:unsignedShort max:unsignedShort > Annotations?
Int32Type      name! description quantity min:int max:int > Annotations?
UInt32Type     name! description quantity min:unsignedInt max:unsignedInt > Annotations?
Int64Type      name! description quantity min:long max:long > Annotations?
UInt64Type     name! description quantity min:unsignedLong max:unsignedLong > Annotations?
BooleanType    name! description > Annotations?
StringType     name! description > Annotations?
BinaryType     name! description mimeType maxSize:nonNegativeInteger > Annotations?
EnumerationType name! description quantity min:long max:long > Annotations? Item+
ClockType      name! description $clock > Annotations?
Item           name! value!:long description > Annotations?
LogCategories  > Category+
Category       name! description > Annotations?
DefaultExperiment startTime:double stopTime:double tolerance:double stepSize:double > Annotations?
ModelVariables > Float32|Float64|Int8|UInt8|Int16|UInt16|Int32|UInt32|Int64|UInt64|Boolean|String|Binary|Enumeration|Clock+
Float32        $initialised $real min:float max:float nominal:float start:*float derivative:unsignedInt reinit:boolean > Annotations? Dimension* Alias*
Float64        $initialised $real min:double max:double nominal:double start:*double derivative:unsignedInt reinit:boolean > Annotations? Dimension* Alias*
Int8           $initialised quantity min:byte max:byte start:*byte > Annotations? Dimension* Alias*
UInt8          $initialised quantity min:unsignedByte max:unsignedByte start:*unsignedByte > Annotations? Dimension* Alias*
Int16          $initialised quantity min:short max:short start:*short > Annotations? Dimension* Alias*
UInt16         $initialised quantity min:unsignedShort max:unsignedShort start:*unsignedShort > Annotations? Dimension* Alias*
Int32          $initialised quantity min:int max:int start:*int > Annotations? Dimension* Alias*
UInt32         $initialised quantity min:unsignedInt max:unsignedInt start:*unsignedInt > Annotations? Dimension* Alias*
Int64          $initialised quantity min:long max:long start:*long > Annotations? Dimension* Alias*
UInt64         $initialised quantity min:unsignedLong max:unsignedLong start:*unsignedLong > Annotations? Dimension* Alias*
Boolean        $initialised start:*boolean > Annotations? Dimension* Alias*
String         $initialised > Annotations? Dimension* Start* Alias*
Binary         $initialised mimeType maxSize:nonNegativeInteger > Annotations? Dimension* Start* Alias*
Binary/Start   value:hexBinary
Enumeration    $array declaredType! quantity min:long max:long start:*long > Annotations? Dimension* Alias*
Clock          $variable declaredType $clock > Annotations? Alias*
Dimension      start:unsignedLong valueReference:unsignedInt
Start          value
Alias          name! description
Float32/Alias  name! description displayUnit
Float64/Alias  name! description displayUnit
ModelStructure > Output* ContinuousStateDerivative* ClockedState* InitialUnknown* EventIndicator*
$unknown       valueReference!:unsignedInt dependencies:*unsignedInt dependenciesKind:*dependent|constant|fixed|tunable|discrete > Annotations?
Output         $unknown
ContinuousStateDerivative $unknown
ClockedState   $unknown
InitialUnknown $unknown
EventIndicator $unknown
Annotations    > Annotation+
Annotation     type! > any
fmiTerminalsAndIcons fmiVersion! > GraphicalRepresentation? Terminals? Annotations?
GraphicalRepresentation > CoordinateSystem? Icon? Annotations?
CoordinateSystem x1!:double y1!:double x2!:double y2!:double suggestedScalingFactorTo_mm!:double
Icon           x1!:double y1!:double x2!:double y2!:double
Terminals      > Terminal+
Terminal       name! matchingRule! terminalKind description > TerminalMemberVariable* TerminalStreamMemberVariable* Terminal* TerminalGraphicalRepresentation? Annotations?
TerminalMemberVariable variableName! memberName variableKind! > Annotations?
TerminalStreamMemberVariable inStreamMemberName! outStreamMemberName! inStreamVariableName! outStreamVariableName! > Annotations?
TerminalGraphicalRepresentation defaultConnectionColor:*unsignedByte defaultConnectionStrokeSize:double x1!:double y1!:double x2!:double y2!:double iconBaseName! > Annotations?
)";

struct Attribute {
  std::string name, type;
  bool must_stand = false;
};

// One place in the order of the elements.
struct Place {
  std::vector<std::string> names;
  bool must_stand = false, may_repeat = false;
};

struct Element {
  std::vector<Attribute> attributes;
  std::vector<Place> places;
  bool takes_any_attribute = false, takes_any_element = false;
};

using Schema = std::map<std::string, Element, std::less<>>;

std::vector<std::string> split(std::string_view text, char between) {
  std::vector<std::string> parts;
  std::istringstream stream{std::string(text)};
  for (std::string part; std::getline(stream, part, between);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

Attribute attribute_of(const std::string& word) {
  const std::size_t colon = word.find(':');
  Attribute attribute{word.substr(0, colon), colon == word.npos ? "" : word.substr(colon + 1)};
  attribute.must_stand = attribute.name.back() == '!';
  if (attribute.must_stand) attribute.name.pop_back();
  return attribute;
}

Place place_of(std::string word) {
  const char count = std::string_view("?*+").find(word.back()) == std::string_view::npos ? '1' : word.back();
  if (count != '1') word.pop_back();
  return {split(word, '|'), count == '1' || count == '+', count == '*' || count == '+'};
}

void read_words(const std::vector<std::string>& words, const Schema& groups, Element& element) {
  bool is_attribute = true;
  for (const std::string& word : words)
    if (word == ">") {
      is_attribute = false;
    } else if (word == "any") {
      (is_attribute ? element.takes_any_attribute : element.takes_any_element) = true;
    } else if (word.front() == '$') {
      const Element& group = groups.at(word);
      element.attributes.insert(element.attributes.end(), group.attributes.begin(), group.attributes.end());
      element.places.insert(element.places.end(), group.places.begin(), group.places.end());
      element.takes_any_attribute = element.takes_any_attribute || group.takes_any_attribute;
    } else if (is_attribute) {
      element.attributes.push_back(attribute_of(word));
    } else {
      element.places.push_back(place_of(word));
    }
}

Schema read_schema(const char* text) {
  Schema schema;
  for (const std::string& line : split(text, '\n')) {
    std::vector<std::string> words = split(line, ' ');
    const std::string name = words.front();
    words.erase(words.begin());
    read_words(words, schema, schema[name]);
  }
  return schema;
}

const Schema& schema_of(FmiVersion version) {
  static const Schema kTwo = read_schema(kSchema2), kThree = read_schema(kSchema3);
  return version == FmiVersion::fmi2 ? kTwo : kThree;
}

// What is said of the parts of a description is said with the clause of that part.
std::optional<Rule> rule_of(std::string_view element) {
  static const std::map<std::string_view, Rule> kRules{{"ModelExchange", Rule::model_exchange},
                                                       {"CoSimulation", Rule::co_simulation},
                                                       {"ScheduledExecution", Rule::scheduled_execution},
                                                       {"UnitDefinitions", Rule::unit},
                                                       {"TypeDefinitions", Rule::type},
                                                       {"LogCategories", Rule::log_category},
                                                       {"DefaultExperiment", Rule::experiment},
                                                       {"ModelVariables", Rule::variable},
                                                       {"ModelStructure", Rule::structure},
                                                       {"fmiTerminalsAndIcons", Rule::terminals}};
  const auto found = kRules.find(element);
  return found == kRules.end() ? std::nullopt : std::optional(found->second);
}

// <Float64> "phi"
std::string where_of(pugi::xml_node node) {
  const std::string name = node.attribute("name").value();
  return fmt::format("<{}>", node.name()) + (name.empty() ? "" : " \"" + wire::printable(name) + "\"");
}

std::string listed(const std::vector<std::string>& names) { return fmt::format("<{}>", fmt::join(names, ">, <")); }

// what any element may have: namespaces, and where its schema is
bool is_of_xml(pugi::xml_node node, std::string_view attribute) {
  if (attribute == "xmlns" || attribute.starts_with("xmlns:")) return true;
  const std::size_t colon = attribute.find(':');
  if (colon == attribute.npos) return false;
  const std::string declaration = "xmlns:" + std::string(attribute.substr(0, colon));
  while (node && !node.attribute(declaration.c_str())) node = node.parent();
  return text_of(node, declaration.c_str()) == "http://www.w3.org/2001/XMLSchema-instance";
}

class Walk {
 public:
  Walk(FmiVersion version, Rules& rules) : schema_(schema_of(version)), rules_(rules) {}

  // Without recursion: terminals may stand in each other to any depth.
  void visit(pugi::xml_node top) {
    std::vector<std::pair<pugi::xml_node, Rule>> waiting{{top, Rule::root}};
    while (!waiting.empty() && !rules_.is_full()) {
      const auto [node, inherited] = waiting.back();
      waiting.pop_back();
      const Element* const element = element_of(node);
      if (element == nullptr) continue;  // its parent has told it
      rule_ = rule_of(node.name()).value_or(inherited);
      check_attributes(node, *element);
      if (element->takes_any_element) continue;
      check_order(node, *element);
      for (pugi::xml_node child = node.last_child(); child; child = child.previous_sibling())
        if (child.type() == pugi::node_element) waiting.emplace_back(child, rule_);
    }
  }

 private:
  const Element* element_of(pugi::xml_node node) const {
    auto found = schema_.find(std::string(node.parent().name()) + "/" + node.name());
    if (found == schema_.end()) found = schema_.find(std::string_view(node.name()));
    return found == schema_.end() ? nullptr : &found->second;
  }

  void check_attributes(pugi::xml_node node, const Element& element) {
    const std::string where = where_of(node);
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string_view name = attribute.name();
      const auto known = std::ranges::find(element.attributes, name, &Attribute::name);
      if (known != element.attributes.end()) {
        if (!has_form(attribute.value(), known->type))
          rules_.broken(rule_, fmt::format("{}: {} = \"{}\" is not {}", where, name, wire::printable(attribute.value()),
                                           form_in_words(known->type)));
      } else if (!element.takes_any_attribute && !is_of_xml(node, name)) {
        rules_.broken(rule_, where + ": has no attribute " + wire::printable(name));
      }
    }
    for (const Attribute& attribute : element.attributes)
      if (attribute.must_stand && !node.attribute(attribute.name.c_str()))
        rules_.broken(rule_, where + ": attribute " + attribute.name + " is missing");
  }

  void check_order(pugi::xml_node node, const Element& element) {
    std::vector<int> found(element.places.size(), 0);
    std::size_t last = 0;
    for (const pugi::xml_node child : node.children()) {
      if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata)
        rules_.broken(rule_, where_of(node) + ": has a text in it, which none takes");
      if (child.type() != pugi::node_element) continue;
      const std::string name = child.name();
      const auto is_here = [&](const Place& place) { return std::ranges::count(place.names, name) > 0; };
      const auto place = std::ranges::find_if(element.places, is_here);
      if (place == element.places.end()) {
        rules_.broken(rule_, fmt::format("<{}> is no element of {}", wire::printable(name), node.name()));
        continue;
      }
      const auto at = static_cast<std::size_t>(place - element.places.begin());
      if (++found[at] == 2 && !place->may_repeat)
        rules_.broken(rule_, where_of(node) + ": " + listed(place->names) + ": more than one");
      if (at < last)
        rules_.broken(
            rule_, fmt::format("<{}> stands behind {}, the order is fixed", name, listed(element.places[last].names)));
      last = std::max(last, at);
    }
    for (std::size_t at = 0; at < found.size(); ++at)
      if (element.places[at].must_stand && found[at] == 0)
        rules_.broken(rule_, where_of(node) + ": " + listed(element.places[at].names) + " is missing");
  }

  const Schema& schema_;
  Rules& rules_;
  Rule rule_ = Rule::root;  // of the element that is looked at
};

}  // namespace

void check_schema(pugi::xml_node root, FmiVersion version, Rules& rules) { Walk(version, rules).visit(root); }

}  // namespace rigstep::server
