#include "server/verify/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>

namespace rigstep::server {

namespace {

using offline::kAllQuantities;
using offline::kQuantities;

struct QuantityName {
  const char* text;
  const char* unit;
  const char* column;
  const char* key;
};
constexpr QuantityName kNames[kQuantities] = {
    {"position", "m", "pos m", "position_m"},
    {"orientation", "rad", "turn rad", "orientation_rad"},
    {"velocity", "m/s", "vel m/s", "velocity_m_s"},
    {"angular velocity", "rad/s", "rad/s", "angular_velocity_rad_s"},
    {"acceleration", "m/s^2", "m/s^2", "acceleration_m_s2"},
    {"angular acceleration", "rad/s^2", "rad/s^2", "angular_acceleration_rad_s2"},
    {"reaction force", "N", "force N", "force_N"},
    {"reaction torque", "N m", "torque", "torque_N_m"},
    {"effort", "N, N m", "effort", "effort"},
    {"constraint force", "N", "body N", "body_force_N"},
    {"constraint torque", "N m", "body N m", "body_torque_N_m"},
};

const QuantityName& name_of(offline::Quantity q) { return kNames[static_cast<std::size_t>(q)]; }

const char* name_of(Verdict verdict) {
  constexpr const char* kVerdicts[] = {"agrees", "incomplete", "no", "none"};
  return kVerdicts[static_cast<int>(verdict)];
}

std::string item_name(const Mechanism& mechanism, offline::Quantity q, std::size_t item) {
  const std::size_t joints = mechanism.joints().size();
  switch (q) {
    case offline::Quantity::force:
    case offline::Quantity::torque:
      return mechanism.constraint_name(static_cast<int>(item));
    case offline::Quantity::effort:
      return mechanism.constraint_name(static_cast<int>(joints + item));
    default:
      return "body \"" + mechanism.bodies()[item].name + "\"";
  }
}

std::string measures(const offline::Values& values) {
  std::string row;
  for (const offline::Quantity q : kAllQuantities)
    row += values[q].empty() ? fmt::format("{:>9}", "-") : fmt::format("{:>9.1e}", values.largest(q));
  return row;
}

nlohmann::json json_of(const offline::Values& values) {
  nlohmann::json all;
  for (const offline::Quantity q : kAllQuantities) all[name_of(q).key] = values.largest(q);
  return all;
}

}  // namespace

void VerifyReport::take(const Mechanism& described, const Convergence& found) {
  converges = found.converges();
  steps.resize(found.error.size());
  for (std::size_t k = 0; k < steps.size(); ++k) steps[k].error = found.error[k];
  quantities.clear();
  for (const offline::Quantity q : kAllQuantities) {
    Quantity& row = quantities.emplace_back();
    row.convergence = found.of(q);
    if (found.signal[q].empty()) continue;
    const std::size_t item = row.convergence.item;
    row.at = item_name(described, q, item);
    row.signal = found.signal[q][item];
    row.allowed = found.allowed[q][item];
    for (const offline::Values& error : found.error) row.error.push_back(error[q][item]);
  }
}

void compare_solver(const Mechanism& mechanism, const Convergence& stepper, const Instants& motion,
                    const offline::Determined& determined, VerifyReport::SolverResult& result) {
  const std::size_t count = std::min(stepper.limit.size(), motion.size());
  result.deviation = offline::compare(mechanism, std::span(stepper.limit).first(count), motion, determined);
  result.worst_share = 0.0;
  for (const Difference& d : differences(stepper, result.deviation)) {
    if (d.share <= result.worst_share) continue;
    result.worst_share = d.share;
    result.worst = fmt::format("{} of {} by {:.2g} {}, allowed {:.2g}", name_of(d.quantity).text,
                               item_name(mechanism, d.quantity, d.item), result.deviation[d.quantity][d.item],
                               name_of(d.quantity).unit, stepper.allowed[d.quantity][d.item]);
  }
}

Verdict VerifyReport::verdict() const {
  const auto any = [this](const auto& is) { return std::ranges::any_of(results, is); };
  const bool one_agrees = any(&SolverResult::agrees_to_the_end);
  const bool may_still_converge = !converges && !settled;
  if (!any(&SolverResult::compared)) return Verdict::unverified;
  if (may_still_converge) return Verdict::incomplete;
  if (any(&SolverResult::differs) && !(starts_singular && one_agrees)) return Verdict::no;
  if (!converges) return Verdict::no;
  const bool all_heard =
      !any(&SolverResult::differs) && !any(&SolverResult::stopped_at_start) && !any(&SolverResult::failed);
  return one_agrees && all_heard && !too_short ? Verdict::agrees : Verdict::incomplete;
}

std::vector<std::string> VerifyReport::agreeing_families() const {
  std::vector<std::string> families;
  for (const SolverResult& result : results)
    if (result.agrees_to_the_end() && std::ranges::find(families, result.family) == families.end())
      families.push_back(result.family);
  return families;
}

namespace {

// Which quantities do not converge, and how: the first few of them.
std::string shortcomings(const VerifyReport& report) {
  constexpr int kNamed = 3;
  std::string list;
  int count = 0;
  for (std::size_t q = 0; q < report.quantities.size(); ++q) {
    const auto& [at, signal, allowed, error, convergence] = report.quantities[q];
    if (convergence.converges() || ++count > kNamed) continue;
    list += fmt::format("{}{} of {}", list.empty() ? "" : ", ", kNames[q].text, at);
    list += convergence.low ? fmt::format(" (order {:.2f})", convergence.order) : " (not within 1 %)";
  }
  return count > kNamed ? list + fmt::format(" and {} more", count - kNamed) : list;
}

std::string opinions(const VerifyReport& report) {
  using SolverResult = VerifyReport::SolverResult;
  const auto names = [&report](const auto& is) {
    std::string list;
    for (const SolverResult& result : report.results)
      if (std::invoke(is, result)) list += (list.empty() ? "" : ", ") + result.name;
    return list;
  };
  const auto count = [&report](const auto& is) { return std::ranges::count_if(report.results, is); };
  const auto in_part = [](const SolverResult& result) { return result.agrees() && result.stopped; };
  const auto cannot = [](const SolverResult& result) {
    return !result.compared() && !result.stopped && !result.failed;
  };
  const std::size_t families = report.agreeing_families().size();
  const auto solvers = count(&SolverResult::agrees_to_the_end);
  std::string counts = fmt::format("{} {} ({} solver{})", families, families == 1 ? "family agrees" : "families agree",
                                   solvers, solvers == 1 ? "" : "s");
  if (count(in_part) > 0)
    counts += fmt::format(", {} agree as far as --limit let them go ({})", count(in_part), names(in_part));
  if (count(&SolverResult::differs) > 0)
    counts += fmt::format(", {} differ ({})", count(&SolverResult::differs), names(&SolverResult::differs));
  if (count(&SolverResult::failed) > 0)
    counts += fmt::format(", {} gave up ({})", count(&SolverResult::failed), names(&SolverResult::failed));
  if (count(&SolverResult::stopped_at_start) > 0)
    counts += fmt::format(", {} stopped at the start by --limit ({})", count(&SolverResult::stopped_at_start),
                          names(&SolverResult::stopped_at_start));
  if (count(cannot) > 0) counts += fmt::format(", {} cannot do it", count(cannot));
  return counts;
}

std::string verdict_text(const VerifyReport& report) {
  std::string counts = opinions(report);
  if (report.settled) counts += "; the stepper's order is too low and does not rise: " + shortcomings(report);
  if (report.too_short)
    counts += fmt::format("; only {:g} of {:g} s could be compared: use a smaller --dt or a shorter --duration",
                          report.until, report.asked);
  switch (report.verdict()) {
    case Verdict::agrees:
      return "the stepper agrees with the reference solvers: " + counts;
    case Verdict::incomplete:
      if (!report.converges)
        return fmt::format(
            "INCOMPLETE: the steps are still too long for the stepper's order: {}: {} {:g}, or a larger "
            "--limit: {}",
            shortcomings(report), report.recorded ? "record it with a dt of" : "try --dt", report.dt_to_try, counts);
      return (std::ranges::any_of(report.results, &VerifyReport::SolverResult::differs)
                  ? "INCOMPLETE: the start is a singular pose, where solvers go astray: "
                  : "INCOMPLETE: no solver differs as far as it came: ") +
             counts;
    case Verdict::unverified:
      return "NONE: no reference solver has a result: " + counts;
    case Verdict::no:
      break;
  }
  return "NO: " + counts;
}

std::string convergence_text(const VerifyReport& report) {
  const std::size_t shown = std::min<std::size_t>(3, report.steps.size());
  const std::span<const VerifyReport::Step> last(report.steps.data() + report.steps.size() - shown, shown);
  std::string out = fmt::format("{:<31}{:>9}", "stepper - its limit", "signal");
  for (const auto& step : last) out += fmt::format("{:>12}", fmt::format("dt {:.3g}", step.dt));
  out += fmt::format("{:>8}{:>9}  at\n", "order", "allowed");
  for (std::size_t q = 0; q < report.quantities.size(); ++q) {
    const VerifyReport::Quantity& row = report.quantities[q];
    if (row.at.empty()) continue;
    out += fmt::format("{:<31}{:>9.1e}", fmt::format("{} [{}]", kNames[q].text, kNames[q].unit), row.signal);
    for (std::size_t k = row.error.size() - shown; k < row.error.size(); ++k)
      out += fmt::format("{:>12.1e}", row.error[k]);
    out += row.convergence.order != 0.0 ? fmt::format("{:>8.2f}", row.convergence.order) : fmt::format("{:>8}", "-");
    out += fmt::format("{:>9.1e}  {}{}\n", row.allowed, row.at,
                       row.convergence.low        ? "  TOO LOW"
                       : row.convergence.resolved ? ""
                                                  : "  NOT WITHIN 1 %");
  }
  return out;
}

std::string row_of(const VerifyReport& report, const VerifyReport::SolverResult& result) {
  if (!result.compared())
    return fmt::format("{:<31}  {}{}\n", result.name, result.failed ? "GAVE UP: " : "", result.unsupported_reason);
  return fmt::format(
      "{:<31}{}{}{}\n", result.name, measures(result.deviation),
      result.name == "index3_literal" && report.alpha > 0.0 ? fmt::format("  alpha = {:g}", report.alpha) : "",
      !result.agrees()                      ? "  DIFFERS: " + result.worst
      : result.stopped                      ? fmt::format("  to {:.3g} s, --limit", result.until)
      : result.tolerance < report.tolerance ? fmt::format("  at tolerance {:g}", result.tolerance)
                                            : "");
}

std::string solvers_text(const VerifyReport& report) {
  std::string out = fmt::format("\n{:<31}", "reference solver - that limit");
  for (const QuantityName& name : kNames) out += fmt::format("{:>9}", name.column);
  out += '\n';
  for (const VerifyReport::SolverResult& result : report.results) out += row_of(report, result);
  out += fmt::format("\n{:<31}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "the solver's own run", "energy J", "Phi", "rate",
                     "accel", "rhs", "s");
  for (const VerifyReport::SolverResult& result : report.results)
    if (result.compared())
      out += fmt::format("{:<31}{:>9.1e}{:>9.1e}{:>9.1e}{:>9.1e}{:9}{:9.2f}\n", result.name, result.energy_change,
                         result.position_residual, result.velocity_residual, result.acceleration_residual,
                         result.right_hand_sides, result.seconds);
  return out;
}

// Of positions and orientations, the lower one; 0: the errors of both are rounding.
double order_of_poses(const VerifyReport& report) {
  const double position = report.quantities[0].convergence.order, turn = report.quantities[1].convergence.order;
  return position == 0.0 || turn == 0.0 ? position + turn : std::min(position, turn);
}

nlohmann::json json_of(const VerifyReport::SolverResult& result) {
  return {{"name", result.name},
          {"family", result.family},
          {"unsupported_reason", result.unsupported_reason},
          {"failed", result.failed},
          {"stopped", result.stopped},
          {"until_s", result.until},
          {"tolerance", result.tolerance},
          {"agrees", result.agrees()},
          {"deviation", json_of(result.deviation)},
          {"worst", result.worst},
          {"worst_share_of_allowed", result.worst_share},
          {"energy_change_J", result.energy_change},
          {"position_residual", result.position_residual},
          {"velocity_residual", result.velocity_residual},
          {"acceleration_residual", result.acceleration_residual},
          {"right_hand_sides", result.right_hand_sides},
          {"seconds", result.seconds}};
}

}  // namespace

std::string VerifyReport::text() const {
  std::string out = fmt::format("{}: 0 to {:g} s{}\n{}\n", mechanism, until,
                                why_not_further.empty() ? "" : ", no further: " + why_not_further,
                                cut.empty() ? "" : cut + "; only the steps before that were used\n");
  out += convergence_text(*this) + solvers_text(*this);
  out += fmt::format(
      "\nreactions compared at {} of {} joints; the others share redundant constraints, of which what they together "
      "exert on bodies is compared\nverdict: {}\n",
      determined_reactions, joints, verdict_text(*this));
  return out;
}

nlohmann::json VerifyReport::json() const {
  nlohmann::json out{{"schema", 2},
                     {"mechanism", mechanism},
                     {"until_s", until},
                     {"asked_s", asked},
                     {"why_not_further", why_not_further},
                     {"too_short", too_short},
                     {"starts_singular", starts_singular},
                     {"cut", cut},
                     {"alpha", alpha},
                     {"order", order_of_poses(*this)},
                     {"converges", converges},
                     {"settled", settled},
                     {"dt_to_try_s", dt_to_try},
                     {"joints", joints},
                     {"determined_reactions", determined_reactions},
                     {"families_that_agree", agreeing_families()},
                     {"verdict", name_of(verdict())},
                     {"passed", verdict() == Verdict::agrees}};
  for (const Step& step : steps) out["steps"].push_back({{"dt_s", step.dt}, {"error", json_of(step.error)}});
  for (std::size_t q = 0; q < quantities.size(); ++q) {
    const Quantity& row = quantities[q];
    out["allowed"][kNames[q].key] = row.allowed;
    out["quantities"][kNames[q].key] = {{"at", row.at},
                                        {"signal", row.signal},
                                        {"allowed", row.allowed},
                                        {"error", row.error},
                                        {"order", row.convergence.order},
                                        {"order_too_low", row.convergence.low},
                                        {"resolved", row.convergence.resolved}};
  }
  for (const SolverResult& result : results) out["solvers"].push_back(json_of(result));
  return out;
}

}  // namespace rigstep::server
