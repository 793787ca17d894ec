// The commands of the rigstep binary. Each adds its options to the command line and returns what to run; results go to
// standard output, progress and logs to standard error.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "server/exit_code.h"
#include "server/output/live_display.h"

namespace rigstep::server {

using Command = std::function<int()>;  // returns an ExitCode

Command add_new(CLI::App& app);
Command add_check(CLI::App& app);
Command add_simulate(CLI::App& app);
Command add_serve(CLI::App& app);
Command add_rig(CLI::App& app);
Command add_replay(CLI::App& app);
Command add_info(CLI::App& app);
Command add_export(CLI::App& app);
Command add_export_fmu(CLI::App& app);
Command add_fmusim(CLI::App& app);
Command add_plot(CLI::App& app);
Command add_cut(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_bench(CLI::App& app);
Command add_schema(CLI::App& app);
Command add_demo(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_tune(CLI::App& app);
Command add_commission(CLI::App& app);
Command add_study(CLI::App& app);
Command add_verify(CLI::App& app);
Command add_get(CLI::App& app);
Command add_set(CLI::App& app);
Command add_view(CLI::App& app);
Command add_status(CLI::App& app);
Command add_run(CLI::App& app);
Command add_hold(CLI::App& app);
Command add_step(CLI::App& app);
Command add_snapshot(CLI::App& app);
Command add_reset(CLI::App& app);
Command add_blackbox(CLI::App& app);
Command add_keygen(CLI::App& app);
Command add_impair(CLI::App& app);

// Set by SIGINT, SIGTERM and SIGHUP once watch_interrupts() was called.
extern std::atomic<bool> interrupted;
struct Interrupted {};  // what ends a run that tells its progress
void watch_interrupts();
// Exit code of a service that was stopped by a signal: 130 for SIGINT, 0 for the others, by which services are
// stopped.
int interrupted_exit_code();

// A line on standard error that is rewritten in place, with what is left of the time; silent unless that is a terminal.
// total: of what at() tells; 0: unknown, the count itself is shown. It never goes back.
class Progress {
 public:
  Progress(std::string what, double total);
  void at(double done);

 private:
  std::string time_left(double part) const;

  std::string what_;
  double total_;
  LiveDisplay display_;
  std::chrono::steady_clock::time_point begin_;
  int percent_ = -1;
};

inline constexpr double kLongest = 1e8;  // [s] three years: what durations are checked against

// Accepts finite numbers from low to high.
inline CLI::Validator between(double low, double high) {
  return {[low, high](std::string& text) -> std::string {
            double value = 0.0;
            const bool good = CLI::detail::lexical_cast(text, value) && value >= low && value <= high;
            return good ? std::string() : fmt::format("give a number from {:g} to {:g}", low, high);
          },
          "NUMBER"};
}

// A file that comes with Rigstep: NAME under ./config, or under the installed share folder. Throws config::ConfigError.
std::string shipped_file(const std::string& name);

}  // namespace rigstep::server
