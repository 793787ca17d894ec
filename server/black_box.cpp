#include "server/black_box.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include "core/mechanism/signals.h"
#include "rt/cycle.h"

namespace rigstep::server {

namespace {

struct StepHead {
  std::int64_t log_time_ns;
  std::uint64_t size;
};

// More than a RecordedStep of so many inputs ever takes.
std::size_t largest_step(int channels) { return 256 + 9 * static_cast<std::size_t>(channels); }

}  // namespace

// two spans of full states more than asked for: the file begins with one of them
BlackBox::BlackBox(const BlackBoxSettings& settings, wire::RecordingHeader header, std::size_t state_bytes)
    : settings_(settings),
      header_(std::move(header)),
      steps_(sizeof(StepHead) + largest_step(header_.input_channel_size()),
             settings.steps + 2 * settings.full_state_every + 64),
      states_(sizeof(std::uint64_t) + state_bytes, settings.steps / settings.full_state_every + 8) {}

void BlackBox::keep(const wire::RecordedStep& step, std::int64_t log_time_ns) {
  const StepHead head{log_time_ns, step.ByteSizeLong()};
  std::byte* const slot = steps_.at(steps_.count);
  std::memcpy(slot, &head, sizeof head);
  step.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(slot + sizeof head));
  ++steps_.count;
}

void BlackBox::keep_state(std::span<const std::byte> slot) {
  std::byte* const kept = states_.at(states_.count);
  std::memcpy(kept, &steps_.count, sizeof steps_.count);
  std::memcpy(kept + sizeof steps_.count, slot.data(), slot.size());
  ++states_.count;
}

std::uint64_t BlackBox::steps_before(std::uint64_t state) const {
  std::uint64_t steps = 0;
  std::memcpy(&steps, states_.at(state), sizeof steps);
  return steps;
}

BlackBox::KeptStep BlackBox::read_step(std::uint64_t number) const {
  StepHead head{};
  std::memcpy(&head, steps_.at(number), sizeof head);
  KeptStep kept;
  kept.log_time_ns = head.log_time_ns;
  kept.step.ParseFromArray(steps_.at(number) + sizeof head, static_cast<int>(head.size));
  return kept;
}

wire::RecordedState BlackBox::read_state(std::uint64_t number) const {
  const rt::FullState full =
      rt::read_full_state({states_.at(number) + sizeof(std::uint64_t), states_.slot_bytes - sizeof(std::uint64_t)});
  wire::RecordedState state;
  state.set_step(full.step);
  state.set_sim_time_ns(full.sim_time_ns);
  state.mutable_state()->Assign(full.state.begin(), full.state.end());
  return state;
}

// The full state to begin with, one whose own step is still here: the newest that lies as far back as asked for, else
// the oldest. None where the whole run is here.
std::optional<std::uint64_t> BlackBox::first_state() const {
  std::optional<std::uint64_t> found;
  for (std::uint64_t state = states_.first(); state < states_.count; ++state) {
    const std::uint64_t before = steps_before(state);
    if (before == 0 || before - 1 < steps_.first()) continue;
    if (found && steps_.count - before < settings_.steps) break;
    if (!found && steps_.first() == 0 && steps_.count - before < settings_.steps) return std::nullopt;
    found = state;
  }
  return found;
}

std::string BlackBox::fresh_path() const {
  namespace fs = std::filesystem;
  const std::string name = fs::path(header_.mechanism_file()).stem().string();
  const std::string stem = fmt::format("{}.black_box.{:%Y%m%dT%H%M%S}", name, fmt::gmtime(std::time(nullptr)));
  fs::path path = fs::path(settings_.folder) / (stem + ".mcap");
  for (int n = 2; fs::exists(path); ++n) path = fs::path(settings_.folder) / fmt::format("{}-{}.mcap", stem, n);
  return path.string();
}

std::string BlackBox::write(const std::string& reason) const {
  const std::string path = fresh_path();
  wire::RecordingHeader header = header_;
  std::uint64_t number = 0, state = 0;
  if (const auto first = first_state()) {
    const wire::RecordedState begin = read_state(*first);
    number = steps_before(*first);
    state = *first + 1;
    *header.mutable_start_state() = begin.state();
    header.set_start_step(begin.step());
    header.set_start_hash(read_step(number - 1).step.state_hash());
  } else if (steps_.first() > 0) {
    throw wire::RecordingWriteError(path, "no full state is left to begin with", "record with more `full_state_every`");
  }
  wire::RecordingWriter writer(path, header);
  wire::RecordingFooter footer;
  for (; number < steps_.count; ++number) {
    const KeptStep kept = read_step(number);
    writer.write(kept.step, kept.log_time_ns);
    if ((kept.step.flags() & kFaulted) == 0) footer.set_steps(footer.steps() + 1);
    for (; state < states_.count && steps_before(state) == number + 1; ++state)
      writer.write(read_state(state), kept.log_time_ns);
  }
  footer.set_reason("black box: " + reason);
  writer.finish(footer);
  return path;
}

}  // namespace rigstep::server
