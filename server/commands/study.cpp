// rigstep study: the numerical experiments of the papers, done again.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "server/commands/commands.h"
#include "server/csv.h"
#include "server/studies/hamiltonian.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string output = "study_hamiltonian";
  bool quick = false, json = false;
};

struct Interrupted {};

int run_hamiltonian(const Options& options) {
  watch_interrupts();
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error || !fs::is_directory(options.output))
    throw FileError(options.output + ": cannot be made: " + error.message() + ": choose another --output");
  Progress progress("study hamiltonian", 1.0);
  HamiltonianStudy study;
  study.quick = options.quick;
  study.folder = options.output;
  study.mechanism_file = [](const std::string& name) { return shipped_file("mechanisms/" + name + ".textproto"); };
  study.progress = [&progress](double done) {
    if (interrupted.load()) throw Interrupted();
    progress.at(done);
  };
  std::vector<Finding> findings;
  try {
    findings = study_hamiltonian(study);
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const offline::SolverError& failed) {
    fmt::print(stderr, "rigstep: {}\n", failed.what());
    return kExitNumerical;
  }
  if (options.json) {
    nlohmann::json json = {{"schema", 1}, {"output", options.output}};
    for (const Finding& f : findings)
      json["findings"].push_back({{"claim", f.claim}, {"ours", f.ours}, {"agrees", f.agrees}});
    fmt::print("{}\n", json.dump(2));
    return kExitOk;
  }
  for (const Finding& f : findings) fmt::print("{:<4} {}: {}\n", f.agrees ? "yes" : "NO", f.claim, f.ours);
  fmt::print("\ntables, figures and {}/hamiltonian.md written\n", options.output);
  return kExitOk;
}

}  // namespace

Command add_study(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Do the numerical experiments of a paper again");
  command->require_subcommand(1);
  command->footer(std::string("Examples:\n  rigstep study hamiltonian --quick\n\n") + kExitCodeHelp);
  auto options = std::make_shared<Options>();
  CLI::App* hamiltonian = command->add_subcommand(
      "hamiltonian", "Hamiltonian against acceleration divide and conquer on three closed-loop mechanisms");
  hamiltonian
      ->add_option("--output", options->output,
                   "Folder for tables (CSV), figures (SVG) and the page that "
                   "compares")
      ->capture_default_str();
  hamiltonian->add_flag("--quick", options->quick, "1 s and few tolerances: shows that it works");
  hamiltonian->add_flag("--json", options->json, "Print what agrees as JSON");
  hamiltonian->footer(std::string("Examples:\n"
                                  "  rigstep study hamiltonian --quick\n"
                                  "  rigstep study hamiltonian --output results --json\n\n"
                                  "Whatever the comparison says, the exit code is 0 once it is done.\n") +
                      kExitCodeHelp);
  return [options] { return run_hamiltonian(*options); };
}

}  // namespace rigstep::server
