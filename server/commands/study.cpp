// rigstep study: the numerical experiments of the papers, done again.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/offline/solver.h"
#include "server/bench/timing.h"
#include "server/commands/commands.h"
#include "server/csv.h"
#include "server/studies/hamiltonian.h"
#include "server/studies/tree.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

struct Study {
  const char* name;
  const char* description;
  const char* quick;
  std::vector<Finding> (*run)(const StudyRequest&);
};
constexpr Study kStudies[] = {
    {"hamiltonian", "Hamiltonian against acceleration divide and conquer on three closed-loop mechanisms",
     "1 s and few tolerances: shows that it works", study_hamiltonian},
    {"tree", "Methods for open trees: operations, times, which one to choose, the pipelayer",
     "Few sizes and short measurements: shows that it works", study_tree}};

struct Options {
  std::string output;
  bool quick = false, json = false;
};

struct Interrupted {};

int run(const Study& which, const Options& options) {
  watch_interrupts();
  std::error_code error;
  fs::create_directories(options.output, error);
  if (error || !fs::is_directory(options.output))
    throw FileError(options.output + ": cannot be made: " + error.message() + ": choose another --output");
  Progress progress(fmt::format("study {}", which.name), 1.0);
  StudyRequest study;
  study.quick = options.quick;
  study.folder = options.output;
  study.mechanism_file = [](const std::string& name) { return shipped_file("mechanisms/" + name + ".textproto"); };
  study.progress = [&progress](double done) {
    if (interrupted.load()) throw Interrupted();
    progress.at(done);
  };
  std::vector<Finding> findings;
  try {
    findings = which.run(study);
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const offline::SolverError& failed) {
    fmt::print(stderr, "rigstep: {}\n", failed.what());
    return kExitNumerical;
  } catch (const StepFailed& failed) {
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
  fmt::print("\ntables, figures and {}/{}.md written\n", options.output, which.name);
  return kExitOk;
}

}  // namespace

Command add_study(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Do the numerical experiments of a paper again");
  command->require_subcommand(1);
  command->footer(std::string("Examples:\n  rigstep study hamiltonian --quick\n  rigstep study tree --quick\n\n") +
                  kExitCodeHelp);
  auto chosen = std::make_shared<const Study*>(nullptr);
  auto options = std::make_shared<std::array<Options, std::size(kStudies)>>();
  for (std::size_t k = 0; k < std::size(kStudies); ++k) {
    const Study& study = kStudies[k];
    Options& own = (*options)[k];
    own.output = fmt::format("study_{}", study.name);
    CLI::App* sub = command->add_subcommand(study.name, study.description);
    sub->add_option("--output", own.output, "Folder for tables (CSV), figures (SVG) and the page that compares")
        ->capture_default_str();
    sub->add_flag("--quick", own.quick, study.quick);
    sub->add_flag("--json", own.json, "Print what agrees as JSON");
    sub->footer(
        fmt::format("Examples:\n"
                    "  rigstep study {0} --quick\n"
                    "  rigstep study {0} --output results --json\n\n"
                    "Whatever the comparison says, the exit code is 0 once it is done.\n{1}",
                    study.name, kExitCodeHelp));
    sub->parse_complete_callback([chosen, &study] { *chosen = &study; });
  }
  return [chosen, options] { return run(**chosen, (*options)[static_cast<std::size_t>(*chosen - kStudies)]); };
}

}  // namespace rigstep::server
