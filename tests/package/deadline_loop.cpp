// Steps a mechanism at 1000 deadlines, a millisecond apart. Usage: deadline_loop MECHANISM.textproto
#include <cstdio>

#include "proto/load_mechanism.h"
#include "rt/cycle.h"
#include "rt/deadline_loop.h"
#include "rt/thread_setup.h"
using namespace rigstep;

int main(int, char** arguments) try {
  const Mechanism mechanism = config::load_mechanism(arguments[1]).mechanism;
  for (const rt::Grant& grant : rt::set_up_loop_thread({})) std::puts(to_string(grant).c_str());
  index3::Stepper stepper(mechanism, {.dt_ns = 1'000'000});
  rt::Cycle cycle(stepper, {}, {});  // its ports, all left out here: mailboxes of inputs and outputs, rings of records
  rt::MonotonicClock clock;
  std::atomic<bool> stop = false;
  rt::run_deadline_loop(clock, 1'000'000, stop, [&](const rt::TickTiming& timing) noexcept {
    const Snapshot& answer = cycle.tick(timing);  // answer.outputs, answer.status, answer.flags ...
    stop = answer.step == 1000 || cycle.fault().latched;
  });
  const auto print = [](const char* what, const rt::Histogram& ns) {
    std::printf("%s: median %lu ns, 99 %% %lu, longest %lu\n", what, ns.percentile(50), ns.percentile(99), ns.max());
  };
  print("wake-up", cycle.wake_up_ns()), print("step", cycle.step_ns());
  return cycle.fault().latched ? 1 : 0;
} catch (const Error& error) {  // ConfigError, MechanismError or RealtimeError: where, what, and what to do
  return std::fprintf(stderr, "%s\n", error.what()), 2;
}
