#include "server/live/live_summary.h"

#include <fmt/format.h>

#include "proto/codec.h"

namespace rigstep::server {

namespace {

std::string line(const char* name, const LiveSummary::Distribution& d, const char* unit) {
  return fmt::format("{:<22}p50 {:.1f}  p99 {:.1f}  p99.9 {:.1f}  max {:.1f} {}\n", name, d.p50, d.p99, d.p999, d.max,
                     unit);
}

}  // namespace

nlohmann::json LiveSummary::json() const {
  const auto to_json = [](const Distribution& d) {
    return nlohmann::json{{"p50", d.p50}, {"p99", d.p99}, {"p99.9", d.p999}, {"max", d.max}};
  };
  nlohmann::json dropped = nlohmann::json::object();
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    dropped[wire::to_string(static_cast<wire::DecodeStatus>(k))] = link.dropped[k];
  return {{"schema", 1},
          {"mechanism", mechanism},
          {"lockstep", lockstep},
          {"seconds", seconds},
          {"steps", steps},
          {"steps_with_input", steps_with_input},
          {"missed_deadlines", missed_deadlines},
          {"first_miss_step", first_miss_step},
          {"newest_miss_step", newest_miss_step},
          {"limited_inputs", limited_inputs},
          {"not_converged_steps", not_converged_steps},
          {"first_not_converged_step", first_not_converged_step},
          {"inaccurate_steps", inaccurate_steps},
          {"first_inaccurate_step", first_inaccurate_step},
          {"first_inaccurate_body", first_inaccurate_body},
          {"page_faults", loop_thread.page_faults},
          {"involuntary_switches", loop_thread.involuntary_switches},
          {"lost_records", lost_records},
          {"recorded_steps", recorded_steps},
          {"recording", recording},
          {"recording_error", recording_error},
          {"unconfirmed", unconfirmed},
          {"wake_up_us", to_json(wake_up_us)},
          {"step_us", to_json(step_us)},
          {"input_age_steps", to_json(input_age_steps)},
          {"hand_off_us", to_json(hand_off_us)},
          {"reply_us", to_json(reply_us)},
          {"black_boxes", black_boxes},
          {"refused_black_boxes", refused_black_boxes},
          {"link",
           {{"received", link.received},
            {"accepted", link.accepted},
            {"dropped", dropped},
            {"sent", link.sent},
            {"overtaken", link.overtaken},
            {"send_errors", link.send_errors},
            {"queue_overflows", link.queue_overflows}}},
          {"fault", fault},
          {"faults", faults},
          {"status", rigstep::to_string(last_status)}};
}

std::string LiveSummary::text() const {
  std::string out =
      fmt::format("{:<22}{} steps in {:.2f} s, {} deadlines missed\n", mechanism, steps, seconds, missed_deadlines);
  if (missed_deadlines > 0)
    out +=
        fmt::format("{:<22}first before step {}, last before step {}\n", "  missed", first_miss_step, newest_miss_step);
  out += line("wake-up", wake_up_us, lockstep ? "us after the datagram came" : "us after the deadline");
  out += line("step", step_us, "us");
  out += fmt::format("{:<22}{} page faults, taken off its core {} times\n", "loop thread", loop_thread.page_faults,
                     loop_thread.involuntary_switches);
  if (!lockstep) out += line("hand-off", hand_off_us, "us from the answer to the network thread");
  out +=
      line("reply", reply_us, lockstep ? "us from one datagram to the other" : "us from the deadline to the datagram");
  out += line("input age", input_age_steps, "steps");
  if (limited_inputs > 0)
    out += fmt::format("{:<22}in {} steps to their range or rate\n", "inputs limited", limited_inputs);
  if (not_converged_steps > 0)
    out +=
        fmt::format("{:<22}{} steps, first step {}\n", "not converged", not_converged_steps, first_not_converged_step);
  if (inaccurate_steps > 0)
    out += fmt::format("{:<22}{} steps err by more than the limit, first step {} (\"{}\")\n", "error", inaccurate_steps,
                       first_inaccurate_step, first_inaccurate_body);
  out += fmt::format("{:<22}{} received, {} accepted, {} sent\n", "datagrams", link.received, link.accepted, link.sent);
  if (link.overtaken > 0)
    out +=
        fmt::format("{:<22}{} states, replaced by a newer one before they were sent\n", "  overtaken", link.overtaken);
  if (link.send_errors > 0) out += fmt::format("{:<22}{} not taken by the system\n", "  send errors", link.send_errors);
  if (link.queue_overflows > 0)
    out += fmt::format("{:<22}{} dropped by the system: its queue was full, or a checksum wrong\n", "  queue overflows",
                       link.queue_overflows);
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    if (link.dropped[k] > 0)
      out += fmt::format("{:<22}{} ({})\n", "  refused", link.dropped[k],
                         wire::to_string(static_cast<wire::DecodeStatus>(k)));
  if (!recording.empty())
    out += fmt::format("{:<22}{}: {} steps, {} lost\n", "recording", recording, recorded_steps, lost_records);
  if (!recording_error.empty()) out += fmt::format("{:<22}{}\n", "recording failed", recording_error);
  if (unconfirmed)
    out += fmt::format("{:<22}written, but the disk had not confirmed it yet when it was no longer waited for\n", "");
  if (refused_black_boxes > 0)
    out += fmt::format("{:<22}{}, by the limits of the rig file\n", "black boxes refused", refused_black_boxes);
  for (const std::string& path : black_boxes) out += fmt::format("{:<22}{}\n", "black box", path);
  if (!fault.empty()) out += fmt::format("{:<22}stepping stopped: {}\n", "fault", fault);
  return out;
}

}  // namespace rigstep::server
