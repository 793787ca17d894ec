#include "server/live/live_snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proto/codec.h"

namespace rigstep::server {

LiveSnapshots::LiveSnapshots(const config::LoadedMechanism& mechanism, const index3::Stepper& stepper, rt::Cycle& cycle,
                             SnapshotRings& rings, std::function<void()> take_requests)
    : mechanism_(mechanism),
      cycle_(cycle),
      rings_(rings),
      take_requests_(std::move(take_requests)),
      settings_(stepper.settings()),
      like_(stepper.state()) {
  run_.state.resize(like_.flat_size());
}

// The newest of those that the loop has made.
bool LiveSnapshots::take_saved() {
  bool has_one = false;
  for (auto slot = rings_.saved.front(); !slot.empty(); slot = rings_.saved.front()) {
    rt::take_saved_run(slot, run_);
    rings_.saved.pop();
    has_one = true;
  }
  return has_one;
}

void LiveSnapshots::request_snapshot() {
  transitions_ = cycle_.lifecycle().transitions;
  cycle_.request({.transition = Transition::snapshot, .steps = 0, .after = transitions_});
  take_requests_();
}

std::string LiveSnapshots::begin_saving(std::uint64_t transfer) {
  const rt::LifecycleState now = cycle_.lifecycle().state;
  if (!rt::next_state(now, Transition::snapshot))
    return fmt::format("the run is {}, and a snapshot is not possible then. Reset it first.", rt::to_string(now));
  take_saved();  // older ones
  saved_.clear();
  saving_ = transfer;
  request_snapshot();
  return {};
}

std::string LiveSnapshots::save(const wire::SnapshotQuery& query, wire::SnapshotPiece& piece) {
  if (query.transfer() != saving_) {
    if (query.offset() != 0) return "somebody else has had a snapshot made meanwhile. Ask again.";
    if (std::string refusal = begin_saving(query.transfer()); !refusal.empty()) return refusal;
  }
  if (saved_.empty() && take_saved()) saved_ = config::snapshot_bytes(snapshot_of(run_, mechanism_, settings_, like_));
  // another transition may have come before it
  if (saved_.empty() && cycle_.lifecycle().transitions != transitions_) request_snapshot();
  piece.set_transfer(query.transfer());
  piece.set_offset(std::min(query.offset(), static_cast<std::uint32_t>(saved_.size())));
  piece.set_total(static_cast<std::uint32_t>(saved_.size()));
  piece.set_data(saved_.substr(piece.offset(), wire::kSnapshotPieceBytes));
  return {};
}

std::string LiveSnapshots::load(const wire::SnapshotPiece& piece, wire::SnapshotPiece& receipt) {
  if (piece.transfer() != loading_) {
    if (piece.offset() != 0) return "somebody else is sending a snapshot. Send yours again from its beginning.";
    loading_ = piece.transfer();
    total_ = piece.total();
    loaded_.clear();
    given_.reset();
  }
  if (piece.total() != total_ || total_ == 0) return "the pieces do not tell one size of the file. Send it again.";
  std::string refusal;
  if (piece.offset() == loaded_.size() && loaded_.size() < total_) {
    loaded_ += piece.data();
    if (loaded_.size() == total_) refusal = decode();
  }
  if (!refusal.empty()) loading_ = 0;
  receipt.set_transfer(piece.transfer());
  receipt.set_offset(static_cast<std::uint32_t>(loaded_.size()));
  receipt.set_total(total_);
  return refusal;
}

std::string LiveSnapshots::decode() {
  try {
    given_ = run_in(config::parse_snapshot(loaded_, "what was sent"), "what was sent", mechanism_.mechanism, settings_,
                    like_);
    return {};
  } catch (const config::ConfigError& error) {
    return error.what();
  }
}

std::string LiveSnapshots::give(std::uint64_t transfer) {
  if (!given_ || transfer != loading_) return "no whole snapshot came before. Send its pieces first.";
  const std::span<std::byte> slot = rings_.given.try_claim();
  if (slot.empty()) return "the loop has not taken what came before. Ask again.";
  rt::put_saved_run(*given_, slot);
  rings_.given.publish();
  return {};
}

}  // namespace rigstep::server
