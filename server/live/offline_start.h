// What is stepped offline: a mechanism from its start, or a run that goes on from a snapshot file. Offline.
#pragma once

#include <string>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
#include "proto/snapshot_file.h"
#include "rt/parameter_ramps.h"

namespace rigstep::server {

struct OfflineStart {
  OfflineStart(config::LoadedMechanism loaded, const index3::Settings& settings);
  // Throws config::ConfigError, with `path` in front, where the snapshot is none of its own mechanism.
  OfflineStart(const wire::SnapshotFile& snapshot, const std::string& path, int threads);

  // What is due of ramps before the next step. Whether there was something.
  bool change_parameters();

  config::LoadedMechanism mechanism;  // with the values of its parameters that the run started with
  index3::Stepper stepper;
  Inputs inputs;  // of the last step, zero at a start
  rt::ParameterRamps ramps;
};

}  // namespace rigstep::server
