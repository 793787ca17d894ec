// Snapshot files: everything that a run needs to go on with the same bits (proto/snapshot.proto), its mechanism
// included, behind a head that finds damage. Whatever the bytes are, they are checked before anybody uses them. Load
// time only.
#pragma once

#include <string>
#include <string_view>

#include "proto/config_text.h"
#include "proto/snapshot.pb.h"

namespace rigstep::config {

// The bytes of a snapshot file.
std::string snapshot_bytes(const wire::Snapshot& snapshot);

// Throws ConfigError, with `path` in front, for what is no snapshot, of another format or another version of Rigstep,
// cut short or damaged, and where a number is out of its bounds. Whether it is of a certain mechanism, and its lists as
// long as that asks, is left to who knows the mechanism.
wire::Snapshot parse_snapshot(std::string_view bytes, const std::string& path);
wire::Snapshot read_snapshot(const std::string& path);

// Whether these bytes are meant to be a snapshot file.
bool is_snapshot(std::string_view bytes) noexcept;

}  // namespace rigstep::config
