// What a live run was like, when it is over.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/mechanism/signals.h"
#include "rt/thread_setup.h"
#include "server/link/counters.h"

namespace rigstep::server {

struct LiveSummary {
  std::string mechanism;
  bool lockstep = false;
  double seconds = 0.0;  // of the loop
  std::uint64_t steps = 0;
  std::uint64_t steps_with_input = 0;  // those before a rig has sent one left out
  std::uint64_t missed_deadlines = 0;
  std::uint64_t first_miss_step = 0;  // step before which the first deadline was missed, 0: none was
  std::uint64_t newest_miss_step = 0;
  std::uint64_t limited_inputs = 0;  // steps whose inputs were limited to their range or rate
  std::uint64_t not_converged_steps = 0;
  std::uint64_t first_not_converged_step = 0;  // 0: all converged
  std::uint64_t inaccurate_steps = 0;          // whose estimated error is above the limit
  std::uint64_t first_inaccurate_step = 0;     // 0: none
  std::string first_inaccurate_body;           // that erred most then
  rt::ThreadUsage loop_thread;                 // while it stepped
  std::uint64_t lost_records = 0;
  std::uint64_t recorded_steps = 0;
  bool unconfirmed = false;     // all was written, but the disk had not confirmed it when waiting ended
  std::string recording;        // path, empty if none
  std::string recording_error;  // empty if all was written
  struct Distribution {
    double p50 = 0.0, p99 = 0.0, p999 = 0.0, max = 0.0;
  };
  Distribution wake_up_us;  // from the deadline
  Distribution step_us;
  Distribution input_age_steps;
  Distribution hand_off_us;  // from the answer of the loop to the waking of the network thread
  Distribution reply_us;     // from the deadline until the datagram was sent
  UdpCounters link;
  StepStatus last_status = StepStatus::ok;
  std::string fault;                     // why stepping stopped, empty if it did not or was reset
  std::uint32_t faults = 0;              // those that were reset included
  std::vector<std::string> black_boxes;  // files written
  std::uint32_t refused_black_boxes = 0;

  nlohmann::json json() const;
  std::string text() const;
};

}  // namespace rigstep::server
