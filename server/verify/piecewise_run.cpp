#include "server/verify/piecewise_run.h"

#include <algorithm>
#include <utility>

namespace rigstep::server {

namespace {

// The instants from `begin` to `end`, both included, whether the scenario has them or not.
std::vector<double> instants_between(const offline::Scenario& scenario, double begin, double end) {
  std::vector<double> instants{begin};
  for (const double t : scenario.instants)
    if (t > begin && t < end) instants.push_back(t);
  if (end > begin) instants.push_back(end);
  return instants;
}

void append(offline::Trajectory part, const offline::Scenario& scenario, offline::Trajectory& all) {
  for (offline::Instant& instant : part.instants) {
    const bool is_asked = std::binary_search(scenario.instants.begin(), scenario.instants.end(), instant.time);
    const bool is_new = all.instants.empty() || instant.time > all.instants.back().time;
    if (is_asked && is_new) all.instants.push_back(std::move(instant));
  }
  all.right_hand_sides += part.right_hand_sides;
  all.right_hand_side_seconds += part.right_hand_side_seconds;
  all.seconds += part.seconds;
}

}  // namespace

std::string why_not_piecewise(const VerifyCase& a) {
  if (a.changes.empty()) return {};
  for (const Driver& driver : a.described().drivers())
    if (driver.from_input == Driver::FromInput::filtered)
      return "parameters change, and it cannot start anew within the filter of the driver \"" + driver.name + "\"";
  return {};
}

offline::Trajectory simulate_piecewise(const offline::Solver& solver, const VerifyCase& a,
                                       const offline::Scenario& scenario, const offline::Options& options) {
  offline::Trajectory all;
  Mechanism mechanism = a.described();
  offline::Scenario piece = scenario;
  piece.mechanism = &mechanism;
  double begin = scenario.instants.front();
  for (std::size_t k = 0; k <= a.changes.size(); ++k) {
    const double end = k == a.changes.size()
                           ? scenario.instants.back()
                           : std::min(scenario.instants.back(),
                                      seconds(static_cast<std::int64_t>(a.changes[k].after) * a.settings.dt_ns));
    if (end > begin || all.instants.empty()) {
      piece.instants = instants_between(scenario, begin, end);
      offline::Trajectory part = solver.simulate(piece, options);
      const bool is_whole = part.instants.size() == piece.instants.size();
      if (is_whole) piece.start = part.instants.back().body;
      append(std::move(part), scenario, all);
      if (!is_whole) return all;
      begin = end;
    }
    if (k < a.changes.size())
      mechanism = with_parameters(mechanism, tunable_values(mechanism, a.changes[k].parameters));
  }
  return all;
}

}  // namespace rigstep::server
