#include "server/commands/mechanism_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/loop_closure.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/start/primal_bodies.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/workspace.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/body_groups.h"
#include "server/live/session.h"
#include "server/output/quantile.h"

namespace rigstep::server {
namespace {

constexpr double kContradiction = 1e-3;  // acceleration that constraints leave open [m/s^2] or [rad/s^2]

// Measured over some tens of milliseconds from the start state.
MeasuredCost measured_cost(index3::Stepper stepper) {
  using Clock = std::chrono::steady_clock;
  using Microseconds = std::chrono::duration<double, std::micro>;
  std::vector<double> steps, readings;
  Outputs outputs;
  const auto end = Clock::now() + std::chrono::milliseconds(50);
  while (steps.size() < 10 || (Clock::now() < end && steps.size() < 5000)) {
    const auto begin = Clock::now();
    const StepReport report = stepper.step(Inputs{});
    const auto stepped = Clock::now();
    stepper.read_outputs(report, outputs);
    steps.push_back(Microseconds(stepped - begin).count());
    readings.push_back(Microseconds(Clock::now() - stepped).count());
  }
  return {quantile(steps, 0.5), quantile(readings, 0.5)};
}

// How near a start pose is to a singular one, as the output singularity_margin tells it in the loop.
double start_margin(const index3::Plan& plan) {
  const index3::State x = index3::start_pose(plan);
  index3::Workspace w(plan);
  index3::evaluate_pose(plan, x, w);
  return index3::LoopClosure(plan, x).margin(w);
}

bool has_redundant_rows(const index3::Rank& rank, int constraint) { return rank.redundancy_share[constraint] > 1e-6; }

nlohmann::json parameters_json(const Mechanism& m) {
  nlohmann::json all = nlohmann::json::array();
  for (const Parameter& p : m.parameters()) {
    nlohmann::json of = nlohmann::json::array();
    for (const Target& target : p.targets) of.push_back({{"of", target.of}, {"factor", target.factor}});
    all.push_back({{"name", p.name},
                   {"unit", p.unit},
                   {"value", p.value},
                   {"minimum", p.minimum},
                   {"maximum", p.maximum},
                   {"kind", p.tunable ? "tunable" : "fixed"},
                   {"of", of}});
  }
  return all;
}

nlohmann::json channels_json(const std::vector<Channel>& channels) {
  nlohmann::json all = nlohmann::json::array();
  for (const Channel& channel : channels) all.push_back({{"name", channel.name}, {"unit", channel.unit}});
  return all;
}

// With what the rig file says of them.
nlohmann::json inputs_json(const MechanismReport& r) {
  nlohmann::json all = channels_json(r.m.input_channels());
  for (std::size_t k = 0; k < r.policies.size(); ++k) {
    const InputPolicy& policy = r.policies[k];
    all[k]["safe"] = policy.safe;
    if (std::isfinite(policy.minimum)) all[k]["minimum"] = policy.minimum;
    if (std::isfinite(policy.maximum)) all[k]["maximum"] = policy.maximum;
    if (std::isfinite(policy.most_change_per_step)) all[k]["most_change_per_step"] = policy.most_change_per_step;
  }
  return all;
}

nlohmann::json findings_json(const MechanismReport& r) {
  nlohmann::json all = nlohmann::json::array();
  for (const CheckFinding& finding : r.findings)
    all.push_back({{"severity", to_string(finding.severity)},
                   {"joint", finding.joint < 0 ? "" : r.m.joints()[static_cast<std::size_t>(finding.joint)].name},
                   {"body", finding.body < 0 ? "" : r.m.body_name(finding.body)},
                   {"text", finding.text}});
  return all;
}

}  // namespace

LayoutReport::LayoutReport(const index3::Plan& plan) {
  for (const int threads : {1, 2, 4}) parts.push_back(static_cast<int>(plan.divided(threads).parts.size()));
  for (const index3::BodyPlace& place : plan.elimination.body) {
    in_lanes += place.width > 1;
    widest = std::max(widest, place.width);
  }
  const std::vector<int>& normal = plan.planar.normal;
  planar = static_cast<int>(std::count_if(normal.begin(), normal.end(), [](int axis) { return axis >= 0; }));
  left_out = std::accumulate(plan.eliminated_rows.begin(), plan.eliminated_rows.end(), plan.rows(), std::minus<>());
}

MechanismReport::MechanismReport(const config::LoadedMechanism& mechanism, const config::RigConfig* of)
    : loaded(mechanism),
      m(mechanism.mechanism),
      rig(of),
      policies(rig != nullptr ? config::input_policies(*rig, m) : std::vector<InputPolicy>()),
      safe(rig != nullptr ? config::safe_outputs(*rig, m) : std::vector<SafeOutput>()),
      gaps(index3::start_gaps(m)),
      plan(index3::make_plan(m, rig != nullptr ? settings_of(*rig) : index3::Settings{})),
      rank(index3::start_rank(plan, index3::start_pose(plan))),
      findings(find_problems(m, &rank)),
      layout(plan),
      margin(start_margin(plan)) {
  index3::Stepper stepper = make_stepper(loaded, rig != nullptr ? settings_of(*rig) : index3::Settings{});
  index3::residuals(index3::plan_of(stepper), stepper.state(), start);
  memory_bytes = stepper.bytes();
  cost = measured_cost(std::move(stepper));
}

bool MechanismReport::is_open_at_start() const {
  return !rank.singular() && start.acceleration_residual > kContradiction;
}

int MechanismReport::loop_count() const {
  BodyGroups groups(m.bodies().size());
  int loops = 0;
  for (const Joint& joint : m.joints())
    if (!index3::rows_of(joint.type).empty() && !groups.join(joint.first, joint.second)) ++loops;
  return loops;
}

double MechanismReport::largest_gap(double index3::JointGap::*member) const {
  double largest = 0.0;
  for (const index3::JointGap& gap : gaps) largest = std::max(largest, gap.*member);
  return largest;
}

std::string short_name(const Mechanism& m, int constraint) {
  const auto joints = static_cast<int>(m.joints().size());
  return constraint < joints ? m.joints()[constraint].name : m.constraint_name(constraint);
}

bool is_open(const MechanismReport& r, int constraint) {
  return has_redundant_rows(r.rank.start, constraint) || has_redundant_rows(r.rank.nearby, constraint);
}

std::string complaint(const MechanismReport& r) {
  if (!r.contradicts_itself())
    return fmt::format(
        "{}: {:.1e} m/s2 or rad/s2 stay open at the start though all constraints are independent: masses or moments of "
        "inertia differ by more than the elimination can hold; give the lightest bodies more mass or inertia",
        r.loaded.path, r.start.acceleration_residual);
  std::vector<std::string> suspects;
  for (int c = 0; c < r.m.constraints(); ++c)
    if (is_open(r, c)) suspects.push_back(short_name(r.m, c));
  return fmt::format(
      "{}: constraints contradict one another: {:.1e} m/s2 or rad/s2 stay open at the start, so joints would drift "
      "apart; among the redundant ones ({}) one prescribes what others rule out, as a driver beside a coupling does: "
      "remove it, or give both one motion",
      r.loaded.path, r.start.acceleration_residual, fmt::join(suspects, ", "));
}

std::vector<std::string> open_components(const MechanismReport& r, const index3::Rank& rank, int constraint) {
  static constexpr const char* kNames[] = {"fx", "fy", "fz", "tx", "ty", "tz"};
  std::vector<std::string> names;
  if (constraint >= static_cast<int>(r.m.joints().size())) {
    if (has_redundant_rows(rank, constraint)) names.emplace_back("effort");
    return names;
  }
  for (std::size_t k = 0; k < rank.open_loads[constraint].size(); ++k)
    if (rank.open_loads[constraint][k]) names.emplace_back(kNames[k]);
  return names;
}

nlohmann::json to_json(const MechanismReport& r) {
  nlohmann::json redundant = nlohmann::json::object(), open = nlohmann::json::object(), here = nlohmann::json::object();
  for (int c = 0; c < r.m.constraints(); ++c) {
    const std::string name = short_name(r.m, c);
    if (has_redundant_rows(r.rank.start, c)) redundant[name] = r.rank.start.redundancy_share[c];
    if (const auto names = open_components(r, r.rank.nearby, c); !names.empty()) open[name] = names;
    if (const auto names = open_components(r, r.rank.start, c); !names.empty()) here[name] = names;
  }
  const index3::Elimination& e = r.plan.elimination;
  return {
      {"schema", 1},
      {"mechanism", r.m.name()},
      {"mechanism_id", fmt::format("{:016x}", r.m.id())},
      {"bodies", r.m.bodies().size()},
      {"joints", r.m.joints().size()},
      {"couplings", r.m.couplings().size()},
      {"drivers", r.m.drivers().size()},
      {"parameters", parameters_json(r.m)},
      {"inputs", inputs_json(r)},
      {"period_us", r.rig != nullptr ? nlohmann::json(1e-3 * static_cast<double>(r.rig->period_ns)) : nlohmann::json()},
      {"outputs", channels_json(r.m.output_channels())},
      {"loops", r.loop_count()},
      {"rows", r.plan.rows()},
      {"rank", r.rank.start.rank},
      {"redundant_rows", r.rank.start.redundant},
      {"redundant_joints", redundant},
      {"not_unique", open},
      {"not_unique_at_start", here},
      {"degrees_of_freedom", r.rank.start.degrees_of_freedom},
      {"singular_start", r.rank.singular()},
      {"singularity_margin", r.margin},
      {"start_gap_m", r.largest_gap(&index3::JointGap::distance)},
      {"start_gap_rad", r.largest_gap(&index3::JointGap::angle)},
      {"findings", findings_json(r)},
      {"contradicts_itself", r.contradicts_itself()},
      {"residuals", {r.start.position_residual, r.start.velocity_residual, r.start.acceleration_residual}},
      {"operations", e.fronts.size()},
      {"levels", e.levels},
      {"largest_front", e.largest_front},
      {"multiply_adds", e.multiply_adds},
      {"elimination_form", index3::describe_elimination(r.plan)},
      {"planar_bodies", r.layout.planar},
      {"rows_left_out", r.layout.left_out},
      {"bodies_in_lanes", r.layout.in_lanes},
      {"lanes", r.layout.widest},
      {"parts_of_1_2_4_threads", r.layout.parts},
      {"tangents",
       {{"count", r.plan.tangents.count}, {"least", r.plan.tangents.least()}, {"why", r.plan.tangents.why}}},
      {"step_us", r.cost.step},
      {"outputs_us", r.cost.outputs},
      {"memory_bytes", r.memory_bytes},
      {"memory_bytes_per_body", r.bytes_per_body()}};
}

}  // namespace rigstep::server
