// rigstep_bench_peers: what server/bench/peers.h says, with the engines that were there when this was built.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "server/bench/accuracy.h"
#include "server/bench/error_costs.h"
#include "server/bench/mechanisms.h"
#include "tests/bench/peer.h"

namespace rigstep::bench {

namespace {

struct Options {
  server::BenchMechanism which;
  std::string reference;  // file
  bool quick = false;
};

struct Engine {
  const char* name;
  const char* package;
  std::vector<Peer> peers = {};  // empty: not built
};

std::vector<Engine> engines() {
  return {{"mujoco", "libmujoco-dev",
#if RIGSTEP_PEER_MUJOCO
           mujoco_peers()
#endif
          },
          {"bullet", "libbullet-dev",
#if RIGSTEP_PEER_BULLET
           bullet_peers()
#endif
          },
          {"simbody", "libsimbody-dev",
#if RIGSTEP_PEER_SIMBODY
           simbody_peers()
#endif
          }};
}

// What engines in joint coordinates close by springs: loops, and drivers where they are servos.
bool has_soft_constraints(const Mechanism& mechanism) {
  const JointTree tree = joint_tree(mechanism);
  return !tree.loops.empty() ||
         std::any_of(tree.tree.begin(), tree.tree.end(), [](const TreeJoint& j) { return j.is_driven; });
}

nlohmann::json times(const Peer& peer, const Mechanism& mechanism, const Options& options) {
  const server::TimedSolver solver = peer.make(mechanism, options.which.dt, peer.time_constants.front());
  const server::StepTimes t =
      server::time_steps(solver, options.quick ? server::quick_protocol() : server::full_protocol());
  return {{"lowest_us", t.lowest}, {"median_us", t.median}, {"p999_us", t.p999},
          {"samples", t.samples},  {"gap_m", solver.gap()}, {"differs", solver.differs}};
}

nlohmann::json errors(const Peer& peer, const Mechanism& mechanism, const Options& options,
                      const server::ReferenceMotion& reference) {
  server::AccuracyLadder ladder;
  if (options.quick) ladder.smallest_dt = 2e-3;
  std::vector<double> time_constants = peer.time_constants;
  if (!has_soft_constraints(mechanism)) time_constants.resize(1);
  nlohmann::json result{{"points", nlohmann::json::array()}};
  for (const double time_constant : time_constants) {
    const std::vector<server::AccuracyPoint> points =
        server::climb_down([&](double dt) { return peer.make(mechanism, dt, time_constant); }, reference, ladder);
    for (const server::AccuracyPoint& p : points) {
      result["points"].push_back(
          {{"dt", p.dt}, {"error", p.error}, {"us_per_step", p.us_per_step}, {"ms_per_second", p.ms_per_second}});
      if (time_constants.size() > 1) result["points"].back()["time_constant_steps"] = time_constant;
    }
    // what takes longer than all that this tolerance needs is in no table
    if (server::cheapest(points, ladder.smallest_error) != nullptr)
      ladder.longest_run = std::min(ladder.longest_run, 1.2e-3 * points.back().ms_per_second * reference.duration());
  }
  return result;
}

// `work` in a process of its own, which ends after `limit_s`: engines whose cost grows fast with size must not hold up
// the others, nor one that breaks.
nlohmann::json in_child(const std::function<nlohmann::json()>& work, unsigned limit_s) {
  int ends[2];
  if (pipe(ends) != 0) return {{"problem", "no pipe to its process"}};
  const pid_t child = fork();
  if (child == 0) {
    alarm(limit_s);
    nlohmann::json result;
    try {
      result = work();
    } catch (const std::exception& error) {
      result = {{"problem", error.what()}};
    }
    const std::string text = result.dump();
    const bool written = write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t count; child > 0 && (count = read(ends[0], buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return {{"problem", "no process for it"}};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return {{"problem", fmt::format("not done within {} s", limit_s)}};
  nlohmann::json result = nlohmann::json::parse(text, nullptr, false);
  if (status != 0 || result.is_discarded()) return {{"problem", "its process broke"}};
  return result;
}

int run(const Options& options, bool time) {
  const unsigned limit_s = options.quick ? 20 : time ? 40 : 900;
  const Mechanism as_described = server::make_mechanism(options.which);
  const Mechanism mechanism = time ? as_described : server::moved_by_gravity(as_described);
  server::ReferenceMotion reference;
  if (!time) reference = server::read_reference_motion(nlohmann::json::parse(std::ifstream(options.reference)));
  nlohmann::json out{{"peers", nlohmann::json::array()}, {"missing", nlohmann::json::array()}};
  for (const Engine& engine : engines()) {
    if (engine.peers.empty()) out["missing"].push_back({{"solver", engine.name}, {"package", engine.package}});
    for (const Peer& peer : engine.peers) {
      nlohmann::json row{{"solver", peer.name}, {"version", peer.version()}};
      row.update(
          in_child([&] { return time ? times(peer, mechanism, options) : errors(peer, mechanism, options, reference); },
                   limit_s));
      out["peers"].push_back(row);
    }
  }
  fmt::print("{}\n", out.dump());
  return 0;
}

int main(int argc, char** argv) {
  CLI::App app("Other multibody engines on the mechanisms of rigstep bench, as JSON", "rigstep_bench_peers");
  app.require_subcommand(1);
  Options options;
  CLI::App* const time = app.add_subcommand("time", "Time per step");
  CLI::App* const error = app.add_subcommand("error", "Errors and times over steps");
  for (CLI::App* command : {time, error}) {
    command->add_option("--mechanism", options.which.name)->required();
    command->add_option("--bodies", options.which.bodies);
    command->add_option("--file", options.which.file);
    command->add_option("--dt", options.which.dt, "[s]");
    command->add_flag("--quick", options.quick);
  }
  error->add_option("--reference", options.reference)->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options, time->parsed());
  } catch (const std::exception& problem) {
    fmt::print(stderr, "rigstep_bench_peers: {}\n", problem.what());
    return 1;
  }
}

}  // namespace

}  // namespace rigstep::bench

int main(int argc, char** argv) { return rigstep::bench::main(argc, argv); }
