// rigstep commission: does this machine carry this mechanism at this period?
#include "server/machine/commission.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>

#include "server/commands/commands.h"
#include "server/live/commission_verdict.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

struct CommissionOptions {
  CommissionRequest request;
  std::string output;
  bool json = false;
};

// Before the long work, but after what is wrong with the rig file: where the verdict goes. Nothing but an earlier one
// is replaced.
std::string verdict_path(const CommissionOptions& options) {
  const config::RigConfig rig = config::load_rig(options.request.rig_file);
  for (const std::string& warning : start_warnings(rig)) spdlog::warn("{}", warning);
  const std::string path = options.output.empty() ? commission_verdict_path(rig.path) : options.output;
  require_writable(path);
  if (std::filesystem::is_regular_file(path) && !is_commission_verdict(path))
    throw config::ConfigError("--output: " + path +
                              " was not written by rigstep commission and is kept: name another file");
  return path;
}

int commission(const CommissionOptions& options) {
  const std::string path = verdict_path(options);
  watch_interrupts();
  std::string running;
  std::unique_ptr<Progress> progress;
  const auto show = [&](const char* what, double done) {
    if (what != running) {
      running = what;
      progress = std::make_unique<Progress>("commissioning: " + running, 1.0);
    }
    progress->at(done);
  };
  const CommissionReport report = server::commission(options.request, interrupted, show);
  progress.reset();
  if (interrupted) return interrupted_exit_code();
  const std::string json = json_text(report.json());
  write_text(path, json);
  print_text("{}", options.json ? json : report.text());
  spdlog::info("{} written{}", path, options.output.empty() ? ": rigstep serve puts it into its recordings" : "");
  return report.carried() ? kExitOk : kExitVerdict;
}

std::string limits_text() {
  std::string text;
  for (const CommissionLimit& limit : commission_limits()) text += fmt::format("  {:<34} {}\n", limit.what, limit.most);
  return text;
}

}  // namespace

Command add_commission(CLI::App& app) {
  auto options = std::make_shared<CommissionOptions>();
  CLI::App* command = app.add_subcommand(
      "commission", "Measure whether this machine and link carry a rig file's mechanism at its period");
  CommissionRequest& request = options->request;
  command->add_option("RIG_FILE", request.rig_file, "Rig file")->required();
  command->add_option("--duration", request.seconds, "Live time [s]; what is measured beside it gets as long")
      ->check(between(0.5, 86400.0))
      ->capture_default_str();
  command->add_option("--drive", request.drives, "What the rig in software sends, as for rigstep rig; repeatable");
  command->add_flag("--rig-elsewhere", request.rig_elsewhere,
                    "Wait for a rig on the network instead of running one in software");
  command->add_option("--port", request.port, "UDP port instead of the rig file's; 0: any free one")
      ->check(CLI::Range(0, 65535));
  command->add_option("--output", options->output,
                      "Verdict file instead of RIG_FILE with the ending .commissioned.json, where serve finds it; an "
                      "earlier verdict is replaced, nothing else");
  command->add_flag("--json", options->json, "Print the verdict as JSON");
  command->footer(
      std::string(
          "Examples:\n  rigstep commission config/rigs/ci_loopback.textproto --drive drive=sine:2,0.5\n"
          "  rigstep commission bench.textproto --duration 600 --rig-elsewhere --json\n\n"
          "The verdict is yes (exit code 0) where all of these hold:\n\n" +
          limits_text() +
          "\np99.9 is the 99.9th percentile. Else the verdict is no "
          "(exit code 1). The pauses of the loop's core, and cyclictest and the UDP echo at the same period, are\n"
          "measured afterwards and do not count: they tell what of it is the machine's. rigstep serve embeds the\n"
          "verdict in recordings as long as rig file, mechanism, machine and build are the same.\n\n") +
      kExitCodeHelp);
  return [options] { return commission(*options); };
}

}  // namespace rigstep::server
