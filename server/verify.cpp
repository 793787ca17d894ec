#include "server/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>

#include "core/index3/diagnostics.h"
#include "core/index3/plan.h"
#include "core/index3/sensors.h"
#include "proto/recording_reader.h"
#include "server/csv.h"
#include "server/recorder.h"
#include "server/session.h"

namespace rigstep::server {

namespace {

using offline::BodyMotion;
using offline::Deviation;
using offline::Instant;

constexpr int kInstants = 20;         // at which motions are compared, at most
constexpr int kFewInstants = 5;       // ... of many bodies
constexpr int kMarginInstants = 10;   // between two of them: when poses are looked at first, of many bodies ever
constexpr double kCloserLook = 0.25;  // share of the margin by which bodies move between two looks at the pose
constexpr int kRoom = 20;             // parts before a singular pose, of which the last is left out
constexpr double kSingular = 1e-3;    // margin below which a pose counts as singular
constexpr double kUncertain = 1e-3;   // [m, rad] beyond which the extrapolation says nothing any more
constexpr double kJudgeError = 1e3;   // error of a judge over a run, as a multiple of its tolerance
constexpr double kTighter = 1e-2;     // the tolerance of a judge that is asked again
constexpr double kPatience = 4.0;     // times the limit for a judge that has not come to the first instant
constexpr double kLackOfOrder = 0.3;  // that the observed one may have
constexpr double kEnough = 0.5;       // share of the time that is to be compared where the stepper does not converge
constexpr double kFewestSteps = 20;   // that are to be compared before a singular pose
constexpr std::size_t kManyBodies = 60;

// The stepper fails with this dt, or leaves nothing to compare.
struct StepTooLong : offline::SolverError {
  using SolverError::SolverError;
};

// What is to be simulated: the mechanism, and the inputs of every step.
struct VerifyCase {
  wire::LoadedMechanism mechanism;
  index3::Settings settings;
  std::uint64_t steps = 0;
  std::vector<Inputs> applied;  // (steps), empty: none has an input
  std::string cut = {};         // why not all of a recording is used; empty: all of it is

  const Inputs& inputs(std::uint64_t step) const {
    static const Inputs kNoInputs{};
    return step < applied.size() ? applied[step] : kNoInputs;
  }
};

bool many_bodies(const VerifyCase& a) { return a.mechanism.mechanism.bodies().size() > kManyBodies; }

VerifyCase from_mechanism(const VerifyRequest& request) {
  VerifyCase a{load_mechanism_file(request.path), {}, 0, {}};
  a.settings.dt_ns = std::llround(request.dt * 1e9);
  const double standard = many_bodies(a) ? 0.2 : 1.0;
  const double duration = request.duration > 0.0 ? request.duration : standard;
  a.steps = static_cast<std::uint64_t>(std::llround(duration * 1e9 / static_cast<double>(a.settings.dt_ns)));
  if (request.inputs.empty()) return a;
  const InputTable table(request.inputs, a.mechanism.mechanism.input_channels());
  for (std::uint64_t k = 1; k <= a.steps; ++k)
    table.read(1e-9 * static_cast<double>(static_cast<std::int64_t>(k) * a.settings.dt_ns), a.applied.emplace_back());
  return a;
}

VerifyCase from_recording(const VerifyRequest& request) {
  wire::RecordingReader reader(request.path);
  const wire::RecordingHeader& header = reader.header();
  VerifyCase a{parse_mechanism_text(header.mechanism_text(), header.mechanism_file()), {}, 0, {}};
  a.settings.dt_ns = static_cast<std::int64_t>(header.dt_ns());
  a.settings.iterations = static_cast<int>(header.iterations());
  a.settings.relative_compliance = header.relative_compliance();
  a.settings.sweeps = static_cast<int>(header.sweeps());
  wire::RecordedStep step;
  wire::RecordedState state;
  for (auto item = reader.next(step, state); item != wire::RecordingReader::Item::end;
       item = reader.next(step, state)) {
    if (item != wire::RecordingReader::Item::step) continue;
    const StepRecord record = from_message(step);
    if (record.step != a.steps + 1 || failed(record.status)) {
      a.cut = fmt::format("the recording has a {} after step {}", failed(record.status) ? "fault" : "gap", a.steps);
      break;
    }
    a.applied.push_back(record.inputs);
    ++a.steps;
    if (request.duration > 0.0 &&
        static_cast<double>(a.steps) * 1e-9 * static_cast<double>(a.settings.dt_ns) >= request.duration)
      break;
  }
  if (reader.damage())
    a.cut = fmt::format("the recording is damaged at byte {}: {}", reader.damage()->offset, reader.damage()->what);
  if (a.steps == 0)
    throw wire::RecordingError(request.path, a.cut.empty() ? "there is no step in it" : "no step can be read: " + a.cut,
                               "record a run from its beginning, or use a copy that is whole");
  const index3::Stepper fresh = make_stepper(a.mechanism, a.settings);
  if (fresh.state().hash() != header.start_hash())
    throw wire::RecordingError(request.path, "it does not begin at the start of its mechanism, of this build",
                               "record a run from its beginning, or use rigstep replay");
  return a;
}

// Of whole nanoseconds, so that instants and jumps of inputs that coincide do so to the bit.
double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

Instant instant_of(const index3::Stepper& stepper) {
  const index3::State& x = stepper.state();
  Instant now;
  now.time = seconds(static_cast<std::int64_t>(x.step) * stepper.plan().settings.dt_ns);
  for (const index3::BodyState& b : x.body) {
    const Eigen::Quaterniond turn(b.p[0], b.p[1], b.p[2], b.p[3]);
    now.body.push_back({b.r, b.p, b.v, turn * b.w_b});
  }
  for (std::size_t j = 0; j < stepper.plan().mechanism.joints().size(); ++j) {
    const Vec6 load = index3::joint_reaction(stepper, static_cast<int>(j));
    now.reaction.push_back({load.head<3>(), load.tail<3>()});
  }
  return now;
}

// Steps between two instants.
std::uint64_t stride(const VerifyCase& a) {
  return std::max<std::uint64_t>(1, a.steps / static_cast<std::uint64_t>(many_bodies(a) ? kFewInstants : kInstants));
}

// Whether motions are compared after this step; more often at first, for judges that do not come far.
bool is_instant(const VerifyCase& a, std::uint64_t step) {
  return step % stride(a) == 0 || (step < stride(a) && std::has_single_bit(step));
}

// With the inputs of step k.
void advance(const VerifyCase& a, index3::Stepper& stepper, std::uint64_t k) {
  const StepReport report = stepper.step(a.inputs(k));
  if (!failed(report.status)) return;
  throw StepTooLong(
      fmt::format("the stepper fails at {:g} s with --dt {:g}: {}; use a smaller --dt or a shorter --duration",
                  seconds(a.settings.dt_ns) * static_cast<double>(k), seconds(stepper.plan().settings.dt_ns),
                  describe_fault(a.mechanism.mechanism, report.status, report.body, report.joint)));
}

// The stepper with dt divided by `divisor`.
std::vector<Instant> run_stepper(const VerifyCase& a, int divisor, const std::function<void(double)>& progress) {
  index3::Settings settings = a.settings;
  settings.dt_ns /= divisor;
  index3::Stepper stepper = make_stepper(a.mechanism, settings);
  std::vector<Instant> instants{instant_of(stepper)};
  for (std::uint64_t k = 0; k < a.steps; ++k) {
    for (int part = 0; part < divisor; ++part) advance(a, stepper, k);
    if (is_instant(a, k + 1)) instants.push_back(instant_of(stepper));
    progress(static_cast<double>(k + 1) / static_cast<double>(a.steps));
  }
  return instants;
}

// Looks out for singular poses, the more often the nearer one may be: at speed they are passed within a step or two.
class SingularityWatch {
 public:
  SingularityWatch(const VerifyCase& a, const offline::Scenario& scenario)
      : scenario_(scenario), pause_(std::max<std::uint64_t>(1, stride(a) / kMarginInstants)), many_(many_bodies(a)) {}

  // To be asked after every step. Whether the pose is singular, or will be after the next step if it goes on so.
  bool singular(const index3::Stepper& stepper) {
    const double dt = seconds(stepper.plan().settings.dt_ns);
    path_ += dt * speed(stepper);
    ++steps_;
    const bool first = rank_ < 0, may_pause = first || many_;  // many bodies: a look takes long
    if ((may_pause && steps_ < pause_) || path_ < kCloserLook * margin_) return false;
    const Instant now = instant_of(stepper);
    const double before = margin_;
    if (first) rank_ = offline::constraint_rank(scenario_, now.body);  // not at the start, which may be singular
    margin_ = offline::margin(scenario_, now.body, rank_);
    const double fall = first ? 0.0 : std::max(0.0, before - margin_) / static_cast<double>(steps_);
    path_ = 0.0;
    steps_ = 0;
    return margin_ - fall < kSingular;
  }

 private:
  // of the fastest body, turning or moving [rad/s, lengths of the mechanism per second]
  static double speed(const index3::Stepper& stepper) {
    double fastest = 0.0;
    for (const index3::BodyState& b : stepper.state().body)
      fastest = std::max({fastest, b.w_b.norm(), b.v.norm() / stepper.plan().length});
    return fastest;
  }

  const offline::Scenario& scenario_;
  const std::uint64_t pause_;
  const bool many_;
  int rank_ = -1;                     // until the first look
  double margin_ = 0.0, path_ = 0.0;  // at the last look, since then
  std::uint64_t steps_ = 0;           // since the last look
};

bool can_be_singular(const VerifyCase& a) {
  return index3::Plan(a.mechanism.mechanism, a.settings).has_loops || !a.mechanism.mechanism.couplings().empty() ||
         !a.mechanism.mechanism.drivers().empty();
}

// Steps before the pose gets singular; all of them where it does not.
std::uint64_t regular_steps(const VerifyCase& a, const offline::Scenario& scenario,
                            const std::function<void(double)>& progress) {
  if (!can_be_singular(a)) return a.steps;
  index3::Stepper stepper = make_stepper(a.mechanism, a.settings);
  SingularityWatch watch(a, scenario);
  for (std::uint64_t k = 0; k < a.steps; ++k) {
    advance(a, stepper, k);
    if (watch.singular(stepper)) return k;
    progress(static_cast<double>(k + 1) / static_cast<double>(a.steps));
  }
  return a.steps;
}

// The stepper's scheme has order 2. Where an input jumps the trapezoidal rule takes the mean of both values for one
// step, as if the jump came half a step later: order 1.
double order_of(const VerifyCase& a) {
  Inputs before;
  for (std::uint64_t k = 0; k < a.steps; ++k) {
    const Inputs now = a.inputs(k);
    if (now.value != before.value) return 1.0;
    before = now;
  }
  return 2.0;
}

// Without the error of that order: order 2 gives (4 fine - coarse) / 3.
std::vector<Instant> extrapolate(const std::vector<Instant>& coarse, const std::vector<Instant>& fine, double order) {
  const double ratio = std::exp2(order);
  const auto mix = [ratio](const auto& c, const auto& f) { return ((ratio * f - c) / (ratio - 1.0)).eval(); };
  std::vector<Instant> result(fine.begin(),
                              fine.begin() + static_cast<std::ptrdiff_t>(std::min(coarse.size(), fine.size())));
  for (std::size_t k = 0; k < result.size(); ++k) {
    for (std::size_t i = 0; i < result[k].body.size(); ++i) {
      const BodyMotion &c = coarse[k].body[i], &f = fine[k].body[i];
      const EulerParameters p = mix(c.p.dot(f.p) < 0.0 ? EulerParameters(-c.p) : c.p, f.p);
      result[k].body[i] = {mix(c.r_0, f.r_0), p.normalized(), mix(c.v_0, f.v_0), mix(c.omega_0, f.omega_0)};
    }
    for (std::size_t j = 0; j < result[k].reaction.size(); ++j) {
      const offline::Reaction &c = coarse[k].reaction[j], &f = fine[k].reaction[j];
      result[k].reaction[j] = {mix(c.force_0, f.force_0), mix(c.torque_0, f.torque_0)};
    }
  }
  return result;
}

double pose(const Deviation& d) { return std::max(d.position, d.orientation); }

Deviation largest_values(const std::vector<Instant>& motion, const std::vector<bool>& comparable) {
  std::vector<Instant> zero = motion;
  for (Instant& instant : zero) {
    for (BodyMotion& body : instant.body) body = {Vec3::Zero(), body.p, Vec3::Zero(), Vec3::Zero()};
    for (offline::Reaction& reaction : instant.reaction) reaction = {};
  }
  return offline::compare(motion, zero, comparable);
}

// Judges differ from the truth by their integrators' errors, the extrapolated stepper by what its last refinement
// moved.
Deviation allowance(const Deviation& refinement, const Deviation& values, double tolerance) {
  const auto allow = [tolerance](double moved, double value) {
    return 2.0 * moved + kJudgeError * tolerance * (1.0 + value);
  };
  return {allow(refinement.position, values.position), allow(refinement.orientation, 0.0),
          allow(refinement.velocity, values.velocity), allow(refinement.angular_velocity, values.angular_velocity),
          // reactions follow accelerations, which react to errors of a pose by stiffnesses and squared rates
          2.0 * refinement.force + std::sqrt(tolerance) * (1.0 + values.force),
          2.0 * refinement.torque + std::sqrt(tolerance) * (1.0 + values.torque)};
}

bool within(const Deviation& d, const Deviation& allowed) {
  return d.position <= allowed.position && d.orientation <= allowed.orientation && d.velocity <= allowed.velocity &&
         d.angular_velocity <= allowed.angular_velocity && d.force <= allowed.force && d.torque <= allowed.torque;
}

// What rounding may move of a pose. Rates are differences of poses over dt, which the run sums up again: it grows with
// the square of the steps. What judges may be off by anyway bounds it.
double rounding(double steps, double largest, double tolerance) {
  constexpr double kAtLeast = 1e-11;
  const double summed = std::numeric_limits<double>::epsilon() * steps * steps;
  return std::clamp(summed, kAtLeast, std::max(kAtLeast, kJudgeError * tolerance)) * (1.0 + largest);
}

// Inputs as the judges take them: one entry where they change.
std::vector<offline::HeldInputs> held_inputs(const VerifyCase& a) {
  std::vector<offline::HeldInputs> held;
  const std::size_t channels = a.mechanism.mechanism.input_channels().size();
  for (std::size_t k = 0; k < a.applied.size() && channels > 0; ++k) {
    const auto begin = a.applied[k].value.begin();
    std::vector<double> value(begin, begin + static_cast<std::ptrdiff_t>(channels));
    if (held.empty() || held.back().value != value)
      held.push_back({seconds(static_cast<std::int64_t>(k) * a.settings.dt_ns), std::move(value)});
  }
  return held;
}

VerifyReport::Judge ask(const offline::Solver& solver, const offline::Scenario& scenario, const VerifyRequest& request,
                        double tolerance, const std::vector<Instant>& stepper, const std::vector<bool>& comparable,
                        const std::function<void(std::string_view, double)>& progress) {
  VerifyReport::Judge judge;
  judge.name = solver.name;
  judge.tolerance = tolerance;
  judge.obstacle = solver.obstacle(*scenario.mechanism);
  if (!judge.obstacle.empty()) return judge;
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  const std::clock_t begin = std::clock();  // others on the machine do not count
  double reached = 0.0;
  options.progress = [&](double t) {
    progress(solver.name, t / scenario.instants.back());
    reached = t;
    const double spent = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    judge.stopped = spent > request.limit * (t < scenario.instants[1] ? kPatience : 1.0);
    return !judge.stopped;
  };
  try {
    const offline::Trajectory run = solver.simulate(scenario, options);
    const std::size_t count = run.instants.size();
    judge.stopped = judge.stopped && count < stepper.size();  // not where the limit ran out at the very end
    if (!judge.stopped && count != stepper.size())
      throw offline::SolverError(fmt::format("it gave {} of {} instants", count, stepper.size()));
    if (count < 2) {
      judge.obstacle = fmt::format("stopped at {:.3g} s after {:g} s of processor time: give it more with --limit",
                                   reached, kPatience * request.limit);
      return judge;
    }
    judge.until = run.instants.back().time;
    judge.deviation = offline::compare(std::span(stepper).first(count), run.instants, comparable);
    for (const Instant& instant : run.instants) {
      judge.energy_change = std::max(judge.energy_change, std::abs(instant.energy - run.instants.front().energy));
      judge.position_residual = std::max(judge.position_residual, instant.position_residual);
      judge.velocity_residual = std::max(judge.velocity_residual, instant.velocity_residual);
      judge.acceleration_residual = std::max(judge.acceleration_residual, instant.acceleration_residual);
    }
    judge.seconds = run.seconds;
    judge.right_hand_sides = run.right_hand_sides;
  } catch (const Error& error) {
    judge.obstacle = error.what();
    judge.failed = true;
  }
  return judge;
}

std::vector<const offline::Solver*> chosen_solvers(const VerifyRequest& request) {
  std::vector<const offline::Solver*> chosen;
  if (request.solvers.empty() || request.solvers == std::vector<std::string>{"all"}) {
    for (const offline::Solver& solver : offline::solvers()) chosen.push_back(&solver);
    return chosen;
  }
  for (const std::string& name : request.solvers) {
    chosen.push_back(offline::find_solver(name));
    if (!chosen.back())
      throw wire::ConfigError("--solver: \"" + name + "\" is no judge: use all, or one of: " + offline::solver_names());
  }
  return chosen;
}

VerifyReport verify_with_its_dt(const VerifyRequest& request,
                                const std::function<void(std::string_view, double)>& progress) {
  const std::vector<const offline::Solver*> judges = chosen_solvers(request);
  const bool recorded = request.path.ends_with(".mcap");
  if (recorded && !request.inputs.empty()) throw wire::ConfigError("--inputs: a recording has its own: leave it out");
  VerifyCase a = recorded ? from_recording(request) : from_mechanism(request);
  VerifyReport report;
  report.mechanism = a.mechanism.mechanism.name();
  report.tolerance = request.tolerance;
  report.joints = a.mechanism.mechanism.joints().size();
  report.cut = a.cut;
  report.starts_singular = index3::start_rank(a.mechanism.mechanism).singular();

  // the stepper with ever shorter steps, up to where the pose gets singular
  offline::Scenario scenario;
  scenario.mechanism = &a.mechanism.mechanism;
  scenario.inputs = held_inputs(a);
  const auto say = [&](double done) { progress("stepper", done); };
  const double order = order_of(a);
  // a jump makes stiff parts ring for some steps: its errors need shorter ones to fall as they should
  const int levels = order < 2.0 ? 4 : 3;
  if (a.steps == 0 || a.settings.dt_ns % (1 << (levels - 1)) != 0)
    throw wire::ConfigError(
        fmt::format("--dt, --duration: there is no step, or dt / {} is no whole number of nanoseconds: change them",
                    1 << (levels - 1)));
  report.asked = seconds(static_cast<std::int64_t>(a.steps) * a.settings.dt_ns);
  if (const std::uint64_t regular = regular_steps(a, scenario, say); regular < a.steps) {
    report.why_not_further =
        fmt::format("singular pose near {:.4g} s", seconds(a.settings.dt_ns) * static_cast<double>(regular + 1));
    a.steps = regular - regular / kRoom;
    report.too_short = static_cast<double>(a.steps) < kFewestSteps;
  }
  std::vector<std::vector<Instant>> runs;
  runs.reserve(static_cast<std::size_t>(levels));
  for (int level = 0; level < levels; ++level) runs.push_back(run_stepper(a, 1 << level, say));
  const auto &coarse = runs[runs.size() - 3], &middle = runs[runs.size() - 2], &fine = runs.back();

  // ... and up to where it converges
  const std::vector<bool> comparable = offline::determined_reactions(scenario, runs[0].front().body);
  std::vector<Instant> once = extrapolate(coarse, middle, order), twice = extrapolate(middle, fine, order);
  std::size_t count = std::min(once.size(), twice.size());
  for (std::size_t k = 0; k < count; ++k)
    if (!(pose(offline::compare({&once[k], 1}, {&twice[k], 1}, {})) <= kUncertain)) {
      report.why_not_further = fmt::format("the stepper does not converge beyond {:.4g} s with this dt", once[k].time);
      report.too_short |= k == 0 || once[k - 1].time < kEnough * once.back().time;
      count = k;
    }
  if (count < 2)
    throw StepTooLong("nothing to compare: " + report.why_not_further + ": " +
                      (report.starts_singular ? "start further from it" : "use a smaller --dt"));
  for (auto* motion : {&once, &twice}) motion->resize(count);
  for (auto& run : runs) run.resize(count);
  std::vector<Instant> limit = extrapolate(once, twice, order + 1.0);
  // the start knows no input yet, for a judge the first one acts already there
  if (!scenario.inputs.empty()) limit.front().reaction.clear();
  report.until = limit.back().time;
  report.determined_reactions = static_cast<std::size_t>(std::count(comparable.begin(), comparable.end(), true));
  for (std::size_t level = 0; level < runs.size(); ++level)
    report.steps.push_back({1e-9 * static_cast<double>(a.settings.dt_ns) / static_cast<double>(1 << level),
                            offline::compare(runs[level], limit, comparable)});
  const double first = pose(offline::compare(coarse, middle, {})), second = pose(offline::compare(middle, fine, {}));
  const double largest = largest_values(limit, {}).position;
  const double finest_steps = std::ldexp(report.until / seconds(a.settings.dt_ns), levels - 1);
  const double observed = std::log2(first / second);
  const bool low = !(observed >= order - kLackOfOrder);
  const bool only_rounding = first <= rounding(1.0, largest, request.tolerance) ||
                             (low && second <= rounding(finest_steps, largest, request.tolerance));
  if (!only_rounding) report.order = observed;
  report.converges = !low || only_rounding;
  report.allowed =
      allowance(offline::compare(once, twice, comparable), largest_values(limit, comparable), request.tolerance);

  scenario.start = limit.front().body;
  for (const Instant& instant : limit) scenario.instants.push_back(instant.time);
  for (const offline::Solver* solver : judges) {
    const auto judge_with = [&](double tolerance) {
      VerifyReport::Judge judge = ask(*solver, scenario, request, tolerance, limit, comparable, progress);
      judge.agrees = judge.compared() && within(judge.deviation, report.allowed);
      return judge;
    };
    VerifyReport::Judge judge = judge_with(request.tolerance);
    if (judge.compared() && !judge.agrees) {  // is it the judge's own error that shows?
      const VerifyReport::Judge tighter = judge_with(kTighter * request.tolerance);
      if (tighter.agrees) judge = tighter;
    }
    report.judges.push_back(std::move(judge));
  }
  return report;
}

}  // namespace

VerifyReport verify(const VerifyRequest& request, const std::function<void(std::string_view, double)>& progress) {
  VerifyRequest chosen = request;
  if (request.dt > 0.0) return verify_with_its_dt(chosen, progress);
  const auto choose = [&](double dt) {  // what needs shorter steps is faster, too
    chosen.dt = dt;
    if (request.duration == 0.0 && dt < 1e-3) chosen.duration = 1e3 * dt;
  };
  for (const double dt : {1e-3, 1e-4}) {
    choose(dt);
    try {
      return verify_with_its_dt(chosen, progress);
    } catch (const StepTooLong&) {
      continue;
    }
  }
  choose(1e-5);
  return verify_with_its_dt(chosen, progress);
}

Verdict VerifyReport::verdict() const {
  const auto any = [this](const auto& is) { return std::ranges::any_of(judges, is); };
  const bool one_agrees = any(&Judge::agrees_to_the_end);
  if (any(&Judge::differs) && !(starts_singular && one_agrees)) return Verdict::no;
  if (!any(&Judge::compared)) return Verdict::unjudged;
  if (!converges) return Verdict::no;
  const bool all_heard = !any(&Judge::differs) && !any(&Judge::stopped_at_start) && !any(&Judge::failed);
  return one_agrees && all_heard && !too_short ? Verdict::agrees : Verdict::incomplete;
}

namespace {

std::string verdict_text(const VerifyReport& report) {
  using Judge = VerifyReport::Judge;
  const auto names = [&report](const auto& is) {
    std::string list;
    for (const Judge& judge : report.judges)
      if (std::invoke(is, judge)) list += (list.empty() ? "" : ", ") + judge.name;
    return list;
  };
  const auto count = [&report](const auto& is) { return std::ranges::count_if(report.judges, is); };
  const auto in_part = [](const Judge& judge) { return judge.agrees && judge.stopped; };
  const auto cannot = [](const Judge& judge) { return !judge.compared() && !judge.stopped && !judge.failed; };
  std::string counts = fmt::format("{} agree", count(&Judge::agrees_to_the_end));
  if (count(in_part) > 0)
    counts += fmt::format(", {} agree as far as --limit let them go ({})", count(in_part), names(in_part));
  if (count(&Judge::differs) > 0)
    counts += fmt::format(", {} differ ({})", count(&Judge::differs), names(&Judge::differs));
  if (count(&Judge::failed) > 0)
    counts += fmt::format(", {} gave up ({})", count(&Judge::failed), names(&Judge::failed));
  if (count(&Judge::stopped_at_start) > 0)
    counts += fmt::format(", {} stopped at the start by --limit ({})", count(&Judge::stopped_at_start),
                          names(&Judge::stopped_at_start));
  if (count(cannot) > 0) counts += fmt::format(", {} cannot do it", count(cannot));
  if (!report.converges) counts += "; the stepper's order is too low";
  if (report.too_short)
    counts += fmt::format("; only {:g} of {:g} s could be compared: use a smaller --dt or a shorter --duration",
                          report.until, report.asked);
  switch (report.verdict()) {
    case Verdict::agrees:
      return "the stepper agrees with its judges: " + counts;
    case Verdict::incomplete:
      return (count(&Judge::differs) > 0 ? "INCOMPLETE: the start is a singular pose, where judges go astray: "
                                         : "INCOMPLETE: no judge differs as far as it came: ") +
             counts;
    case Verdict::unjudged:
      return "NONE: no judge has a result: " + counts;
    case Verdict::no:
      break;
  }
  return "NO: " + counts;
}

const char* name_of(Verdict verdict) {
  constexpr const char* kNames[] = {"agrees", "incomplete", "no", "unjudged"};
  return kNames[static_cast<int>(verdict)];
}

}  // namespace

std::string VerifyReport::text() const {
  const auto measures = [](const Deviation& d) {
    return fmt::format("{:9.1e}{:9.1e}{:9.1e}{:9.1e}{:9.1e}{:9.1e}", d.position, d.orientation, d.velocity,
                       d.angular_velocity, d.force, d.torque);
  };
  std::string out = fmt::format("{}: 0 to {:g} s{}\n{}\n", mechanism, until,
                                why_not_further.empty() ? "" : ", no further: " + why_not_further,
                                cut.empty() ? "" : cut + "; only the steps before that were used\n");
  out += fmt::format("{:<28}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "stepper - its limit", "pos m", "turn rad", "vel m/s",
                     "rad/s", "force N", "torque");
  for (const Step& step : steps)
    out += fmt::format("{:<28}{}\n", fmt::format("dt {:g} s", step.dt), measures(step.error));
  out += order != 0.0 ? fmt::format("observed order              {:9.2f}{}\n", order, converges ? "" : "  TOO LOW")
                      : std::string("observed order                    -  the errors are rounding\n");
  out += fmt::format("\n{:<28}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}\n", "judge - that limit",
                     "pos m", "turn rad", "vel m/s", "rad/s", "force N", "torque", "energy J", "Phi", "rate", "accel",
                     "rhs", "s");
  for (const Judge& judge : judges)
    out +=
        judge.compared()
            ? fmt::format("{:<28}{}{:9.1e}{:9.1e}{:9.1e}{:9.1e}{:8}{:8.2f}{}\n", judge.name, measures(judge.deviation),
                          judge.energy_change, judge.position_residual, judge.velocity_residual,
                          judge.acceleration_residual, judge.right_hand_sides, judge.seconds,
                          !judge.agrees                 ? "  DIFFERS"
                          : judge.stopped               ? fmt::format("  to {:.3g} s, --limit", judge.until)
                          : judge.tolerance < tolerance ? fmt::format("  at tolerance {:g}", judge.tolerance)
                                                        : "")
            : fmt::format("{:<28}  {}{}\n", judge.name, judge.failed ? "GAVE UP: " : "", judge.obstacle);
  out += fmt::format("{:<28}{}\n", "allowed", measures(allowed));
  out += fmt::format("\nreactions compared at {} of {} joints; the others share redundant constraints\nverdict: {}\n",
                     determined_reactions, joints, verdict_text(*this));
  return out;
}

nlohmann::json VerifyReport::json() const {
  const auto measures = [](const Deviation& d) {
    return nlohmann::json{{"position_m", d.position},   {"orientation_rad", d.orientation},
                          {"velocity_m_s", d.velocity}, {"angular_velocity_rad_s", d.angular_velocity},
                          {"force_N", d.force},         {"torque_N_m", d.torque}};
  };
  nlohmann::json out{{"schema", 1},
                     {"mechanism", mechanism},
                     {"until_s", until},
                     {"asked_s", asked},
                     {"why_not_further", why_not_further},
                     {"too_short", too_short},
                     {"starts_singular", starts_singular},
                     {"cut", cut},
                     {"order", order},
                     {"converges", converges},
                     {"allowed", measures(allowed)},
                     {"joints", joints},
                     {"determined_reactions", determined_reactions},
                     {"verdict", name_of(verdict())},
                     {"passed", verdict() == Verdict::agrees}};
  for (const Step& step : steps) out["steps"].push_back({{"dt_s", step.dt}, {"error", measures(step.error)}});
  for (const Judge& judge : judges)
    out["judges"].push_back({{"name", judge.name},
                             {"obstacle", judge.obstacle},
                             {"failed", judge.failed},
                             {"stopped", judge.stopped},
                             {"until_s", judge.until},
                             {"tolerance", judge.tolerance},
                             {"agrees", judge.agrees},
                             {"deviation", measures(judge.deviation)},
                             {"energy_change_J", judge.energy_change},
                             {"position_residual", judge.position_residual},
                             {"velocity_residual", judge.velocity_residual},
                             {"acceleration_residual", judge.acceleration_residual},
                             {"right_hand_sides", judge.right_hand_sides},
                             {"seconds", judge.seconds}});
  return out;
}

}  // namespace rigstep::server
