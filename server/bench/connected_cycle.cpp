#include "server/bench/connected_cycle.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "server/live/live_run.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kSlots = 4;  // of rings that are emptied after each tick

void empty(rt::Ring& ring) noexcept {
  while (!ring.front().empty()) ring.pop();
}

}  // namespace

ConnectedCycle::ConnectedCycle(const config::RigConfig& rig, const config::LoadedMechanism& loaded,
                               index3::Stepper& stepper)
    : rig_(rig),
      mechanism_(loaded.mechanism),
      stepper_(stepper),
      steps_(rt::step_record_bytes(static_cast<int>(mechanism_.input_channels().size()),
                                   static_cast<int>(mechanism_.output_channels().size()),
                                   static_cast<int>(mechanism_.parameters().size())),
             kSlots),
      states_(rt::full_state_bytes(stepper_.state(), mechanism_.parameters().size()), kSlots),
      poses_(mechanism_.bodies().size(), mechanism_.input_channels().size(), rig.period_ns),
      wake_fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  sample_.inputs.count = static_cast<int>(mechanism_.input_channels().size());
  poses_.want(true);
}

ConnectedCycle::~ConnectedCycle() {
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

std::unique_ptr<rt::Cycle> ConnectedCycle::make(Part part) {
  rt::CycleSettings settings = cycle_settings(rig_, mechanism_);
  settings.start = StartMode::at_once;
  settings.miss_limits = {};
  rt::CyclePorts all;
  if (part >= Part::inputs) all.in = in_.get();
  if (part >= Part::answers) all.out = out_.get(), all.display = display_.get();
  if (part >= Part::records) all.steps = &steps_, all.states = &states_;
  if (part >= Part::poses) all.poses = &poses_;
  if (part >= Part::wake) all.wake_fd = wake_fd_;
  return std::make_unique<rt::Cycle>(stepper_, settings, all);
}

void ConnectedCycle::send(std::uint64_t sequence) noexcept {
  sample_.sequence = sequence;
  in_->publish(sample_);
}

void ConnectedCycle::take() noexcept {
  out_->take(taken_);
  display_->take(taken_);
  empty(steps_);
  empty(states_);
  poses_.take();
  std::uint64_t count = 0;
  while (::read(wake_fd_, &count, sizeof count) > 0) {
  }
}

}  // namespace rigstep::server
