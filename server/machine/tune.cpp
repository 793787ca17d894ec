#include "server/machine/tune.h"

#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <sched.h>

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/sensors.h"
#include "core/offline/compare.h"
#include "proto/rig.pb.h"
#include "rt/clock.h"
#include "rt/thread_setup.h"
#include "server/live/session.h"
#include "server/machine/timing.h"
#include "server/output/csv.h"
#include "server/output/quantile.h"

namespace rigstep::server {

namespace {

constexpr int kReferenceIterations = 10;
constexpr int kShortestCommonStep = 10;  // [us] below which the reference would take for ever
constexpr int kFewestInstants = 5;
constexpr int kMostAttempts = 4;  // to time a step without interruption
constexpr std::size_t kMostSamples = 1u << 20;

struct BodyPose {
  Vec3 r;             // mass centre [m]
  EulerParameters p;  // body -> world
};
using Motion = std::vector<std::vector<BodyPose>>;  // (instants) (bodies)

// (bodies) What turns an angle into a distance: the longest arm from the mass centre to a joint, or the radius of
// gyration where that is longer [m].
std::vector<double> body_sizes(const Mechanism& mechanism) {
  std::vector<double> size;
  for (const Body& body : mechanism.bodies()) {
    const Eigen::SelfAdjointEigenSolver<Mat3> principal(body.inertia_b, Eigen::EigenvaluesOnly);
    size.push_back(std::sqrt(principal.eigenvalues().maxCoeff() / body.mass));
  }
  const auto reach = [&size](int body, const Vec3& point_b) {
    if (body != kGround) size[body] = std::max(size[body], point_b.norm());
  };
  for (const Joint& joint : mechanism.joints()) {
    reach(joint.first, joint.in_first.point_b);
    reach(joint.second, joint.in_second.point_b);
  }
  return size;
}

double distance(const Motion& one, const Motion& other, const std::vector<double>& size) {
  double largest = 0.0;
  for (std::size_t k = 0; k < one.size(); ++k)
    for (std::size_t i = 0; i < one[k].size(); ++i) {
      offline::keep_larger(largest, (one[k][i].r - other[k][i].r).norm());
      offline::keep_larger(largest, size[i] * offline::angle_between(one[k][i].p, other[k][i].p));
    }
  return largest;
}

// The scheme has order 2: (4 fine - coarse) / 3.
Motion extrapolate(const Motion& coarse, const Motion& fine) {
  Motion result = fine;
  for (std::size_t k = 0; k < result.size(); ++k)
    for (std::size_t i = 0; i < result[k].size(); ++i) {
      const BodyPose &c = coarse[k][i], &f = fine[k][i];
      const EulerParameters same_side = c.p.dot(f.p) < 0.0 ? EulerParameters(-c.p) : c.p;
      result[k][i] = {(4.0 * f.r - c.r) / 3.0, (4.0 * f.p - same_side).normalized()};
    }
  return result;
}

std::vector<int> allowed_threads() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<int> threads;
  for (int n = 1; n <= std::clamp(CPU_COUNT(&allowed), 1, index3::kMostThreads); n *= 2) threads.push_back(n);
  return threads;
}

void check(const TuneRequest& request) {
  const auto refuse = [](const std::string& text) { throw config::ConfigError(text); };
  if (!(request.deadline_us > 0.0 && request.deadline_us <= 1e6))
    refuse(fmt::format("--deadline: {:g} us is none: give more than 0, at most 1000000", request.deadline_us));
  if (!(request.error > 0.0)) refuse(fmt::format("--error: {:g} m is none: give a positive distance", request.error));
  const auto in = [&](const char* name, const std::vector<int>& values, int low, int high) {
    if (values.empty()) refuse(fmt::format("{}: is empty: give numbers from {} to {}", name, low, high));
    for (const int value : values)
      if (value < low || value > high) refuse(fmt::format("{}: {} is not between {} and {}", name, value, low, high));
  };
  in("--dt", request.dt_us, 100, 1'000'000);  // what a rig file takes
  in("--iterations", request.iterations, 1, 50);
  in("--projection-passes", request.projection_passes, 1, 50);
  in("--threads", request.threads, 1, index3::kMostThreads);
  in("--order", request.orders, 2, 4);
}

class Sweep {
 public:
  Sweep(const TuneRequest& request, const std::function<void(double)>& progress)
      : progress_(progress),
        loaded_(load_mechanism_file(request.mechanism, request.parameters)),
        size_(body_sizes(loaded_.mechanism)) {
    report_.request = request;
    report_.mechanism = loaded_.mechanism.name();
    report_.machine = cpu_fingerprint();
    std::vector<int>& threads = report_.request.threads;
    if (threads.empty()) threads = allowed_threads();
    check(report_.request);
    if (!request.inputs.empty()) table_.emplace(request.inputs, loaded_.mechanism.input_channels());
    lay_grid();
  }

  TuneReport run() {
    find_reference();
    for (const int dt : report_.request.dt_us)
      for (const int iterations : report_.request.iterations)
        for (const int projection_passes : report_.request.projection_passes)
          for (const int threads : report_.request.threads)
            for (const int order : report_.request.orders)
              measure({.dt_us = dt,
                       .iterations = iterations,
                       .projection_passes = projection_passes,
                       .threads = threads,
                       .order = order});
    std::sort(report_.settings.begin(), report_.settings.end(), [](const TuneSetting& a, const TuneSetting& b) {
      return std::pair(!a.problem.empty(), a.load()) < std::pair(!b.problem.empty(), b.load());
    });
    mark_front(report_.settings);
    for (std::size_t k = 0; k < report_.settings.size() && !report_.chosen; ++k)
      if (report_.in_time(report_.settings[k]) && report_.accurate(report_.settings[k])) report_.chosen = k;
    return std::move(report_);
  }

 private:
  // Motions are compared at instants that all steps hit, and the reference's steps divide all of them.
  void lay_grid() {
    int common = 0;
    long apart = 1;  // [us]
    for (const int dt : report_.request.dt_us) {
      common = std::gcd(common, dt);
      apart = std::lcm(apart, static_cast<long>(dt));
      if (apart > 1'000'000'000) break;
    }
    instants_ = static_cast<int>(std::floor(1e6 * report_.request.duration / static_cast<double>(apart) + 1e-9));
    if (common < kShortestCommonStep || instants_ < kFewestInstants)
      throw config::ConfigError(
          fmt::format("--dt: all steps meet every {} us only and are multiples of {} us: give steps that divide each "
                      "other, or a longer --duration",
                      apart, common));
    apart_us_ = apart;
    common_us_ = common;
    const auto steps = [&](double dt_us) { return instants_ * static_cast<double>(apart) / dt_us; };
    work_ = steps(0.5 * common) + steps(0.25 * common);
    for (const int dt : report_.request.dt_us)
      work_ += std::max<double>(steps(dt), report_.request.samples) *
               static_cast<double>(report_.request.iterations.size() * report_.request.projection_passes.size() *
                                   report_.request.threads.size() * report_.request.orders.size());
  }

  void find_reference() {
    Motion motions[2];
    for (int k = 0; k < 2; ++k) {
      index3::Settings settings;
      settings.dt_ns = common_us_ * 1000 / (2 << k);
      settings.iterations = kReferenceIterations;
      index3::Stepper stepper = make_stepper(loaded_, settings);
      motions[k] = step_through(stepper, nullptr);
      if (not_converged_ > 0)
        throw StepFailed(fmt::format("{} of its steps of {:g} us do not converge", not_converged_,
                                     1e-3 * static_cast<double>(settings.dt_ns)));
    }
    report_.reference_dt_us = 0.25 * common_us_;
    // more than the extrapolation's own error, for order 2 and also for the order 1 of inputs that jump
    report_.uncertainty = distance(motions[0], motions[1], size_);
    reference_ = extrapolate(motions[0], motions[1]);
  }

  void measure(TuneSetting setting) {
    index3::Settings settings;
    settings.dt_ns = 1000 * static_cast<std::int64_t>(setting.dt_us);
    settings.iterations = setting.iterations;
    settings.projection_passes = setting.projection_passes;
    settings.threads = setting.threads;
    settings.order_of_accuracy = setting.order;
    if (settings.order_of_accuracy == 4 && !index3::allows_order_4(loaded_.mechanism)) return;
    index3::Stepper stepper = make_stepper(loaded_, settings);
    if (stepper.threads() != setting.threads) return;  // too small to be shared: the setting with fewer is this one
    const rt::StayOnCores pinned(rt::StayOnCores::Which::only, rt::last_allowed_core());  // its workers have theirs
    std::vector<double> start(stepper.state().flat_size());
    stepper.state().flatten(start);
    times_us_.clear();
    try {
      setting.error = distance(step_through(stepper, &times_us_), reference_, size_);
      setting.not_converged = not_converged_;
      const int run = static_cast<int>(instants_ * apart_us_ / setting.dt_us);
      int runs = kMostAttempts * ((report_.request.samples + run - 1) / run);
      for (; runs > 1 && times_us_.size() < static_cast<std::size_t>(report_.request.samples); --runs) {
        stepper.restore(start, 0);
        step_through(stepper, &times_us_);
      }
      tell_times(setting);
    } catch (const StepFailed& failure) {
      setting.problem = failure.what();
    }
    if (setting.problem.empty() && !std::isfinite(setting.error)) setting.problem = "the motion has no bound";
    report_.settings.push_back(std::move(setting));
  }

  void tell_times(TuneSetting& setting) {
    setting.samples = times_us_.size();
    if (times_us_.empty()) throw StepFailed("other processes interrupted every step");
    setting.p50_us = quantile(times_us_, 0.5);
    setting.p999_us = quantile(times_us_, 0.999);
    setting.max_us = quantile(times_us_, 1.0);
  }

  // From the stepper's present state on to the last instant. times_us: of every step with its outputs that no other
  // process interrupted; null: not requested. Counts the steps that do not converge. Throws StepFailed.
  Motion step_through(index3::Stepper& stepper, std::vector<double>* times_us) {
    const std::int64_t dt_ns = stepper.settings().dt_ns;
    const std::int64_t steps = 1000 * apart_us_ / dt_ns;
    Inputs inputs;
    inputs.count = static_cast<int>(loaded_.mechanism.input_channels().size());
    Outputs outputs;
    Motion motion;
    not_converged_ = 0;
    for (int k = 0; k < instants_; ++k) {
      for (std::int64_t s = 1; s <= steps; ++s) {
        if (table_) table_->read(1e-9 * static_cast<double>((k * steps + s) * dt_ns), inputs);
        const long preempted = times_us != nullptr ? rt::thread_usage().involuntary_switches : 0;
        const std::int64_t begin = rt::MonotonicClock::now_ns();
        const StepReport step = stepper.step(inputs);
        if (times_us != nullptr) stepper.read_outputs(step, outputs);  // as the loop does
        const std::int64_t end = rt::MonotonicClock::now_ns();
        // what others take of the core at this priority is the machine's to answer for, not the step's
        if (times_us != nullptr && times_us->size() < kMostSamples &&
            rt::thread_usage().involuntary_switches == preempted)
          times_us->push_back(1e-3 * static_cast<double>(end - begin));
        not_converged_ += step.status == StepStatus::not_converged;
        if (failed(step.status))
          throw StepFailed(fmt::format("{} at {:g} s",
                                       describe_fault(loaded_.mechanism, step.status, step.body, step.joint),
                                       1e-9 * static_cast<double>(stepper.state().step) * static_cast<double>(dt_ns)));
      }
      done_ += static_cast<double>(steps);
      progress_(std::min(1.0, done_ / work_));
      motion.emplace_back();
      for (const index3::BodyState& body : stepper.state().body) motion.back().push_back({body.r, body.p});
    }
    return motion;
  }

  const std::function<void(double)>& progress_;
  config::LoadedMechanism loaded_;
  std::optional<InputTable> table_;
  const std::vector<double> size_;
  TuneReport report_;
  Motion reference_;
  std::size_t not_converged_ = 0;  // steps of the last run
  long apart_us_ = 0;              // instants
  int instants_ = 0, common_us_ = 0;
  double work_ = 0.0, done_ = 0.0;  // [steps]
  std::vector<double> times_us_;
};

std::string line(const TuneSetting& s, const TuneReport& report) {
  std::string verdict = s.not_converged > 0   ? fmt::format("{} steps not converged", s.not_converged)
                        : !report.accurate(s) ? "not accurate"
                        : report.in_time(s)   ? "meets both"
                                              : "";
  if (!report.in_time(s)) verdict += verdict.empty() ? "late" : ", late";
  return fmt::format("{:>8} {:>5} {:>10} {:>6} {:>7} {:>11.2e} {:>8.1f} {:>8.1f} {:>9.1f} {:>6.1f}  {}", s.dt_us,
                     s.order, s.iterations, s.projection_passes, s.threads, s.error, s.p50_us, s.p999_us, s.max_us,
                     100.0 * s.load(), verdict);
}

constexpr const char* kHead =
    "  dt [us] order iterations passes threads   error [m] p50 [us]    p99.9  max [us] load %\n";

}  // namespace

void mark_front(std::vector<TuneSetting>& settings) {
  double best = std::numeric_limits<double>::infinity();
  for (TuneSetting& setting : settings) {
    setting.on_front = setting.problem.empty() && setting.error < best;
    if (setting.on_front) best = setting.error;
  }
}

bool TuneReport::in_time(const TuneSetting& setting) const {
  return setting.problem.empty() && setting.p999_us <= std::min<double>(request.deadline_us, setting.dt_us);
}

bool TuneReport::accurate(const TuneSetting& setting) const {
  return setting.problem.empty() && setting.not_converged == 0 && setting.error + uncertainty <= request.error;
}

std::string TuneReport::text() const {
  std::string out = fmt::format(
      "{} over {:g} s on {}\nreference: the stepper at {:g} and {:g} us, extrapolated to 0; known to {:.1e} m\n\n{}",
      mechanism, request.duration, machine, 2.0 * reference_dt_us, reference_dt_us, uncertainty, kHead);
  std::size_t failed = 0;
  for (const TuneSetting& setting : settings) {
    if (setting.on_front) out += line(setting, *this) + "\n";
    failed += !setting.problem.empty();
  }
  out += fmt::format(
      "\nOf {} settings, those that no other beats in error and load (p99.9 of a step with its outputs over dt).\n",
      settings.size());
  if (failed > 0) out += fmt::format("{} settings could not be stepped to the end: --json tells which.\n", failed);
  if (chosen) {
    const TuneSetting& s = settings[*chosen];
    return out + fmt::format(
                     "verdict: period {} us, order {}, {} iterations, {} projection passes, {} threads: p99.9 {:.1f} "
                     "of {:g} us, "
                     "error {:.1e} of {:g} m\n",
                     s.dt_us, s.order, s.iterations, s.projection_passes, s.threads, s.p999_us,
                     std::min<double>(request.deadline_us, s.dt_us), s.error, request.error);
  }
  const auto count = [this](auto meets) { return std::count_if(settings.begin(), settings.end(), meets); };
  return out + fmt::format("verdict: no setting meets {:g} us and {:g} m: {} are in time, {} are accurate\n",
                           request.deadline_us, request.error,
                           count([this](const TuneSetting& s) { return in_time(s); }),
                           count([this](const TuneSetting& s) { return accurate(s); }));
}

nlohmann::json TuneReport::json() const {
  nlohmann::json all = nlohmann::json::array();
  for (const TuneSetting& s : settings) {
    nlohmann::json one{{"dt_us", s.dt_us},
                       {"order", s.order},
                       {"iterations", s.iterations},
                       {"projection_passes", s.projection_passes},
                       {"threads", s.threads}};
    one["problem"] = s.problem;
    if (s.problem.empty()) {
      one.update({{"error_m", s.error},
                  {"not_converged", s.not_converged},
                  {"samples", s.samples},
                  {"step_us", {{"p50", s.p50_us}, {"p99.9", s.p999_us}, {"max", s.max_us}}},
                  {"load", s.load()},
                  {"on_front", s.on_front},
                  {"in_time", in_time(s)},
                  {"accurate", accurate(s)}});
    }
    all.push_back(std::move(one));
  }
  return {{"schema", 1},
          {"mechanism", mechanism},
          {"machine", machine},
          {"duration_s", request.duration},
          {"deadline_us", request.deadline_us},
          {"error_m", request.error},
          {"reference", {{"finest_dt_us", reference_dt_us}, {"uncertainty_m", uncertainty}}},
          {"settings", all},
          {"chosen", chosen ? nlohmann::json(*chosen) : nlohmann::json()}};
}

std::string TuneReport::rig_file(const std::string& folder) const {
  const TuneSetting& s = settings.at(chosen.value());
  wire::Rig rig;
  namespace fs = std::filesystem;
  rig.set_mechanism(fs::relative(request.mechanism, folder.empty() ? "." : folder).string());
  rig.set_period_us(static_cast<std::uint32_t>(s.dt_us));
  if (s.order != 2) rig.mutable_solver()->set_order(static_cast<std::uint32_t>(s.order));
  rig.mutable_solver()->set_iterations(static_cast<std::uint32_t>(s.iterations));
  rig.mutable_solver()->set_projection_passes(static_cast<std::uint32_t>(s.projection_passes));
  rig.mutable_realtime()->set_threads(static_cast<std::uint32_t>(s.threads));
  std::string text;
  google::protobuf::TextFormat::PrintToString(rig, &text);
  return fmt::format(
      "{}\n# proto-file: proto/rig.proto\n# proto-message: rigstep.wire.Rig\n#\n"
      "# For a step within {:g} us and {:g} m: {:.1f} us at the 99.9th percentile, {:.1e} m over {:g} s, measured on\n"
      "# {}\n# in steps that no other process interrupted. rigstep commission measures it live.\n\n{}",
      kTuneMark, request.deadline_us, request.error, s.p999_us, s.error, request.duration, machine, text);
}

TuneReport tune(const TuneRequest& request, const std::function<void(double done)>& progress) {
  rt::set_floating_point_mode();
  return Sweep(request, progress).run();
}

}  // namespace rigstep::server
