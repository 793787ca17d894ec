// rigstep doctor: what of this machine keeps a loop from its deadlines.
#include "server/machine/doctor.h"

#include <fmt/format.h>

#include <memory>

#include "server/commands/commands.h"
#include "server/output/terminal.h"

namespace rigstep::server {

Command add_doctor(CLI::App& app) {
  struct DoctorOptions {
    std::string rig;
    std::vector<std::string> links;
    bool json = false;
  };
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "Look for what keeps a loop from its deadlines, and say how to remove it");
  command->add_option("RIG_FILE", options->rig, "Rig file: tells priority, core, threads and network interface");
  command->add_option("--interface", options->links,
                      "Network interface to the rig; repeatable; that of the rig file's address, or all that are up");
  command->add_flag("--json", options->json, "Print the findings as JSON");
  command->footer(
      std::string(
          "Examples:\n  rigstep doctor\n  rigstep doctor config/rigs/bench_1khz.textproto --interface eth0\n\n"
          "Reads /proc, /sys and the environment, asks the network driver, and tries memory lock, core and\n"
          "priority; changes nothing. What cannot be read is a warning. Exit code 0 when nothing fails, else 1.\n"
          "How well the machine really keeps deadlines is measured by rigstep commission.\n\n") +
      kExitCodeHelp);
  return [options]() -> int {
    const config::RigConfig rig = options->rig.empty() ? config::RigConfig{} : config::load_rig(options->rig);
    Machine machine = this_machine(rig);
    if (!options->links.empty()) machine.links = options->links;
    const std::vector<Check> findings = diagnose(machine);
    print_text("{}", options->json ? json_text(to_json(findings)) : to_text(findings));
    return worst(findings) == Health::fail ? kExitVerdict : kExitOk;
  };
}

}  // namespace rigstep::server
