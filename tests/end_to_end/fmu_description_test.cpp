// What units say of themselves in their XML files: ranges, terminals, and the rules of both standards.
#include <doctest/doctest.h>

#include <fstream>
#include <iterator>

#include "proto/load_rig.h"
#include "server/fmu/terminals.h"
#include "tests/support/units.h"

using namespace rigstep;
using namespace rigstep::server;
using test::ExportedUnit;
using test::LoadedUnit;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("units: inputs have the range and the safe value of the rig file, which act in the unit, too") {
  const config::LoadedMechanism mechanism = test::unit_mechanism("templates/cart_pole/mechanism.textproto");
  const config::RigConfig rig = config::parse_rig(
      "mechanism: \"mechanism.textproto\" period_us: 2000 "
      "input { channel: \"force\" safe: 5 minimum: -40 maximum: 40 }",
      "rig.textproto");
  for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
    const LoadedUnit unit(mechanism, version, rig);
    const FmuVariable& force = unit.variable("force");
    CHECK((force.minimum == -40.0 && force.maximum == 40.0 && force.start == "5"));
    CHECK((unit.variable("rail_friction").minimum && !unit.variable("angle").minimum));
    const auto hash_with = [&](std::optional<double> value) {
      const auto instance = unit.started();
      if (value) instance->set_reals({force.reference}, {*value});
      CHECK(instance->step(0.0, 0.002).status == FmuStatus::ok);
      return instance->get_text(unit.reference("rigstep.state_hash"));
    };
    CHECK((hash_with({}) == hash_with(5.0) && hash_with({}) != hash_with(0.0)));
    CHECK((hash_with(1e3) == hash_with(40.0) && hash_with(-1e3) == hash_with(-40.0)));
  }
}

TEST_CASE("units: an input without a rig file starts at zero and has no range") {
  const LoadedUnit unit(test::unit_mechanism("mechanisms/four_bar.textproto"), FmiVersion::fmi3);
  const FmuVariable& drive = unit.variable("drive");
  CHECK((drive.start == "0" && !drive.minimum && !drive.maximum));
}

TEST_CASE("units: a vector is one variable without an index in FMI 3.0, and scalars with indices from 1 in FMI 2.0") {
  const config::LoadedMechanism mechanism = test::unit_mechanism("mechanisms/four_bar.textproto");
  const std::string body = "bodies." + mechanism.mechanism.bodies()[0].name;
  const LoadedUnit three(mechanism, FmiVersion::fmi3), two(mechanism, FmiVersion::fmi2);
  CHECK((three.variable(body + ".position").elements == 3 && three.variable(body + ".orientation").elements == 4));
  for (const FmuVariable& v : three.fmu.variables) CHECK(v.name.find('[') == v.name.npos);
  CHECK(two.reference(body + ".position[3]") == two.reference(body + ".position[1]") + 2);
}

TEST_CASE("units: terminals pair what acts on a freedom with what is measured of it") {
  const LoadedUnit effort(test::unit_mechanism("mechanisms/four_bar.textproto"), FmiVersion::fmi3);
  const std::string pair = text_of(effort.fmu.folder / kTerminalsFile);
  CHECK(pair.find("<Terminal name=\"drive\" matchingRule=\"bus\"") != std::string::npos);
  CHECK(pair.find("variableName=\"phi\" memberName=\"phi\" variableKind=\"signal\"") != std::string::npos);
  CHECK(pair.find("variableName=\"drive\" memberName=\"tau\" variableKind=\"inflow\"") != std::string::npos);
  const LoadedUnit motion(test::unit_mechanism("mechanisms/stewart.textproto"), FmiVersion::fmi3);
  const std::string legs = text_of(motion.fmu.folder / kTerminalsFile);
  CHECK(legs.find("variableName=\"extension_1.position\" memberName=\"s\" variableKind=\"signal\"") !=
        std::string::npos);
  CHECK(legs.find("variableName=\"force_1\" memberName=\"f\" variableKind=\"inflow\"") != std::string::npos);
  const LoadedUnit older(test::unit_mechanism("mechanisms/four_bar.textproto"), FmiVersion::fmi2);
  CHECK(!fs::exists(older.fmu.folder / kTerminalsFile));  // they are of FMI 3.0
}

TEST_CASE("units: terminals that break the standard are named with its clause") {
  const LoadedUnit unit(test::unit_mechanism("mechanisms/four_bar.textproto"), FmiVersion::fmi3);
  const fs::path file = unit.fmu.folder / kTerminalsFile;
  const std::string good = text_of(file);
  const auto violation = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    std::ofstream(file) << text.replace(at, from.size(), to);
    const Fmu fmu = read_fmu(unit.fmu.folder, {{kTerminalsFile}, {}});
    for (const std::string& each : fmu.violations)
      if (each.rfind("FMI 3.0, 2.4.9: ", 0) == 0) return each.substr(16);
    return std::string("none");
  };
  CHECK(violation("\"bus\"", "\"bus\"") == "none");
  std::string description = text_of(unit.fmu.folder / "modelDescription.xml");
  const std::size_t end = description.find("</ModelVariables>");
  description.insert(end, R"(<Float64 name="more" valueReference="999" causality="parameter" start="1"><Alias )"
                          R"(name="other"/></Float64>)");
  std::ofstream(unit.fmu.folder / "modelDescription.xml") << description;
  CHECK(violation("variableName=\"phi\"", "variableName=\"other\"") == "none");
  CHECK(violation("fmiVersion=\"3.0\"", "fmiVersion=\"2.0\"") ==
        "fmiVersion \"2.0\" is not that of modelDescription.xml");
  CHECK(violation("\"bus\"", "\"but\"") == "terminal \"drive\": matchingRule \"but\" is none");
  CHECK(violation("variableName=\"phi\"", "variableName=\"psi\"") ==
        "terminal \"drive\": variableName \"psi\" is no variable");
  CHECK(violation("variableName=\"phi\"", "variableName=\"time\"") ==
        "terminal \"drive\": \"time\" is neither input nor output nor parameter");
  CHECK(violation("\"inflow\"", "\"org.x.kind\"") == "none");
  CHECK(violation("variableName=\"phi\" memberName=\"phi\" variableKind=\"signal\"",
                  "variableName=\"time\" memberName=\"phi\" variableKind=\"of_others\"") == "none");
  CHECK(violation("<Terminals>",
                  "<GraphicalRepresentation><CoordinateSystem x1=\"1\" y1=\"0\" x2=\"0\" y2=\"1\" "
                  "suggestedScalingFactorTo_mm=\"1\"/></GraphicalRepresentation><Terminals>") ==
        "<CoordinateSystem>: its first corner is not left of and below its second");
  CHECK(violation("memberName=\"tau\"", "memberName=\"phi\"") ==
        "terminal \"drive\": memberName \"phi\" stands there twice");
  CHECK(violation(" memberName=\"phi\"", "") == "terminal \"drive\": a member has no memberName");
  CHECK(violation("name=\"drive\"", "name=\"\"") == "a terminal has no name");
  CHECK(violation("name=\"drive\"", "") == "<Terminal>: attribute name is missing");
  CHECK(violation("memberName=\"tau\"", "member=\"tau\"") == "<TerminalMemberVariable>: has no attribute member");
  CHECK(violation("<Terminals>", "<Icon /><Terminals>") == "<Icon> is no element of fmiTerminalsAndIcons");
  CHECK(violation("</Terminal>",
                  "<TerminalGraphicalRepresentation x1=\"0\" y1=\"0\" x2=\"1\" y2=\"1\" iconBaseName=\"drive\" "
                  "/></Terminal>") == "terminal \"drive\": \"terminalsAndIcons/drive.png\" is missing");
  CHECK(violation("</Terminal>",
                  "<TerminalGraphicalRepresentation x1=\"0\" y1=\"0\" x2=\"1\" y2=\"1\" iconBaseName=\"./a%20b\" "
                  "/></Terminal>") == "terminal \"drive\": \"terminalsAndIcons/a b.png\" is missing");
  std::string inside, outside;
  for (int i = 0; i < 30'000; ++i) {
    inside += R"(<Terminal name="a" matchingRule="plug">)";
    outside += "</Terminal>";
  }
  CHECK(violation("<Terminals>", "<Terminals>" + inside + outside) == "none");
  CHECK(violation("<Terminals>", "<Terminals>" + inside + R"(<Terminal name="b" matchingRule="x" />)" + outside) ==
        "terminal \"...a.a.a.a.a.a.a.a.a.b\": matchingRule \"x\" is none");
  std::ofstream(file) << "<fmiTerminalsAndIcons";
  CHECK_THROWS_AS(read_fmu(unit.fmu.folder, {}), FmuError);
}

TEST_CASE("units: every mechanism that is shipped keeps the rules of both standards") {
  for (const fs::directory_entry& file : fs::directory_iterator(std::string(RIGSTEP_SOURCE_DIR) + "/config/mechanisms"))
    for (const FmiVersion version : {FmiVersion::fmi2, FmiVersion::fmi3}) {
      CAPTURE(file.path().string());
      const ExportedUnit unit(config::load_mechanism(file.path().string()), version);
      const Fmu fmu = read_fmu(unit.folder.path() / "x", extract_archive(unit.file, unit.folder.path() / "x"));
      for (const std::string& violation : fmu.violations) FAIL_CHECK(violation);
    }
}
