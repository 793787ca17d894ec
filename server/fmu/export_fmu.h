// A mechanism as a functional mock-up unit. Offline.
#pragma once

#include <filesystem>
#include <string>

#include "proto/load_mechanism.h"
#include "proto/load_rig.h"
#include "server/fmu/model_description.h"

namespace rigstep::server {

struct FmuExport {
  FmiVersion version = FmiVersion::fmi3;
  config::RigConfig rig;  // period, solver, values of parameters at the start, ranges and safe values of inputs
};

// Throws MechanismFileError, ConfigError, FileError, and FmuError where the binary is not beside the program.
void export_fmu(const config::LoadedMechanism& mechanism, const FmuExport& options,
                const std::filesystem::path& output);

// librigstep.so.1, rigstep_fmi2.so or rigstep_fmi3.so, aarch64-linux/rigstep_fmi3.so: of the installation or of the
// build. Empty: it is not there.
std::filesystem::path find_plugin_file(const std::string& name);
// The same; throws FmuError.
std::filesystem::path plugin_file(const std::string& name);

}  // namespace rigstep::server
