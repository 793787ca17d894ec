#include "rt/saved_run.h"

#include <cstring>
#include <type_traits>

namespace rigstep::rt {

static_assert(std::is_trivially_copyable_v<SavedRun::Numbers>);

std::size_t saved_run_bytes(const SavedRun& run) noexcept {
  return sizeof run.numbers + run.state.size() * sizeof(double);
}

void put_saved_run(const SavedRun& run, std::span<std::byte> slot) noexcept {
  std::memcpy(slot.data(), &run.numbers, sizeof run.numbers);
  std::memcpy(slot.data() + sizeof run.numbers, run.state.data(), run.state.size() * sizeof(double));
}

void take_saved_run(std::span<const std::byte> slot, SavedRun& run) noexcept {
  std::memcpy(&run.numbers, slot.data(), sizeof run.numbers);
  std::memcpy(run.state.data(), slot.data() + sizeof run.numbers, run.state.size() * sizeof(double));
}

}  // namespace rigstep::rt
