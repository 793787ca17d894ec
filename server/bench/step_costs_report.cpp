// The costs of steps as JSON, text, tables and figures.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "server/bench/notes.h"
#include "server/bench/step_costs.h"
#include "server/live/session.h"
#include "server/output/chart.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace fs = std::filesystem;

namespace {

nlohmann::json to_json(const StepCost& row, double peak) {
  nlohmann::json out{{"mechanism", row.mechanism}, {"bodies", row.bodies},   {"solver", row.solver},
                     {"version", row.version},     {"threads", row.threads}, {"dt_s", row.dt}};
  if (!row.problem.empty()) {
    out["problem"] = row.problem;
    return out;
  }
  out.update({{"lowest_us", row.times.lowest},
              {"median_us", row.times.median},
              {"p999_us", row.times.p999},
              {"samples", row.times.samples},
              {"us_per_body", row.us_per_body()},
              {"speedup", row.speedup},
              {"efficiency", row.efficiency()}});
  if (row.bytes_per_body > 0.0) out["bytes_per_body"] = row.bytes_per_body;
  if (row.gap >= 0.0) out["gap_m"] = row.gap;
  if (!row.differs.empty()) out["differs"] = row.differs;
  if (row.multiply_adds > 0.0) {
    out["multiply_adds"] = row.multiply_adds;
    out["fraction_of_peak"] = row.multiply_adds / (1e-6 * row.times.median * peak);
  }
  for (const auto& [phase, share] : row.phases) out["phases"][phase] = share;
  return out;
}

void write_csv(const StepCosts& result, const fs::path& folder) {
  std::string text =
      "mechanism,bodies,solver,threads,dt_s,lowest_us,median_us,p999_us,us_per_body,bytes_per_body,speedup,"
      "efficiency\n";
  for (const StepCost& r : result.rows)
    if (r.problem.empty())
      text += fmt::format("{},{},{},{},{:g},{:.4f},{:.4f},{:.4f},{:.5f},{:.0f},{:.4f},{:.4f}\n", r.mechanism, r.bodies,
                          r.solver, r.threads, r.dt, r.times.lowest, r.times.median, r.times.p999, r.us_per_body(),
                          r.bytes_per_body, r.speedup, r.efficiency());
  write_text(folder / "step.csv", text);
}

// Lines over the number of bodies or of threads, one for each value of what is left.
template <class Keep, class Name, class Point>
std::vector<ChartLine> lines(const StepCosts& result, const Keep& keep, const Name& name, const Point& point) {
  std::vector<ChartLine> all;
  for (const StepCost& row : result.rows) {
    if (!row.problem.empty() || !keep(row)) continue;
    const std::string line = name(row);
    auto at = std::find_if(all.begin(), all.end(), [&](const ChartLine& l) { return l.name == line; });
    if (at == all.end()) at = all.insert(all.end(), ChartLine{line, {}});
    at->points.push_back(point(row));
  }
  return all;
}

// The paper's figures 12 to 14 for one kind of chain.
void write_figures(const StepCosts& result, const std::string& chain, const fs::path& folder) {
  const auto of_chain = [&](const StepCost& r) { return r.mechanism == chain; };
  const auto own = [&](const StepCost& r) { return of_chain(r) && r.solver == "rigstep"; };
  const auto solver = [](const StepCost& r) {
    return r.threads == 1 ? r.solver : fmt::format("{}, {} threads", r.solver, r.threads);
  };
  const auto threads = [](const StepCost& r) {
    return fmt::format("{} thread{}", r.threads, r.threads == 1 ? "" : "s");
  };
  const auto bodies = [](const StepCost& r) { return fmt::format("{} bodies", r.bodies); };
  const auto over_bodies = [](double value, const StepCost& r) {
    return std::pair(static_cast<double>(r.bodies), value);
  };
  const auto over_threads = [](double value, const StepCost& r) {
    return std::pair(static_cast<double>(r.threads), value);
  };
  const std::string prefix = (folder / (chain + "_")).string();
  const std::string title = chain == "spherical_chain" ? "Spherical chain" : "Revolute chain";
  write_svg({title + ": time per step", "bodies", "median [us]", true, true,
             lines(result, of_chain, solver, [&](const StepCost& r) { return over_bodies(r.times.median, r); })},
            prefix + "time_over_bodies.svg");
  if (std::none_of(result.rows.begin(), result.rows.end(), [](const StepCost& r) { return r.threads > 1; })) return;
  write_svg({title + ": time per step", "threads", "median [us]", false, true,
             lines(result, own, bodies, [&](const StepCost& r) { return over_threads(r.times.median, r); })},
            prefix + "time_over_threads.svg");
  const auto quantity = [&](const char* name, double (*value)(const StepCost&)) {
    write_svg({title + ": " + name, "bodies", name, true, false,
               lines(result, own, threads, [&](const StepCost& r) { return over_bodies(value(r), r); })},
              prefix + name + "_over_bodies.svg");
    write_svg({title + ": " + name, "threads", name, false, false,
               lines(result, own, bodies, [&](const StepCost& r) { return over_threads(value(r), r); })},
              prefix + name + "_over_threads.svg");
  };
  quantity("speed-up", [](const StepCost& r) { return r.speedup; });
  quantity("efficiency", [](const StepCost& r) { return r.efficiency(); });
}

}  // namespace

nlohmann::json machine_json(double peak) {
  nlohmann::json machine{
      {"processor", cpu_fingerprint()}, {"cores", std::thread::hardware_concurrency()}, {"build", build_fingerprint()}};
  if (peak > 0.0) machine["peak_multiply_adds_per_s"] = peak;
  double load[1] = {0.0};
  if (getloadavg(load, 1) == 1) machine["load"] = load[0];  // other work on the machine shows in the times
  return machine;
}

nlohmann::json to_json(const StepCosts& result) {
  nlohmann::json out{{"schema", 1},
                     {"machine", machine_json(result.peak)},
                     {"rows", nlohmann::json::array()},
                     {"missing_peers", nlohmann::json::array()}};
  for (const StepCost& row : result.rows) out["rows"].push_back(to_json(row, result.peak));
  for (const auto& [solver, package] : result.missing)
    out["missing_peers"].push_back({{"solver", solver}, {"install", "apt-get install " + package}});
  if (!result.peers_problem.empty()) out["peers_problem"] = result.peers_problem;
  return out;
}

void print_machine(const nlohmann::json& machine) {
  print_text("{}, {} cores, load {:.1f}", machine["processor"].get<std::string>(), machine["cores"].get<int>(),
             machine.value("load", 0.0));
  if (machine.contains("peak_multiply_adds_per_s"))
    print_text("; one core makes {:.1f} 10^9 multiply-adds/s",
               1e-9 * machine["peak_multiply_adds_per_s"].get<double>());
  print_text("\n");
}

void print_missing(const std::map<std::string, std::string>& missing, const std::string& problem) {
  for (const auto& [solver, package] : missing)
    print_text("{} was not there when this was built: apt-get install -y {}, configure and build again\n", solver,
               package);
  if (!problem.empty()) print_text("other engines: {}\n", problem);
}

void print(const StepCosts& result) {
  print_machine(machine_json(result.peak));
  const bool phases =
      std::any_of(result.rows.begin(), result.rows.end(), [](const StepCost& r) { return !r.phases.empty(); });
  const bool counted =
      std::any_of(result.rows.begin(), result.rows.end(), [](const StepCost& r) { return r.multiply_adds > 0.0; });
  print_text("{:<16} {:>6} {:<16} {:>7} {:>9} {:>10} {:>10} {:>8} {:>9} {:>8} {:>10} {:>8}{}{}\n", "mechanism",
             "bodies", "solver", "threads", "lowest us", "median us", "p99.9 us", "us/body", "bytes/bdy", "speed-up",
             "efficiency", "gap m", counted ? "  of peak" : "", phases ? "  phases" : "");
  Notes notes;
  std::string last;
  for (const StepCost& row : result.rows) {
    const std::string block = row.mechanism + std::to_string(row.bodies);
    if (!last.empty() && block != last) print_text("\n");
    last = block;
    print_text("{:<16} {:>6} {:<16} {:>7} ", row.mechanism, row.bodies, row.solver, row.threads);
    if (!row.problem.empty()) {
      print_text("none{}\n", notes.mark(row.problem));
      continue;
    }
    print_text("{:>9.2f} {:>10.2f} {:>10.2f} {:>8.3f} {:>9} {:>8.2f} {:>10.2f} {:>8}", row.times.lowest,
               row.times.median, row.times.p999, row.us_per_body(),
               row.bytes_per_body > 0.0 ? fmt::format("{:.0f}", row.bytes_per_body) : std::string("-"), row.speedup,
               row.efficiency(), row.gap < 0.0 ? std::string("-") : fmt::format("{:.0e}", row.gap));
    if (row.multiply_adds > 0.0)
      print_text(" {:>7.1f} %", 100.0 * row.multiply_adds / (1e-6 * row.times.median * result.peak));
    for (const auto& [phase, share] : row.phases) print_text("  {} {:.0f} %", phase, 100.0 * share);
    print_text("{}\n", notes.mark(row.differs));
  }
  notes.print();
  print_missing(result.missing, result.peers_problem);
}

void write_step_costs(const StepCosts& costs, const fs::path& folder) {
  write_csv(costs, folder);
  write_text(folder / "step.json", json_text(to_json(costs)));
  for (const char* chain : kChains)
    if (std::any_of(costs.rows.begin(), costs.rows.end(), [&](const StepCost& r) { return r.mechanism == chain; }))
      write_figures(costs, chain, folder);
}

}  // namespace rigstep::server
