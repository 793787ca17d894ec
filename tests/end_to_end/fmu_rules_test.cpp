// What breaks the rules of both standards in modelDescription.xml is named, with its clause.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "server/fmu/forms.h"
#include "tests/support/units.h"

using namespace rigstep;
using namespace rigstep::server;
using test::LoadedUnit;
namespace fs = std::filesystem;

namespace {

// A description that keeps all rules. Each check replaces one piece of its text.
class Description {
 public:
  explicit Description(FmiVersion version)
      : unit_(std::make_shared<LoadedUnit>(test::unit_mechanism("templates/cart_pole/mechanism.textproto"), version)),
        clause_(version == FmiVersion::fmi2 ? "FMI 2.0, " : "FMI 3.0, ") {
    std::ifstream file(unit_->fmu.folder / "modelDescription.xml");
    text_ = {std::istreambuf_iterator<char>(file), {}};
    REQUIRE(unit_->fmu.violations.empty());
  }

  // Another description, in which `to` stands in the place of `from`.
  Description with(const std::string& from, const std::string& to) const {
    Description other = *this;
    const std::size_t at = text_.find(from);
    REQUIRE_MESSAGE(at != std::string::npos, from);
    other.text_.replace(at, from.size(), to);
    return other;
  }
  // expected: one of the violations, without the name of the standard
  void breaks(const std::string& from, const std::string& to, const std::string& expected) const {
    CAPTURE(to);
    std::string all;
    bool is_told = false;
    for (const std::string& each : with(from, to).violations()) {
      is_told = is_told || each == clause_ + expected;
      all += each + "\n";
    }
    CHECK_MESSAGE(is_told, "not told: ", expected, "; told: ", all);
  }
  void keeps(const std::string& from, const std::string& to) const {
    CAPTURE(to);
    for (const std::string& each : with(from, to).violations()) FAIL_CHECK(each);
  }
  void refuses(const std::string& from, const std::string& to, const std::string& expected) const {
    CAPTURE(to);
    std::string told = "nothing";
    try {
      with(from, to).violations();
    } catch (const Error& error) {
      told = error.what();
    }
    CHECK_MESSAGE(told.find(expected) != std::string::npos, "not told: ", expected, "; told: ", told);
  }

 private:
  // without those of its files, of which none is shown
  std::vector<std::string> violations() const {
    std::ofstream(unit_->fmu.folder / "modelDescription.xml") << text_;
    std::vector<std::string> found;
    for (const std::string& each : read_fmu(unit_->fmu.folder, {}).violations)
      if (!each.starts_with(clause_ + (clause_ == "FMI 2.0, " ? "2.3: " : "2.5: "))) found.push_back(each);
    return found;
  }

  std::shared_ptr<LoadedUnit> unit_;  // whose folder the descriptions are written to
  std::string clause_, text_;
};

}  // namespace

TEST_CASE("units: values have the forms of XML Schema") {
  for (const char* good : {"0", "-0.5", "1e5", "+1.", ".5", "INF", "-INF", "NaN", " 1 "})
    CHECK(has_form(good, "double"));
  for (const char* bad : {"", "ten", "1,5", "inf", "nan", "0x1", "1e", "--1", "1 2"})
    CHECK_FALSE(has_form(bad, "double"));
  for (const char* good : {"true", "false", "1", "0"}) CHECK(has_form(good, "boolean"));
  for (const char* bad : {"", "True", "yes", "2"}) CHECK_FALSE(has_form(bad, "boolean"));
  CHECK((has_form("127", "byte") && has_form("-128", "byte") && !has_form("128", "byte") && !has_form("1.0", "byte")));
  CHECK((has_form("255", "unsignedByte") && !has_form("256", "unsignedByte") && !has_form("-1", "unsignedByte")));
  CHECK((has_form("-32768", "short") && !has_form("32768", "short") && !has_form("65536", "unsignedShort")));
  CHECK((has_form("4294967295", "unsignedInt") && !has_form("4294967296", "unsignedInt")));
  CHECK((has_form("2147483647", "int") && !has_form("2147483648", "int") && has_form("2147483648", "long")));
  CHECK((has_form("18446744073709551615", "unsignedLong") && !has_form("18446744073709551616", "unsignedLong")));
  CHECK((has_form("00ffA0", "hexBinary") && !has_form("00f", "hexBinary") && !has_form("0g", "hexBinary")));
  CHECK((has_form("fixed", "fixed|tunable") && !has_form("Fixed", "fixed|tunable") && !has_form("", "fixed|tunable")));
  CHECK((has_form("", "*int") && has_form("1 2  3", "*int") && !has_form("1 x", "*int") && has_form("anything", "")));
  CHECK((has_form("99999999999999999999999", "nonNegativeInteger") && !has_form("-1", "nonNegativeInteger")));
  CHECK((form_in_words("*int") == "a list of int" && form_in_words("a|b") == "one of a, b"));
  CHECK((number_of(" +1.5 ") == 1.5 && !number_of("INF") && !number_of("1e999") && !number_of("")));
  for (const char* good : {"2026-11-24T22:00:00Z", "2024-02-29T00:00:00", "2026-11-24T22:00:00.5+01:30",
                           "12026-11-24T24:00:00.000-14:00", "-0044-03-15T12:00:00Z"})
    CHECK(has_form(good, "dateTime"));
  for (const char* bad : {"2026-11-24", "2026-11-24 22:00:00Z", "2026-13-01T00:00:00Z", "2025-02-29T00:00:00Z",
                          "2026-11-24T24:00:01Z", "2026-11-24T22:60:00Z", "2026-11-24T22:00:00.Z",
                          "2026-11-24T22:00:00+1:30", "2026-11-24T22:00:00+15:00", "2026-11-24T22:00:00+14:30",
                          "02026-11-24T22:00:00Z", "0000-11-24T22:00:00Z", "2026-11-24T24:00:00.1Z", "today", ""})
    CHECK_FALSE(has_form(bad, "dateTime"));
  for (const char* good : {"3.0", "3.0.2", "3.1", "3.0-beta.1", "3.0.2-x"}) CHECK(is_version_3(good));
  for (const char* bad : {"3", "3.", "3.0.", "3.00", "3.0.abc", "3.0-", "2.0", "3.0.2.1"})
    CHECK_FALSE(is_version_3(bad));
}

TEST_CASE("units: names follow the grammar of structured names") {
  for (const char* good : {"v", "_v2", "vehicle.engine.speed", "pipe[3,4].T[14]", "der(x)", "der(pipe[3,4].T[14],2)",
                           "robot.axis.'motor #234'", "'a\\'b'.c"})
    CHECK_MESSAGE(is_structured_name(good), good);
  for (const char* bad :
       {"",      "2v",      "v.",      ".v",       "v..w",    "v[", "v[]", "v[1,]",  "v[x]", "der(", "der()",
        "der(x", "der((x)", "der(x,)", "der(x,y)", "der(( 1", "''", "'a",  "'a\\q'", "a'b'", "a b",  "m\xc3\xa4"})
    CHECK_FALSE_MESSAGE(is_structured_name(bad), bad);
  CHECK((is_c_name("four_bar2") && !is_c_name("2a") && !is_c_name("a.b") && !is_c_name("der(a)") && !is_c_name("")));
}

TEST_CASE("units: FMI 3.0, elements and attributes that the schema does not allow") {
  const Description unit(FmiVersion::fmi3);
  unit.breaks("modelName=", "modelname=", "2.4.1: <fmiModelDescription>: has no attribute modelname");
  unit.breaks("modelName=", "modelname=", "2.4.1: <fmiModelDescription>: attribute modelName is missing");
  unit.breaks("DefaultExperiment", "Experiment", "2.4.1: <Experiment> is no element of fmiModelDescription");
  unit.breaks("<ModelStructure>", "<DefaultExperiment/><ModelStructure>",
              "2.4.1: <DefaultExperiment> stands behind <ModelVariables>, the order is fixed");
  unit.breaks("<DefaultExperiment ", "<DefaultExperiment/><DefaultExperiment ",
              "2.4.1: <fmiModelDescription>: <DefaultExperiment>: more than one");
  unit.breaks("<DefaultExperiment ", "<TypeDefinitions/><DefaultExperiment ",
              "2.4.1: <TypeDefinitions> stands behind <LogCategories>, the order is fixed");
  unit.breaks("<LogCategories>", "<LogCategories>text", "2.4.5: <LogCategories>: has a text in it, which none takes");
  unit.breaks(R"(<Float64 name="angle")", R"(<Float65 name="angle")",
              "2.4.7: <Float65> is no element of ModelVariables");
  unit.breaks(R"(Step="true")", R"(Step="yes")",
              R"(Co-Simulation Schema: <CoSimulation>: mightReturnEarlyFromDoStep = "yes" is not boolean)");
  unit.breaks("generationDateAndTime=", R"(generationDateAndTime="now" author=)",
              R"(2.4.1: <fmiModelDescription>: generationDateAndTime = "now" is not dateTime)");
  unit.breaks(
      R"(causality="input")", R"(causality="inward")",
      R"(2.4.7: <Float64> "force": causality = "inward" is not one of parameter, calculatedParameter, input, output, local, independent, structuralParameter)");
  unit.breaks(R"(valueReference="11")", R"(valueReference="-11")",
              R"(2.4.7: <Float64> "rail_friction": valueReference = "-11" is not unsignedInt)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" minimum="1" />)",
              R"(2.4.7: <Float64> "angle": has no attribute minimum)");
  unit.breaks("<Dimension start=\"3\" />", "<Dimension start=\"3.5\" />",
              R"(2.4.7: <Dimension>: start = "3.5" is not unsignedLong)");
  unit.breaks(R"(<BaseUnit kg="1")", R"(<BaseUnit g="1")", "2.4.3: <BaseUnit>: has no attribute g");
  unit.breaks(R"(<BaseUnit kg="1")", R"(<BaseUnit kg="1.5")", R"(2.4.3: <BaseUnit>: kg = "1.5" is not int)");
  unit.breaks(R"(<Output valueReference="1" dependencies="" />)", R"(<Output valueReference="1" dependencies="x" />)",
              R"(2.4.8: <Output>: dependencies = "x" is not a list of unsignedInt)");
  // what tools and layered standards add
  unit.keeps("<CoSimulation ", R"(<CoSimulation xmlns:xcp="urn:xcp" xcp:version="1" )");
  unit.keeps(
      "</ModelStructure>",
      R"(</ModelStructure><Annotations><Annotation type="tool"><any x="1">text</any></Annotation></Annotations>)");
  unit.keeps(
      "<Unit name=\"N\">",
      R"(<Unit name="deg"><BaseUnit rad="1" factor="0.0174532925199433"/><DisplayUnit name="turn" factor="0.00277777777777778"/></Unit><Unit name="N">)");
}

TEST_CASE("units: FMI 3.0, what variables, types, units and the structure say of each other") {
  const Description unit(FmiVersion::fmi3);
  const std::string variables = "</ModelVariables>", types = "<LogCategories>";
  const auto with_type = [&](const std::string& type) {
    return "<TypeDefinitions>" + type + "</TypeDefinitions>" + types;
  };
  const auto variable = [&](const std::string& text) { return text + variables; };
  // units and types
  unit.breaks(R"(unit="rad" />)", R"(unit="degree" />)", R"(2.4.3: variable "angle": unit "degree" is not defined)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" displayUnit="deg" />)",
              R"(2.4.3: variable "angle": displayUnit "deg" is none of its unit)");
  unit.breaks(R"(<Unit name="m">)", R"(<Unit name="N">)", R"(2.4.3: unit "N" is defined twice)");
  unit.breaks(R"(<BaseUnit rad="1" />)", R"(<BaseUnit rad="1" factor="0" />)",
              R"(2.4.3: unit "rad": <BaseUnit>: factor is zero)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" declaredType="angle_t" />)",
              R"(2.4.7: variable "angle": declaredType "angle_t" is not defined)");
  unit.breaks(types, with_type(R"(<Int8Type name="a" /><Int8Type name="a" />)"), R"(2.4.4: type "a" is defined twice)");
  unit.breaks(types, with_type(R"(<Float64Type name="a" unit="x" />)"), R"(2.4.4: type "a": unit "x" is not defined)");
  unit.breaks(
      types,
      with_type(R"(<EnumerationType name="a"><Item name="x" value="1"/><Item name="y" value="1"/></EnumerationType>)"),
      R"(2.4.4: type "a": value "1" stands there twice)");
  unit.breaks(types, with_type(R"(<EnumerationType name="a" />)"),
              R"(2.4.4: <EnumerationType> "a": <Item> is missing)");
  unit.breaks(variables, variable(R"(<Enumeration name="e" valueReference="99" start="1" causality="input" />)"),
              R"(2.4.7: <Enumeration> "e": attribute declaredType is missing)");
  // names and references
  unit.breaks(R"(name="angle")", R"(name="force")", R"(2.4.7: variable "force": another one has this name)");
  unit.breaks(R"(valueReference="1" )", R"(valueReference="0" )",
              R"(2.4.7: variable "angle": valueReference 0 is that of "force")");
  unit.breaks(R"(name="angle")", R"(name="the angle")", R"(2.4.7.5.1: variable "the angle": is no structured name)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad"><Alias name="force"/></Float64>)",
              R"(2.4.7: variable "force": another one has this name)");
  // causality, variability, initial, start
  unit.breaks(R"(causality="parameter" variability="tunable")", R"(causality="parameter" variability="discrete")",
              R"(2.4.7: variable "rail_friction": a parameter is fixed or tunable, not "discrete")");
  unit.breaks(R"(causality="input" variability="continuous")", R"(causality="input" variability="fixed")",
              R"(2.4.7: variable "force": an input is not "fixed")");
  unit.breaks(R"(causality="output" variability="continuous")", R"(causality="output" variability="tunable")",
              R"(2.4.7: variable "angle": an output is not "tunable")");
  unit.breaks(R"(causality="independent" variability="continuous")",
              R"(causality="independent" variability="discrete")",
              R"(2.4.7: variable "time": the independent variable is continuous)");
  unit.breaks(R"(causality="independent")", R"(causality="local" initial="calculated")",
              "2.4.7: 0 variables are independent, one must be");
  unit.breaks(R"(causality="local" variability="discrete")", R"(causality="local" variability="continuous")",
              R"(2.4.7: variable "rigstep.step_status": only real variables are continuous)");
  unit.breaks(R"(causality="input")", R"(causality="input" initial="approx")",
              R"(2.4.7: variable "force": an input has no initial)");
  unit.breaks(R"(initial="exact")", R"(initial="approx")",
              R"(2.4.7: variable "rail_friction": initial is exact, not "approx")");
  unit.breaks(R"(causality="local" variability="discrete" initial="calculated")",
              R"(causality="local" variability="fixed" initial="exact" start="0")",
              R"(2.4.7: variable "rigstep.step_status": what others determine is not exact at the start)");
  unit.breaks(R"(unit="N" start="0")", R"(unit="N")", R"(2.4.7: variable "force": needs a start value)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" start="1" />)",
              R"(2.4.7: variable "angle": is calculated, so it has no start value)");
  unit.breaks(R"(variability="continuous" unit="s")", R"(variability="continuous" unit="s" start="1")",
              R"(2.4.7: variable "time": the independent variable has no start value)");
  unit.breaks(R"(min="0" max="40")", R"(min="50" max="40")", R"(2.4.7: variable "rail_friction": min is above max)");
  unit.breaks(R"(start="4")", R"(start="41")", R"(2.4.7: variable "rail_friction": start lies outside min and max)");
  unit.breaks(R"(start="4")", R"(start="4 5" ><Dimension start="3"/></Float64><Float64 name="x" valueReference="98")",
              R"(2.4.7: variable "rail_friction": has 2 start values for 3 elements)");
  unit.breaks(variables, variable(R"(<Int8 name="i" valueReference="99" causality="parameter" start="9" max="8" />)"),
              R"(2.4.7: variable "i": start lies outside min and max)");
  unit.breaks(variables, variable(R"(<String name="s" valueReference="99" causality="parameter" />)"),
              R"(2.4.7: variable "s": needs a start value)");
  unit.keeps(variables,
             variable(R"(<String name="s" valueReference="99" causality="parameter"><Start value="x"/></String>)"));
  const std::string co_simulation = "<CoSimulation ", with_events = R"(<CoSimulation hasEventMode="true" )";
  unit.with(co_simulation, with_events)
      .keeps("</ModelVariables>\n  <ModelStructure>",
             variable(R"(<Clock name="c" valueReference="99" causality="output" intervalVariability="triggered" />)") +
                 R"(<ModelStructure><Output valueReference="99" />)");
  unit.keeps(variables, variable(R"(<UInt64 name="n" valueReference="98" causality="structuralParameter" start="2" />)"
                                 R"(<Float64 name="a" valueReference="99" causality="parameter" start="1 2 3 4">)"
                                 R"(<Dimension valueReference="98" /><Dimension start="2" /></Float64>)"));
  unit.keeps(variables,
             variable(R"(<Binary name="b" valueReference="99" causality="parameter"><Start value="00ff" /></Binary>)"));
  unit.breaks(variables, variable(R"(<Binary name="b" valueReference="99" causality="parameter" start="00" />)"),
              R"(2.4.7: <Binary> "b": has no attribute start)");
  // what names another variable
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" derivative="99" />)",
              R"(2.4.7: variable "angle": derivative "99" is no variable)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" derivative="13" />)",
              R"(2.4.7: variable "angle": is the derivative of "rigstep.step_status", which is not continuous)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" previous="13" />)",
              R"(2.4.7: variable "angle": previous is of another type)");
  unit.breaks(R"(unit="rad" />)", R"(unit="rad" clocks="0" />)", R"(2.4.7: variable "angle": "force" is no clock)");
  unit.breaks(R"(<Dimension start="3" />)", R"(<Dimension />)",
              R"(2.4.7: variable "bodies.cart.position": a dimension has either start or valueReference)");
  unit.breaks(R"(<Dimension start="3" />)", R"(<Dimension start="0" />)",
              R"(2.4.7: variable "bodies.cart.position": a dimension is zero)");
  unit.breaks(
      R"(<Dimension start="3" />)", R"(<Dimension valueReference="1" />)",
      R"(2.4.7: variable "bodies.cart.position": a dimension is no constant and no structural parameter of type UInt64)");
  // the structure
  unit.breaks(R"(<Output valueReference="1" )", R"(<Output valueReference="99" )",
              R"(2.4.8: output "99" is no variable)");
  unit.breaks(R"(<Output valueReference="1" )", R"(<Output valueReference="2" )",
              R"(2.4.8: output "angle_rate": stands there twice)");
  unit.breaks(R"(<Output valueReference="1" )", R"(<Output valueReference="0" )",
              R"(2.4.8: "force" is listed as an output and is none)");
  unit.breaks(R"(<Output valueReference="1" dependencies="" />)", "",
              R"(2.4.8: "angle" is an output and is not listed as one)");
  unit.breaks(R"(<InitialUnknown valueReference="1" />)", "",
              R"(2.4.8: "angle" is missing among the initial unknowns)");
  unit.breaks(R"(dependencies="")", R"(dependencies="98")",
              R"(2.4.8: output "angle": depends on "98", which is no variable)");
  unit.breaks(R"(dependencies="")", R"(dependencies="0 0")", R"(2.4.8: output "angle": depends on "force" twice)");
  unit.breaks(R"(dependencies="")", R"(dependencies="0" dependenciesKind="fixed fixed")",
              R"(2.4.8: output "angle": has 2 kinds of 1 dependencies)");
  unit.breaks(R"(dependencies="")", R"(dependenciesKind="fixed")",
              R"(2.4.8: output "angle": dependenciesKind without dependencies)");
  unit.breaks(R"(<InitialUnknown valueReference="1" />)", R"(<ContinuousStateDerivative valueReference="2" />)",
              R"(2.4.8: "angle_rate" is listed as a derivative and says not of what)");
  // the whole
  unit.breaks(R"(stopTime="10")", R"(stopTime="-1")", "2.4.6: <DefaultExperiment>: stopTime is before startTime");
  unit.breaks(R"(StepSize="0.001")", R"(StepSize="0")",
              "Co-Simulation Schema: fixedInternalStepSize is not above zero");
  unit.breaks(R"(canGetAndSetFMUState="true")", "",
              "Co-Simulation Schema: canSerializeFMUState without canGetAndSetFMUState");
  unit.breaks(R"(name="logAll")", R"(name="logStatusError")", R"(2.4.5: category "logStatusError" is defined twice)");
}

TEST_CASE("units: FMI 2.0, what its schema and its rules do not allow") {
  const Description unit(FmiVersion::fmi2);
  const std::string variables = "</ModelVariables>", types = "<LogCategories>";
  const auto variable = [&](const std::string& attributes, const std::string& type) {
    return "<ScalarVariable name=\"added\" " + attributes + ">" + type + "</ScalarVariable>" + variables;
  };
  unit.breaks("guid=", "instantiationToken=", "2.2.1: <fmiModelDescription>: attribute guid is missing");
  unit.breaks("canGetAndSetFMUstate", "canGetAndSetFMUState",
              "4.3.1: <CoSimulation>: has no attribute canGetAndSetFMUState");
  unit.breaks(R"(canSerializeFMUstate="true")", R"(canSerializeFMUstate="yes")",
              R"(4.3.1: <CoSimulation>: canSerializeFMUstate = "yes" is not boolean)");
  unit.breaks(R"(<Real unit="rad" />)", "",
              R"(2.2.7: <ScalarVariable> "angle": <Real>, <Integer>, <Boolean>, <String>, <Enumeration> is missing)");
  unit.breaks(
      R"(<Real unit="rad" />)", R"(<Real unit="rad" /><Integer />)",
      R"(2.2.7: <ScalarVariable> "angle": <Real>, <Integer>, <Boolean>, <String>, <Enumeration>: more than one)");
  unit.breaks(R"(<Real unit="rad" />)", R"(<Float64 unit="rad" />)",
              "2.2.7: <Float64> is no element of ScalarVariable");
  unit.breaks(R"(<Real unit="rad" />)", R"(<Real unit="rad" displayUnit="deg" />)",
              R"(2.2.2: variable "angle": displayUnit "deg" is none of its unit)");
  unit.breaks(variables, variable(R"(valueReference="99" causality="parameter")", "<String />"),
              R"(2.2.7: variable "added": needs a start value)");
  unit.breaks(
      variables,
      variable(R"(valueReference="99" causality="parameter" variability="fixed")", R"(<Integer start="5" max="4" />)"),
      R"(2.2.7: variable "added": start lies outside min and max)");
  unit.breaks(variables, variable(R"(valueReference="0" causality="input")", R"(<Real unit="N" start="0" />)"),
              R"(2.2.7: variable "added": and its alias "force" can both be set)");
  unit.breaks(variables, variable(R"(valueReference="0" initial="calculated")", R"(<Real unit="m" />)"),
              R"(2.2.7: variable "added": has another unit than its alias "force")");
  unit.keeps(variables, variable(R"(valueReference="0" initial="calculated")", R"(<Real unit="N" />)"));
  unit.keeps(variables,
             R"(<ScalarVariable name="x" valueReference="98"><Real /></ScalarVariable>)"
             R"x(<ScalarVariable name="der(x)" valueReference="99"><Real derivative="30" /></ScalarVariable>)x" +
                 variables);
  unit.keeps("<UnitDefinitions>", R"(<ModelExchange modelIdentifier="cart_pole" /><UnitDefinitions>)");
  unit.breaks(variables, variable(R"(valueReference="99")", R"(<Real displayUnit="deg" />)"),
              R"(2.2.2: variable "added": displayUnit "deg" without a unit)");
  unit.keeps(types,
             R"(<TypeDefinitions><SimpleType name="t"><Real unit="rad"/></SimpleType></TypeDefinitions>)" + types);
  unit.breaks(types, R"(<TypeDefinitions><SimpleType name="angle"><Real/></SimpleType></TypeDefinitions>)" + types,
              R"(2.2.7: variable "angle": another one has this name)");
  unit.breaks(types, R"(<TypeDefinitions><SimpleType name="t"/></TypeDefinitions>)" + types,
              R"(2.2.3: <SimpleType> "t": <Real>, <Integer>, <Boolean>, <String>, <Enumeration> is missing)");
  unit.breaks(R"(<Unknown index="2" dependencies="" />)", R"(<Unknown index="2" dependencies="12 1" />)",
              R"(2.2.8: output "angle": dependencies are not in ascending order)");
  unit.breaks(R"(<Unknown index="2" dependencies="" />)", R"(<Unknown index="0" dependencies="" />)",
              R"(2.2.8: output "0" is no variable)");
  unit.breaks(R"(<Unknown index="2" />)", R"(<Unknown index="3" />)",
              R"(2.2.8: initial unknown "angle_rate": stands there twice)");
  unit.breaks("<InitialUnknowns>", R"(<InitialUnknowns><Unknown index="12" />)",
              R"(2.2.8: initial unknown "angle": is not in ascending order)");
  unit.breaks(R"(stopTime="10")", R"(stopTime="-10")", "2.2.5: <DefaultExperiment>: stopTime is before startTime");
  unit.breaks(R"(<Real unit="rad" />)", R"(<Real unit="rad" nominal="0" />)",
              R"(2.2.7: variable "angle": nominal is not above zero)");
}

TEST_CASE("units: files that must stand beside others") {
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const LoadedUnit unit(test::unit_mechanism("templates/cart_pole/mechanism.textproto"), version);
    const std::string clause = version == FmiVersion::fmi2 ? "FMI 2.0, 2.3: " : "FMI 3.0, 2.5: ";
    const std::string binary = unit.fmu.binary().lexically_relative(unit.fmu.folder).string();
    const auto violations = [&](std::vector<std::string> names) {
      names.push_back(binary);
      std::string all;
      for (const std::string& each : read_fmu(unit.fmu.folder, {names, {}}).violations) all += each + "\n";
      return all;
    };
    CHECK(violations({}).empty());
    CHECK(violations({"documentation/externalDependencies.html"}).empty());
    CHECK(violations({"documentation/index.html", "documentation/more.html"}).empty());
    CHECK(violations({"documentation/more.html"}) == clause + "documentation/ has no index.html to begin with\n");
    const std::string licenses = version == FmiVersion::fmi2 ? "licenses/" : "documentation/licenses/";
    CHECK(violations({licenses + "license.txt"}).empty());
    CHECK(violations({licenses + "more.txt"}) ==
          clause + licenses + " has no license.txt or license.html to begin with\n");
    if (version == FmiVersion::fmi2) continue;
    CHECK(violations({"sources/a.c"}) == clause + "sources/ has no buildDescription.xml\n");
    CHECK(violations({"sources/a.c", "sources/buildDescription.xml"}).empty());
    CHECK(violations({"terminalsAndIcons/icon.svg"}) == clause + "terminalsAndIcons/icon.svg without a .png\n");
  }
}

TEST_CASE("units: what is no XML is refused with its place") {
  const Description unit(FmiVersion::fmi3);
  unit.refuses(R"(modelName="cart_pole")", R"(modelName="a" modelName="b")", "duplicate attribute in line 2");
  unit.refuses("<ModelStructure>", "<ModelStructure>&unknown;", "undefined entity in line");
  unit.refuses("</fmiModelDescription>", "</fmiModelDescription><second/>", "junk after document element in line");
  unit.refuses("</fmiModelDescription>", "", "no element found in line");
  unit.refuses(R"(modelName="cart_pole")", "modelName=\"\xff\"", "is not UTF-8 text");
  unit.refuses("<CoSimulation ", R"(<CoSimulation xcp:version="1" )", "unbound prefix in line");
  unit.refuses("<fmiModelDescription", R"(<!DOCTYPE a [<!ENTITY b "c">]><fmiModelDescription)",
               "a document type with definitions, which are not read here in line 2");
  unit.refuses(R"(fmiVersion="3.0)", R"(fmiVersion="3.x)", "FMI 2.0 and 3.0 are known here");
  unit.breaks(R"(encoding="UTF-8")", R"(encoding="ISO-8859-1")", R"(2.4.1: the encoding is UTF-8, not "ISO-8859-1")");
  unit.keeps(R"(encoding="UTF-8")", R"(encoding="utf-8")");
  unit.keeps("<fmiModelDescription", R"(<!DOCTYPE a><!-- text --><?tool x?><fmiModelDescription)");
  unit.breaks(R"( encoding="UTF-8")", "", "2.4.1: the first line does not say that the encoding is UTF-8");
  unit.breaks(R"(fmiVersion="3.0)", R"(fmiVersion="3.0-beta.2)",
              R"(2.4.9: fmiVersion "3.0" is not that of modelDescription.xml)");
}

TEST_CASE("units: FMI 3.0, declared types, clocks, states and what depends on what") {
  const Description unit(FmiVersion::fmi3);
  const std::string end = "</ModelVariables>", types = "<LogCategories>", begin_of_structure = "\n  <ModelStructure>";
  const auto with = [&](const std::string& variable, const std::string& listed = {}) {
    return variable + end + begin_of_structure + listed;
  };
  const auto breaks = [&](const std::string& text, const std::string& expected) {
    unit.breaks(end + begin_of_structure, text, expected);
  };
  const auto keeps = [&](const std::string& text) { unit.keeps(end + begin_of_structure, text); };
  // declared types
  const std::string type = R"(<TypeDefinitions><Float64Type name="t" unit="N" max="3"/>)"
                           R"(<EnumerationType name="gear"><Item name="low" value="1"/><Item name="high" value="4"/>)"
                           R"(</EnumerationType></TypeDefinitions>)";
  const auto in_types = [&](const std::string& text) {
    return unit.with(types, type + types).with("<ModelVariables>", "<ModelVariables>" + text);
  };
  in_types(R"(<Float64 name="a" valueReference="99" causality="parameter" declaredType="t" start="4"/>)")
      .breaks("", "", R"(2.4.7: variable "a": start lies outside min and max)");
  in_types(R"(<Float64 name="a" valueReference="99" causality="parameter" declaredType="t" max="5" start="4"/>)")
      .keeps("", "");
  in_types(R"(<Enumeration name="a" valueReference="99" causality="parameter" declaredType="gear" start="2"/>)")
      .breaks("", "", R"(2.4.7: variable "a": start 2 is no item of its type)");
  in_types(R"(<Enumeration name="a" valueReference="99" causality="parameter" declaredType="gear" start="4"/>)")
      .keeps("", "");
  in_types(R"(<Float64 name="t" valueReference="99"/>)")
      .breaks("", "", R"(2.4.7: variable "t": another one has this name)");
  const auto breaks_type = [&](const std::string& text, const std::string& expected) {
    unit.breaks(types, "<TypeDefinitions>" + text + "</TypeDefinitions>" + types, expected);
  };
  breaks_type(R"(<Int8Type name="a" min="2" max="1"/>)", R"(2.4.4: type "a": min is above max)");
  breaks_type(R"(<Int8Type name=""/>)", "2.4.4: a type has no name");
  breaks_type(R"(<Int8Type name="my type"/>)", R"(2.4.7.5.1: type "my type": is no structured name)");
  breaks_type(R"(<Float64Type name="a" unit="rad" displayUnit="x"/>)",
              R"(2.4.4: type "a": displayUnit "x" is none of its unit)");
  breaks_type(R"(<Float64Type name="a" displayUnit="x"/>)", R"(2.4.4: type "a": displayUnit "x" without a unit)");
  breaks_type(R"(<EnumerationType name="a"><Item name="" value="1"/></EnumerationType>)",
              "2.4.4: a <Item> has no name");
  breaks_type(R"(<ClockType name="a" intervalVariability="fixed" intervalDecimal="0"/>)",
              R"(2.4.4: type "a": the interval of a clock is not above zero)");
  unit.breaks(R"(start="4")", R"(start=" +41 ")", R"(2.4.7: variable "rail_friction": start lies outside min and max)");
  // texts and sizes
  breaks(
      with(
          R"(<String name="a" valueReference="99" causality="parameter"><Start value="x"/><Start value="y"/></String>)"),
      R"(2.4.7: variable "a": has 2 start values for 1 elements)");
  keeps(with(R"(<Binary name="a" valueReference="99" maxSize="99999999999999999999999"/>)"));
  breaks(with(R"(<UInt64 name="n" valueReference="98" causality="structuralParameter" start="0"/>)"
              R"(<Float64 name="a" valueReference="99"><Dimension valueReference="98"/></Float64>)"),
         R"(2.4.7: variable "a": a dimension is zero at the start, which "n" says)");
  breaks(
      with(
          R"(<UInt64 name="n" valueReference="98" causality="structuralParameter" start="1"><Dimension start="2"/></UInt64>)"),
      R"(2.4.7: variable "n": a structural parameter has no dimension)");
  const std::string matrix = R"(<UInt64 name="n" valueReference="98" causality="structuralParameter" start="2"/>)"
                             R"(<Float64 name="a" valueReference="97" causality="parameter" start="1 2 3">)"
                             R"(<Dimension valueReference="98"/><Dimension start="2"/></Float64>)";
  breaks(with(matrix), R"(2.4.7: variable "a": has 3 start values for 4 elements)");
  breaks(with(R"(<Int8 name="a" valueReference="98" causality="parameter" start=" "/>)"),
         R"(2.4.7: variable "a": needs a start value)");
  keeps(with(R"(<UInt8 name="a" valueReference="98" causality="input" initial="exact" start="-0"/>)"));
  // clocks
  const std::string clock =
      R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="triggered"/>)";
  const auto clocked = [&](const std::string& variables, const std::string& listed = {}) {
    return with(clock + variables, listed);
  };
  const Description timed = unit.with("<CoSimulation ", R"(<CoSimulation hasEventMode="true" )");
  timed
      .with(end + begin_of_structure,
            clocked(R"(<Int32 name="z" valueReference="97" variability="discrete" clocks="98" previous="96" )"
                    R"(initial="exact" start="0"/><Int32 name="y" valueReference="96" clocks="98"/>)"))
      .keeps(R"(<InitialUnknown valueReference="1")",
             R"(<ClockedState valueReference="97"/><InitialUnknown valueReference="1")");
  breaks(clocked(R"(<Int32 name="z" valueReference="97" variability="discrete" clocks="98"/>)",
                 R"(<ClockedState valueReference="97"/>)"),
         R"(2.4.8: "z" is listed as a clocked state and has no previous value)");
  breaks(clocked(R"(<Int32 name="z" valueReference="97" previous="97" clocks="98"/>)"),
         R"(2.4.7: variable "z": is its own previous value)");
  breaks(clocked(R"(<Int32 name="z" valueReference="97" previous="13"/>)"),
         R"(2.4.7: variable "z": has a previous value and is not discrete with a clock)");
  breaks(clocked(R"(<Int32 name="z" valueReference="97" previous="13" clocks="98"/>)"
                 R"(<Int32 name="y" valueReference="96" previous="13" clocks="98"/>)"),
         R"(2.4.7: variable "y": its previous value is that of another one)");
  breaks(clocked(R"(<Float64 name="z" valueReference="97" variability="continuous" clocks="98"/>)"),
         R"(2.4.7: variable "z": what clocks drive is discrete or tunable, not "continuous")");
  breaks(
      with(R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="triggered" previous="1"/>)"),
      R"(2.4.7: <Clock> "c": has no attribute previous)");
  breaks(with(R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="constant"/>)"),
         R"(2.4.7: variable "c": a clock with a constant or fixed interval needs its length)");
  breaks(
      with(
          R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="fixed" intervalDecimal="0"/>)"),
      R"(2.4.7: variable "c": the interval of a clock is not above zero)");
  breaks(
      with(
          R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="fixed" intervalCounter="2"/>)"),
      R"(2.4.7: variable "c": intervalCounter without resolution)");
  timed.keeps(
      end + begin_of_structure,
      with(
          R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="fixed" intervalDecimal="0.1"/>)"));
  breaks(clocked(""), "Co-Simulation Schema: a unit with clocks has hasEventMode");
  unit.with(end + begin_of_structure, clocked(""))
      .breaks("<UnitDefinitions>", R"(<ScheduledExecution modelIdentifier="s"/><UnitDefinitions>)",
              R"(Scheduled Execution Schema: clock "c" has no priority)");
  breaks(
      with(R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="triggered" resolution="2"/>)"),
      R"(2.4.7: variable "c": a triggered clock is not periodic, so it has no resolution)");
  breaks(
      with(R"(<Clock name="c" valueReference="98" causality="input" intervalVariability="fixed" shiftCounter="2"/>)"),
      R"(2.4.7: variable "c": shiftCounter without supportsFraction)");
  breaks(with(R"(<Clock name="c" valueReference="98" causality="parameter" intervalVariability="triggered"/>)"),
         R"(2.4.7: variable "c": a clock is input, output or local, not "parameter")");
  // states and derivatives
  const std::string state =
      R"(<Float64 name="x" valueReference="97"/><Float64 name="v" valueReference="98" derivative="97"/>)";
  const std::string derivative = R"(<ContinuousStateDerivative valueReference="98"/>)";
  const auto listed = [&](const std::string& unknowns) {
    return unit.with(end + begin_of_structure, with(state))
        .with(R"(<InitialUnknown valueReference="1")", derivative + unknowns + R"(<InitialUnknown valueReference="1")");
  };
  const std::string both = R"(<InitialUnknown valueReference="97"/><InitialUnknown valueReference="98"/>)";
  listed(both).keeps("", "");
  listed(R"(<InitialUnknown valueReference="98"/>)")
      .breaks("", "", R"(2.4.8: "x" is missing among the initial unknowns)");
  listed(R"(<InitialUnknown valueReference="97"/>)")
      .breaks("", "", R"(2.4.8: "v" is missing among the initial unknowns)");
  listed(both + R"(<InitialUnknown valueReference="0"/>)")
      .breaks("", "", R"(2.4.8: "force" is listed as an initial unknown and is none)");
  listed(both).keeps(R"(dependencies="")", R"(dependencies="97 0 11")");
  listed(both).breaks(R"(dependencies="")", R"(dependencies="98")",
                      R"(2.4.8: output "angle": depends on "v", which is unknown itself)");
  unit.breaks(R"(<InitialUnknown valueReference="1" />)", R"(<InitialUnknown valueReference="1" dependencies="2" />)",
              R"(2.4.8: initial unknown "angle": depends on "angle_rate", which is unknown itself)");
  unit.keeps(R"(<InitialUnknown valueReference="1" />)",
             R"(<InitialUnknown valueReference="1" dependencies="0 11" dependenciesKind="dependent constant" />)");
  unit.breaks(R"(<InitialUnknown valueReference="1" />)",
              R"(<InitialUnknown valueReference="1" dependencies="11" dependenciesKind="tunable" />)",
              R"(2.4.8: initial unknown "angle": its dependencies are dependent or constant, not tunable)");
  unit.breaks("</ModelStructure>", R"(<EventIndicator valueReference="13"/></ModelStructure>)",
              R"(2.4.8: "rigstep.step_status" is listed as an event indicator and is no continuous float)");
  const std::string counter = R"(<Int32 name="n" valueReference="97" causality="output"/>)";
  const Description counting =
      unit.with(end + begin_of_structure, with(counter, R"(<Output valueReference="97" />)"))
          .with("<InitialUnknown ", R"(<InitialUnknown valueReference="97"/><InitialUnknown )");
  counting.keeps(R"(dependencies="")", R"(dependencies="97")");
  counting.breaks(R"(<Output valueReference="97" />)",
                  R"(<Output valueReference="97" dependencies="0" dependenciesKind="constant" />)",
                  R"(2.4.8: output "n": its dependencies are dependent, as it is no float, not constant)");
  unit.with(end + begin_of_structure, with(R"(<Float64 name="x" valueReference="97" causality="input" start="0"/>)"
                                           R"(<Float64 name="v" valueReference="98" derivative="97"/>)"))
      .breaks("<InitialUnknown ", derivative + "<InitialUnknown ",
              R"(2.4.8: "x" is a state, which is local or output, not "input")");
  unit.with(end + begin_of_structure,
            with(R"(<Float64 name="x" valueReference="97"/>)"
                 R"(<Float64 name="v" valueReference="98" variability="discrete" derivative="97"/>)"))
      .breaks("<InitialUnknown ", derivative + "<InitialUnknown ",
              R"(2.4.8: "v" is listed as a derivative and is no continuous float)");
  unit.breaks("</ModelStructure>", R"(<EventIndicator valueReference="0"/></ModelStructure>)",
              R"(2.4.8: "force" is an event indicator, which is local or output, not "input")");
  // the rest of the attributes
  unit.breaks(R"(start="4")", R"(start="4" intermediateUpdate="true")",
              R"(2.4.7: variable "rail_friction": a parameter has no intermediateUpdate)");
  unit.breaks(R"(start="4")", R"(start="4" canHandleMultipleSetPerTimeInstant="true")",
              R"(2.4.7: variable "rail_friction": canHandleMultipleSetPerTimeInstant is for inputs)");
  unit.breaks("<CoSimulation ", R"(<ModelExchange modelIdentifier="../evil"/><CoSimulation )",
              R"(Model Exchange Schema: modelIdentifier "../evil" is no name of C)");
  unit.breaks("<UnitDefinitions>", R"(<ScheduledExecution/><UnitDefinitions>)",
              "Scheduled Execution Schema: <ScheduledExecution>: attribute modelIdentifier is missing");
  unit.breaks(R"(<BaseUnit rad="1" />)", R"(<BaseUnit rad="1"/><DisplayUnit name="i" inverse="true" offset="1"/>)",
              R"(2.4.3: unit "rad": display unit "i" is inverse and has an offset)");
}

TEST_CASE("units: FMI 2.0, defaults, aliases, states and what depends on what") {
  const Description unit(FmiVersion::fmi2);
  const std::string end = "</ModelVariables>", types = "<LogCategories>";
  const auto variable = [&](const std::string& attributes, const std::string& type) {
    return "<ScalarVariable name=\"added\" " + attributes + ">" + type + "</ScalarVariable>" + end;
  };
  unit.breaks(end, variable(R"(valueReference="99" causality="parameter")", R"(<Real start="1"/>)"),
              R"(2.2.7: variable "added": a parameter is fixed or tunable, not "continuous")");
  unit.breaks(end, variable(R"(valueReference="99")", "<Integer/>"),
              R"(2.2.7: variable "added": only real variables are continuous)");
  unit.breaks("<CoSimulation ", R"(<CoSimulation tool:x="1" xmlns:tool="urn:x" )",
              "4.3.1: <CoSimulation>: has no attribute tool:x");
  unit.breaks("<CoSimulation ", R"(<CoSimulation xsi:x="1" xmlns:xsi="urn:x" )",
              "4.3.1: <CoSimulation>: has no attribute xsi:x");
  unit.keeps(
      "<fmiModelDescription ",
      R"(<fmiModelDescription xmlns:i="http://www.w3.org/2001/XMLSchema-instance" i:noNamespaceSchemaLocation="x" )");
  unit.keeps(
      "<fmiModelDescription ",
      R"(<fmiModelDescription xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="x" )");
  unit.breaks(R"(canGetAndSetFMUstate="true")", "", "4.3.1: canSerializeFMUstate without canGetAndSetFMUstate");
  // aliases
  const std::string constant =
      R"(<ScalarVariable name="k" valueReference="98" variability="constant"><Real start="1"/></ScalarVariable>)";
  unit.keeps(end, constant + variable(R"(valueReference="98" variability="constant")", R"(<Real start="1.0"/>)"));
  unit.breaks(end, constant + variable(R"(valueReference="98" variability="constant")", R"(<Real start="2"/>)"),
              R"(2.2.7: variable "added": is another constant than its alias "k")");
  unit.breaks(end, constant + variable(R"(valueReference="98" initial="calculated")", "<Real/>"),
              R"(2.2.7: variable "added": changes and has a constant alias "k")");
  unit.breaks(end, variable(R"(valueReference="0" initial="exact")", R"(<Real unit="N" start="0"/>)"),
              R"(2.2.7: variable "added": and its alias "force" both have a start value)");
  const std::string gear = R"(<TypeDefinitions><SimpleType name="gear"><Enumeration><Item name="low" value="1"/>)"
                           R"(</Enumeration></SimpleType></TypeDefinitions>)";
  unit.with(types, gear + types)
      .breaks(
          end,
          R"(<ScalarVariable name="i" valueReference="98" causality="input" variability="discrete"><Integer start="1"/></ScalarVariable>)" +
              variable(R"(valueReference="98" causality="input" variability="discrete")",
                       R"(<Enumeration declaredType="gear" start="1"/>)"),
          R"(2.2.7: variable "added": and its alias "i" can both be set)");
  // states: variables 30 and 31 of the list
  const std::string state = R"(<ScalarVariable name="x" valueReference="98"><Real/></ScalarVariable>)"
                            R"(<ScalarVariable name="v" valueReference="99"><Real derivative="30"/></ScalarVariable>)";
  const Description with_state =
      unit.with(end, state + end)
          .with("<InitialUnknowns>", R"(<Derivatives><Unknown index="31"/></Derivatives><InitialUnknowns>)");
  with_state.keeps("</InitialUnknowns>", R"(<Unknown index="30"/><Unknown index="31"/></InitialUnknowns>)");
  with_state.breaks("", "", R"(2.2.8: "x" is missing among the initial unknowns)");
  unit.breaks("</InitialUnknowns>", R"(<Unknown index="99"/></InitialUnknowns>)",
              R"(2.2.8: initial unknown "99" is no variable)");
  unit.breaks("<InitialUnknowns>", R"(<InitialUnknowns><Unknown index="1"/>)",
              R"(2.2.8: "force" is listed as an initial unknown and is none)");
  unit.breaks(R"(<Unknown index="2" dependencies="" />)", R"(<Unknown index="2" dependencies="3" />)",
              R"(2.2.8: output "angle": depends on "angle_rate", which is unknown itself)");
}
