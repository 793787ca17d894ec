// rigstep study: the numerical experiments of the papers, done again.
#include <fmt/format.h>
#include <stdlib.h>

#include <array>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/offline/solver.h"
#include "server/commands/commands.h"
#include "server/live/session.h"
#include "server/machine/timing.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"
#include "server/studies/complement.h"
#include "server/studies/hamiltonian.h"
#include "server/studies/index3.h"
#include "server/studies/report.h"
#include "server/studies/tree.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

struct Study {
  const char* name;
  const char* description;
  const char* quick;
  double share;  // of the time that all take
  StudyPart (*run)(const StudyRequest&);
};
constexpr Study kStudies[] = {
    {"index3", "The stepper's paper: three test cases, penalty factors, sizes and threads",
     "Short simulations and few sizes: shows that it works", 0.2, study_index3},
    {"hamiltonian", "Hamiltonian against acceleration divide and conquer on three closed-loop mechanisms",
     "1 s and few tolerances: shows that it works", 0.1, study_hamiltonian},
    {"tree", "Methods for open trees: operations, times, which one to choose, the pipelayer",
     "Few sizes and short measurements: shows that it works", 0.1, study_tree},
    {"complement", "Eight natural complements with three stabilisations on two McPherson struts",
     "0.2 s and two tolerances: shows that it works", 0.6, study_complement}};

struct StudyOptions {
  std::string output;
  bool quick = false, brief_times = false, json = false;
};

bool times_are_brief(const StudyOptions& options) { return options.quick || options.brief_times; }

void make_folder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path))
    throw FileError(path + ": cannot be made: " + error.message() + ": choose another --output");
}

StudyResult perform(const Study& which, const std::string& folder, const StudyOptions& options,
                    const std::function<void(double)>& progress) {
  make_folder(folder);
  StudyRequest study;
  study.quick = options.quick;
  study.brief_times = times_are_brief(options);
  study.folder = folder;
  study.mechanism_file = [](const std::string& name) { return shipped_file("mechanisms/" + name + ".textproto"); };
  study.progress = [&progress](double done) {
    if (interrupted.load()) throw Interrupted();
    progress(done);
  };
  return {which.name, folder, which.run(study)};
}

nlohmann::json to_json(const StudyPart& found) {
  nlohmann::json json = nlohmann::json::array();
  for (const Finding& f : found.findings)
    json.push_back({{"claim", f.claim},
                    {"source", f.source},
                    {"criterion", f.criterion},
                    {"ours", f.ours},
                    {"agrees", f.outcome == Outcome::agrees},
                    {"outcome", to_string(f.outcome)},
                    {"reason", f.outcome == Outcome::agrees ? "" : f.reason}});
  return json;
}

void print(const StudyPart& found) {
  constexpr const char* kVerdicts[] = {"yes", "NO", "open"};
  for (const Finding& f : found.findings) {
    print_text("{:<4} {} ({}): {}\n", kVerdicts[static_cast<int>(f.outcome)], f.claim, f.source, f.ours);
    if (f.outcome != Outcome::agrees) print_text("     {}\n", f.reason);
  }
}

std::string load_now() {
  double load = 0.0;
  return getloadavg(&load, 1) == 1 ? fmt::format("{:.1f}", load) : "unknown";
}

ReportOrigin origin_of(std::time_t begin, const std::string& load_before, const StudyOptions& options) {
  char date[32];
  std::tm utc{};
  gmtime_r(&begin, &utc);
  std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
  return {fmt::format("Machine: {}, {} core(s)", cpu_fingerprint(), std::thread::hardware_concurrency()),
          fmt::format("Measured {}, in {:.0f} minutes", date, std::difftime(std::time(nullptr), begin) / 60.0),
          build_fingerprint(),
          fmt::format("Load of the machine {} before, {} after (1 is this program's own)", load_before, load_now()),
          options.quick,
          options.brief_times};
}

void run_one(const Study& which, const StudyOptions& options) {
  Progress progress(fmt::format("study {}", which.name), 1.0);
  const StudyResult result = perform(which, options.output, options, [&](double done) { progress.at(done); });
  if (options.json) {
    const nlohmann::json json = {{"schema", 1},
                                 {"output", options.output},
                                 {"brief_times", times_are_brief(options)},
                                 {"findings", to_json(result.found)}};
    print_json(json);
    return;
  }
  print(result.found);
  print_text("\ntables, figures and {}/{}.md written\n", options.output, which.name);
}

void run_all(const StudyOptions& options) {
  make_folder(options.output);
  const std::time_t begin = std::time(nullptr);
  const std::string load = load_now();
  Progress progress("study all", 1.0);
  std::vector<StudyResult> results;
  double before = 0.0;
  for (const Study& study : kStudies) {
    results.push_back(perform(study, options.output + "/" + study.name, options,
                              [&](double done) { progress.at(before + study.share * done); }));
    before += study.share;
  }
  const std::string report = options.output + "/report.html";
  write_text(report, html_report(origin_of(begin, load, options), results));
  if (options.json) {
    nlohmann::json json = {
        {"schema", 1}, {"output", options.output}, {"brief_times", times_are_brief(options)}, {"report", report}};
    for (const StudyResult& result : results)
      json["studies"].push_back({{"name", result.name}, {"findings", to_json(result.found)}});
    print_json(json);
    return;
  }
  for (const StudyResult& result : results) {
    print_text("{}\n", result.name);
    print(result.found);
    print_text("\n");
  }
  print_text("{} written\n", report);
}

// which: of kStudies; its size: all of them.
int run(std::size_t which, const StudyOptions& options) {
  watch_interrupts();
  try {
    which == std::size(kStudies) ? run_all(options) : run_one(kStudies[which], options);
    return kExitOk;
  } catch (const Interrupted&) {
    return kExitInterrupted;
  } catch (const offline::SolverError& failed) {
    print_error("rigstep: {}", failed.what());
  } catch (const StepFailed& failed) {
    print_error("rigstep: {}", failed.what());
  }
  return kExitNumerical;
}

CLI::App* add(CLI::App& command, const std::string& name, const char* description, const char* quick,
              StudyOptions& own) {
  own.output = fmt::format("study_{}", name);
  CLI::App* sub = command.add_subcommand(name, description);
  sub->add_option("--output", own.output, "Folder for tables (CSV), figures (SVG) and the page that compares")
      ->capture_default_str();
  sub->add_flag("--quick", own.quick, quick);
  sub->add_flag("--brief-times", own.brief_times, "Measure times briefly. All other results are those of a whole run");
  sub->add_flag("--json", own.json, "Print what agrees as JSON");
  sub->footer(
      fmt::format("Examples:\n"
                  "  rigstep study {0} --quick\n"
                  "  rigstep study {0} --output results --json\n\n"
                  "Whatever the comparison says, the exit code is 0 once it is done.\n{1}",
                  name, kExitCodeHelp));
  return sub;
}

}  // namespace

Command add_study(CLI::App& app) {
  CLI::App* command = app.add_subcommand("study", "Do the numerical experiments of a paper again");
  command->require_subcommand(1);
  command->footer(std::string("Examples:\n  rigstep study tree --quick\n  rigstep study all --output results\n\n") +
                  kExitCodeHelp);
  auto chosen = std::make_shared<std::size_t>(0);
  auto options = std::make_shared<std::array<StudyOptions, std::size(kStudies) + 1>>();
  for (std::size_t k = 0; k <= std::size(kStudies); ++k) {
    const bool all = k == std::size(kStudies);
    CLI::App* sub =
        add(*command, all ? "all" : kStudies[k].name,
            all ? "All of them, and report.html: one page that needs no other file" : kStudies[k].description,
            all ? "Shows that all of them work" : kStudies[k].quick, (*options)[k]);
    sub->parse_complete_callback([chosen, k] { *chosen = k; });
  }
  return [chosen, options] { return run(*chosen, (*options)[*chosen]); };
}

}  // namespace rigstep::server
