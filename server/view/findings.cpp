#include "server/view/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "server/view/scene.h"

namespace rigstep::server {
namespace {

using Severity = CheckFinding::Severity;

constexpr double kOpen = 1e-6;        // of a joint's arm, or [rad]
constexpr double kMostWeights = 3.0;  // of all bodies: what a spring bears at a start that was meant
constexpr double kMostStrain = 0.5;
constexpr double kParallel = 1e-6;
constexpr std::size_t kMostBodies = 400;

void add_gaps(const Mechanism& m, std::vector<CheckFinding>& findings) {
  const std::vector<index3::JointGap> gaps = index3::start_gaps(m);
  for (int j = 0; j < static_cast<int>(m.joints().size()); ++j) {
    const index3::JointGap& gap = gaps[static_cast<std::size_t>(j)];
    const std::string& name = m.joints()[static_cast<std::size_t>(j)].name;
    const auto add = [&](std::string text) { findings.push_back({Severity::error, j, -1, std::move(text)}); };
    if (gap.distance > kOpen * std::max(gap.length, 1e-9))
      add(fmt::format("joint {}: its points are {:.3g} m apart at the start: correct the pose, or the points", name,
                      gap.distance));
    if (gap.upside_down)
      add(fmt::format("joint {}: its axes point in opposite directions: turn one of them round", name));
    else if (gap.angle > kOpen)
      add(fmt::format(
          "joint {}: its axes stand at {:.3g} degrees to where they should at the start: correct the axis, or the "
          "orientation of a body",
          name, gap.angle * 57.29577951308232));
    if (gap.velocity > 1e-5)
      add(fmt::format("joint {}: the start velocities part it by {:.3g} m/s or rad/s: correct them", name,
                      gap.velocity));
  }
}

bool is_redundant(const index3::StartRank& rank, std::size_t joint) {
  return rank.start.redundancy_share[joint] > 1e-6;
}

void add_redundancy(const Mechanism& m, const index3::StartRank& rank, std::vector<CheckFinding>& findings) {
  std::vector<std::string> names;
  int first = -1;
  for (int j = 0; j < static_cast<int>(m.joints().size()); ++j) {
    if (!is_redundant(rank, static_cast<std::size_t>(j))) continue;
    names.push_back(m.joints()[static_cast<std::size_t>(j)].name);
    if (first < 0) first = j;
  }
  if (first >= 0)
    findings.push_back({Severity::note, first, -1,
                        fmt::format("{} of the constraints repeat what others say: reactions are not unique in {}",
                                    rank.start.redundant, fmt::join(names, ", "))});
}

// A spring that pushes or pulls at the start as nothing in the mechanism weighs, or that is far from its rest, has a
// wrong rest length, as a rule.
void add_springs(const Mechanism& m, std::vector<CheckFinding>& findings) {
  double weight = 0.0;  // [N]
  for (const Body& b : m.bodies()) weight += b.mass * m.gravity_0().norm();
  const Poses start = poses_of(m);
  for (const Spring& s : m.springs()) {
    if (s.kind != Spring::Kind::between_points) continue;
    const double length =
        (in_world({s.second, s.second_point_b}, start) - in_world({s.first, s.first_point_b}, start)).norm();
    const double effort = s.preload - s.stiffness * (length - s.rest) - s.stiffness_table.value(length - s.rest);
    const bool is_heavy = weight > 0.0 && std::abs(effort) > kMostWeights * weight;
    const bool is_strained = s.rest > 0.0 && effort != 0.0 && std::abs(length - s.rest) > kMostStrain * s.rest;
    if (!is_heavy && !is_strained) continue;
    findings.push_back(
        {is_heavy ? Severity::warning : Severity::note, -1, s.second == kGround ? s.first : s.second,
         fmt::format(
             "spring {}: {} with {:.3g} N at the start{}: it is {:.4g} m long, its rest {:.4g} m", s.name,
             effort > 0.0 ? "pushes" : "pulls", std::abs(effort),
             weight > 0.0 ? fmt::format(", {:.2g} times the weight of all bodies", std::abs(effort) / weight) : "",
             length, s.rest),
         s.name});
  }
}

// Of joints with one axis, the one whose axis is not parallel to that of any other, where all others are parallel; -1:
// there is none, or no such many.
int odd_axis(const Mechanism& m) {
  const Poses start = poses_of(m);
  std::vector<std::pair<int, Vec3>> axes;
  for (int j = 0; j < static_cast<int>(m.joints().size()); ++j) {
    const Joint& joint = m.joints()[static_cast<std::size_t>(j)];
    if (joint.type != JointType::revolute) continue;
    const Vec3 axis_b = joint.in_first.axes_b.col(2);
    axes.emplace_back(j, joint.first == kGround
                             ? axis_b
                             : Vec3(rotation_of(start[static_cast<std::size_t>(joint.first)].p) * axis_b));
  }
  int odd = -1;
  for (const auto& [joint, axis] : axes) {
    const auto parallel = std::count_if(axes.begin(), axes.end(), [&axis = axis](const auto& other) {
      return other.second.cross(axis).norm() < kParallel;
    });
    if (parallel == 1 && odd >= 0) return -1;
    if (parallel == 1) odd = joint;
  }
  return axes.size() >= 3 ? odd : -1;
}

void add_loose_bodies(const Mechanism& m, std::vector<CheckFinding>& findings) {
  std::vector<bool> is_held(m.bodies().size(), false);
  const auto hold = [&](int body) {
    if (body != kGround) is_held[static_cast<std::size_t>(body)] = true;
  };
  for (const Joint& j : m.joints())
    if (j.type != JointType::floating) hold(j.first), hold(j.second);
  for (const Spring& s : m.springs()) hold(s.first), hold(s.second);
  for (const Bushing& b : m.bushings()) hold(b.first), hold(b.second);
  for (const Rope& r : m.all<Rope>())
    for (const Rope::Point& point : r.points) hold(point.body);
  for (std::size_t i = 0; i < is_held.size(); ++i)
    if (!is_held[i])
      findings.push_back({Severity::note, -1, static_cast<int>(i),
                          fmt::format("body {}: no joint, spring, bushing or rope holds it", m.bodies()[i].name)});
}

}  // namespace

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      break;
  }
  return "note";
}

std::vector<CheckFinding> find_problems(const Mechanism& m, const index3::StartRank* known) {
  std::vector<CheckFinding> findings;
  add_gaps(m, findings);
  add_loose_bodies(m, findings);
  add_springs(m, findings);
  if (!findings.empty() && findings.front().severity == Severity::error) return findings;
  if (known == nullptr && m.bodies().size() > kMostBodies) return findings;
  const index3::StartRank rank = known != nullptr ? *known : index3::start_rank(m);
  add_redundancy(m, rank, findings);
  if (rank.singular())
    findings.insert(findings.begin(),
                    {Severity::warning, -1, -1,
                     fmt::format("the start is a singular pose: rank {} here, {} nearby: start elsewhere",
                                 rank.start.rank, rank.nearby.rank)});
  if (rank.start.degrees_of_freedom == 0 && m.drivers().empty()) {
    const int odd = odd_axis(m);
    findings.push_back(
        {Severity::warning, odd, -1,
         odd < 0 ? std::string("nothing can move: the joints leave no freedom; an axis that is not parallel to the "
                               "others does that")
                 : fmt::format("nothing can move: the axis of joint {} is not parallel to those of the others",
                               m.joints()[static_cast<std::size_t>(odd)].name)});
  }
  findings.push_back(
      {Severity::note, -1, -1,
       fmt::format("{} degree{} of freedom; rank {}, {} redundant", rank.start.degrees_of_freedom,
                   rank.start.degrees_of_freedom == 1 ? "" : "s", rank.start.rank, rank.start.redundant)});
  return findings;
}

std::optional<index3::StartRank> rank_of_start(const Mechanism& m) {
  if (m.bodies().size() > kMostBodies) return {};
  try {
    return index3::start_rank(m);
  } catch (const Error&) {
    return {};  // the findings tell what is wrong with the start
  }
}

std::vector<bool> redundant_joints(const Mechanism& m, const std::optional<index3::StartRank>& rank) {
  std::vector<bool> redundant(rank ? m.joints().size() : 0);
  for (std::size_t j = 0; j < redundant.size(); ++j) redundant[j] = is_redundant(*rank, j);
  return redundant;
}

}  // namespace rigstep::server
