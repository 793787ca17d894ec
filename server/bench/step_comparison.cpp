#include "server/bench/step_comparison.h"

#include <algorithm>
#include <cmath>

#include "proto/config_text.h"
#include "server/live/session.h"
#include "server/output/terminal.h"

namespace rigstep::server {

namespace {

constexpr const char* kPrintedForm = "literal";
constexpr std::size_t kLargestResult = 16 << 20;

config::ConfigError not_a_result(const std::string& path, const std::string& problem) {
  return config::error_at(
      path, 0, "--against", problem,
      "give the step.json of `rigstep bench step --output FOLDER`, measured on this type of processor");
}

LowestTimes times_of(const StepCosts& costs) {
  LowestTimes times;
  for (const StepCost& row : costs.rows)
    if (row.problem.empty() && row.times.lowest > 0.0)
      times[{row.mechanism, row.bodies, row.solver, row.threads}] = row.times.lowest;
  return times;
}

// Mean logarithm of the printed form's times in `of`, over what `both` has, too.
double log_measure(const LowestTimes& of, const LowestTimes& both, int& count) {
  double sum = 0.0;
  count = 0;
  for (const auto& [key, time] : of)
    if (std::get<2>(key) == kPrintedForm && both.contains(key)) sum += std::log(time), ++count;
  return count == 0 ? 0.0 : sum / count;
}

}  // namespace

EarlierCosts read_earlier_costs(const std::string& path) {
  const nlohmann::json result = nlohmann::json::parse(config::read_text_file(path, kLargestResult), nullptr, false);
  try {
    const std::string processor = result.at("machine").at("processor").get<std::string>();
    if (processor != cpu_fingerprint())
      throw not_a_result(path, "it was measured on \"" + processor + "\", and this is \"" + cpu_fingerprint() + '"');
    EarlierCosts earlier{path, {}};
    for (const nlohmann::json& row : result.at("rows")) {
      const double lowest = row.value("lowest_us", 0.0);
      if (lowest > 0.0 && std::isfinite(lowest))
        earlier.lowest[{row.at("mechanism").get<std::string>(), row.at("bodies").get<int>(),
                        row.at("solver").get<std::string>(), row.at("threads").get<int>()}] = lowest;
    }
    return earlier;
  } catch (const nlohmann::json::exception&) {
    throw not_a_result(path, "it is no result of `rigstep bench step`");
  }
}

std::vector<StepChange> compare(const EarlierCosts& earlier, const StepCosts& now) {
  const LowestTimes& before = earlier.lowest;
  const LowestTimes after = times_of(now);
  int count = 0;
  const double measure_before = std::exp(log_measure(before, after, count));
  const double measure_now = std::exp(log_measure(after, before, count));
  if (count == 0) throw not_a_result(earlier.path, "both runs have no time of the printed form for the same chain");
  std::vector<StepChange> changes;
  for (const auto& [key, time] : after) {
    const auto& [mechanism, bodies, solver, threads] = key;
    if (solver != "rigstep" || !before.contains(key)) continue;
    changes.push_back({mechanism, bodies, threads, before.at(key) / measure_before, time / measure_now});
  }
  return changes;
}

bool is_slower(const std::vector<StepChange>& changes) {
  return std::any_of(changes.begin(), changes.end(), [](const StepChange& c) { return c.change() > kSlowerStep; });
}

nlohmann::json to_json(const std::vector<StepChange>& changes) {
  nlohmann::json rows = nlohmann::json::array();
  for (const StepChange& c : changes)
    rows.push_back({{"mechanism", c.mechanism},
                    {"bodies", c.bodies},
                    {"threads", c.threads},
                    {"before", c.before},
                    {"now", c.now},
                    {"change", c.change()}});
  return rows;
}

void print(const std::vector<StepChange>& changes, const EarlierCosts& earlier) {
  print_text("\nagainst {}, lowest steps over the printed form's mean time in the same run\n", earlier.path);
  print_text("{:<16} {:>6} {:>7} {:>10} {:>10} {:>9}\n", "mechanism", "bodies", "threads", "before", "now", "change");
  for (const StepChange& c : changes)
    print_text("{:<16} {:>6} {:>7} {:>10.5f} {:>10.5f} {:>+8.1f} %{}\n", c.mechanism, c.bodies, c.threads, c.before,
               c.now, 100.0 * c.change(), c.change() > kSlowerStep ? "  slower" : "");
}

}  // namespace rigstep::server
