#include "server/live/black_box.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <limits>
#include <utility>

#include "core/mechanism/signals.h"
#include "rt/cycle.h"

namespace rigstep::server {

namespace {

struct StepHead {
  std::int64_t log_time_ns;
  std::uint64_t size;     // of the step that follows [bytes]
  std::uint64_t outputs;  // behind it
};

// More than a RecordedStep of so many inputs and its outputs ever take.
std::size_t largest_step(const wire::RecordingHeader& header) {
  return 256 + 9 * static_cast<std::size_t>(header.input_channel_size() + header.parameter_size()) +
         sizeof(double) * static_cast<std::size_t>(header.output_channel_size());
}

constexpr const char* kPartial = ".part";       // ends the name of a file that is being written
constexpr std::uint64_t kAroundMessage = 64;    // what a recording adds to a message [bytes]
constexpr std::uint64_t kOutputBytes = 12;      // of an output with its field number
constexpr std::uint64_t kAroundFile = 1 << 17;  // schemas, index and closing records
constexpr std::uint64_t kStepsPerLook = 4096;   // at the disk

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// A file that goes away unless it is renamed.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : path_(path) {}
  ~PartialFile() {
    if (!renamed_) ::unlink(path_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  void rename_to(const std::string& name) {
    // a link replaces nothing, but not every file system has them
    const bool linked = ::link(path_.c_str(), name.c_str()) == 0;
    if (linked)
      ::unlink(path_.c_str());
    else if (errno == EEXIST || ::rename(path_.c_str(), name.c_str()) != 0)
      throw wire::RecordingWriteError(name, "cannot be named so: " + wire::output_error(errno), "look at the folder");
    renamed_ = true;
  }

 private:
  const std::string path_;
  bool renamed_ = false;
};

}  // namespace

std::uint64_t free_disk_bytes(const std::string& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
}

void to_message(const rt::FullState& full, wire::RecordedState& message) {
  message.set_step(full.step);
  message.set_sim_time_ns(full.sim_time_ns);
  message.mutable_state()->Assign(full.state.begin(), full.state.end());
  message.mutable_parameter()->Assign(full.parameters.begin(), full.parameters.end());
  message.clear_state_step();
  if (full.state_step != full.step) message.set_state_step(full.state_step);
  message.set_transitions(full.transitions);
}

// two spans of full states more than asked for: the file begins with one of them
BlackBox::BlackBox(const BlackBoxSettings& settings, wire::RecordingHeader header, std::size_t state_bytes)
    : settings_(settings),
      header_(std::move(header)),
      steps_(sizeof(StepHead) + largest_step(header_), settings.steps + 2 * settings.full_state_every + 64),
      states_(sizeof(std::uint64_t) + state_bytes, settings.steps / settings.full_state_every + 8) {}

void BlackBox::keep(const wire::RecordedStep& step, std::span<const double> outputs, std::int64_t log_time_ns) {
  const StepHead head{log_time_ns, step.ByteSizeLong(), outputs.size()};
  std::byte* const slot = steps_.at(steps_.count);
  std::memcpy(slot, &head, sizeof head);
  step.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(slot + sizeof head));
  std::memcpy(slot + sizeof head + head.size, outputs.data(), outputs.size_bytes());
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
  const std::byte* const step = steps_.at(number) + sizeof head;
  kept.step.ParseFromArray(step, static_cast<int>(head.size));
  kept.outputs.resize(head.outputs);
  std::memcpy(kept.outputs.data(), step + head.size, head.outputs * sizeof(double));
  return kept;
}

wire::RecordedState BlackBox::read_state(std::uint64_t number) const {
  const rt::FullState full =
      rt::read_full_state({states_.at(number) + sizeof(std::uint64_t), states_.slot_bytes - sizeof(std::uint64_t)});
  wire::RecordedState state;
  to_message(full, state);
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

// What write() would make now, at most.
std::uint64_t BlackBox::largest_file() const {
  std::uint64_t bytes = kAroundFile + header_.ByteSizeLong();
  for (std::uint64_t number = steps_.first(); number < steps_.count; ++number) {
    StepHead head{};
    std::memcpy(&head, steps_.at(number), sizeof head);
    bytes += head.size + kAroundMessage;
    if (head.outputs > 0) bytes += head.outputs * kOutputBytes + 2 * kAroundMessage;
  }
  // a full state, and the same by the names of the bodies
  return bytes + (states_.count - states_.first()) * (3 * states_.slot_bytes + 2 * kAroundMessage);
}

std::string BlackBox::refusal(Cause cause, Time now) const {
  const bool requested = cause == Cause::request;
  if (requested && last_request_ && now - *last_request_ < settings_.least_interval)
    return fmt::format("the last was asked for {:.1f} s ago, black_box.least_interval_seconds of the rig file is {:g}",
                       std::chrono::duration<double>(now - *last_request_).count(),
                       std::chrono::duration<double>(settings_.least_interval).count());
  if (all_.files >= settings_.most_files || (requested && requested_.files >= std::max(1u, settings_.most_files / 2)))
    return fmt::format(
        "this run has written {} files, {} of them on request: black_box.most_files of the rig file is "
        "{}, half of them for requests",
        all_.files, requested_.files, settings_.most_files);
  const std::uint64_t bytes = largest_file();
  if (all_.bytes + bytes > settings_.most_bytes || (requested && requested_.bytes + bytes > settings_.most_bytes / 2))
    return fmt::format(
        "it takes {:.1f} MiB, and this run has written {:.1f} MiB, {:.1f} of them on request: "
        "black_box.most_mebibytes of the rig file is {:.0f}, half of them for requests",
        mebibytes(bytes), mebibytes(all_.bytes), mebibytes(requested_.bytes), mebibytes(settings_.most_bytes));
  const std::uint64_t free = free_disk_bytes(settings_.folder);
  if (settings_.disk_reserve_bytes != 0 && free < bytes + settings_.disk_reserve_bytes)
    return fmt::format(
        "it takes {:.1f} MiB and {:.1f} MiB are free in \"{}\", of which {:.1f} MiB are left to the "
        "recording: free space, or lower black_box.reserve_mebibytes of the rig file",
        mebibytes(bytes), mebibytes(free), settings_.folder, mebibytes(settings_.disk_reserve_bytes));
  return {};
}

// A name that nothing has, also no link to nothing.
std::string BlackBox::fresh_path() const {
  namespace fs = std::filesystem;
  const std::string name = fs::path(header_.mechanism_file()).stem().string();
  const std::string stem = fmt::format("{}.black_box.{:%Y%m%dT%H%M%S}", name, fmt::gmtime(std::time(nullptr)));
  fs::path path = fs::path(settings_.folder) / (stem + ".mcap");
  constexpr int kMostTries = 1000;
  const auto is_taken = [](const fs::path& tried) { return fs::exists(fs::symlink_status(tried)); };
  for (int n = 2; (is_taken(path) || is_taken(path.string() + kPartial)) && n < kMostTries; ++n)
    path = fs::path(settings_.folder) / fmt::format("{}-{}.mcap", stem, n);
  return path.string();
}

void BlackBox::require_reserve(const std::string& path) const {
  const std::uint64_t free = free_disk_bytes(settings_.folder);
  if (settings_.disk_reserve_bytes == 0 || free >= settings_.disk_reserve_bytes) return;
  throw wire::RecordingWriteError(
      path,
      fmt::format("given up: only {:.1f} MiB of its disk are free, less than black_box.reserve_mebibytes",
                  mebibytes(free)),
      "free space");
}

std::string BlackBox::write(Cause cause, const std::string& reason, Time now) {
  if (cause == Cause::request) last_request_ = now;
  const std::string path = fresh_path();
  try {
    const std::uint64_t bytes = write_to(path, reason);
    all_.add(bytes);
    if (cause == Cause::request) requested_.add(bytes);
  } catch (const wire::RecordingWriteError& error) {
    throw wire::RecordingWriteError(path, error.problem, "free space, or name another folder; nothing is left of it");
  }
  return path;
}

// Returns the file's size.
std::uint64_t BlackBox::write_to(const std::string& path, const std::string& reason) const {
  wire::RecordingHeader header = header_;
  std::uint64_t number = 0, state = 0;
  if (const auto first = first_state()) {
    const wire::RecordedState begin = read_state(*first);
    number = steps_before(*first);
    state = *first + 1;
    *header.mutable_start_state() = begin.state();
    *header.mutable_start_parameter() = begin.parameter();
    header.set_start_step(begin.step());
    if (begin.has_state_step()) header.set_start_state_step(begin.state_step());
    header.set_start_hash(read_step(number - 1).step.state_hash());
  } else if (steps_.first() > 0) {
    throw wire::RecordingWriteError(path, "no full state is left to begin with", "record with more `full_state_every`");
  }
  const std::string partial_path = path + kPartial;
  wire::RecordingWriter writer(partial_path, header, wire::Existing::refuse);
  PartialFile partial(partial_path);
  wire::RecordingFooter footer;
  for (; number < steps_.count; ++number) {
    if (number % kStepsPerLook == 0) require_reserve(path);
    const KeptStep kept = read_step(number);
    writer.write(kept.step, kept.outputs, kept.log_time_ns);
    if (wire::is_step(kept.step)) footer.set_steps(footer.steps() + 1);
    for (; state < states_.count && steps_before(state) == number + 1; ++state)
      writer.write(read_state(state), kept.log_time_ns);
  }
  footer.set_reason("black box: " + reason);
  writer.finish(footer);
  partial.rename_to(path);
  return writer.bytes();
}

}  // namespace rigstep::server
