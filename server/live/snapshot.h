// A run as a snapshot file holds it (proto/snapshot_file.h), and the way back into a stepper and a cycle. Load time,
// and for who serves requests; never the loop.
#pragma once

#include <string>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
#include "proto/snapshot_file.h"
#include "rt/saved_run.h"

namespace rigstep::server {

// mechanism: with the values of its parameters that the run started with; settings: as used; like: any state of it.
wire::SnapshotFile snapshot_of(const rt::SavedRun& run, const config::LoadedMechanism& mechanism,
                               const index3::Settings& settings, index3::State like);

index3::Settings settings_of(const wire::SnapshotFile& snapshot);

// What goes on in a stepper of this mechanism with these settings. Throws config::ConfigError, with `path` in front,
// where the snapshot is of another mechanism, period or settings, or its state is none.
rt::SavedRun run_in(const wire::SnapshotFile& snapshot, const std::string& path, const Mechanism& mechanism,
                    const index3::Settings& settings, index3::State like);

}  // namespace rigstep::server
