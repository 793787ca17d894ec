// Snapshot files: everything that a run needs to go on with the same bits (proto/snapshot.proto), its mechanism
// included, behind a head that finds damage. Whatever the bytes are, they are checked before anybody uses them. Load
// time only.
#pragma once

#include <string>
#include <string_view>

#include "proto/load_mechanism.h"
#include "proto/snapshot.pb.h"

namespace rigstep::config {

// The bytes of a snapshot file; puts the version of Rigstep in.
std::string snapshot_bytes(wire::SnapshotFile snapshot);

// Throws ConfigError, with `path` in front, for what is no snapshot, of another format or another version of Rigstep,
// cut short or damaged, and where a number is out of its bounds.
wire::SnapshotFile parse_snapshot(std::string_view bytes, const std::string& path);
wire::SnapshotFile read_snapshot(const std::string& path);

// The mechanism in the file, with the values of its parameters that the run started with. Throws ConfigError, with
// `path` in front, as all below do.
LoadedMechanism mechanism_of(const wire::SnapshotFile& snapshot, const std::string& path);
// Gives these values to a mechanism that was read from elsewhere.
void set_start_parameters(LoadedMechanism& mechanism, const wire::SnapshotFile& snapshot, const std::string& path);

// Throws where the snapshot is of another mechanism, names both, or where its parameters, channels or bodies are none
// of this one; mechanism: with the values of its parameters that the run started with. The size of the state and its
// hash are left to who has a stepper, and refuse_state() for these.
void require_fit(const wire::SnapshotFile& snapshot, const std::string& path, const Mechanism& mechanism);
[[noreturn]] void refuse_state(const std::string& path, std::size_t numbers, std::size_t expected);

// Whether these bytes are meant to be a snapshot file.
bool is_snapshot(std::string_view bytes) noexcept;

}  // namespace rigstep::config
