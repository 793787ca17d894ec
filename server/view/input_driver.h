// Inputs that people set at the page while no rig is in control: in control of the link like any rig, with a thread of
// its own. It lets go where nobody has asked for anything for four seconds, so that no run is left to a closed browser.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/mechanism/signals.h"
#include "server/rig/rig_client.h"

namespace rigstep::server {

class InputDriver {
 public:
  // Takes control. limits: of the rig file, empty where they are not known. Throws what RigClient throws, also where
  // another rig is in control, and Error in lockstep, where the rig has the clock.
  InputDriver(const RigClientOptions& options, const std::vector<InputPolicy>& limits);
  ~InputDriver();  // says Goodbye
  InputDriver(const InputDriver&) = delete;
  InputDriver& operator=(const InputDriver&) = delete;

  // Where the inputs go, at the rate that the limits allow; without one, over their range in a second. Throws Error
  // where these are no finite values of all channels, or it is not in control any more.
  void set(const std::vector<double>& targets);

  bool has_ended() const noexcept { return ended_; }

 private:
  void run();
  void move(double seconds);

  RigClient client_;
  double period_s_;
  std::vector<double> lower_, upper_, rate_;  // [channel's unit], rate a second
  std::vector<double> value_;                 // that is sent
  std::mutex mutex_;                          // of targets_
  std::vector<double> targets_;
  std::atomic<std::int64_t> asked_ns_;
  std::atomic<bool> stopping_{false}, ended_{false};
  std::thread thread_;
};

}  // namespace rigstep::server
