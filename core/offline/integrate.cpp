#include "core/offline/integrate.h"

#include <arkode/arkode_arkstep.h>
#include <cvode/cvode.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>

#include "core/offline/sundials_handles.h"

namespace rigstep::offline {

namespace {

constexpr double kStiffestStep = 1e-14;  // shortest step, relative to the time span of the run

// What the C callbacks see.
struct Caller {
  const Problem* problem = nullptr;
  Effort effort;
  std::exception_ptr thrown;  // inside the right-hand side
  std::string complaint;      // the last one of SUNDIALS
};

int right_hand_side(double t, N_Vector y, N_Vector yd, void* user) {
  Caller& caller = *static_cast<Caller*>(user);
  const std::size_t n = caller.problem->size;
  const std::span<double> rate(N_VGetArrayPointer(yd), n);
  const auto start = std::chrono::steady_clock::now();
  try {
    caller.problem->f(t, {N_VGetArrayPointer(y), n}, rate);
  } catch (...) {
    caller.thrown = std::current_exception();
    return sundials::kUnrecoverable;
  }
  caller.effort.right_hand_side_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++caller.effort.right_hand_sides;
  return std::all_of(rate.begin(), rate.end(), [](double v) { return std::isfinite(v); }) ? 0 : sundials::kTryShorter;
}

void keep_complaint(int, const char*, const char* function, char* message, void* user) {
  static_cast<Caller*>(user)->complaint = std::string(function) + ": " + message;
}

struct NonlinearDeleter {
  void operator()(SUNNonlinearSolver s) const { SUNNonlinSolFree(s); }
};
using Nonlinear = std::unique_ptr<std::remove_pointer_t<SUNNonlinearSolver>, NonlinearDeleter>;
using sundials::Memory;
using sundials::Vector;

// The two integrators of SUNDIALS, one step at a time.
class Steps {
 public:
  Steps(const Problem& problem, std::span<double> y, double start, double end, const Options& options)
      : context_(sundials::make_context()),
        y_(sundials::view(y, context_)),
        adams_(options.integrator == Integrator::adams),
        memory_(
            nullptr, adams_ ? +[](void* m) { CVodeFree(&m); } : +[](void* m) { ARKStepFree(&m); }),
        time_(start) {
    caller_.problem = &problem;
    if (adams_)
      begin_adams(options, (end - start) * kStiffestStep);
    else
      begin_runge_kutta(options, (end - start) * kStiffestStep);
  }
  Steps(const Steps&) = delete;  // SUNDIALS holds its address
  Steps& operator=(const Steps&) = delete;

  double time() const { return time_; }
  const Effort& effort() const { return caller_.effort; }

  // One step, ending at `stop` at the latest.
  void advance(double stop) {
    require(adams_ ? CVodeSetStopTime(memory_.get(), stop) : ARKStepSetStopTime(memory_.get(), stop));
    require(adams_ ? CVode(memory_.get(), stop, y_.get(), &time_, CV_ONE_STEP)
                   : ARKStepEvolve(memory_.get(), stop, y_.get(), &time_, ARK_ONE_STEP));
    ++caller_.effort.steps;
  }

  // y within the last step.
  void dense(double t, std::span<double> y) {
    const Vector v = sundials::view(y, context_);
    require(adams_ ? CVodeGetDky(memory_.get(), t, 0, v.get()) : ARKStepGetDky(memory_.get(), t, 0, v.get()));
  }

  // Goes on from y as it stands now.
  void start_afresh() {
    require(adams_ ? CVodeReInit(memory_.get(), time_, y_.get()) : ARKStepReset(memory_.get(), time_, y_.get()));
  }

 private:
  void begin_adams(const Options& options, double shortest) {
    memory_.reset(CVodeCreate(CV_ADAMS, context_.get()));
    if (!memory_) throw std::bad_alloc();
    CVodeSetErrHandlerFn(memory_.get(), keep_complaint, &caller_);
    require(CVodeInit(memory_.get(), right_hand_side, time_, y_.get()));
    require(CVodeSStolerances(memory_.get(), options.relative_tolerance, options.absolute_tolerance));
    nonlinear_.reset(SUNNonlinSol_FixedPoint(y_.get(), 0, context_.get()));
    require(CVodeSetNonlinearSolver(memory_.get(), nonlinear_.get()));
    require(CVodeSetUserData(memory_.get(), &caller_));
    require(CVodeSetMinStep(memory_.get(), shortest));
    require(CVodeSetMaxHnilWarns(memory_.get(), -1));
  }

  void begin_runge_kutta(const Options& options, double shortest) {
    memory_.reset(ARKStepCreate(right_hand_side, nullptr, time_, y_.get(), context_.get()));
    if (!memory_) throw std::bad_alloc();
    const bool fifth_order = options.integrator == Integrator::dormand_prince;
    ARKStepSetErrHandlerFn(memory_.get(), keep_complaint, &caller_);
    require(ARKStepSetTableNum(memory_.get(), ARKODE_DIRK_NONE,
                               fifth_order ? ARKODE_DORMAND_PRINCE_7_4_5 : ARKODE_BOGACKI_SHAMPINE_4_2_3));
    require(ARKStepSStolerances(memory_.get(), options.relative_tolerance, options.absolute_tolerance));
    require(ARKStepSetUserData(memory_.get(), &caller_));
    require(ARKStepSetMinStep(memory_.get(), shortest));
    require(ARKStepSetMaxHnilWarns(memory_.get(), -1));
  }

  void require(int status) {
    if (caller_.thrown) std::rethrow_exception(std::exchange(caller_.thrown, nullptr));
    if (status >= 0) return;
    throw SolverError("the integrator gave up at " + std::to_string(time_) + " s: " + caller_.complaint +
                      ": the motion may be singular there; give a coarser tolerance or a shorter duration");
  }

  sundials::Context context_;
  Vector y_;
  Nonlinear nonlinear_;
  Caller caller_;
  bool adams_;
  Memory memory_;
  double time_;
};

void check(std::span<const double> instants, const Options& options) {
  if (!(options.relative_tolerance > 0.0) || !(options.absolute_tolerance > 0.0))
    throw std::invalid_argument("tolerance: must be positive: give for example 1e-9");
  if (instants.empty()) throw std::invalid_argument("instants: there are none: give at least the start");
  if (std::adjacent_find(instants.begin(), instants.end(), std::greater_equal<>()) != instants.end())
    throw std::invalid_argument("instants: must ascend");
}

// A state without numbers: no freedom, or all of it driven. The instants themselves are the steps.
void sample(const Problem& problem, std::span<const double> instants, std::span<const double> stops,
            const Options& options, const std::function<void(double t, std::span<const double> y)>& deliver) {
  auto next = instants.begin() + 1;
  for (const double stop : stops) {
    for (; next != instants.end() && *next <= stop; ++next) {
      deliver(*next, {});
      if (options.progress && !options.progress(*next)) return;
    }
    if (stop != instants.back() && problem.at_break) problem.at_break(stop, {});
  }
}

}  // namespace

Effort integrate(const Problem& problem, std::vector<double> y, std::span<const double> instants,
                 const Options& options, const std::function<void(double t, std::span<const double> y)>& deliver) {
  check(instants, options);
  deliver(instants.front(), y);
  std::vector<double> stops;
  for (const double t : problem.breaks)
    if (t > instants.front() && t < instants.back()) stops.push_back(t);
  stops.push_back(instants.back());
  if (y.empty()) {  // which the integrators take for a failed step
    sample(problem, instants, stops, options, deliver);
    return {};
  }

  Steps steps(problem, y, instants.front(), instants.back(), options);
  std::vector<double> value(y.size());
  auto next = instants.begin() + 1;
  for (const double stop : stops) {
    while (steps.time() < stop) {
      steps.advance(stop);
      for (; next != instants.end() && *next <= steps.time(); ++next) {
        steps.dense(*next, value);
        deliver(*next, value);
      }
      if (problem.after_step && problem.after_step(steps.time(), y)) steps.start_afresh();
      if (options.progress && !options.progress(steps.time())) return steps.effort();
    }
    if (stop == instants.back()) break;
    if (problem.at_break) problem.at_break(stop, y);
    steps.start_afresh();
  }
  return steps.effort();
}

}  // namespace rigstep::offline
