// rigstep check: what a mechanical engineer wants to know of a mechanism file before running it.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/index3/start/primal_bodies.h"
#include "proto/printable.h"
#include "rt/thread_setup.h"
#include "server/commands/assembled_start.h"
#include "server/commands/commands.h"
#include "server/commands/mechanism_report.h"
#include "server/commands/parameter_options.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/output/terminal.h"
#include "server/output/text_file.h"
#include "server/view/picture.h"

namespace rigstep::server {

namespace {

struct CheckOptions {
  std::string file, write, picture;
  std::vector<config::ParameterSetting> parameters;
  bool assemble = false, json = false, details = false;
};

// what is open nearby too, and what the start pose alone leaves open
std::string open_text(const MechanismReport& r, int constraint) {
  const std::vector<std::string> nearby = open_components(r, r.rank.nearby, constraint);
  std::vector<std::string> only_here;
  for (const std::string& name : open_components(r, r.rank.start, constraint))
    if (std::find(nearby.begin(), nearby.end(), name) == nearby.end()) only_here.push_back(name);
  std::string text = fmt::format("{}", fmt::join(nearby, " "));
  if (!only_here.empty())
    text += fmt::format("{}at this pose {}", nearby.empty() ? "" : ", ", fmt::join(only_here, " "));
  return text;
}

std::string redundancy_text(const MechanismReport& r) {
  std::string text;
  for (int c = 0; c < r.m.constraints(); ++c)
    if (is_open(r, c))
      text +=
          fmt::format("    {:<20} {:.2f} of its {} rows' worth; not unique: {}\n", short_name(r.m, c),
                      r.rank.start.redundancy_share[c], r.plan.first_row[c + 1] - r.plan.first_row[c], open_text(r, c));
  return text;
}

constexpr std::size_t kMostLines = 40;  // of a list

// f(k) for the first of them
template <class F>
void for_first(std::size_t count, const F& f) {
  for (std::size_t k = 0; k < std::min(count, kMostLines); ++k) f(k);
  if (count > kMostLines) print_text("    ... and {} more\n", count - kMostLines);
}

std::string freedom_of(const Mechanism& m, int coordinate) {
  const JointCoordinate& x = m.coordinates()[coordinate];
  return fmt::format("{} of {}", to_string(x.freedom), m.joints()[x.joint].name);
}

// What joints leave free, which `in_joint`, drivers and sensors name.
std::string freedoms_text(const Joint& joint) {
  std::vector<std::string> names;
  for (const Freedom freedom : freedoms(joint.type))
    names.push_back(fmt::format("{} [{}]", to_string(freedom), is_length(freedom) ? "m" : "rad"));
  return fmt::format("{}", fmt::join(names, ", "));
}

void print_parts(const MechanismReport& r) {
  double mass = 0.0;
  for (const Body& b : r.m.bodies()) mass += b.mass;
  print_text("bodies           {}, {:.6g} kg in all\n", r.m.bodies().size(), mass);
  print_text("joints           {} with {} constraint rows; {} closed loop{}; what each leaves free\n",
             r.m.joints().size(), r.plan.rows(), r.loop_count(), r.loop_count() == 1 ? "" : "s");
  for_first(r.m.joints().size(), [&r](std::size_t j) {
    const Joint& joint = r.m.joints()[j];
    print_text("    {:<20} {:<18} {:<24} {}\n", joint.name, to_string(joint.type),
               fmt::format("{} - {}", r.m.body_name(joint.first), r.m.body_name(joint.second)), freedoms_text(joint));
  });
  for (const Coupling& c : r.m.couplings())
    print_text("    {:<20} {:<18} {} + {:.6g} x {}\n", c.name, "coupling", freedom_of(r.m, c.first), c.ratio,
               freedom_of(r.m, c.second));
  for (const Driver& d : r.m.drivers())
    print_text("    {:<20} {:<18} {}\n", d.name, "driver", freedom_of(r.m, d.coordinate));
}

void print_forces(const MechanismReport& r) {
  std::string forces = fmt::format("loads {}", r.m.loads().size());
  for_each_kind([&]<class Element>() {
    if (const std::size_t count = r.m.all<Element>().size(); count > 0)
      forces += fmt::format(", {} {}", Element::kPlural, count);
  });
  print_text("forces           {}\n", forces);
}

void print_parameters(const MechanismReport& r) {
  if (r.m.parameters().empty()) return;
  print_text("parameters       {}\n", r.m.parameters().size());
  for_first(r.m.parameters().size(), [&r](std::size_t k) {
    const Parameter& p = r.m.parameters()[k];
    print_text("    {:<24} {:<8} {:>12.6g} [{}], {:.6g} to {:.6g}\n", p.name, p.tunable ? "tunable" : "fixed", p.value,
               p.unit, p.minimum, p.maximum);
  });
}

// What the rig file makes of values of an input channel.
std::string limits_text(const InputPolicy& policy) {
  std::string text;
  if (std::isfinite(policy.minimum) || std::isfinite(policy.maximum))
    text += fmt::format("{:g} to {:g}, ", policy.minimum, policy.maximum);
  else
    text += "any value, ";
  if (std::isfinite(policy.most_change_per_step))
    text += fmt::format("at most {:g} more or less a step, ", policy.most_change_per_step);
  return text + fmt::format("safe {:g}, stale after {} steps", policy.safe, policy.max_age_steps);
}

std::string input_text(const MechanismReport& r, std::size_t channel) {
  return r.rig == nullptr ? std::string() : limits_text(r.policies[channel]);
}

std::string output_text(const MechanismReport& r, std::size_t channel) {
  for (const SafeOutput& safe : r.safe)
    if (safe.channel == static_cast<int>(channel)) return fmt::format("{:g} while a fault is latched", safe.value);
  return {};
}

void print_channels(const char* direction, const std::vector<Channel>& channels, const MechanismReport& r,
                    std::string (*more)(const MechanismReport&, std::size_t)) {
  print_text("{:<16} {} channel{}\n", direction, channels.size(), channels.size() == 1 ? "" : "s");
  for_first(channels.size(), [&](std::size_t k) {
    const std::string text = more(r, k);
    print_text("    {:<32} [{}]{}{}\n", channels[k].name, channels[k].unit, text.empty() ? "" : "  ", text);
  });
}

void print_period(const MechanismReport& r) {
  if (r.rig == nullptr) return;
  const double period_us = 1e-3 * static_cast<double>(r.rig->period_ns);
  const double share = (r.cost.step + r.cost.outputs) / period_us;
  print_text("period           {:g} us in {}: a step with its outputs takes {:.2g} % of it{}\n", period_us,
             wire::printable_line(r.rig->path), 100.0 * share,
             share < 0.5 ? "" : "; above 50 % deadlines are missed: `rigstep commission` measures it");
}

void print_freedom(const MechanismReport& r) {
  print_text("freedom          {} degrees, rank {} of {} rows, {} redundant\n", r.rank.start.degrees_of_freedom,
             r.rank.start.rank, r.plan.rows(), r.rank.start.redundant);
  if (r.rank.start.redundant > 0 || r.rank.nearby.redundant > 0)
    print_text("  redundant in   (those reactions are reported with the least norm, N and N m alike)\n{}",
               redundancy_text(r));
  print_text("singular pose    {}, margin {:.2e} (0: singular, 1: no loop or far from it)\n",
             r.rank.singular()
                 ? fmt::format("THE START IS ONE: rank {} here, {} nearby", r.rank.start.rank, r.rank.nearby.rank)
                 : "no",
             r.margin);
  print_text("start as written {:.1e} m, {:.1e} rad, {:.1e} m/s or rad/s largest gap\n",
             r.largest_gap(&index3::JointGap::distance), r.largest_gap(&index3::JointGap::angle),
             r.largest_gap(&index3::JointGap::velocity));
  print_text("start as used    {:.1e} position, {:.1e} velocity, {:.1e} acceleration residual\n",
             r.start.position_residual, r.start.velocity_residual, r.start.acceleration_residual);
}

// As the page shows them beside the scene; what is redundant stands above.
void print_findings(const MechanismReport& r) {
  for (const CheckFinding& finding : r.findings)
    if (finding.severity != CheckFinding::Severity::note || finding.body >= 0)
      print_text("{:<16} {}\n", to_string(finding.severity), finding.text);
}

// How the step is made.
void print_details(const MechanismReport& r) {
  const index3::Elimination& e = r.plan.elimination;
  print_text("elimination      {} operations, {} levels, largest front {} rows, {} multiply-adds a factorisation\n",
             e.fronts.size(), e.levels, e.largest_front, e.multiply_adds);
  print_text(
      "planar           {} of {} bodies never leave a plane; rows left out that could only hold them there: {}\n",
      r.layout.planar, r.m.bodies().size(), r.layout.left_out);
  print_text("form             {}\n", index3::describe_elimination(r.plan));
  print_text("tangents         {}{} in {} iterations at {:g} ms: {}\n",
             r.plan.tangents.least() == r.plan.tangents.count ? "" : "1 to ", r.plan.tangents.count,
             r.plan.settings.iterations, 1e3 * r.plan.dt(), r.plan.tangents.why);
  print_text("layout           {} of {} bodies in lanes, {} side by side; threads that take part of 1, 2, 4: {}\n",
             r.layout.in_lanes, r.m.bodies().size(), r.layout.widest, fmt::join(r.layout.parts, ", "));
  print_text("memory           {:.1f} kB per stepper, {:.1f} kB per body, allocated once\n",
             static_cast<double>(r.memory_bytes) / 1e3, r.bytes_per_body() / 1e3);
}

void print_report(const MechanismReport& r, bool with_details) {
  print_text("{}: {}\n", wire::printable_line(r.loaded.path), r.m.name());
  print_parts(r);
  print_forces(r);
  print_parameters(r);
  print_channels("inputs", r.m.input_channels(), r, input_text);
  print_channels("outputs", r.m.output_channels(), r, output_text);
  print_freedom(r);
  print_text(
      "cost per step    {:.1f} us, and {:.1f} us for its outputs (medians measured on this machine, {} iterations)\n",
      r.cost.step, r.cost.outputs, r.plan.settings.iterations);
  print_period(r);
  print_findings(r);
  if (with_details) print_details(r);
}

// Rig files name their mechanism in a line of its own, which no mechanism file has. What cannot be read is for the
// loader of mechanisms to tell.
bool is_rig_file(const std::string& path) try {
  std::istringstream lines(config::read_text_file(path));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find_first_not_of(" \t");
    if (at == line.npos || !line.substr(at).starts_with("mechanism")) continue;
    const std::size_t next = line.find_first_not_of(" \t", at + std::string_view("mechanism").size());
    if (next != line.npos && line[next] == ':') return true;
  }
  return false;
} catch (const config::ConfigError&) {
  return false;
}

int check(const CheckOptions& options) {
  rt::set_floating_point_mode();
  std::optional<config::RigConfig> rig;
  if (is_rig_file(options.file)) rig = config::load_rig(options.file);
  const config::LoadedMechanism loaded =
      rig ? load_mechanism_of(*rig) : load_mechanism_file(options.file, options.parameters);
  if (rig && !options.parameters.empty())
    throw config::ConfigError("--set: a rig file has `start { parameter { ... } }` for that: write it there");
  if (options.assemble) return assemble_start(loaded, {options.write, options.json});
  if (!options.picture.empty()) write_text(options.picture, draw(loaded));
  const MechanismReport report(loaded, rig ? &*rig : nullptr);
  if (options.json)
    print_json(to_json(report));
  else
    print_report(report, options.details);
  if (!report.is_open_at_start()) return kExitOk;
  print_error("rigstep: {}", complaint(report));
  return kExitMechanism;
}

}  // namespace

Command add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Check a mechanism or rig file and report on the mechanism");
  command->add_option("FILE", options->file, "Mechanism file, or a rig file and the mechanism that it names")
      ->required();
  add_set(command, options->parameters);
  auto* assemble = command->add_flag("--assemble", options->assemble,
                                     "Find the nearest start that satisfies every joint, hold what `start` in the file "
                                     "holds, and say which body moves how far");
  command
      ->add_option(
          "--write", options->write,
          "With --assemble: write the mechanism with that start to this file, if need be over another mechanism. "
          "Comments, layout and units stay")
      ->needs(assemble);
  command->add_flag("--details", options->details,
                    "Tell how the step is made, too: elimination, tangents, lanes, memory");
  command->add_option("--picture", options->picture, "Draw the start pose as written into this SVG file");
  command->add_flag("--json", options->json, "Print the report as JSON");
  command->footer(std::string("Examples:\n  rigstep check config/mechanisms/four_bar.textproto\n"
                              "  rigstep check config/mechanisms/full_car.textproto --details\n"
                              "  rigstep check config/rigs/demo.textproto\n"
                              "  rigstep check my.textproto --picture my.svg\n"
                              "  rigstep check my.textproto --assemble --write my_assembled.textproto\n\n") +
                  kExitCodeHelp);
  return [options] { return check(*options); };
}

}  // namespace rigstep::server
