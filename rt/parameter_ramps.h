// Changes of parameters on their way into the loop: what was asked for, all of one request in the same step, at once or
// in equal parts over some steps.
//
// Owned by the cycle. request() belongs to one thread, applied() likewise to one; value() to any; the rest to the
// stepping thread. Nothing here allocates after construction, locks or throws.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/mechanism/signals.h"
#include "rt/mailbox.h"

namespace rigstep::rt {

// Tunable parameters to values that they allow; whoever asks has made sure of both.
struct ParameterRequest {
  std::uint64_t number = 0;      // of whoever asks, not 0: comes back in AppliedParameters
  std::uint32_t ramp_steps = 0;  // 0: at once
  int count = 0;
  std::array<ParameterValue, kMaxParameters> value{};
};

struct AppliedParameters {
  std::uint64_t number = 0;     // of the newest request that was taken
  std::uint64_t acts_from = 0;  // the first step that it acts in; of a ramp its first part
};

class ParameterRamps {
 public:
  // Of one parameter; it goes on while done < steps.
  struct Ramp {
    double from = 0.0, to = 0.0;
    std::uint32_t steps = 0, done = 0;
  };

  explicit ParameterRamps(const Mechanism& mechanism);

  // Replaces a request that the loop has not taken yet: applied() never tells that one's number.
  void request(const ParameterRequest& request) noexcept { requests_.publish(request); }
  const AppliedParameters& applied() noexcept {
    applications_.take(applied_);
    return applied_;
  }
  double value(int index) const noexcept { return value_[index].load(std::memory_order_relaxed); }

  // What changes before step `next`, a step that is made at this tick or, with `stands`, at a later one, when ramps
  // wait. Valid until the next call.
  std::span<const ParameterValue> due(std::uint64_t next, bool stands) noexcept;
  // These act now.
  void note(std::span<const Parameter> parameters) noexcept;
  // What was asked for before is over.
  void stop() noexcept;
  // (parameters) what of ramps is still to come.
  std::span<const Ramp> ramps() const noexcept { return ramp_; }
  // Goes on with these instead. ramps: as many as there are parameters, or none.
  void resume(std::span<const Ramp> ramps) noexcept;

 private:
  void take(const ParameterRequest& request, std::uint64_t next) noexcept;

  Mailbox<ParameterRequest> requests_;
  Mailbox<AppliedParameters> applications_;
  AppliedParameters applied_;               // of the thread that asks
  ParameterRequest newest_;                 // of the stepping thread
  std::vector<Ramp> ramp_;                  // (parameters)
  std::vector<ParameterValue> due_;         // (parameters) room for
  std::vector<std::atomic<double>> value_;  // (parameters) that act
};

}  // namespace rigstep::rt
