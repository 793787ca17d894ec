// The last steps of a run in memory, for a recording of their own when something has gone wrong. Owned and used by the
// recorder thread; the constructor allocates everything that is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/recording.h"

namespace rigstep::server {

struct BlackBoxSettings {
  std::string folder;
  std::uint64_t steps = 30'000;           // to keep
  std::uint64_t full_state_every = 1000;  // [steps]
};

// The last steps and full states, in memory that is made at the start; the oldest make room for the newest.
class BlackBox {
 public:
  // header: of the run, for its files. state_bytes: of a slot of the states ring.
  BlackBox(const BlackBoxSettings& settings, wire::RecordingHeader header, std::size_t state_bytes);

  void keep(const wire::RecordedStep& step, std::int64_t log_time_ns);
  void keep_state(std::span<const std::byte> slot);  // of the states ring; behind its step

  // Writes what is kept, from a full state on, to a new file and returns its path. Throws wire::RecordingError.
  std::string write(const std::string& reason) const;

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
    std::int64_t log_time_ns = 0;
  };
  std::uint64_t steps_before(std::uint64_t state) const;
  KeptStep read_step(std::uint64_t number) const;
  wire::RecordedState read_state(std::uint64_t number) const;
  std::optional<std::uint64_t> first_state() const;
  std::string fresh_path() const;

  BlackBoxSettings settings_;
  wire::RecordingHeader header_;
  Slots steps_;   // log time, size, RecordedStep
  Slots states_;  // how many steps stand before it, slot of the ring
};

}  // namespace rigstep::server
