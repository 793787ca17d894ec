// The status report of a live server, as strangers and operators may ask for it.
// Owned by the endpoint and used by its thread.
#pragma once

#include <cstdint>
#include <functional>

#include "server/link/counters.h"
#include "server/link/hooks.h"
#include "server/link/participants.h"
#include "server/link/sessions.h"

namespace rigstep::server {

// now_ns: when it is told, CLOCK_MONOTONIC.
wire::Participant describe(const Participant& participant, std::int64_t now_ns);

class LiveStatus {
 public:
  // All outlive it. counters: reads those of the link.
  LiveStatus(const UdpHooks& hooks, std::function<UdpCounters()> counters, std::uint32_t timeout_steps,
             bool authenticated, Participants& participants, const Sessions& sessions);

  // Computed at most every 100 ms: questions, however many, cost the states no time.
  const wire::StatusReport& report(std::int64_t now_ns);
  void outdate() noexcept { computed_ns_ = 0; }

 private:
  void compute(std::int64_t now_ns);
  void add_counters();

  const UdpHooks& hooks_;
  const std::function<UdpCounters()> counters_;
  const std::uint32_t timeout_steps_;
  const bool authenticated_;
  Participants& participants_;
  const Sessions& sessions_;
  wire::StatusReport report_;
  std::int64_t computed_ns_ = 0;
};

}  // namespace rigstep::server
