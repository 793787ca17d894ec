// The last steps of a run in memory, for a recording of their own when something has gone wrong, and how much of the
// disk such files may take. Owned and used by the recorder thread; the constructor allocates everything that is kept.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/recording_writer.h"
#include "rt/cycle.h"

namespace rigstep::server {

struct BlackBoxSettings {
  std::string folder;
  std::uint64_t steps = 30'000;                                        // to keep
  std::uint64_t full_state_every = 1000;                               // [steps]
  std::chrono::nanoseconds least_interval = std::chrono::seconds(10);  // between two that are asked for
  std::uint32_t most_files = 50;                                       // of the run
  std::uint64_t most_bytes = std::uint64_t{1} << 30;                   // likewise
  std::uint64_t disk_reserve_bytes = 100u << 20;                       // of the folder's disk, left free
};

// Free for this process on the disk of a folder [bytes]; the largest number where the system does not say.
std::uint64_t free_disk_bytes(const std::string& folder);

void to_message(const rt::FullState& full, wire::RecordedState& message);

// The last steps and full states, in memory that is made at the start; the oldest make room for the newest.
class BlackBox {
 public:
  enum class Cause { fault, request };
  using Time = std::chrono::steady_clock::time_point;

  // header: of the run, for its files. state_bytes: of a slot of the states ring.
  BlackBox(const BlackBoxSettings& settings, wire::RecordingHeader header, std::size_t state_bytes);

  // outputs: those that are recorded of this step, or none.
  void keep(const wire::RecordedStep& step, std::span<const double> outputs, std::int64_t log_time_ns);
  void keep_state(std::span<const std::byte> slot);  // of the states ring; behind its step

  // Why none may be written now, for people; empty: one may. Requests have half of the files and bytes of a run.
  std::string refusal(Cause cause, Time now) const;

  // Writes what is kept, from a full state on, to a new file and returns its path. The name is there only once the file
  // is whole; one that fails, or for which the disk gets too full, is removed. Throws wire::RecordingError.
  std::string write(Cause cause, const std::string& reason, Time now);

  std::size_t bytes() const { return steps_.bytes.size() + states_.bytes.size(); }  // of memory

 private:
  // Slots of one size, numbered from 0 on; the newest `capacity` of them are there.
  struct Slots {
    Slots(std::size_t bytes_each, std::uint64_t most)
        : slot_bytes(bytes_each), capacity(most), bytes(slot_bytes * most) {}
    std::byte* at(std::uint64_t number) { return &bytes[number % capacity * slot_bytes]; }
    const std::byte* at(std::uint64_t number) const { return &bytes[number % capacity * slot_bytes]; }
    std::uint64_t first() const { return count > capacity ? count - capacity : 0; }
    std::size_t slot_bytes;
    std::uint64_t capacity;
    std::vector<std::byte> bytes;
    std::uint64_t count = 0;
  };
  struct KeptStep {
    wire::RecordedStep step;
    std::vector<double> outputs;
    std::int64_t log_time_ns = 0;
  };
  std::uint64_t steps_before(std::uint64_t state) const;
  KeptStep read_step(std::uint64_t number) const;
  wire::RecordedState read_state(std::uint64_t number) const;
  std::optional<std::uint64_t> first_state() const;
  std::uint64_t largest_file() const;
  std::string fresh_path() const;
  std::uint64_t write_to(const std::string& path, const std::string& reason) const;
  void require_reserve(const std::string& path) const;

  BlackBoxSettings settings_;
  wire::RecordingHeader header_;
  Slots steps_;   // log time, size, number of outputs, RecordedStep, outputs
  Slots states_;  // how many steps stand before it, slot of the ring
  std::optional<Time> last_request_;
  struct Written {
    std::uint32_t files = 0;
    std::uint64_t bytes = 0;
    void add(std::uint64_t file_bytes) { ++files, bytes += file_bytes; }
  };
  Written all_, requested_;
};

}  // namespace rigstep::server
