#include "server/link/live_status.h"

#include <algorithm>
#include <utility>

namespace rigstep::server {
namespace {

constexpr std::int64_t kAgeNs = 100'000'000;

}  // namespace

wire::Participant describe(const Participant& participant, std::int64_t now_ns) {
  wire::Participant described;
  described.set_rig_name(participant.name);
  described.set_address(to_text(participant.endpoint));
  described.set_product_version(participant.product_version);
  described.set_key_name(participant.key_name);
  described.set_silent_ns(static_cast<std::uint64_t>(std::max<std::int64_t>(now_ns - participant.last_heard_ns, 0)));
  if (const auto clock = participant.end.clock().estimate(now_ns)) {
    described.mutable_clock()->set_offset_ns(clock->offset_ns);
    described.mutable_clock()->set_uncertainty_ns(static_cast<std::uint64_t>(clock->uncertainty_ns));
    described.mutable_clock()->set_round_trip_ns(static_cast<std::uint64_t>(clock->round_trip_ns));
  }
  return described;
}

LiveStatus::LiveStatus(const UdpHooks& hooks, std::function<UdpCounters()> counters, std::uint32_t timeout_steps,
                       bool authenticated, Participants& participants, const Sessions& sessions)
    : hooks_(hooks),
      counters_(std::move(counters)),
      timeout_steps_(timeout_steps),
      authenticated_(authenticated),
      participants_(participants),
      sessions_(sessions) {}

const wire::StatusReport& LiveStatus::report(std::int64_t now_ns) {
  if (computed_ns_ == 0 || now_ns - computed_ns_ >= kAgeNs) compute(now_ns);
  return report_;
}

void LiveStatus::compute(std::int64_t now_ns) {
  computed_ns_ = now_ns;
  report_.Clear();
  report_.set_step(sessions_.step());
  report_.set_lockstep(sessions_.in_lockstep());
  if (hooks_.describe_loop) hooks_.describe_loop(report_);
  add_counters();
  report_.set_authenticated(authenticated_);
  report_.set_timeout_steps(timeout_steps_);
  report_.set_observers(static_cast<std::uint32_t>(participants_.count(wire::OBSERVER)));
  for (const Participant& participant : participants_.all()) {
    if (participant.role == wire::CONSOLE) continue;
    *(participant.role == wire::CONTROLLER ? report_.mutable_controller() : report_.add_observer()) =
        describe(participant, now_ns);
  }
}

void LiveStatus::add_counters() {
  const auto add = [](auto* counters, const char* name, std::uint64_t value) {
    auto& counter = *counters->Add();
    counter.set_name(name);
    counter.set_count(value);
  };
  const UdpCounters now = counters_();
  add(report_.mutable_counter(), "received", now.received);
  add(report_.mutable_counter(), "accepted", now.accepted);
  add(report_.mutable_counter(), "sent", now.sent);
  add(report_.mutable_counter(), "overtaken", now.overtaken);
  add(report_.mutable_counter(), "send_errors", now.send_errors);
  add(report_.mutable_counter(), "queue_overflows", now.queue_overflows);
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    if (now.dropped[k] > 0)
      add(report_.mutable_refused(), to_string(static_cast<wire::DecodeStatus>(k)), now.dropped[k]);
}

}  // namespace rigstep::server
