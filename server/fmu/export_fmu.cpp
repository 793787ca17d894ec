#include "server/fmu/export_fmu.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>

#include "proto/load_rig.h"
#include "server/fmu/archive.h"
#include "server/fmu/documentation_page.h"
#include "server/fmu/license_text.h"
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

std::string rig_text(const FmuExport& options) {
  std::string text = fmt::format(
      "# How this unit is stepped; a rig file of `rigstep serve`.\nmechanism: \"mechanism.textproto\"\nperiod_us: {}\n"
      "solver {{ order: {} }}\n",
      options.period_us, options.order);
  if (options.parameters.empty()) return text;
  text += "start {\n";
  for (const config::ParameterSetting& each : options.parameters)  // a name has no quotation mark (proto/bounds.cpp)
    text += fmt::format("  parameter {{ name: \"{}\" value: {} }}\n", each.name, each.value);
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

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

fs::path plugin_file(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* folder :
       {"../" RIGSTEP_LIBRARY_FOLDER "/rigstep", "../" RIGSTEP_LIBRARY_FOLDER, "plugin", "../server/plugin"})
    if (const fs::path path = program / folder / name; fs::exists(path, error)) return path.lexically_normal();
  throw FmuError(name + ": is not beside the program, in ../" RIGSTEP_LIBRARY_FOLDER
                        "/rigstep: install Rigstep whole, with cmake --install");
}

void export_fmu(const config::LoadedMechanism& mechanism, const FmuExport& options, const fs::path& output) {
  const std::string rig = rig_text(options);
  config::LoadedMechanism with_values = mechanism;
  config::set_parameters(with_values, options.parameters);
  plugin::Instance instance(std::move(with_values), settings_of(config::parse_rig(rig, "rig.textproto")), {});
  const std::vector<plugin::Variable> variables = plugin::variables_of(instance.mechanism());
  const ModelDescription description{options.version, model_identifier_of(mechanism.mechanism.name()),
                                     plugin::instantiation_token(mechanism.text, rig), utc_now()};
  const bool is_2 = options.version == FmiVersion::fmi2;
  const std::string page = documentation_page(description, instance, variables, time_of_step(instance));
  const std::string binaries = is_2 ? "binaries/linux64/" : "binaries/x86_64-linux/";
  write_archive(output, {{"modelDescription.xml", model_description(description, instance, variables)},
                         {"documentation/index.html", page},
                         {is_2 ? "licenses/license.txt" : "documentation/licenses/license.txt",
                          std::string(kLicense) + kLicenseText},
                         {"resources/mechanism.textproto", mechanism.text},
                         {"resources/rig.textproto", rig},
                         {binaries + description.model_identifier + ".so",
                          bytes_of(plugin_file(is_2 ? "rigstep_fmi2.so" : "rigstep_fmi3.so"))}});
}

}  // namespace rigstep::server
