#include "server/recordings/cut.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "proto/config_text.h"
#include "proto/recording_writer.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

using Item = wire::RecordingReader::Item;

// The header of the piece: its start is the newest full state that is not later than `from`. None where no step lies
// between the times.
std::optional<wire::RecordingHeader> header_of_piece(const std::string& recording, double from, double to) {
  wire::RecordingReader reader(recording);
  wire::RecordingHeader header = reader.header();
  wire::RecordedStep step;
  wire::RecordedState state;
  std::uint64_t hash = header.start_hash();
  for (Item item = reader.next(step, state); item != Item::end; item = reader.next(step, state)) {
    if (item == Item::state && state.step() == step.step()) {
      *header.mutable_start_state() = state.state();
      header.set_start_step(state.step());
      header.clear_start_state_step();
      if (state.has_state_step()) header.set_start_state_step(state.state_step());
      header.set_start_hash(hash);
      *header.mutable_start_parameter() = state.parameter();
    }
    if (item == Item::state) continue;
    // the piece leaves out what changed between its start state and its first step
    if (step.parameter_size() > 0 && step.step() == header.start_step())
      *header.mutable_start_parameter() = step.parameter();
    hash = step.state_hash();
    if (!wire::is_step(step)) continue;
    const double t = exact_seconds(step.sim_time_ns());
    if (t > to) return std::nullopt;
    if (t >= from && step.step() > header.start_step()) return header;
  }
  return std::nullopt;
}

}  // namespace

Cut cut_recording(const std::string& recording, double from, double to, const std::string& output) {
  const std::optional<wire::RecordingHeader> header = header_of_piece(recording, from, to);
  if (!header)
    throw config::ConfigError(
        fmt::format("--from, --to: {} has no step from {:g} s on{}: `rigstep info` tells what it "
                    "holds",
                    recording, from, std::isfinite(to) ? fmt::format(" to {:g} s", to) : ""));
  wire::RecordingReader reader(recording);
  std::optional<wire::RecordingWriter> writer;  // its head has the time of the first step
  wire::RecordedStep step;
  wire::RecordedState state;
  Cut cut;
  for (Item item = reader.next(step, state); item != Item::end; item = reader.next(step, state)) {
    if (step.step() < header->start_step() || (!writer && step.step() == header->start_step())) continue;
    if (exact_seconds(item == Item::step ? step.sim_time_ns() : state.sim_time_ns()) > to) break;
    if (!writer) {
      writer.emplace(output, *header, reader.log_time_ns(), wire::Existing::refuse);
      cut.first_step = step.step();
    }
    if (item == Item::state) {
      writer->write(state, reader.log_time_ns());
      continue;
    }
    writer->write(step, reader.outputs(), reader.log_time_ns());
    cut.last_step = step.step();
    cut.steps += wire::is_step(step) ? 1 : 0;
  }
  cut.damage = reader.damage_text();
  wire::RecordingFooter footer;
  footer.set_steps(cut.steps);
  footer.set_reason(fmt::format("cut from {}", recording));
  writer->finish(footer);
  return cut;
}

}  // namespace rigstep::server
