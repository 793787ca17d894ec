// A mechanism as a functional mock-up unit. Offline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "proto/load_mechanism.h"
#include "server/fmu/model_description.h"

namespace rigstep::server {

struct FmuExport {
  FmiVersion version = FmiVersion::fmi3;
  std::int64_t period_us = 1000;
  int order = 2;                                     // of the stepper's accuracy: 2 or 4
  std::vector<config::ParameterSetting> parameters;  // that have other values than in the file
};

// Throws MechanismFileError, ConfigError, FileError, and FmuError where the binary is not beside the program.
void export_fmu(const config::LoadedMechanism& mechanism, const FmuExport& options,
                const std::filesystem::path& output);

// librigstep.so.1, rigstep_fmi2.so or rigstep_fmi3.so: of the installation or of the build. Throws FmuError.
std::filesystem::path plugin_file(const std::string& name);

}  // namespace rigstep::server
