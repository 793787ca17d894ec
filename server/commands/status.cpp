// rigstep status, run, hold, step, snapshot, reset, blackbox, keygen: what an operator needs beside a live server.
#include "server/rig/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

#include "proto/codec.h"
#include "proto/key_file.h"
#include "proto/snapshot_file.h"
#include "server/commands/commands.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

struct StatusOptions {
  std::string target = "127.0.0.1:47001", key, to, file;
  std::uint32_t steps = 1;
  bool json = false, watch = false;
};

StatusTarget target_of(const StatusOptions& options) {
  StatusTarget target = parse_target(options.target);
  target.key_file = options.key;
  return target;
}

void print(const wire::StatusReport& report, bool json) {
  if (json)
    print_json(status_json(report));
  else
    print_text("{}", status_text(report));
}

// Again and again: on a terminal in place, else one after the other, as JSON a line each.
wire::StatusReport watch_status(const StatusOptions& options) {
  watch_interrupts();
  const bool in_place = !options.json && ::isatty(STDOUT_FILENO) == 1;
  wire::StatusReport report;
  while (!interrupted) {
    report = query_status(target_of(options));
    if (options.json)
      print_text("{}\n", status_json(report).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
    else
      print_text("{}{}{}", in_place ? "\033[H\033[J" : "", status_text(report), in_place ? "" : "\n");
    std::fflush(stdout);
    for (int k = 0; k < 10 && !interrupted; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return report;
}

int tell_status(const StatusOptions& options) {
  if (options.watch)
    return watch_status(options).loop_state() == wire::FAULTED ? kExitVerdict : interrupted_exit_code();
  const wire::StatusReport report = query_status(target_of(options));
  print(report, options.json);
  return report.loop_state() == wire::FAULTED ? kExitVerdict : kExitOk;
}

int request(const StatusOptions& options, wire::Command::Kind kind) {
  const wire::StatusReport report = request_transition(target_of(options), kind, options.steps);
  print(report, options.json);
  return report.loop_state() == wire::FAULTED ? kExitVerdict : kExitOk;
}

// In memory, or with a file also there.
int snapshot(const StatusOptions& options) {
  if (options.file.empty()) return request(options, wire::Command::SNAPSHOT);
  require_writable(options.file);
  const std::string bytes = fetch_snapshot(target_of(options));
  const wire::SnapshotFile snapshot = config::parse_snapshot(bytes, target_of(options).host);
  write_text(options.file, bytes);
  if (options.json)
    print_json(nlohmann::json{{"schema", 1},
                              {"file", options.file},
                              {"mechanism", wire::printable(snapshot.mechanism())},
                              {"step", snapshot.step()},
                              {"state_hash", fmt::format("{:016x}", snapshot.state_hash())}});
  else
    print_text("{}: {} after step {}, {} bytes\n", wire::printable_line(options.file),
               wire::printable(snapshot.mechanism()), snapshot.step(), bytes.size());
  return kExitOk;
}

int reset_to(const StatusOptions& options, const std::string& file) {
  const std::string bytes = config::read_file(file, config::kLargestSnapshot);
  config::parse_snapshot(bytes, file);
  const wire::StatusReport report = reset_to_file(target_of(options), bytes);
  print(report, options.json);
  return report.loop_state() == wire::FAULTED ? kExitVerdict : kExitOk;
}

int reset(const StatusOptions& options) {
  if (options.to == "start") return request(options, wire::Command::RESET_TO_START);
  if (options.to == "snapshot") return request(options, wire::Command::RESET_TO_SNAPSHOT);
  if (!options.to.empty()) return reset_to(options, options.to);
  const StatusTarget target = target_of(options);
  wire::StatusReport report = query_status(target);
  if (report.loop_state() == wire::FAULTED) {
    print_error("resetting fault {}: {}", report.fault_number(), wire::printable(report.fault(), 300));
    report = reset_fault(target, report.fault_number());
  } else {
    print_error("no fault is latched");
  }
  print(report, options.json);
  return report.loop_state() == wire::FAULTED ? kExitVerdict : kExitOk;
}

int black_box(const StatusOptions& options) {
  const StatusTarget target = target_of(options);
  const wire::StatusReport report = write_black_box(target, query_status(target));
  const std::string text = wire::printable(report.black_box(), 300);
  if (options.json)
    print(report, true);
  else if (!report.black_box_failed())
    print_text("{}\n", text);
  if (!report.black_box_failed()) return kExitOk;
  print_error("rigstep: on the server {}", text);
  return kExitEnvironment;
}

// All of them ask a server, and take the same options.
Command add_request(CLI::App& app, const char* name, const char* what, const std::string& footer,
                    int (*run)(const StatusOptions&),
                    const std::function<void(CLI::App&, StatusOptions&)>& add_more = {}) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("HOST:PORT", options->target, "Address of the server")->capture_default_str();
  command->add_option("--key", options->key, "Key file of `rigstep keygen`, where the server has keys");
  if (add_more) add_more(*command, *options);
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(footer + kExitCodeHelp);
  return [options, run] { return run(*options); };
}

}  // namespace

Command add_status(CLI::App& app) {
  return add_request(app, "status", "How a live server is: control, faults, timing, refused datagrams",
                     "Examples:\n  rigstep status 127.0.0.1:47001\n"
                     "  rigstep status 10.0.0.5:47001 --key bench.key --json\n\n"
                     "  rigstep status 127.0.0.1:47001 --watch\n\n"
                     "Does not disturb the loop. Exit code 1: a fault is latched.\n\n",
                     tell_status, [](CLI::App& command, StatusOptions& options) {
                       command.add_flag("--watch", options.watch, "Twice a second, until interrupted");
                     });
}

Command add_run(CLI::App& app) {
  return add_request(app, "run", "Have a live server step: from its start, or on from where it holds",
                     "Examples:\n  rigstep run 127.0.0.1:47001\n\n"
                     "Possible while the server is ready or holds; else it refuses and says what is possible.\n\n",
                     [](const StatusOptions& options) { return request(options, wire::Command::RUN); });
}

Command add_hold(CLI::App& app) {
  return add_request(app, "hold", "Have a live server hold: time stands, the state is sent on",
                     "Examples:\n  rigstep hold 127.0.0.1:47001\n\n`rigstep run` goes on from there.\n\n",
                     [](const StatusOptions& options) { return request(options, wire::Command::HOLD); });
}

Command add_step(CLI::App& app) {
  return add_request(
      app, "step", "Have a live server make some steps and hold",
      "Examples:\n  rigstep step 127.0.0.1:47001\n  rigstep step 127.0.0.1:47001 --steps 100\n\n"
      "Possible while the server is ready or holds. The report is that of the beginning.\n\n",
      [](const StatusOptions& options) { return request(options, wire::Command::STEP); },
      [](CLI::App& command, StatusOptions& options) {
        command.add_option("--steps", options.steps, "How many")
            ->capture_default_str()
            ->check(CLI::Range(1u, 1'000'000'000u));
      });
}

Command add_snapshot(CLI::App& app) {
  return add_request(
      app, "snapshot", "Have a live server keep its present state, to go back to it, or save it to a file",
      "Examples:\n  rigstep snapshot 127.0.0.1:47001\n"
      "  rigstep reset 127.0.0.1:47001 --to snapshot\n"
      "  rigstep snapshot 127.0.0.1:47001 warm.snapshot\n"
      "  rigstep reset 127.0.0.1:47001 --to warm.snapshot\n"
      "  rigstep serve rig.textproto --from warm.snapshot\n"
      "  rigstep simulate --from warm.snapshot --duration 5\n\n"
      "The server keeps the newest one, in memory. It does not stop for it. A file holds the mechanism,\n"
      "its parameters and the state: what goes on from it has the bits of the run that was saved.\n\n",
      snapshot, [](CLI::App& command, StatusOptions& options) {
        command.add_option("FILE", options.file, "Write it here, too; a file of that name is replaced");
      });
}

Command add_reset(CLI::App& app) {
  return add_request(
      app, "reset", "Clear the latched fault of a live server, or set the run back",
      "Examples:\n  rigstep reset 127.0.0.1:47001\n"
      "  rigstep reset 127.0.0.1:47001 --to start\n"
      "  rigstep reset 127.0.0.1:47001 --to warm.snapshot\n"
      "  rigstep reset 10.0.0.5:47001 --key bench.key\n\n"
      "Without --to: steps go on from the last good state; until new inputs come they rest at their safe values.\n"
      "With it: possible while the server holds or is faulted. --to start ends ready: `rigstep run` starts again.\n"
      "--to snapshot ends holding; without a snapshot it is the start. So does a file of `rigstep snapshot`, which "
      "must\n"
      "be of the server's mechanism and settings.\n"
      "Look at the cause first: `rigstep status` names it. Exit code 1: a fault is latched afterwards.\n\n",
      reset, [](CLI::App& command, StatusOptions& options) {
        command.add_option("--to", options.to, "Set the state back: start, snapshot, or a file of `rigstep snapshot`");
      });
}

Command add_blackbox(CLI::App& app) {
  return add_request(
      app, "blackbox", "Have a live server write its last seconds to a file",
      "Examples:\n  rigstep blackbox 127.0.0.1:47001\n"
      "  rigstep blackbox 10.0.0.5:47001 --key bench.key\n\n"
      "Prints the file's path on the server's machine, for `rigstep replay` there; with --json the status\n"
      "report that names it. The loop goes on. The rig file says what is kept: `black_box { ... }`.\n"
      "Exit code 4: the server could not write it.\n\n",
      black_box);
}

Command add_keygen(CLI::App& app) {
  struct KeygenOptions {
    std::string server_file, participant, role = "controller", file, remove;
  };
  auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = app.add_subcommand("keygen", "Make and remove the keys of a link");
  command->add_option("SERVER_FILE", options->server_file, "Key file of the server: made, or changed, with all keys")
      ->required();
  auto* const add = command->add_option("--participant", options->participant, "Name of a participant to add");
  auto* const role = command->add_option("--role", options->role, "controller, observer or operator");
  role->capture_default_str()->needs(add);
  command
      ->add_option("--file", options->file,
                   "The participant's own file; PARTICIPANT.key beside the server's if not given")
      ->needs(add);
  command->add_option("--remove", options->remove, "Name of a participant to remove; the session ends at once")
      ->excludes(add);
  command->footer(
      std::string("Examples:\n  rigstep keygen bench.key\n"
                  "  rigstep keygen rig.keys --participant bench --role controller\n"
                  "  rigstep keygen rig.keys --participant desk --role operator\n"
                  "  scp -p bench.key rig:bench.key\n"
                  "  rigstep keygen rig.keys --remove bench\n\n"
                  "With the file alone: one key for the server and for the rig that controls it. With participants:\n"
                  "each has a key of its own. Name the server's file in the rig file, `link { key_file: \"rig.keys\" "
                  "}`, and move each\n"
                  "participant's file to where it belongs. No file of a participant is replaced. All are readable by\n"
                  "their owner only and never go over the link. A server that runs takes the change over. Roles: a\n"
                  "controller sends inputs, an observer looks on, an operator resets faults.\n\n") +
      kExitCodeHelp);
  return [options] {
    if (!options->remove.empty()) {
      wire::remove_participant(options->server_file, options->remove);
      print_error("{}: {} removed", options->server_file, options->remove);
      return kExitOk;
    }
    if (options->participant.empty()) {
      wire::write_key_file(options->server_file);
      print_error("{}: written, with the key of one controller; copy it to the rig by hand and keep both files private",
                  options->server_file);
      return kExitOk;
    }
    std::string file = options->file;
    if (file.empty())
      file = (std::filesystem::path(options->server_file).parent_path() / (options->participant + ".key")).string();
    wire::add_participant(options->server_file, file, options->participant, wire::parse_key_role(options->role));
    print_error("{}: {} added as {}", options->server_file, options->participant, options->role);
    print_error("{}: written; move it to the participant by hand and keep both files private", file);
    return kExitOk;
  };
}

}  // namespace rigstep::server
