#include "server/recordings/run_info.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "proto/load_mechanism.h"
#include "proto/printable.h"
#include "server/live/commission_verdict.h"
#include "server/live/recorder.h"
#include "server/live/session.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kMostOfAKind = 30;

std::string with_unit(const Channel& channel) { return channel.name + " [" + channel.unit + "]"; }

// Goes through the steps of a run and notes what changes from one to the next.
class Events {
 public:
  Events(const Mechanism& mechanism, const wire::RecordingHeader& header, RunInfo& info)
      : mechanism_(mechanism), info_(info), last_step_(header.start_step()) {
    for (const Parameter& each : mechanism.parameters()) values_.push_back(each.value);
    const auto acting = std::min<std::size_t>(values_.size(), static_cast<std::size_t>(header.start_parameter_size()));
    std::copy_n(header.start_parameter().begin(), acting, values_.begin());
    before_ = values_;
  }

  void take(const StepRecord& record) {
    const bool fault = (record.flags & kFaulted) != 0;
    if (record.transition == Transition::parameters) return take_parameters(record);
    if (record.transition != Transition::none) {
      last_tick_.is_known = false;  // ticks without a step are not recorded
      return add(record, changes_, to_string(record.transition));
    }
    if (record.step > last_step_ + 1) {
      info_.lost_steps += record.step - last_step_ - 1;
      add(record, gaps_, fmt::format("{} steps before it were not recorded", record.step - last_step_ - 1));
      last_tick_.is_known = false;
    }
    last_step_ = record.step;
    if (record.missed_deadlines > 0) {
      info_.missed_deadlines += record.missed_deadlines;
      add(record, misses_, fmt::format("{} deadlines missed before it: {}", record.missed_deadlines, blame(record)));
    }
    remember_tick(record);
    if (fault) {
      last_tick_.is_known = false;
      faulted_ = true;
      return add(record, faults_, "FAULT: " + why_stopped(mechanism_, record));
    }
    ++info_.steps;
    if (faulted_) add(record, faults_, "steps again after the fault");
    faulted_ = false;
    count(record);
    tell_change(record, kNoInputYet, "no inputs have come yet", "the first inputs");
    tell_change(record, kStaleInput, "inputs are stale: their rules apply", "inputs come again");
    flags_ = record.flags;
  }

 private:
  // Where the missed deadlines before a step were lost. Those after its own deadline the loop slept through. The others
  // were missed by the tick before, which came late, took long in its step, or beside it: the largest of the three.
  std::string blame(const StepRecord& record) {
    const double period_us = 1e6 * info_.dt;
    const std::uint64_t missed = record.missed_deadlines, waiting = std::min(missed, slept_through(record));
    if (waiting > 0) add_to(info_.missed_waiting, waiting, 1e-3 * record.wake_up_ns);
    std::string text;
    if (waiting > 0) text = fmt::format("the loop woke up {:.0f} us late", 1e-3 * record.wake_up_ns);
    if (waiting == missed) return text;
    if (!text.empty()) text += ", ";
    const std::uint64_t in_tick = missed - waiting;
    if (!last_tick_.is_known) {
      info_.missed_unplaced += in_tick;
      return text + "the tick before is not recorded";
    }
    const double late_us = last_tick_.late_us, step_us = last_tick_.step_us;
    const double beside_us = static_cast<double>(in_tick) * period_us - late_us - step_us;  // at least
    if (late_us >= std::max(step_us, beside_us)) {
      add_to(info_.missed_waiting, in_tick, late_us);
      return text + fmt::format("the tick before came {:.0f} us late", late_us);
    }
    if (step_us >= beside_us) {
      add_to(info_.missed_in_step, in_tick, step_us);
      return text + fmt::format("the step before took {:.0f} us", step_us);
    }
    add_to(info_.missed_beside_step, in_tick, beside_us);
    return text + fmt::format("the tick before took {:.0f} us or more beside its step", beside_us);
  }

  // Deadlines after the tick's own until it woke up; all where the time is longer than its field holds.
  std::uint64_t slept_through(const StepRecord& record) const {
    if (record.wake_up_ns == std::numeric_limits<std::uint32_t>::max()) return record.missed_deadlines;
    const double periods = std::ceil(1e-9 * record.wake_up_ns / info_.dt);
    return periods > 1.0 ? static_cast<std::uint64_t>(periods) - 1 : 0;
  }

  void remember_tick(const StepRecord& record) {
    const double late_us = 1e-3 * record.wake_up_ns;
    last_tick_ = {true, late_us - 1e6 * info_.dt * static_cast<double>(slept_through(record)), 1e-3 * record.step_ns};
  }

  static void add_to(Misses& misses, std::uint64_t deadlines, double us) {
    misses.deadlines += deadlines;
    misses.longest_us = std::max(misses.longest_us, us);
  }

  // A ramp, which changes them from step to step, is one event.
  void take_parameters(const StepRecord& record) {
    const bool goes_on = ramp_event_ < info_.events.size() && record.step == ramp_step_ + 1;
    if (!goes_on) {
      before_ = values_;
      const std::size_t events = info_.events.size();
      add(record, parameter_changes_, "");
      ramp_event_ = info_.events.size() > events ? events : info_.events.max_size();
    }
    ramp_step_ = record.step;
    const std::size_t count = std::min(values_.size(), static_cast<std::size_t>(record.parameters.count));
    std::copy_n(record.parameters.value.begin(), count, values_.begin());
    if (ramp_event_ >= info_.events.size()) return;
    std::string text = "parameters:";
    for (std::size_t k = 0; k < values_.size(); ++k)
      if (values_[k] != before_[k])
        text +=
            fmt::format(" {} {:.9g} {}", mechanism_.parameters()[k].name, values_[k], mechanism_.parameters()[k].unit);
    if (goes_on) text += fmt::format(", reached at step {}", record.step);
    info_.events[ramp_event_].text = text;
  }

  void count(const StepRecord& record) {
    info_.steps_without_input += (record.flags & kNoInputYet) != 0;
    info_.steps_with_stale_input += (record.flags & kStaleInput) != 0;
    info_.limited_inputs += (record.flags & kInputLimited) != 0;
    count_error(record);
    if (record.status != StepStatus::not_converged) return;
    if (info_.not_converged++ == 0) add(record, changes_, "the first step that did not converge");
  }

  void count_error(const StepRecord& record) {
    const auto name = [&] {
      const bool known = record.error_body >= 0 && static_cast<std::size_t>(record.error_body) < bodies().size();
      return known ? bodies()[static_cast<std::size_t>(record.error_body)].name : std::string();
    };
    if (record.position_error > info_.largest_error) {
      info_.largest_error = record.position_error;
      info_.largest_error_step = record.step;
      info_.largest_error_body = name();
    }
    if ((record.flags & kInaccurate) != 0 && info_.inaccurate++ == 0)
      add(record, changes_,
          fmt::format("the first step whose error is above the limit: {:.2e} m, {:.2e} rad, \"{}\" most",
                      record.position_error, record.orientation_error, name()));
  }
  const std::vector<Body>& bodies() const { return mechanism_.bodies(); }

  void tell_change(const StepRecord& record, std::uint32_t flag, const char* begins, const char* ends) {
    if ((record.flags & flag) == (flags_ & flag)) return;
    add(record, changes_, (record.flags & flag) != 0 ? begins : ends);
  }

  // of_kind: events of this kind so far
  void add(const StepRecord& record, std::size_t& of_kind, std::string text) {
    if (++of_kind > kMostOfAKind) {
      ++info_.events_left_out;
      return;
    }
    info_.events.push_back({record.step, exact_seconds(record.sim_time_ns), std::move(text)});
  }

  const Mechanism& mechanism_;
  RunInfo& info_;
  std::uint64_t last_step_;
  std::uint32_t flags_ = 0;
  struct Tick {
    bool is_known = false;
    double late_us = 0.0, step_us = 0.0;  // after the last deadline before it
  };
  Tick last_tick_;
  bool faulted_ = false;
  std::size_t gaps_ = 0, misses_ = 0, faults_ = 0, changes_ = 0, parameter_changes_ = 0;
  std::vector<double> values_, before_;  // of parameters: now, and before the newest change or ramp
  std::size_t ramp_event_ =
      std::vector<RunEvent>().max_size();  // place of that in the events; none where it was left out
  std::uint64_t ramp_step_ = 0;
};

void take_header(const wire::RecordingHeader& header, RunInfo& info) {
  info.mechanism_file = header.mechanism_file();
  info.rig_file = header.rig_file();
  info.product_version = header.product_version();
  info.variant_of = header.variant_of();
  info.from_snapshot = header.from_snapshot();
  info.recorded_on = header.compiler() + " on " + header.cpu();
  info.dt = exact_seconds(static_cast<std::int64_t>(header.dt_ns()));
  info.first_step = header.start_step() + 1;
  info.recorded_outputs.assign(header.output_channel().begin(), header.output_channel().end());
  info.realtime.assign(header.realtime().begin(), header.realtime().end());
  if (!header.commissioning().empty()) {
    info.commissioning = parse_commission_verdict(header.commissioning());
    if (info.commissioning.is_discarded()) info.commissioning = header.commissioning();
  }
}

nlohmann::json json_of(const std::vector<wire::RecordedDistribution>& distributions) {
  nlohmann::json all = nlohmann::json::object();
  for (const wire::RecordedDistribution& d : distributions)
    all[d.name()] = {{"count", d.count()}, {"p50", d.p50()}, {"p99", d.p99()}, {"p999", d.p999()}, {"max", d.max()}};
  return all;
}

nlohmann::json json_of(const Misses& misses) {
  return {{"deadlines", misses.deadlines}, {"longest_us", misses.longest_us}};
}

std::string line(const char* what, const std::string& text) { return fmt::format("{:<14}{}\n", what, text); }

std::string list(const std::vector<std::string>& names) {
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

RunInfo describe_run(const std::string& path, const std::function<void(std::uint64_t)>& progress) {
  wire::RecordingReader reader(path);
  RunInfo info;
  info.path = path;
  info.bytes = std::filesystem::file_size(path);
  take_header(reader.header(), info);
  const config::LoadedMechanism mechanism = mechanism_of(reader.header());
  info.mechanism = mechanism.mechanism.name();
  for (const Channel& channel : mechanism.mechanism.input_channels()) info.inputs.push_back(with_unit(channel));
  for (const Channel& channel : mechanism.mechanism.output_channels()) info.outputs.push_back(with_unit(channel));
  info.started = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(reader.log_time_ns() / 1'000'000'000));
  Events events(mechanism.mechanism, reader.header(), info);
  wire::RecordedStep step;
  wire::RecordedState state;
  for (auto item = reader.next(step, state); item != wire::RecordingReader::Item::end;
       item = reader.next(step, state)) {
    if (item == wire::RecordingReader::Item::state) {
      ++info.full_states;
      continue;
    }
    events.take(from_message(step));
    info.last_step = step.step();
    info.steps_with_outputs += !reader.outputs().empty() && wire::is_step(step);
    if (progress && (step.step() & 0xfff) == 0) progress(step.step());
  }
  info.damage = reader.damage_text();
  if (reader.footer()) {
    info.reason = reader.footer()->reason();
    info.distributions.assign(reader.footer()->distribution().begin(), reader.footer()->distribution().end());
  }
  return info;
}

nlohmann::json RunInfo::json() const {
  nlohmann::json happened = nlohmann::json::array();
  for (const RunEvent& event : events)
    happened.push_back({{"step", event.step}, {"time_s", event.time}, {"event", event.text}});
  return {{"schema", 1},
          {"recording", path},
          {"mechanism", mechanism},
          {"mechanism_file", mechanism_file},
          {"rig_file", rig_file},
          {"product_version", product_version},
          {"recorded_on", recorded_on},
          {"variant_of", variant_of},
          {"from_snapshot", from_snapshot},
          {"started_utc", started},
          {"dt_s", dt},
          {"first_step", first_step},
          {"last_step", last_step},
          {"steps", steps},
          {"duration_s", dt * static_cast<double>(steps)},
          {"missed_deadlines", missed_deadlines},
          {"missed_waiting", json_of(missed_waiting)},
          {"missed_in_step", json_of(missed_in_step)},
          {"missed_beside_step", json_of(missed_beside_step)},
          {"missed_unplaced", missed_unplaced},
          {"not_converged_steps", not_converged},
          {"inaccurate_steps", inaccurate},
          {"largest_step_error_m", largest_error < 0.0 ? nlohmann::json() : nlohmann::json(largest_error)},
          {"largest_step_error_step", largest_error_step},
          {"largest_step_error_body", largest_error_body},
          {"limited_input_steps", limited_inputs},
          {"lost_steps", lost_steps},
          {"steps_without_input", steps_without_input},
          {"steps_with_stale_input", steps_with_stale_input},
          {"steps_with_outputs", steps_with_outputs},
          {"full_states", full_states},
          {"bytes", bytes},
          {"inputs", inputs},
          {"outputs", outputs},
          {"recorded_outputs", recorded_outputs},
          {"realtime", realtime},
          {"commissioning", commissioning},
          {"events", happened},
          {"events_left_out", events_left_out},
          {"distributions", json_of(distributions)},
          {"reason", reason},
          {"damage", damage}};
}

std::string RunInfo::text() const {
  std::string out = fmt::format("{}: {}\n", wire::printable_line(path), mechanism);
  out += line("recorded", fmt::format("{} UTC, {:.9g} s in {} steps of {:g} s", started,
                                      dt * static_cast<double>(steps), steps, dt));
  out += line("by", "rigstep " + wire::printable_line(product_version) + ", " + wire::printable_line(recorded_on));
  if (!from_snapshot.empty()) out += line("started from", wire::printable_line(from_snapshot));
  if (!variant_of.empty()) out += line("variant of", wire::printable_line(variant_of));
  out += line("mechanism", wire::printable_line(mechanism_file));
  if (!rig_file.empty()) out += line("rig", wire::printable_line(rig_file));
  out += line("inputs", wire::printable_line(list(inputs)));
  out += line("outputs", wire::printable_line(list(outputs)));
  if (recorded_outputs.size() < outputs.size() || steps_with_outputs < steps)
    out += line("  recorded",
                fmt::format("{} of them, after {} of the steps", recorded_outputs.size(), steps_with_outputs));
  for (const std::string& grant : realtime) out += line("real time", wire::printable_line(grant));
  if (!commissioning.is_null()) out += line("commissioned", commission_verdict_text(commissioning));
  for (const wire::RecordedDistribution& d : distributions)
    out += line("timing", fmt::format("{:<16} p50 {}  p99 {}  p99.9 {}  max {}", wire::printable_line(d.name()),
                                      d.p50(), d.p99(), d.p999(), d.max()));
  out += line("deadlines", fmt::format("{} missed", missed_deadlines));
  const auto tell = [&out](const Misses& misses, const char* where) {
    if (misses.deadlines > 0)
      out += line("", fmt::format("{} of them {}, {:.0f} us at most", misses.deadlines, where, misses.longest_us));
  };
  tell(missed_waiting, "where the loop waited and woke up late");
  tell(missed_in_step, "in a step that took long");
  tell(missed_beside_step, "beside the step");
  if (missed_unplaced > 0) out += line("", fmt::format("{} of them in a tick that is not recorded", missed_unplaced));
  out += line("inputs were", fmt::format("absent in {} steps, stale in {}, limited in {}", steps_without_input,
                                         steps_with_stale_input, limited_inputs));
  out += line("converged", fmt::format("all steps but {}", not_converged));
  if (largest_error >= 0.0)
    out += line("step error",
                fmt::format("{:.2e} m at most, estimated, at step {} (\"{}\"); {} steps above the limit", largest_error,
                            largest_error_step, wire::printable_line(largest_error_body), inaccurate));
  out += line("file", fmt::format("{:.1f} MiB, {} full states, {} steps not recorded",
                                  static_cast<double>(bytes) / (1 << 20), full_states, lost_steps));
  for (const RunEvent& event : events)
    out += line("event", fmt::format("step {:>8}, {:>12.6f} s: {}", event.step, event.time, event.text));
  if (events_left_out > 0) out += line("", fmt::format("and {} more", events_left_out));
  out += line("ended", reason.empty() ? "not cleanly" : wire::printable_line(reason));
  if (!damage.empty())
    out += line("DAMAGED", "at " + damage + "; everything before it was read, and `rigstep cut` saves it");
  return out;
}

}  // namespace rigstep::server
