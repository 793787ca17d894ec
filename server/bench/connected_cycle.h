// A cycle with what a live loop connects it to and nobody at the other ends, which are emptied after each tick.
// Offline.
#pragma once

#include <memory>

#include "rt/cycle.h"
#include "server/live/session.h"

namespace rigstep::server {

class ConnectedCycle {
 public:
  // What the cycle is connected to, each with all that stand above it.
  enum class Part { alone, inputs, answers, records, poses, wake, count };

  ConnectedCycle(const config::RigConfig& rig, const config::LoadedMechanism& loaded, index3::Stepper& stepper);
  ~ConnectedCycle();
  ConnectedCycle(const ConnectedCycle&) = delete;
  ConnectedCycle& operator=(const ConnectedCycle&) = delete;

  // At the stepper's state, running at once, whatever it misses.
  std::unique_ptr<rt::Cycle> make(Part part);
  void send(std::uint64_t sequence) noexcept;  // inputs of zero
  void take() noexcept;                        // what other threads take

 private:
  const config::RigConfig& rig_;
  const Mechanism& mechanism_;
  index3::Stepper& stepper_;
  std::unique_ptr<rt::Mailbox<InputSample>> in_ = std::make_unique<rt::Mailbox<InputSample>>();
  std::unique_ptr<rt::Mailbox<Snapshot>> out_ = std::make_unique<rt::Mailbox<Snapshot>>(),
                                         display_ = std::make_unique<rt::Mailbox<Snapshot>>();
  rt::Ring steps_, states_;
  rt::PoseMailbox poses_;
  int wake_fd_;
  InputSample sample_;
  Snapshot taken_;
};

}  // namespace rigstep::server
