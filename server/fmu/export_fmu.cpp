#include "server/fmu/export_fmu.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iterator>

#include "server/fmu/archive.h"
#include "server/fmu/documentation_page.h"
#include "server/fmu/fmu.h"
#include "server/fmu/license_text.h"
#include "server/fmu/terminals.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/plugin/token.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

constexpr int kTimedSteps = 200;

constexpr const char* kLicense =
    "The mechanism and its files are those of whoever exported this unit.\n\n"
    "The binary is Rigstep with, statically linked: Eigen (MPL 2.0, https://eigen.tuxfamily.org), protobuf (BSD "
    "3-clause,\n"
    "Google), xxHash (BSD 2-clause, Yann Collet) and the run-time libraries of GCC (GPL 3 with the GCC Runtime "
    "Library\n"
    "Exception).\n\n";

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file && !file.eof()) throw FmuError(path.string() + ": cannot be read: check its permissions");
  return bytes;
}

// A rig file of what the unit keeps of the one it comes from. A name has no quotation mark (proto/bounds.cpp).
std::string rig_text(const config::RigConfig& rig) {
  std::string text = fmt::format(
      "# How this unit is stepped; a rig file of `rigstep serve`.\nmechanism: \"mechanism.textproto\"\nperiod_us: {}\n"
      "solver {{ order: {} iterations: {}",
      rig.period_ns / 1000, rig.order, rig.iterations);
  if (rig.relative_compliance > 0.0) text += fmt::format(" relative_compliance: {}", rig.relative_compliance);
  if (rig.projection_passes > 0) text += fmt::format(" projection_passes: {}", rig.projection_passes);
  text += " }\n";
  for (const auto& [channel, policy, line, units] : rig.inputs) {
    text += fmt::format("input {{ channel: \"{}\" safe: {}", channel, policy.safe);
    if (std::isfinite(policy.minimum)) text += fmt::format(" minimum: {}", policy.minimum);
    if (std::isfinite(policy.maximum)) text += fmt::format(" maximum: {}", policy.maximum);
    text += " }\n";
  }
  if (rig.parameters.empty()) return text;
  text += "start {\n";
  for (const config::RigConfig::StartValue& each : rig.parameters)
    text += fmt::format("  parameter {{ name: \"{}\" value: {} }}\n", each.setting.name, each.setting.value);
  return text + "}\n";
}

// Of a step [s]; the instance is at its start again.
double time_of_step(plugin::Instance& instance) {
  const auto begin = std::chrono::steady_clock::now();
  for (int k = 0; k < kTimedSteps; ++k)
    if (failed(instance.step())) break;
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  instance.reset();
  return spent.count() / kTimedSteps;
}

// That of this processor, and for FMI 3.0 those of others that were built.
void add_binaries(std::vector<ArchiveFile>& files, const ModelDescription& description) {
  const std::string file = "/" + description.model_identifier + ".so";
  if (description.version == FmiVersion::fmi2) {
    files.push_back({"binaries/linux64" + file, bytes_of(plugin_file("rigstep_fmi2.so"))});
    return;
  }
  for (const std::string platform : {"aarch64-linux", "x86_64-linux"})
    if (platform == kPlatform)
      files.push_back({"binaries/" + platform + file, bytes_of(plugin_file("rigstep_fmi3.so"))});
    else if (const fs::path other = find_plugin_file(platform + "/rigstep_fmi3.so"); !other.empty())
      files.push_back({"binaries/" + platform + file, bytes_of(other)});
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

fs::path find_plugin_file(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* folder :
       {"../" RIGSTEP_LIBRARY_FOLDER "/rigstep", "../" RIGSTEP_LIBRARY_FOLDER, "plugin", "../server/plugin"})
    if (const fs::path path = program / folder / name; fs::exists(path, error)) return path.lexically_normal();
  return {};
}

fs::path plugin_file(const std::string& name) {
  if (const fs::path path = find_plugin_file(name); !path.empty()) return path;
  throw FmuError(name + ": is not beside the program, in ../" RIGSTEP_LIBRARY_FOLDER
                        "/rigstep: install Rigstep whole, with cmake --install");
}

void export_fmu(const config::LoadedMechanism& mechanism, const FmuExport& options, const fs::path& output) {
  const std::string text = rig_text(options.rig);
  const config::RigConfig rig = config::parse_rig(text, "rig.textproto");
  config::LoadedMechanism with_values = mechanism;
  config::set_start_parameters(with_values, rig);
  plugin::Instance instance(std::move(with_values), settings_of(rig), {});
  const std::vector<plugin::Variable> variables =
      plugin::variables_of(instance.mechanism(), config::input_policies(rig, instance.mechanism()));
  const ModelDescription description{options.version, model_identifier_of(mechanism.mechanism.name()),
                                     plugin::instantiation_token(mechanism.text, text), utc_now()};
  const bool is_2 = options.version == FmiVersion::fmi2;
  const std::string page = documentation_page(description, instance, variables, time_of_step(instance));
  std::vector<ArchiveFile> files{{"modelDescription.xml", model_description(description, instance, variables)},
                                 {"documentation/index.html", page},
                                 {is_2 ? "licenses/license.txt" : "documentation/licenses/license.txt",
                                  std::string(kLicense) + kLicenseText + kThirdPartyLicenses},
                                 {"resources/mechanism.textproto", mechanism.text},
                                 {"resources/rig.textproto", text}};
  if (const std::string terminals = is_2 ? "" : terminals_description(instance.mechanism(), variables);
      !terminals.empty())
    files.push_back({kTerminalsFile, terminals});
  add_binaries(files, description);
  write_archive(output, files);
}

}  // namespace rigstep::server
