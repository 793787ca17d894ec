#include "server/bench/loop_misses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <thread>
#include <vector>

#include "rt/clock.h"
#include "rt/deadline_loop.h"
#include "rt/thread_setup.h"
#include "server/bench/connected_cycle.h"
#include "server/live/live_run.h"
#include "server/output/quantile.h"

namespace rigstep::server {

namespace {

constexpr std::int64_t kJumpNs = 1'000;         // between two looks at the clock: more is no look
constexpr std::size_t kMostLate = 1'000'000;    // ticks that are kept to be explained
constexpr std::int64_t kLookNs = 100'000'000;   // between two reports of progress
constexpr std::uint64_t kStepsOfReport = 1000;  // likewise
constexpr int kTimesAgain = 3;                  // a step is made again, whose lowest counts

// What a wait was: how long asleep, how late woken, how long the clock was looked at without a jump.
struct Wait {
  std::int64_t asleep_ns = 0, woken_late_ns = 0, looked_ns = 0;
};

// The monotonic clock, which keeps what the last wait was.
class WatchedClock {
 public:
  static std::int64_t now_ns() noexcept { return rt::MonotonicClock::now_ns(); }
  static std::int64_t wall_ns() noexcept { return rt::MonotonicClock::wall_ns(); }
  void sleep_until(std::int64_t time_ns) noexcept {
    last_ = {};
    const std::int64_t from = now_ns();
    if (time_ns <= from) return;
    rt::MonotonicClock::sleep_until(time_ns);
    const std::int64_t now = now_ns();
    last_.asleep_ns = now - from, last_.woken_late_ns = now - time_ns;
  }
  void spin_until(std::int64_t time_ns) noexcept {
    for (std::int64_t last = now_ns(), now = last; last < time_ns; last = now) {
      rt::relax();
      now = now_ns();
      if (now - last <= kJumpNs) last_.looked_ns += now - last;
    }
  }
  const Wait& last() const noexcept { return last_; }

 private:
  Wait last_;
};

// Deadlines that were missed at once: in the wait before a tick, or by the tick.
struct Late {
  std::uint64_t step = 0;  // made by the tick
  std::uint64_t deadlines = 0;
  std::int64_t late_ns = 0;        // after the first of them
  std::int64_t start_late_ns = 0;  // of the tick, after the last deadline before it
  std::int64_t taken_before_ns = 0, jumped_before_ns = 0, woken_late_ns = 0;  // in the wait
  bool in_tick = false;
  std::int64_t tick_ns = 0, taken_ns = 0;  // the tick, and what of it something else had
};

// One end of a tick.
struct Instant {
  std::int64_t clock_ns = 0, processor_ns = 0;
  static Instant now() noexcept { return {rt::MonotonicClock::now_ns(), rt::read_clock_ns(CLOCK_THREAD_CPUTIME_ID)}; }
};
// Between two of them something else had the core for so long, or the thread slept.
std::int64_t without_core(const Instant& from, const Instant& to) noexcept {
  return (to.clock_ns - from.clock_ns) - (to.processor_ns - from.processor_ns);
}

class WatchedLoop {
 public:
  WatchedLoop(const config::RigConfig& rig, const config::LoadedMechanism& loaded)
      : rig_(rig),
        stepper_(make_stepper(loaded, settings_of(rig))),
        connected_(rig, loaded, stepper_),
        cycle_(connected_.make(ConnectedCycle::Part::records)),
        realtime_(rt::set_up_process_memory(realtime_settings(rig))),
        no_deep_idle_(realtime_settings(rig), realtime_) {
    late_.reserve(kMostLate);
    beside_ns_.reserve(kMostLate);
  }

  // The calling thread becomes the loop thread. Throws RealtimeError.
  void run(double seconds, const std::atomic<bool>& stop) {
    const rt::RealtimeSettings settings = realtime_settings(rig_);
    rt::ThreadReport report = rt::set_up_loop_thread(settings);
    const rt::BusyPoll busy_poll = rt::set_up_busy_poll(rig_.busy_poll_ns, settings, report);
    add(report);
    if (stepper_.threads() > 1)
      add(rt::set_up_team(stepper_.workers(), stepper_.threads() - 1, rig_.period_ns, settings));
    WatchedClock clock;
    const std::int64_t begin = clock.now_ns(), end = begin + std::llround(1e9 * seconds);
    std::atomic<bool> done{false};
    last_end_ = Instant::now();
    rt::run_deadline_loop(
        clock, rig_.period_ns, done,
        [&](const rt::TickTiming& timing) noexcept {
          tick(clock.last(), timing);
          if (last_end_.clock_ns >= end || stop || cycle_->fault().latched) done = true;
        },
        busy_poll);
    seconds_ = 1e-9 * static_cast<double>(last_end_.clock_ns - begin);
  }

  // Why stepping stopped; empty: it did not.
  std::string fault(const Mechanism& mechanism) const {
    const rt::Fault fault = cycle_->fault();
    return fault.latched ? describe_fault(mechanism, fault.status, fault.body, fault.joint, fault.output)
                         : std::string();
  }
  const rt::ThreadReport& realtime() const { return realtime_; }
  std::uint64_t not_kept() const { return not_kept_; }
  const std::vector<Late>& late() const { return late_; }
  const std::vector<double>& beside_ns() const { return beside_ns_; }
  std::uint64_t deadlines() const { return deadlines_; }
  double seconds() const { return seconds_; }
  std::uint64_t steps() const { return steps_; }
  std::uint64_t state_hash() const { return stepper_.state().hash(); }

 private:
  void tick(const Wait& wait, const rt::TickTiming& timing) noexcept {
    const Instant start = Instant::now();
    const std::int64_t first_deadline =
        timing.scheduled_ns + static_cast<std::int64_t>(1 + timing.missed_asleep) * rig_.period_ns;
    Late late{.step = steps_,
              .start_late_ns = start.clock_ns - (first_deadline - rig_.period_ns),
              .taken_before_ns = without_core(last_end_, start) - wait.asleep_ns,
              .jumped_before_ns = (start.clock_ns - last_end_.clock_ns) - wait.asleep_ns - wait.looked_ns,
              .woken_late_ns = wait.woken_late_ns};
    if (timing.missed_asleep > 0) {
      late.deadlines = timing.missed_asleep;
      late.late_ns = timing.wake_up_ns - rig_.period_ns;
      keep(late);
    }
    connected_.send(++steps_);
    cycle_->tick(timing);
    const std::int64_t step_ns = cycle_->record().step_ns;
    connected_.take();
    last_end_ = Instant::now();
    deadlines_ += 1 + timing.missed_asleep;
    late.in_tick = true;
    late.tick_ns = last_end_.clock_ns - start.clock_ns;
    late.taken_ns = without_core(start, last_end_);
    if (beside_ns_.size() < kMostLate) beside_ns_.push_back(static_cast<double>(late.tick_ns - step_ns));
    if (late.late_ns = last_end_.clock_ns - first_deadline; late.late_ns <= 0) return;
    late.deadlines = static_cast<std::uint64_t>((late.late_ns + rig_.period_ns - 1) / rig_.period_ns);
    deadlines_ += late.deadlines;
    keep(late);
  }

  void keep(const Late& late) noexcept {
    if (late_.size() < kMostLate)
      late_.push_back(late);
    else
      not_kept_ += late.deadlines;
  }

  void add(const rt::ThreadReport& report) { realtime_.insert(realtime_.end(), report.begin(), report.end()); }

  const config::RigConfig& rig_;
  index3::Stepper stepper_;
  ConnectedCycle connected_;
  std::unique_ptr<rt::Cycle> cycle_;
  rt::ThreadReport realtime_;
  rt::NoDeepIdle no_deep_idle_;
  Instant last_end_;
  std::vector<Late> late_;
  std::vector<double> beside_ns_;  // what ticks take beside their steps
  std::uint64_t steps_ = 0, deadlines_ = 0, not_kept_ = 0;
  double seconds_ = 0.0;
};

// (late ticks) the lowest time of their steps, made again [ns]; below 0: not made again, since it was not in the tick,
// or since `stop` is set. Empty: they are other steps now.
std::vector<double> made_again(const config::RigConfig& rig, const config::LoadedMechanism& loaded,
                               const WatchedLoop& loop, const std::atomic<bool>& stop,
                               const std::function<void(double)>& progress) {
  const std::vector<Late>& late = loop.late();
  std::vector<double> lowest(late.size(), -1.0);
  if (std::none_of(late.begin(), late.end(), [](const Late& each) { return each.in_tick; })) return lowest;
  Inputs inputs;
  inputs.count = static_cast<int>(loaded.mechanism.input_channels().size());
  for (int time = 0; time < kTimesAgain; ++time) {
    index3::Stepper stepper = make_stepper(loaded, settings_of(rig));
    Outputs outputs;
    std::size_t k = 0;
    for (std::uint64_t step = 0; step < loop.steps(); ++step) {
      if (stop) return lowest;
      if (step % kStepsOfReport == 0)
        progress((time + static_cast<double>(step) / static_cast<double>(loop.steps())) / kTimesAgain);
      while (k < late.size() && !late[k].in_tick) ++k;
      const std::int64_t begin = rt::MonotonicClock::now_ns();
      stepper.step(inputs, outputs);
      const double took = static_cast<double>(rt::MonotonicClock::now_ns() - begin);
      if (k == late.size() || late[k].step != step) continue;
      lowest[k] = lowest[k] < 0.0 ? took : std::min(lowest[k], took);
      ++k;
    }
    if (stepper.state().hash() != loop.state_hash()) return {};
  }
  return lowest;
}

// again_ns: the tick, made again; below 0: not known. longer_us: by how much slower ones took longer.
void explain(const Late& late, double again_ns, LoopMisses& misses, std::vector<double>& longer_us) {
  misses.longest_late_us = std::max(misses.longest_late_us, 1e-3 * static_cast<double>(late.late_ns));
  const auto count = [&late](std::uint64_t& sum) { sum += late.deadlines; };
  if (!late.in_tick) {
    if (late.taken_before_ns >= late.late_ns) return count(misses.core_taken);
    if (late.jumped_before_ns >= late.late_ns) return count(misses.clock_jumped);
    return count(late.woken_late_ns >= late.late_ns ? misses.woken_late : misses.own_work);
  }
  // what the tick began late is explained by the wait before it as far as that was held up
  const std::int64_t before =
      std::min(late.start_late_ns, std::max({late.taken_before_ns, late.jumped_before_ns, late.woken_late_ns}));
  if (before + late.taken_ns >= late.late_ns) return count(misses.core_taken);
  const double longer = static_cast<double>(late.tick_ns) - again_ns;
  if (!(again_ns >= 0.0 && static_cast<double>(before) + longer >= static_cast<double>(late.late_ns)))
    return count(misses.own_work);
  count(misses.slower);
  longer_us.push_back(1e-3 * longer);
}

// In a thread of its own, whose errors it throws.
void run(WatchedLoop& loop, double seconds, const std::atomic<bool>& stop,
         const std::function<void(double)>& progress) {
  std::atomic<bool> has_ended{false};
  std::exception_ptr error;
  std::thread thread([&] {
    try {
      loop.run(seconds, stop);
    } catch (...) {
      error = std::current_exception();
    }
    has_ended = true;
  });
  const std::int64_t begin = rt::MonotonicClock::now_ns();
  while (!has_ended) {
    rt::MonotonicClock::sleep_until(rt::MonotonicClock::now_ns() + kLookNs);
    progress(1e-9 * static_cast<double>(rt::MonotonicClock::now_ns() - begin) / seconds);
  }
  thread.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace

LoopMisses measure_loop_misses(const config::RigConfig& rig, double seconds, const std::atomic<bool>& stop,
                               const std::function<void(double)>& progress) {
  const config::LoadedMechanism loaded = load_mechanism_of(rig);
  WatchedLoop loop(rig, loaded);
  run(loop, seconds, stop, [&](double done) { progress(0.5 * std::min(1.0, done)); });
  LoopMisses misses;
  misses.seconds = loop.seconds(), misses.deadlines = loop.deadlines(), misses.not_kept = loop.not_kept();
  for (const rt::Grant& grant : loop.realtime()) misses.realtime.push_back(rt::to_string(grant));
  std::vector<double> beside = loop.beside_ns();
  const double beside_ns = quantile(beside, 0.5);
  std::vector<double> again = made_again(rig, loaded, loop, stop, [&](double done) { progress(0.5 + 0.5 * done); });
  misses.problem = loop.fault(loaded.mechanism);
  if (!misses.problem.empty())
    misses.problem = "stepping stopped: " + misses.problem + "; see what `rigstep simulate` says of the mechanism";
  else if (again.size() < loop.late().size())
    misses.problem =
        "the loop has taken other steps than those that were made again: does an input have a safe value or a soft "
        "start?";
  again.resize(loop.late().size(), -1.0);
  std::vector<double> longer_us;
  for (std::size_t k = 0; k < again.size(); ++k)
    explain(loop.late()[k], again[k] < 0.0 ? -1.0 : again[k] + beside_ns, misses, longer_us);
  if (!longer_us.empty()) misses.longer_us = quantile(longer_us, 0.5);
  std::erase_if(again, [](double ns) { return ns < 0.0; });
  if (!again.empty()) misses.step_us = 1e-3 * quantile(again, 0.5);
  misses.beside_us = 1e-3 * beside_ns;
  return misses;
}

std::string LoopMisses::text() const {
  std::string out = fmt::format("{} of {} deadlines missed in {:.1f} s, by {:.1f} us at most\n", missed(), deadlines,
                                seconds, longest_late_us);
  const auto line = [&out](std::uint64_t count, const char* what) { out += fmt::format("{:>10}  {}\n", count, what); };
  line(core_taken, "something else had the core: the thread got no processor time");
  line(clock_jumped, "the core stood still while the loop only looked at the clock");
  line(slower, "in a tick that, made again, would have been in time: the core stood still in it, or was slower");
  line(woken_late, "woken late");
  line(own_work, "none of these: the loop's own work");
  if (not_kept > 0) line(not_kept, "more than are kept: not explained");
  if (step_us > 0.0)
    out +=
        fmt::format("            late steps made again take {:.1f} us, ticks beside their steps {:.1f} us (medians)\n",
                    step_us, beside_us);
  if (slower > 0) out += fmt::format("            slower ticks took {:.1f} us longer (median)\n", longer_us);
  if (!problem.empty()) out += problem + "\n";
  for (const std::string& grant : realtime) out += grant + "\n";
  return out;
}

nlohmann::json LoopMisses::json() const {
  return {{"seconds", seconds},       {"deadlines", deadlines},       {"missed", missed()},
          {"core_taken", core_taken}, {"clock_jumped", clock_jumped}, {"slower", slower},
          {"woken_late", woken_late}, {"own_work", own_work},         {"longest_late_us", longest_late_us},
          {"step_us", step_us},       {"beside_us", beside_us},       {"longer_us", longer_us},
          {"not_kept", not_kept},     {"problem", problem},           {"realtime", realtime}};
}

}  // namespace rigstep::server
