#include "rt/record_slots.h"

#include <cstring>

namespace rigstep::rt {
namespace {

// A record in a slot: all before its input channels, these, the number of outputs, and the outputs.
constexpr std::size_t kStepHeadBytes = offsetof(StepRecord, inputs) + offsetof(Inputs, value);
constexpr std::size_t kOutputCountBytes = sizeof(std::int64_t);

void take_step(const std::byte* slot, StepRecord& record) noexcept {
  std::memcpy(static_cast<void*>(&record), slot, kStepHeadBytes);
  const std::size_t input_bytes = static_cast<std::size_t>(record.inputs.count) * sizeof(double);
  std::memcpy(record.inputs.value.data(), slot + kStepHeadBytes, input_bytes);
  const std::byte* const after_inputs = slot + kStepHeadBytes + input_bytes;
  std::int64_t outputs = 0;
  std::memcpy(&outputs, after_inputs, sizeof outputs);
  record.outputs.count = static_cast<int>(outputs);
  std::memcpy(record.outputs.value.data(), after_inputs + sizeof outputs,
              static_cast<std::size_t>(outputs) * sizeof(double));
}

struct FullStateHead {
  std::uint64_t step, state_step;
  std::int64_t sim_time_ns;
  std::uint64_t transitions;
};
static_assert(sizeof(FullStateHead) % alignof(double) == 0);

}  // namespace

void put_step(const StepRecord& record, std::byte* slot) noexcept {
  const std::size_t inputs_end = kStepHeadBytes + static_cast<std::size_t>(record.inputs.count) * sizeof(double);
  std::memcpy(slot, &record, inputs_end);
  const std::int64_t outputs = record.outputs.count;
  std::memcpy(slot + inputs_end, &outputs, sizeof outputs);
  std::memcpy(slot + inputs_end + sizeof outputs, record.outputs.value.data(),
              static_cast<std::size_t>(outputs) * sizeof(double));
}

void put_full_state(const FullState& full, const index3::State& state, std::span<std::byte> slot) noexcept {
  const FullStateHead head{full.step, full.state_step, full.sim_time_ns, full.transitions};
  std::memcpy(slot.data(), &head, sizeof(head));
  double* const flat = reinterpret_cast<double*>(slot.data() + sizeof(head));
  state.flatten({flat, (slot.size() - sizeof(head)) / sizeof(double)});
}

std::size_t step_record_bytes(int input_channels, int output_channels) noexcept {
  return kStepHeadBytes + kOutputCountBytes +
         static_cast<std::size_t>(input_channels + output_channels) * sizeof(double);
}

bool try_pop_step(Ring& steps, StepRecord& record) noexcept {
  const std::span<const std::byte> slot = steps.front();
  if (slot.empty()) return false;
  take_step(slot.data(), record);
  steps.pop();
  return true;
}

std::size_t full_state_bytes(const index3::State& state) noexcept {
  return sizeof(FullStateHead) + state.flat_size() * sizeof(double);
}

FullState read_full_state(std::span<const std::byte> slot) noexcept {
  FullStateHead head{};
  std::memcpy(&head, slot.data(), sizeof(head));
  const double* const flat = reinterpret_cast<const double*>(slot.data() + sizeof(head));
  return {.step = head.step,
          .state_step = head.state_step,
          .sim_time_ns = head.sim_time_ns,
          .transitions = static_cast<std::uint32_t>(head.transitions),
          .state = {flat, (slot.size() - sizeof(head)) / sizeof(double)}};
}

}  // namespace rigstep::rt
