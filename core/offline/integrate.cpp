#include "core/offline/integrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "core/offline/integration.h"

namespace rigstep::offline {

bool RightHandSide::operator()(double t, std::span<const double> y, std::span<double> yd) {
  const auto start = std::chrono::steady_clock::now();
  problem_->f(t, y, yd);
  effort_.right_hand_side_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++effort_.right_hand_sides;
  return std::all_of(yd.begin(), yd.end(), [](double v) { return std::isfinite(v); });
}

SolverError gave_up(double t, const std::string& why) {
  return SolverError("the integrator gave up at " + std::to_string(t) + " s: " + why +
                     ": the motion may be singular there; give a coarser tolerance or a shorter duration");
}

namespace {

std::unique_ptr<Integration> begin(const Beginning& from) {
  switch (from.options.integrator) {
    case Integrator::dormand_prince:
      return sundials_runge_kutta(from);
    case Integrator::ode45:
    case Integrator::ode23:
      return runge_kutta_pair(from);
    case Integrator::ode113:
      return predictor_corrector(from);
  }
  throw std::invalid_argument("integrator: is none of the list");
}

void check(std::span<const double> instants, const Options& options) {
  if (!(options.relative_tolerance > 0.0) || !(options.absolute_tolerance > 0.0))
    throw std::invalid_argument("tolerance: must be positive: give for example 1e-9");
  if (instants.empty()) throw std::invalid_argument("instants: there are none: give at least the start");
  if (std::adjacent_find(instants.begin(), instants.end(), std::greater_equal<>()) != instants.end())
    throw std::invalid_argument("instants: must ascend");
}

// A state without numbers: no freedom, or all of it driven. The instants themselves are the run->
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

  RightHandSide f(problem);
  const std::unique_ptr<Integration> run = begin({f, y, instants.front(), instants.back(), options});
  std::vector<double> value(y.size());
  auto next = instants.begin() + 1;
  for (const double stop : stops) {
    while (run->time() < stop) {
      run->advance(stop);
      for (; next != instants.end() && *next <= run->time(); ++next) {
        run->dense(*next, value);
        deliver(*next, value);
      }
      if (problem.after_step && problem.after_step(run->time(), y)) run->start_afresh();
      if (options.progress && !options.progress(run->time())) return f.effort();
    }
    if (stop == instants.back()) break;
    if (problem.at_break) problem.at_break(stop, y);
    run->start_afresh();
  }
  return f.effort();
}

}  // namespace rigstep::offline
