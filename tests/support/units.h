// Functional mock-up units for tests: exported, extracted and loaded.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "proto/load_mechanism.h"
#include "server/fmu/archive.h"
#include "server/fmu/export_fmu.h"
#include "server/fmu/fmu_instance.h"
#include "server/fmu/simulate_fmu.h"
#include "server/output/temporary_folder.h"

namespace rigstep::test {

// all of them where RIGSTEP_ALL is set, as before a release
inline long count_of(long quick, long all) { return std::getenv("RIGSTEP_ALL") != nullptr ? all : quick; }

// file: below config/; declarations: of parameters, behind its text.
inline config::LoadedMechanism unit_mechanism(const std::string& file, const std::string& declarations = {}) {
  const std::string path = std::string(RIGSTEP_SOURCE_DIR) + "/config/" + file;
  return config::parse_mechanism(config::load_mechanism(path).text + declarations, path);
}

struct ExportedUnit {
  server::TemporaryFolder folder;
  std::filesystem::path file;
  ExportedUnit(const config::LoadedMechanism& mechanism, server::FmiVersion version, const config::RigConfig& rig = {})
      : file(folder.path() / "unit.fmu") {
    server::export_fmu(mechanism, {version, rig}, file);
  }
};

struct LoadedUnit {
  ExportedUnit exported;
  server::Fmu fmu;
  server::FmuBinary binary;
  LoadedUnit(const config::LoadedMechanism& mechanism, server::FmiVersion version, const config::RigConfig& rig = {})
      : exported(mechanism, version, rig),
        fmu(server::read_fmu(exported.folder.path() / "x",
                             server::extract_archive(exported.file, exported.folder.path() / "x"))),
        binary(fmu) {}
  const server::FmuVariable& variable(const std::string& name) const {
    for (const server::FmuVariable& v : fmu.variables)
      if (v.name == name) return v;
    FAIL("no variable " << name);
    return fmu.variables.front();
  }
  std::uint32_t reference(const std::string& name) const { return variable(name).reference; }
  // An instance at its start, between two steps. parameter, value: set before, if given.
  std::unique_ptr<server::FmuInstance> started(const std::string& parameter = {}, double value = 0.0) const {
    auto instance = server::instantiate(fmu, binary, "unit");
    if (!parameter.empty()) instance->set_reals({reference(parameter)}, {value});
    instance->enter_initialization(0.0, 0.0);
    instance->exit_initialization();
    return instance;
  }
};

}  // namespace rigstep::test
