// What stands in the slots of the two rings that a recorder reads: records of steps, and full states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/index3/state.h"
#include "core/mechanism/signals.h"
#include "rt/ring.h"

namespace rigstep::rt {

// A slot of the steps ring: a StepRecord without the channels that the mechanism does not have.
std::size_t step_record_bytes(int input_channels, int output_channels, int parameters) noexcept;
// Writer: fills a slot.
void put_step(const StepRecord& record, std::byte* slot) noexcept;
// Reader: moves the oldest record into `record`; false if there is none.
bool try_pop_step(Ring& steps, StepRecord& record) noexcept;

// A slot of the states ring: step and time, the values of the parameters, then the flat state.
struct FullState {
  std::uint64_t step = 0;        // of the run
  std::uint64_t state_step = 0;  // that the state counts: less than `step` after a reset
  std::int64_t sim_time_ns = 0;
  std::uint32_t transitions = 0;       // of the run so far
  std::span<const double> parameters;  // values that act after it; of one that was read into the slot
  std::span<const double> state;       // into the slot
};
std::size_t full_state_bytes(const index3::State& state, std::size_t parameters) noexcept;
// Writer: fills a slot; full.state is not read, the numbers of `state` are.
void put_full_state(const FullState& full, const index3::State& state, std::span<std::byte> slot) noexcept;
FullState read_full_state(std::span<const std::byte> slot) noexcept;

}  // namespace rigstep::rt
