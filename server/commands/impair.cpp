// rigstep impair: a bad network between a rig and its server.
#include "server/rig/impair.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "server/commands/commands.h"
#include "server/output/terminal.h"
#include "server/rig/status.h"

namespace rigstep::server {

namespace {

nlohmann::json json(const ImpairReport::Way& way) {
  return {{"received", way.received},
          {"sent", way.sent},
          {"lost", way.lost},
          {"duplicated", way.duplicated},
          {"corrupted", way.corrupted}};
}

struct ImpairArguments {
  std::string target;
  ImpairOptions run;
  Impairment both;
  double delay_ms = 0.0, jitter_ms = 0.0, reorder_ms = 5.0;
};

int impair(ImpairArguments& options) {
  const StatusTarget target = parse_target(options.target, 0);
  options.run.host = target.host;
  options.run.port = target.port;
  options.both.delay_s = 1e-3 * options.delay_ms;
  options.both.jitter_s = 1e-3 * options.jitter_ms;
  options.both.reorder_s = 1e-3 * options.reorder_ms;
  options.run.to_server = options.run.to_rig = options.both;
  options.run.on_listening = [&](std::uint16_t port) {
    spdlog::info("impaired way to {} listening on {}:{}, seed {}", options.target, options.run.listen_address, port,
                 options.run.seed);
  };
  options.run.on_full = [] {
    spdlog::warn(
        "datagrams of more than {} rigs: those of further addresses are refused; start the proxy anew to forget "
        "rigs that have gone",
        kMostRigs);
  };
  watch_interrupts();
  const ImpairReport report = run_impair(options.run, interrupted);
  print_json(nlohmann::json{{"schema", 1},
                            {"seed", options.run.seed},
                            {"rigs", report.rigs},
                            {"most_rigs", kMostRigs},
                            {"refused", report.refused},
                            {"to_server", json(report.to_server)},
                            {"to_rig", json(report.to_rig)}});
  return interrupted_exit_code();
}

}  // namespace

Command add_impair(CLI::App& app) {
  auto options = std::make_shared<ImpairArguments>();
  CLI::App* command = app.add_subcommand("impair", "A bad network in a box: a seeded UDP proxy before the server");
  command->add_option("HOST:PORT", options->target, "Numeric address and port of the server")->required();
  command->add_option("--listen-port", options->run.listen_port, "Port for rigs; 0: any free one")
      ->capture_default_str();
  command->add_option("--listen-address", options->run.listen_address, "Numeric address for rigs")
      ->capture_default_str();
  command->add_option("--seed", options->run.seed, "Same seed, same datagrams hit")->capture_default_str();
  const auto share = [&](const char* name, double& value, const char* text) {
    command->add_option(name, value, text)->capture_default_str()->check(between(0.0, 1.0));
  };
  const auto time = [&](const char* name, double& value, const char* text) {
    command->add_option(name, value, text)->capture_default_str()->check(between(0.0, 10000.0));
  };
  time("--delay", options->delay_ms, "One way [ms]");
  time("--jitter", options->jitter_ms, "Added to the delay: uniform up to this [ms]");
  share("--loss", options->both.loss, "Share of datagrams lost one by one, 0 to 1");
  share("--burst-loss", options->both.burst_loss, "Share that begins a burst, in which all are lost");
  command->add_option("--burst-length", options->both.burst_length, "Mean length of a burst [datagrams]")
      ->capture_default_str()
      ->check(between(1.0, 1e6));
  share("--reorder", options->both.reorder, "Share held back");
  time("--reorder-by", options->reorder_ms, "Time they are held back [ms]");
  share("--duplicate", options->both.duplicate, "Share sent twice");
  share("--corrupt", options->both.corrupt, "Share with one bit flipped");
  command->footer(std::string("Examples:\n  rigstep impair 127.0.0.1:47001 --listen-port 47002 --loss 0.01 --jitter 2\n"
                              "  rigstep rig --port 47002 --duration 10\n\n"
                              "Both directions alike, until it is stopped; then it prints its counts as JSON.\n\n") +
                  kExitCodeHelp);
  return [options] { return impair(*options); };
}

}  // namespace rigstep::server
