// What a run needs beside its mechanism and settings to go on with the same bits: the state with its multipliers, the
// parameters with what is still to come of their ramps, and what the rules for inputs remember. Sized at load time;
// copies between equal mechanisms do not allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/mechanism/signals.h"
#include "rt/input_guard.h"
#include "rt/parameter_ramps.h"

namespace rigstep::rt {

struct SavedRun {
  // All but the state; it is copied as it lies.
  struct Numbers {
    std::uint64_t step = 0;               // of the run
    std::uint64_t state_step = 0;         // that the state counts: less than `step` after a reset
    std::uint32_t steps_since_start = 0;  // of those that fade inputs in
    std::uint32_t age_steps = 0;          // ticks since `newest` arrived
    bool connected = false;               // a sample has arrived
    Inputs newest, applied;               // the last sample, and what was applied in the last step
    InputGuard::Memory guard;
    ParameterValues parameters;  // that act
    std::array<ParameterRamps::Ramp, kMaxParameters> ramp{};
  };

  Numbers numbers;
  std::vector<double> state;  // flat
};

// A slot of a ring that hands such runs to or from the loop.
std::size_t saved_run_bytes(const SavedRun& run) noexcept;
void put_saved_run(const SavedRun& run, std::span<std::byte> slot) noexcept;
// run.state has the size of what was put.
void take_saved_run(std::span<const std::byte> slot, SavedRun& run) noexcept;

}  // namespace rigstep::rt
