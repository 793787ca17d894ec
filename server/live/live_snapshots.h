// Snapshot files of a live run: makes one for who asks, piece by piece, and takes one that somebody sends, so that the
// run can be set back to it. Owned by the live run; used by the network thread, in lockstep the loop thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "proto/wire.pb.h"
#include "rt/cycle.h"
#include "server/live/snapshot.h"

namespace rigstep::server {

// To and from the loop; slots of rt::saved_run_bytes().
struct SnapshotRings {
  explicit SnapshotRings(std::size_t slot_bytes) : saved(slot_bytes, 2), given(slot_bytes, 2) {}
  rt::Ring saved, given;
};

class LiveSnapshots {
 public:
  // All outlive it. mechanism: as at the start; take_requests: has the loop look at once where no tick is due.
  LiveSnapshots(const config::LoadedMechanism& mechanism, const index3::Stepper& stepper, rt::Cycle& cycle,
                SnapshotRings& rings, std::function<void()> take_requests);

  // As UdpHooks.save_snapshot and UdpHooks.load_snapshot.
  std::string save(const wire::SnapshotQuery& query, wire::SnapshotPiece& piece);
  std::string load(const wire::SnapshotPiece& piece, wire::SnapshotPiece& receipt);

  // Before Transition::reset_to_file is asked for: hands over what came with this transfer. Returns why it cannot, for
  // people; empty: it did.
  std::string give(std::uint64_t transfer);

 private:
  std::string begin_saving(std::uint64_t transfer);
  void request_snapshot();
  bool take_saved();
  std::string decode();

  const config::LoadedMechanism& mechanism_;
  rt::Cycle& cycle_;
  SnapshotRings& rings_;
  const std::function<void()> take_requests_;
  const index3::Settings settings_;
  const index3::State like_;  // for the hashes of others
  rt::SavedRun run_;          // room

  std::uint64_t saving_ = 0;           // transfer that asks for the newest; 0: none
  std::uint32_t transitions_ = 0;      // when the snapshot was asked for
  std::string saved_;                  // its file; empty: the loop has not made it
  std::uint64_t loading_ = 0;          // transfer of what comes; 0: none
  std::uint32_t total_ = 0;            // of it [bytes]
  std::string loaded_;                 // so far
  std::optional<rt::SavedRun> given_;  // decoded, once it is whole
};

}  // namespace rigstep::server
