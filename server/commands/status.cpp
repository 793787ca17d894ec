// rigstep status, rigstep reset, rigstep blackbox, rigstep keygen: what an operator needs beside a live server.
#include "server/status.h"

#include <fmt/format.h>

#include <memory>

#include "proto/codec.h"
#include "proto/key_file.h"
#include "server/commands/commands.h"
#include "server/terminal.h"

namespace rigstep::server {

namespace {

struct StatusOptions {
  std::string target = "127.0.0.1:47001", key;
  bool json = false;
};

StatusTarget target_of(const StatusOptions& options) {
  StatusTarget target = parse_target(options.target);
  if (!options.key.empty()) target.key = wire::read_key_file(options.key);
  return target;
}

void print(const wire::StatusReport& report, bool json) {
  if (json)
    print_json(status_json(report));
  else
    print_text("{}", status_text(report));
}

int tell_status(const StatusOptions& options) {
  const wire::StatusReport report = query_status(target_of(options));
  print(report, options.json);
  return report.loop_state() == wire::FAULTED ? kExitVerdict : kExitOk;
}

int reset(const StatusOptions& options) {
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
                    int (*run)(const StatusOptions&)) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("HOST:PORT", options->target, "Address of the server")->capture_default_str();
  command->add_option("--key", options->key, "Copy of the server's key file");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(footer + kExitCodeHelp);
  return [options, run] { return run(*options); };
}

}  // namespace

Command add_status(CLI::App& app) {
  return add_request(app, "status", "How a live server is: control, faults, timing, refused datagrams",
                     "Examples:\n  rigstep status 127.0.0.1:47001\n"
                     "  rigstep status 10.0.0.5:47001 --key bench.key --json\n\n"
                     "Does not disturb the loop. Exit code 1: a fault is latched.\n\n",
                     tell_status);
}

Command add_reset(CLI::App& app) {
  return add_request(app, "reset", "Clear the latched fault of a live server",
                     "Examples:\n  rigstep reset 127.0.0.1:47001\n"
                     "  rigstep reset 10.0.0.5:47001 --key bench.key\n\n"
                     "Steps go on from the last good state; until new inputs come they rest at their safe values.\n"
                     "Look at the cause first: `rigstep status` names it. Exit code 1: another fault came at once.\n\n",
                     reset);
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
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("keygen", "Make the shared key of a link");
  command->add_option("FILE", *path, "Key file to write; an existing one is not replaced")->required();
  command->footer(
      std::string("Examples:\n  rigstep keygen bench.key\n  scp -p bench.key rig:bench.key\n\n"
                  "Name it in the rig file, `link { key_file: \"bench.key\" }`, and give rigs a copy. It is\n"
                  "readable by its owner only and never goes over the link.\n\n") +
      kExitCodeHelp);
  return [path] {
    wire::write_key_file(*path);
    print_error("{}: written; copy it to the other side by hand and keep both files private", *path);
    return kExitOk;
  };
}

}  // namespace rigstep::server
