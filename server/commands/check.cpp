// rigstep check: what a mechanical engineer wants to know of a mechanism file before running it.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/index3/diagnostics.h"
#include "core/index3/initial_state.h"
#include "core/index3/plan.h"
#include "core/index3/workspace.h"
#include "rt/thread_setup.h"
#include "server/commands/commands.h"
#include "server/csv.h"
#include "server/session.h"

namespace rigstep::server {

namespace {

struct Options {
  std::string mechanism, write;
  bool assemble = false, json = false;
};

// Median duration of a step over some tens of milliseconds from the start state [us].
double measured_step_us(index3::Stepper stepper) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const auto end = Clock::now() + std::chrono::milliseconds(50);
  while (times.size() < 10 || (Clock::now() < end && times.size() < 5000)) {
    const auto begin = Clock::now();
    stepper.step(Inputs{});
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

// Loops: joints beyond those that hang every body, or group of bodies, on the ground or on each other.
int loop_count(const Mechanism& m) {
  std::vector<int> group(m.bodies().size() + 1);
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = static_cast<int>(i);
  int loops = 0;
  for (const Joint& joint : m.joints()) {
    if (index3::rows_of(joint.type).empty()) continue;
    const auto of = [&](int body) { return group[body == kGround ? m.bodies().size() : body]; };
    const int a = of(joint.first), b = of(joint.second);
    if (a == b) ++loops;
    std::replace(group.begin(), group.end(), b, a);
  }
  return loops;
}

struct Report {
  const wire::LoadedMechanism& loaded;
  const Mechanism& m;
  index3::StartRank rank;
  std::vector<index3::JointGap> gaps;
  index3::Plan plan;
  std::size_t memory_bytes;
  double step_us;
  StepReport start;  // residuals of the start state

  explicit Report(const wire::LoadedMechanism& mechanism)
      : loaded(mechanism),
        m(mechanism.mechanism),
        rank(index3::start_rank(m)),
        gaps(index3::start_gaps(m)),
        plan(m, {}) {
    index3::Stepper stepper = make_stepper(loaded, {});
    index3::residuals(stepper.plan(), stepper.state(), start);
    memory_bytes = stepper.bytes();
    step_us = measured_step_us(std::move(stepper));
  }

  bool singular() const { return rank.rank_nearby > rank.start.rank; }
};

// a joint by its name alone, couplings and drivers with their kind
std::string short_name(const Mechanism& m, int constraint) {
  const auto joints = static_cast<int>(m.joints().size());
  return constraint < joints ? m.joints()[constraint].name : m.constraint_name(constraint);
}

std::string redundancy_text(const Report& r) {
  std::string text;
  for (int j = 0; j < r.m.constraints(); ++j)
    if (r.rank.start.redundancy_share[j] > 1e-6)
      text += fmt::format("    {:<20} {} of its {} rows' worth\n", short_name(r.m, j),
                          fmt::format("{:.2f}", r.rank.start.redundancy_share[j]),
                          r.plan.first_row[j + 1] - r.plan.first_row[j]);
  return text;
}

double largest_gap(const Report& r, double index3::JointGap::*member) {
  double largest = 0.0;
  for (const index3::JointGap& gap : r.gaps) largest = std::max(largest, gap.*member);
  return largest;
}

void print_text(const Report& r) {
  const index3::Elimination& e = r.plan.elimination;
  double mass = 0.0;
  for (const Body& b : r.m.bodies()) mass += b.mass;
  fmt::print("{}: {}\n", r.loaded.path, r.m.name());
  fmt::print("bodies           {}, {:.6g} kg in all\n", r.m.bodies().size(), mass);
  fmt::print("joints           {} with {} constraint rows; {} closed loop{}\n", r.m.joints().size(), r.plan.rows(),
             loop_count(r.m), loop_count(r.m) == 1 ? "" : "s");
  for (std::size_t j = 0; j < r.m.joints().size() && j < 40; ++j) {
    const Joint& joint = r.m.joints()[j];
    fmt::print("    {:<20} {:<18} {} - {}\n", joint.name, to_string(joint.type), r.m.body_name(joint.first),
               r.m.body_name(joint.second));
  }
  if (r.m.joints().size() > 40) fmt::print("    ... and {} more\n", r.m.joints().size() - 40);
  for (const Coupling& c : r.m.couplings()) {
    const auto text = [&r](int k) {
      const JointCoordinate& x = r.m.coordinates()[k];
      return fmt::format("{} of {}", to_string(x.freedom), r.m.joints()[x.joint].name);
    };
    fmt::print("    {:<20} {:<18} {} + {:.6g} x {}\n", c.name, "coupling", text(c.first), c.ratio, text(c.second));
  }
  for (const Driver& d : r.m.drivers()) {
    const JointCoordinate& x = r.m.coordinates()[d.coordinate];
    fmt::print("    {:<20} {:<18} {} of {}\n", d.name, "driver", to_string(x.freedom), r.m.joints()[x.joint].name);
  }
  fmt::print("loads, springs   {}, {}\n", r.m.loads().size(), r.m.springs().size());
  if (r.m.bushings().size() + r.m.frictions().size() + r.m.motors().size() + r.m.drags().size() + r.m.tyres().size() >
      0)
    fmt::print("other forces     bushings {}, frictions {}, motors {}, drags {}, tyres {}\n", r.m.bushings().size(),
               r.m.frictions().size(), r.m.motors().size(), r.m.drags().size(), r.m.tyres().size());
  fmt::print("channels         {} in, {} out\n", r.m.input_channels().size(), r.m.output_channels().size());
  fmt::print("freedom          {} degrees, rank {} of {} rows, {} redundant\n", r.rank.start.degrees_of_freedom,
             r.rank.start.rank, r.plan.rows(), r.rank.start.redundant);
  if (r.rank.start.redundant > 0)
    fmt::print("  redundant in   (their reactions are not unique)\n{}", redundancy_text(r));
  fmt::print("singular pose    {}, margin {:.2e} (0: singular, 1: constraints independent)\n",
             r.singular()
                 ? fmt::format("THE START IS ONE: rank {} here, {} nearby", r.rank.start.rank, r.rank.rank_nearby)
                 : "no",
             r.rank.start.margin);
  fmt::print("start as written {:.1e} m, {:.1e} rad, {:.1e} m/s or rad/s largest gap\n",
             largest_gap(r, &index3::JointGap::distance), largest_gap(r, &index3::JointGap::angle),
             largest_gap(r, &index3::JointGap::velocity));
  fmt::print("start as used    {:.1e} position, {:.1e} velocity, {:.1e} acceleration residual\n",
             r.start.position_residual, r.start.velocity_residual, r.start.acceleration_residual);
  fmt::print("elimination      {} operations, {} levels, largest front {} rows, {} multiply-adds a factorisation\n",
             e.fronts.size(), e.levels, e.largest_front, e.multiply_adds);
  fmt::print("cost per step    {:.1f} us (median measured on this machine, 3 iterations)\n", r.step_us);
  fmt::print("memory           {:.1f} kB per stepper, allocated once\n", static_cast<double>(r.memory_bytes) / 1e3);
}

nlohmann::json to_json(const Report& r) {
  nlohmann::json redundant = nlohmann::json::object();
  for (int j = 0; j < r.m.constraints(); ++j)
    if (r.rank.start.redundancy_share[j] > 1e-6) redundant[short_name(r.m, j)] = r.rank.start.redundancy_share[j];
  const index3::Elimination& e = r.plan.elimination;
  return {{"schema", 1},
          {"mechanism", r.m.name()},
          {"mechanism_id", fmt::format("{:016x}", r.m.id())},
          {"bodies", r.m.bodies().size()},
          {"joints", r.m.joints().size()},
          {"couplings", r.m.couplings().size()},
          {"drivers", r.m.drivers().size()},
          {"loops", loop_count(r.m)},
          {"rows", r.plan.rows()},
          {"rank", r.rank.start.rank},
          {"redundant_rows", r.rank.start.redundant},
          {"redundant_joints", redundant},
          {"degrees_of_freedom", r.rank.start.degrees_of_freedom},
          {"singular_start", r.singular()},
          {"singularity_margin", r.rank.start.margin},
          {"start_gap_m", largest_gap(r, &index3::JointGap::distance)},
          {"start_gap_rad", largest_gap(r, &index3::JointGap::angle)},
          {"residuals", {r.start.position_residual, r.start.velocity_residual, r.start.acceleration_residual}},
          {"operations", e.fronts.size()},
          {"levels", e.levels},
          {"largest_front", e.largest_front},
          {"multiply_adds", e.multiply_adds},
          {"step_us", r.step_us},
          {"memory_bytes", r.memory_bytes}};
}

// Finds the nearest consistent start, says how far it is, and writes it if asked to.
int assemble(const Options& options, const wire::LoadedMechanism& loaded) {
  const index3::Assembly assembly = index3::assemble(loaded.mechanism);
  const auto& was = loaded.mechanism.bodies();
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"schema", 1},
                                      {"closed", assembly.closed},
                                      {"residual", assembly.residual},
                                      {"largest_move_m", assembly.largest_move},
                                      {"largest_turn_rad", assembly.largest_turn},
                                      {"most_moved", assembly.most_moved}}
                           .dump(2));
  } else {
    fmt::print("nearest start    {}: residual {:.1e}; moved {:.6g} m at most (body {}), turned {:.6g} rad at most\n",
               assembly.closed ? "found" : "NOT FOUND", assembly.residual, assembly.largest_move, assembly.most_moved,
               assembly.largest_turn);
    for (std::size_t i = 0; i < was.size(); ++i) {
      const Body& b = assembly.bodies[i];
      fmt::print(
          "    {:<20} moved {:.6g} m to position {{ x: {:.17g} y: {:.17g} z: {:.17g} }} orientation {{ e0: "
          "{:.17g} e1: {:.17g} e2: {:.17g} e3: {:.17g} }}\n",
          b.name, (b.position_0 - was[i].position_0).norm(), b.position_0[0], b.position_0[1], b.position_0[2],
          b.orientation[0], b.orientation[1], b.orientation[2], b.orientation[3]);
    }
  }
  if (!assembly.closed) {
    fmt::print(stderr, "rigstep: {}: no consistent pose near the start: check lengths, axes and the start pose\n",
               loaded.path);
    return kExitMechanism;
  }
  if (options.write.empty()) return kExitOk;
  std::ofstream file(options.write);
  file << wire::with_start(loaded, assembly.bodies);
  if (!file.flush()) throw FileError(options.write + ": cannot be written: check the folder and its permissions");
  return kExitOk;
}

int check(const Options& options) {
  rt::set_floating_point_mode();
  const wire::LoadedMechanism loaded = load_mechanism_file(options.mechanism);
  if (options.assemble) return assemble(options, loaded);
  const Report report(loaded);
  if (options.json)
    fmt::print("{}\n", to_json(report).dump(2));
  else
    print_text(report);
  return kExitOk;
}

}  // namespace

Command add_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Check a mechanism file and report on the mechanism");
  command->add_option("MECHANISM", options->mechanism, "Mechanism file")->required();
  auto* assemble = command->add_flag("--assemble", options->assemble,
                                     "Find the nearest start that satisfies every joint, and say how far it is");
  command->add_option("--write", options->write, "With --assemble: write the mechanism with that start to this file")
      ->needs(assemble);
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(std::string("Examples:\n  rigstep check config/mechanisms/four_bar.textproto\n"
                              "  rigstep check my.textproto --assemble --write my_assembled.textproto\n\n") +
                  kExitCodeHelp);
  return [options] { return check(*options); };
}

}  // namespace rigstep::server
