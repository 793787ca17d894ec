#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>

#include "proto/printable.h"
#include "server/fmu/fmu.h"
#include "server/fmu/forms.h"
#include "server/fmu/rules.h"
#include "server/fmu/terminals.h"
#include "server/fmu/well_formed.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

// of FMI 3.0: 2.4.7.4; in FMI 2.0 everything is continuous that says nothing else, even where it may not be
const char* default_variability(const FmuVariable& variable, FmiVersion version) {
  if (version == FmiVersion::fmi2) return "continuous";
  if (variable.is_parameter()) return "fixed";
  return variable.is_float() && !variable.is_clocked ? "continuous" : "discrete";
}

// What the standards say where an attribute is left out: FMI 2.0, 2.2.7; FMI 3.0, 2.4.7.4 and 2.4.7.5.
void fill_in_defaults(FmuVariable& variable, FmiVersion version) {
  if (variable.causality.empty()) variable.causality = "local";
  if (variable.variability.empty()) variable.variability = default_variability(variable, version);
  if (!variable.initial.empty()) return;
  if (variable.is_exact())
    variable.initial = "exact";
  else if (variable.causality != "input" && variable.causality != "independent")
    variable.initial = "calculated";
}

constexpr std::size_t kMostElements = 1'000'000;

// of FMI 3.0: the product of its dimensions, as far as they are numbers
std::size_t elements_of(pugi::xml_node node) {
  std::size_t product = 1;
  for (const pugi::xml_node dimension : node.children("Dimension")) {
    const std::size_t size = dimension.attribute("start").as_ullong();
    if (size == 0) return 0;
    if (size > kMostElements || product * size > kMostElements)
      throw FmuError("modelDescription.xml: variable \"" + wire::printable(text_of(node, "name")) +
                     "\": has more than a million elements");
    product *= size;
  }
  return product;
}

FmuVariable variable_of(pugi::xml_node node, FmiVersion version) {
  FmuVariable variable;
  const pugi::xml_node typed = typed_node(node, version);
  variable.name = text_of(node, "name");
  variable.type = typed.name();
  variable.causality = text_of(node, "causality");
  variable.variability = text_of(node, "variability");
  variable.initial = text_of(node, "initial");
  variable.unit = text_of(typed, "unit");
  variable.start = text_of(typed, "start");
  variable.reference = node.attribute("valueReference").as_uint();
  if (variable.is_real()) {
    variable.minimum = number_in(typed, "min");
    variable.maximum = number_in(typed, "max");
  }
  if (version == FmiVersion::fmi3) variable.elements = elements_of(node);
  variable.has_initial = !variable.initial.empty();
  variable.is_clocked = typed.attribute("clocks");
  variable.derivative = text_of(typed, "derivative");
  variable.previous = text_of(typed, "previous");
  for (const pugi::xml_node alias : typed.children("Alias")) variable.aliases.push_back(text_of(alias, "name"));
  fill_in_defaults(variable, version);
  return variable;
}

// 0 where it is left out, or is not above zero, which the rules tell
double positive(pugi::xml_node node, const char* attribute) {
  return std::max(0.0, number_in(node, attribute).value_or(0.0));
}

// The element `top` of a file; throws FmuError where it has none. encoding: that it declares.
pugi::xml_node read_xml(const fs::path& folder, const char* name, const char* top, pugi::xml_document& document,
                        std::string& encoding) {
  const std::string text = config::read_text_file((folder / name).string(), config::kLargestConfigFile);
  encoding = check_well_formed(text, name);
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed)
    throw FmuError(
        fmt::format("{}: is no XML that can be read ({} at byte {})", name, parsed.description(), parsed.offset));
  const pugi::xml_node root = document.child(top);
  if (!root) throw FmuError(fmt::format("{}: has no <{}> at its top", name, top));
  return root;
}

}  // namespace

fs::path Fmu::binary() const {
  if (!is_c_name(model_identifier))  // another name could lead outside
    throw FmuError("modelDescription.xml: modelIdentifier \"" + wire::printable(model_identifier) +
                   "\": is no name of C: use letters, digits and underscores, no digit first");
  return folder / "binaries" / (version == FmiVersion::fmi2 ? "linux64" : kPlatform) / (model_identifier + ".so");
}

Fmu read_fmu(const fs::path& folder, const Extracted& extracted) {
  pugi::xml_document document;
  Fmu fmu;
  const pugi::xml_node root = read_xml(folder, "modelDescription.xml", "fmiModelDescription", document, fmu.encoding);
  const std::string version = fmu.version_text = text_of(root, "fmiVersion");
  if (version == "2.0" || is_version_3(version))
    fmu.version = version == "2.0" ? FmiVersion::fmi2 : FmiVersion::fmi3;
  else
    throw FmuError("modelDescription.xml: fmiVersion \"" + wire::printable(version) +
                   "\": FMI 2.0 and 3.0 are known here");
  const bool is_2 = fmu.version == FmiVersion::fmi2;
  Rules rules(fmu.version);
  for (const std::string& violation : extracted.violations) rules.broken(Rule::archive, violation);
  fmu.folder = folder;
  fmu.model_name = text_of(root, "modelName");
  fmu.token = text_of(root, is_2 ? "guid" : "instantiationToken");
  const pugi::xml_node co_simulation = root.child("CoSimulation");
  if (!co_simulation)
    throw FmuError("modelDescription.xml: has no <CoSimulation>: units for co-simulation are run here");
  fmu.model_identifier = text_of(co_simulation, "modelIdentifier");
  fmu.can_save_state = co_simulation.attribute(is_2 ? "canGetAndSetFMUstate" : "canGetAndSetFMUState").as_bool();
  fmu.internal_step = positive(co_simulation, "fixedInternalStepSize");
  fmu.step_size = positive(root.child("DefaultExperiment"), "stepSize");
  fmu.stop_time = positive(root.child("DefaultExperiment"), "stopTime");
  for (const pugi::xml_node node : root.child("ModelVariables").children())
    if (node.type() == pugi::node_element) fmu.variables.push_back(variable_of(node, fmu.version));
  check_description(root, fmu, rules);
  check_files(root, extracted, fmu, rules);
  if (fmu.version == FmiVersion::fmi3 && fs::exists(folder / kTerminalsFile)) {
    pugi::xml_document terminals;
    std::string encoding;
    const pugi::xml_node top = read_xml(folder, kTerminalsFile, "fmiTerminalsAndIcons", terminals, encoding);
    check_terminals(top, fmu, extracted, rules);
  }
  fmu.violations = rules.take();
  return fmu;
}

}  // namespace rigstep::server
