#include "server/bench/loop_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "rt/clock.h"
#include "server/bench/connected_cycle.h"
#include "server/output/quantile.h"

namespace rigstep::server {

namespace {

constexpr int kTicks = 3000;     // of a measurement
constexpr double kMostUs = 1.0;  // at ten channels

using Part = ConnectedCycle::Part;

constexpr const char* kNames[] = {
    "policies, lifecycle, counters, histograms", "inputs from the link",          "answer to the link, and for people",
    "record of the step, full states",           "poses, while somebody watches", "waking the link (a system call)"};
static_assert(std::size(kNames) == static_cast<std::size_t>(Part::count));

class Bench {
 public:
  Bench(const config::RigConfig& rig, const config::LoadedMechanism& loaded)
      : stepper_(make_stepper(loaded, settings_of(rig))), connected_(rig, loaded, stepper_) {}

  // Of a tick without its step: median [us].
  double beside_the_step(Part part) {
    const std::unique_ptr<rt::Cycle> cycle = connected_.make(part);
    std::vector<double> own;
    for (int k = 0; k < kTicks; ++k) {
      if (part >= Part::inputs) connected_.send(static_cast<std::uint64_t>(k) + 1);
      const std::int64_t begin = rt::MonotonicClock::now_ns();
      cycle->tick({.scheduled_ns = begin, .wake_up_ns = 1000, .log_time_ns = begin});
      const std::int64_t end = rt::MonotonicClock::now_ns();
      own.push_back(1e-3 * static_cast<double>(end - begin - cycle->record().step_ns));
      connected_.take();
    }
    return quantile(own, 0.5);
  }

  double hash() {
    std::vector<double> took;
    std::uint64_t all = 0;
    for (int k = 0; k < kTicks; ++k) {
      const std::int64_t begin = rt::MonotonicClock::now_ns();
      all ^= stepper_.state().hash();
      took.push_back(1e-3 * static_cast<double>(rt::MonotonicClock::now_ns() - begin));
    }
    keep_ = all;
    return quantile(took, 0.5);
  }

 private:
  index3::Stepper stepper_;
  ConnectedCycle connected_;
  volatile std::uint64_t keep_ = 0;  // so that no hash is left out
};

// Of the two readings of the clock that are not the loop's, one lies within what they measure.
double clock_us() {
  std::vector<double> took;
  for (int k = 0; k < kTicks; ++k) {
    const std::int64_t begin = rt::MonotonicClock::now_ns();
    took.push_back(1e-3 * static_cast<double>(rt::MonotonicClock::now_ns() - begin));
  }
  return quantile(took, 0.5);
}

}  // namespace

LoopPhases measure_loop_phases(const config::RigConfig& rig, int rounds, const std::atomic<bool>& stop) {
  const config::LoadedMechanism loaded = load_mechanism_of(rig);
  Bench bench(rig, loaded);
  constexpr auto kParts = static_cast<std::size_t>(Part::count);
  std::vector<double> tick(kParts, 1e9);  // with the parts up to this one
  double hash = 1e9, clock = 1e9;
  for (int round = 0; round < rounds && !stop; ++round) {
    clock = std::min(clock, clock_us());
    hash = std::min(hash, bench.hash());
    for (std::size_t part = 0; part < kParts; ++part)
      tick[part] = std::min(tick[part], bench.beside_the_step(static_cast<Part>(part)));
  }
  LoopPhases result;
  result.channels =
      static_cast<int>(loaded.mechanism.input_channels().size() + loaded.mechanism.output_channels().size());
  result.phases.push_back({"hash of the state", hash - clock});
  for (std::size_t part = 0; part < kParts; ++part)
    result.phases.push_back({kNames[part], tick[part] - (part == 0 ? hash : tick[part - 1])});
  return result;
}

double LoopPhases::sum_us() const {
  double sum = 0.0;
  for (const Phase& phase : phases) sum += phase.us;
  return sum;
}

std::string LoopPhases::text() const {
  std::string out = fmt::format("{:<48}{:>9}\n", "a tick beside its step [us]", "");
  for (const Phase& phase : phases) out += fmt::format("  {:<46}{:>9.2f}\n", phase.what, phase.us);
  return out + fmt::format("  {:<46}{:>9.2f}   at most {:.1f} at 10 channels\n",
                           fmt::format("together, at {} channels", channels), sum_us(), kMostUs);
}

nlohmann::json LoopPhases::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (const Phase& phase : phases) all.push_back({{"what", phase.what}, {"us", phase.us}});
  return {{"channels", channels}, {"phases", all}, {"sum_us", sum_us()}};
}

}  // namespace rigstep::server
