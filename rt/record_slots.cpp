#include "rt/record_slots.h"

#include <algorithm>
#include <cstring>

namespace rigstep::rt {
namespace {

// A record in a slot: all before its input channels, these, then outputs and parameters, each behind their number.
constexpr std::size_t kStepHeadBytes = offsetof(StepRecord, inputs) + offsetof(Inputs, value);
constexpr std::size_t kCountBytes = sizeof(std::int64_t);

template <class Values>
const std::byte* take(const std::byte* from, Values& values) noexcept {
  std::int64_t count = 0;
  std::memcpy(&count, from, sizeof count);
  values.count = static_cast<int>(count);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
  std::memcpy(values.value.data(), from + sizeof count, bytes);
  return from + sizeof count + bytes;
}

template <class Values>
std::byte* put(const Values& values, std::byte* to) noexcept {
  const std::int64_t count = values.count;
  std::memcpy(to, &count, sizeof count);
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(double);
  std::memcpy(to + sizeof count, values.value.data(), bytes);
  return to + sizeof count + bytes;
}

void take_step(const std::byte* slot, StepRecord& record) noexcept {
  std::memcpy(static_cast<void*>(&record), slot, kStepHeadBytes);
  const std::size_t input_bytes = static_cast<std::size_t>(record.inputs.count) * sizeof(double);
  std::memcpy(record.inputs.value.data(), slot + kStepHeadBytes, input_bytes);
  take(take(slot + kStepHeadBytes + input_bytes, record.outputs), record.parameters);
}

struct FullStateHead {
  std::uint64_t step, state_step;
  std::int64_t sim_time_ns;
  std::uint64_t transitions;
  std::uint64_t parameters;  // how many
};
static_assert(sizeof(FullStateHead) % alignof(double) == 0);

}  // namespace

void put_step(const StepRecord& record, std::byte* slot) noexcept {
  const std::size_t inputs_end = kStepHeadBytes + static_cast<std::size_t>(record.inputs.count) * sizeof(double);
  std::memcpy(slot, &record, inputs_end);
  put(record.parameters, put(record.outputs, slot + inputs_end));
}

void put_full_state(const FullState& full, const index3::State& state, std::span<std::byte> slot) noexcept {
  const FullStateHead head{full.step, full.state_step, full.sim_time_ns, full.transitions, full.parameters.size()};
  std::memcpy(slot.data(), &head, sizeof(head));
  double* const parameters = reinterpret_cast<double*>(slot.data() + sizeof(head));
  double* const flat = std::copy(full.parameters.begin(), full.parameters.end(), parameters);
  state.flatten({flat, (slot.size() - sizeof(head)) / sizeof(double) - full.parameters.size()});
}

std::size_t step_record_bytes(int input_channels, int output_channels, int parameters) noexcept {
  return kStepHeadBytes + 2 * kCountBytes +
         static_cast<std::size_t>(input_channels + output_channels + parameters) * sizeof(double);
}

bool try_pop_step(Ring& steps, StepRecord& record) noexcept {
  const std::span<const std::byte> slot = steps.front();
  if (slot.empty()) return false;
  take_step(slot.data(), record);
  steps.pop();
  return true;
}

std::size_t full_state_bytes(const index3::State& state, std::size_t parameters) noexcept {
  return sizeof(FullStateHead) + (parameters + state.flat_size()) * sizeof(double);
}

FullState read_full_state(std::span<const std::byte> slot) noexcept {
  FullStateHead head{};
  std::memcpy(&head, slot.data(), sizeof(head));
  const double* const numbers = reinterpret_cast<const double*>(slot.data() + sizeof(head));
  const std::span<const double> all(numbers, (slot.size() - sizeof(head)) / sizeof(double));
  return {.step = head.step,
          .state_step = head.state_step,
          .sim_time_ns = head.sim_time_ns,
          .transitions = static_cast<std::uint32_t>(head.transitions),
          .parameters = all.first(head.parameters),
          .state = all.subspan(head.parameters)};
}

}  // namespace rigstep::rt
