#include "server/bench/error_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>

#include "server/bench/notes.h"
#include "server/bench/peers.h"
#include "server/bench/solvers.h"
#include "server/bench/step_costs.h"
#include "server/live/session.h"
#include "server/output/chart.h"
#include "server/output/temporary_folder.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"

namespace rigstep::server {

namespace {

constexpr double kErrorLevels[] = {1e-2, 1e-3, 1e-4};  // [m]

// What stands behind the cells of a row, where it was searched: of each in turn `text`, where that is not empty.
template <class Text>
std::string behind_cells(const ErrorCost& row, const Text& text) {
  std::string all;
  for (const double tolerance : kErrorLevels)
    if (const AccuracyPoint* p = cheapest(row.points, tolerance))
      if (const std::string one = text(*p); !one.empty()) all += (all.empty() ? "" : ", ") + one;
  return all;
}

// Of a row whose constraints are springs.
std::string time_constants(const ErrorCost& row) {
  const std::string chosen = behind_cells(
      row, [](const AccuracyPoint& p) { return p.time_constant > 0.0 ? fmt::format("{:g}", p.time_constant) : ""; });
  if (chosen.empty()) return chosen;
  return "its loops are closed by springs, with the time constants that suit best: " + chosen + " steps";
}

// Of a row of the stepper.
std::string iterations(const ErrorCost& row) {
  const std::string chosen = behind_cells(row, [](const AccuracyPoint& p) {
    if (p.iterations == 0) return std::string();
    if (p.not_converged == 0) return std::to_string(p.iterations);
    return fmt::format("{} ({} of {} steps say not_converged)", p.iterations, p.not_converged, p.steps);
  });
  return chosen.empty() ? chosen : "iterations a step: " + chosen;
}

// The stepper with each number of iterations.
std::vector<AccuracyPoint> points_of_stepper(const Mechanism& mechanism, int order, const ReferenceMotion& reference,
                                             const AccuracyLadder& ladder) {
  std::vector<AccuracyPoint> all;
  for (const int iterations : {3, 2, 1}) {
    const index3::Settings settings{.iterations = iterations, .order_of_accuracy = order};
    for (AccuracyPoint p :
         climb_down([&](double dt) { return timed_stepper(mechanism, dt, settings); }, reference, ladder)) {
      p.iterations = iterations;
      all.push_back(p);
    }
  }
  return all;
}

// ... that no other one beats in both error and time, from the cheapest on.
std::vector<AccuracyPoint> front(std::vector<AccuracyPoint> points) {
  std::sort(points.begin(), points.end(),
            [](const AccuracyPoint& a, const AccuracyPoint& b) { return a.ms_per_second < b.ms_per_second; });
  std::vector<AccuracyPoint> unbeaten;
  for (const AccuracyPoint& p : points)
    if (unbeaten.empty() || p.error < unbeaten.back().error) unbeaten.push_back(p);
  return unbeaten;
}

void peer_errors(const BenchRequest& request, const BenchMechanism& which, const ReferenceMotion& reference,
                 ErrorCosts& result) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "reference.json";
  write_text(file, to_json(reference).dump());
  std::vector<std::string> arguments = peer_arguments("error", which, request.quick);
  arguments.insert(arguments.end(), {"--reference", file});
  const std::optional<nlohmann::json> document = run_peers(request.peers, arguments);
  if (!document) {
    result.peers_problem = request.peers + " failed on " + which.name;
    return;
  }
  for (const auto& peer : (*document)["peers"]) {
    ErrorCost row{
        which.name, peer.value("solver", ""), peer.value("version", ""), peer.value("problem", ""), "", which.bodies,
        {}};
    for (const auto& p : peer.value("points", nlohmann::json::array()))
      row.points.push_back({p["dt"].get<double>(),
                            p["error"].is_null() ? std::numeric_limits<double>::infinity() : p["error"].get<double>(),
                            p["us_per_step"].get<double>(), p["ms_per_second"].get<double>(),
                            p.value("time_constant_steps", 0.0)});
    result.rows.push_back(row);
  }
  for (const auto& peer : (*document)["missing"]) result.missing[peer.value("solver", "")] = peer.value("package", "");
}

}  // namespace

const AccuracyPoint* cheapest(const std::vector<AccuracyPoint>& points, double tolerance) {
  const auto stays_within = [&](const AccuracyPoint& point) {
    bool half_is_there = false;
    for (const AccuracyPoint& p : points) {
      const bool is_of_series = p.iterations == point.iterations && p.time_constant == point.time_constant;
      if (!is_of_series || p.dt > point.dt) continue;
      if (p.dt >= 0.499 * point.dt && !(p.error <= tolerance)) return false;
      half_is_there = half_is_there || p.dt <= 0.501 * point.dt;
    }
    return half_is_there;
  };
  const AccuracyPoint* least = nullptr;
  for (const AccuracyPoint& p : points)
    if (stays_within(p) && (least == nullptr || p.ms_per_second < least->ms_per_second)) least = &p;
  return least;
}

ErrorCosts measure_error_costs(const BenchRequest& request, const std::atomic<bool>& stop,
                               const std::function<void(double)>& progress) {
  AccuracyLadder ladder;
  if (request.quick) ladder.smallest_dt = 2e-3;
  ErrorCosts result;
  result.peers_problem = request.peers_problem;
  for (std::size_t k = 0; k < request.mechanisms.size() && !stop; ++k) {
    progress(static_cast<double>(k));
    BenchMechanism which = request.mechanisms[k];
    const Mechanism as_described = make_mechanism(which), mechanism = moved_by_gravity(as_described);
    which.bodies = static_cast<int>(mechanism.bodies().size());
    const std::string on_springs = replaced_by_springs(as_described);
    const ReferenceMotion reference = reference_motion(which, mechanism, request.duration, stop);
    if (stop) break;
    const std::size_t first_row = result.rows.size();
    const auto add = [&](const std::string& solver, std::vector<AccuracyPoint> points) {
      result.rows.push_back({which.name, solver, product_version(), "", "", which.bodies, std::move(points)});
    };
    for (const int order : {2, 4}) {
      const std::string name = order == 2 ? "rigstep" : "rigstep order 4";
      const std::vector<AccuracyPoint> all = points_of_stepper(mechanism, order, reference, ladder);
      std::vector<AccuracyPoint> as_by_default;
      std::copy_if(all.begin(), all.end(), std::back_inserter(as_by_default),
                   [](const AccuracyPoint& p) { return p.iterations == index3::Settings{}.iterations; });
      add(name, as_by_default);
      add(name + " fewer iterations", all);
    }
    try {
      for (const bool tuned : {false, true})
        add(tuned ? "literal_tuned" : "literal",
            climb_down([&](double dt) { return timed_literal(mechanism, dt, tuned); }, reference, ladder));
    } catch (const MechanismError&) {
      // neither a serial chain nor a single loop: nothing to compare with
    }
    if (!request.peers.empty()) peer_errors(request, which, reference, result);
    for (std::size_t row = first_row; row < result.rows.size() && !on_springs.empty(); ++row)
      result.rows[row].differs = on_springs + ": springs instead";
  }
  return result;
}

nlohmann::json to_json(const ErrorCosts& result, double duration) {
  nlohmann::json out{{"schema", 1},
                     {"machine", machine_json(0.0)},
                     {"duration_s", duration},
                     {"rows", nlohmann::json::array()},
                     {"missing_peers", nlohmann::json::array()}};
  for (const ErrorCost& row : result.rows) {
    nlohmann::json one{
        {"mechanism", row.mechanism}, {"bodies", row.bodies}, {"solver", row.solver}, {"version", row.version}};
    if (!row.problem.empty()) one["problem"] = row.problem;
    if (!row.differs.empty()) one["differs"] = row.differs;
    one["points"] = nlohmann::json::array();
    for (const AccuracyPoint& p : row.points) {
      one["points"].push_back(
          {{"dt_s", p.dt}, {"error_m", p.error}, {"us_per_step", p.us_per_step}, {"ms_per_second", p.ms_per_second}});
      if (p.time_constant > 0.0) one["points"].back()["time_constant_steps"] = p.time_constant;
      if (p.iterations > 0) {
        one["points"].back()["iterations"] = p.iterations;
        one["points"].back()["steps"] = p.steps;
        one["points"].back()["not_converged"] = p.not_converged;
      }
    }
    one["reached"] = nlohmann::json::array();
    for (const double tolerance : kErrorLevels)
      if (const AccuracyPoint* p = cheapest(row.points, tolerance)) {
        one["reached"].push_back({{"tolerance_m", tolerance},
                                  {"dt_s", p->dt},
                                  {"ms", duration * p->ms_per_second},
                                  {"ms_per_second", p->ms_per_second}});
        if (p->iterations > 0) one["reached"].back()["iterations"] = p->iterations;
      }
    out["rows"].push_back(one);
  }
  for (const auto& [solver, package] : result.missing)
    out["missing_peers"].push_back({{"solver", solver}, {"install", "apt-get install " + package}});
  if (!result.peers_problem.empty()) out["peers_problem"] = result.peers_problem;
  return out;
}

void print(const ErrorCosts& result, double duration) {
  print_machine(machine_json(0.0));
  print_text(
      "largest position error of any body over {0:g} s: the cheapest step that stays below it, as smaller ones do, and "
      "what it takes to simulate the {0:g} s then\n",
      duration);
  print_text("{:<16} {:>6} {:<32}", "mechanism", "bodies", "solver");
  for (const double tolerance : kErrorLevels) print_text(" {:>26}", fmt::format("{:g} m", tolerance));
  print_text("\n");
  Notes notes;
  for (const ErrorCost& row : result.rows) {
    print_text("{:<16} {:>6} {:<32}", row.mechanism, row.bodies, row.solver);
    if (!row.problem.empty()) {
      print_text(" none{}\n", notes.mark(row.problem));
      continue;
    }
    for (const double tolerance : kErrorLevels) {
      const AccuracyPoint* p = cheapest(row.points, tolerance);
      print_text(" {:>26}", p != nullptr ? fmt::format("{:g} ms: {:.2f} ms", 1e3 * p->dt, duration * p->ms_per_second)
                                         : std::string("not reached"));
    }
    print_text("{}{}{}\n", notes.mark(row.differs), notes.mark(time_constants(row)), notes.mark(iterations(row)));
  }
  notes.print();
  print_missing(result.missing, result.peers_problem);
}

void write_error_costs(const ErrorCosts& result, double duration, const std::filesystem::path& folder) {
  write_text(folder / "error.json", to_json(result, duration).dump(2) + "\n");
  std::string csv = "mechanism,bodies,solver,iterations,time_constant_steps,dt_s,error_m,us_per_step,ms_per_second\n";
  std::map<std::string, Chart> charts;
  for (const ErrorCost& row : result.rows) {
    Chart& chart = charts[row.mechanism];
    chart.title = row.mechanism + ": cost against error";
    chart.x_label = "largest position error [m]";
    chart.y_label = "wall time per simulated second [ms]";
    ChartLine line{row.solver, {}};
    for (const AccuracyPoint& p : row.points)
      csv += fmt::format("{},{},{},{},{},{:g},{:.6g},{:.4f},{:.5f}\n", row.mechanism, row.bodies, row.solver,
                         p.iterations > 0 ? std::to_string(p.iterations) : "",
                         p.time_constant > 0.0 ? fmt::format("{:g}", p.time_constant) : "", p.dt, p.error,
                         p.us_per_step, p.ms_per_second);
    for (const AccuracyPoint& p : front(row.points))
      if (p.error > 0.0 && p.error < 10.0) line.points.emplace_back(p.error, p.ms_per_second);
    chart.lines.push_back(line);
  }
  write_text(folder / "error.csv", csv);
  for (const auto& [name, chart] : charts) write_svg(chart, (folder / (name + "_cost_over_error.svg")).string());
}

}  // namespace rigstep::server
