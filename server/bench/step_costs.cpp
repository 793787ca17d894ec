#include "server/bench/step_costs.h"

#include <fmt/format.h>

#include <optional>

#include "rt/thread_setup.h"
#include "server/bench/peers.h"
#include "server/bench/phases.h"
#include "server/bench/solvers.h"
#include "server/live/session.h"
#include "server/output/terminal.h"

namespace rigstep::server {

namespace {

constexpr double kStepOfSprings = 1e-3;  // [s] where a mechanism has springs or inputs of its own time scale

void time_own_solvers(const BenchRequest& request, const BenchMechanism& which, const Mechanism& mechanism,
                      const TimingProtocol& protocol, std::vector<StepCost>& rows) {
  StepCost row;
  row.mechanism = which.name;
  row.bodies = static_cast<int>(mechanism.bodies().size());
  row.dt = which.dt;
  row.version = product_version();
  double one_thread = 0.0;
  const char* const set = request.instruction_set.empty() ? nullptr : request.instruction_set.c_str();
  for (const int threads : request.threads) {
    row.solver = "rigstep";
    row.threads = threads;
    std::size_t bytes = 0;
    const TimedSolver solver = timed_stepper(mechanism, which.dt, {.threads = threads, .instruction_set = set}, &bytes);
    {
      const rt::StayOnCores pinned(rt::StayOnCores::Which::only, rt::last_allowed_core());  // its workers have theirs
      row.times = time_steps(solver, protocol);
    }
    row.gap = solver.gap();
    row.bytes_per_body = static_cast<double>(bytes) / row.bodies;
    row.multiply_adds = multiply_adds_per_step(mechanism, which.dt);
    row.phases.clear();
    if (threads == 1) row.phases = phase_shares(mechanism, which.dt, row.times.lowest, set);
    if (threads == 1) one_thread = row.times.median;
    row.speedup = one_thread / row.times.median;
    rows.push_back(row);
  }
  row.threads = 1;
  row.multiply_adds = 0.0;
  row.gap = -1.0;
  row.phases.clear();
  row.speedup = 1.0;
  try {
    for (const bool tuned : {false, true}) {
      std::size_t bytes = 0;
      const TimedSolver solver = timed_literal(mechanism, which.dt, tuned, &bytes);
      row.solver = solver.name;
      row.times = time_steps(solver, protocol);
      row.bytes_per_body = static_cast<double>(bytes) / row.bodies;
      rows.push_back(row);
    }
  } catch (const MechanismError&) {
    // not a serial chain: nothing to compare with
  }
}

void time_peers(const BenchRequest& request, const BenchMechanism& which, int bodies, StepCosts& result) {
  std::vector<std::string> arguments = peer_arguments("time", which, request.quick);
  arguments.insert(arguments.end(), {"--dt", fmt::format("{:.12g}", which.dt)});
  const std::optional<nlohmann::json> document = run_peers(request.peers, arguments);
  if (!document) {
    result.peers_problem = request.peers + " failed on " + which.name;
    return;
  }
  for (const auto& peer : (*document)["peers"]) {
    StepCost row;
    row.mechanism = which.name;
    row.bodies = bodies;
    row.dt = which.dt;
    row.solver = peer.value("solver", "");
    row.version = peer.value("version", "");
    row.problem = peer.value("problem", "");
    row.differs = peer.value("differs", "");
    row.gap = peer.value("gap_m", -1.0);
    row.times = {peer.value("lowest_us", 0.0), peer.value("median_us", 0.0), peer.value("p999_us", 0.0),
                 peer.value("samples", std::size_t{0})};
    result.rows.push_back(row);
  }
  for (const auto& peer : (*document)["missing"]) result.missing[peer.value("solver", "")] = peer.value("package", "");
}

}  // namespace

StepCosts measure_step_costs(const BenchRequest& request, const std::atomic<bool>& stop,
                             const std::function<void(double)>& progress) {
  const TimingProtocol protocol = request.quick ? quick_protocol() : full_protocol();
  StepCosts result;
  result.peers_problem = request.peers_problem;
  result.peak = peak_multiply_adds();
  for (std::size_t k = 0; k < request.mechanisms.size() && !stop; ++k) {
    progress(static_cast<double>(k));
    BenchMechanism which = request.mechanisms[k];
    const Mechanism mechanism = make_mechanism(which);
    if (request.has_own_step && !mechanism.springs().empty()) which.dt = kStepOfSprings;
    time_own_solvers(request, which, mechanism, protocol, result.rows);
    if (!request.peers.empty()) time_peers(request, which, static_cast<int>(mechanism.bodies().size()), result);
  }
  return result;
}

}  // namespace rigstep::server
