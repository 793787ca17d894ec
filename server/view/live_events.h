// What happened in a live run, as two status reports after each other tell it: faults, transitions, who is in control,
// what was counted. For people; the newest ones stay.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "proto/wire.pb.h"
#include "server/recordings/run_info.h"

namespace rigstep::server {

class LiveEvents {
 public:
  // time: simulated, of the newer report [s].
  void compare(const wire::StatusReport& before, const wire::StatusReport& now, double time);

  struct Event {
    RunEvent event;
    std::string counter = {};  // what was counted; empty: it happened once
    std::uint64_t count = 0;   // since it began
  };
  const std::deque<Event>& all() const noexcept { return events_; }

 private:
  void note(Event event);
  void count(const char* counter, std::uint64_t more, std::uint64_t step, double time);

  std::deque<Event> events_;  // in order of time
};

}  // namespace rigstep::server
