#include "server/view/live_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "server/rig/status.h"

namespace rigstep::server {
namespace {

constexpr std::size_t kMostEvents = 200;
constexpr double kTogether = 10.0;  // what is counted within it is one event [s]

std::uint64_t count_of(const wire::StatusReport& report, const std::string& name) {
  for (const wire::Counter& counter : report.counter())
    if (counter.name() == name) return counter.count();
  return 0;
}

std::optional<double> value_of(const wire::StatusReport& report, const std::string& parameter) {
  for (const wire::ParameterDescription& each : report.parameter())
    if (each.name() == parameter) return each.value();
  return {};
}

}  // namespace

void LiveEvents::compare(const wire::StatusReport& before, const wire::StatusReport& now, double time) {
  const auto tell = [&](std::string text) { note({.event = {now.step(), time, std::move(text)}}); };
  if (now.fault_number() != before.fault_number())
    tell(now.fault().empty() ? fmt::format("fault {}, cleared since", now.fault_number()) : "fault: " + now.fault());
  if (now.loop_state() != before.loop_state()) tell(to_text(now.loop_state()));
  if (now.controller().rig_name() != before.controller().rig_name())
    tell(now.controller().rig_name().empty() ? "nobody is in control" : "in control: " + now.controller().rig_name());
  for (const char* name : {"missed_deadlines", "limited_inputs", "not_converged_steps", "inaccurate_steps"})
    if (const std::uint64_t was = count_of(before, name), is = count_of(now, name); is > was)
      count(name, is - was, now.step(), time);
  bool is_set = false;
  for (const wire::ParameterDescription& parameter : now.parameter())
    if (const auto was = value_of(before, parameter.name()); was && *was != parameter.value()) {
      tell(fmt::format("{} = {} {}", parameter.name(), parameter.value(), parameter.unit()));
      is_set = true;
    }
  if (now.transitions() != before.transitions() && now.loop_state() == before.loop_state() && !is_set)
    tell("snapshot, reset or parameter");
  if (now.black_boxes() != before.black_boxes()) tell("black box: " + now.black_box());
}

// Where there are too many, counts go first: a run that misses deadlines all the time must not hide its fault.
void LiveEvents::note(Event event) {
  events_.push_back(std::move(event));
  if (events_.size() <= kMostEvents) return;
  const auto counted = std::find_if(events_.begin(), events_.end(), [](const Event& e) { return !e.counter.empty(); });
  events_.erase(counted == events_.end() ? events_.begin() : counted);
}

void LiveEvents::count(const char* counter, std::uint64_t more, std::uint64_t step, double time) {
  const auto newest =
      std::find_if(events_.rbegin(), events_.rend(), [counter](const Event& e) { return e.counter == counter; });
  const bool goes_on = newest != events_.rend() && time >= newest->event.time && time - newest->event.time < kTogether;
  if (!goes_on)
    return note({.event = {step, time, fmt::format("{} more {}", more, counter)}, .counter = counter, .count = more});
  newest->count += more;
  newest->event.text = fmt::format("{} more {}", newest->count, counter);
}

}  // namespace rigstep::server
