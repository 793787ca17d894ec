// One integration on its way, a step at a time, and the integrators to choose from. Offline only.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/offline/integrate.h"

namespace rigstep::offline {

// The right-hand side of a problem: counted and timed.
class RightHandSide {
 public:
  explicit RightHandSide(const Problem& problem) : problem_(&problem) {}
  std::size_t size() const { return problem_->size; }
  const Effort& effort() const { return effort_; }
  // Returns whether all of it is finite. Throws what the problem throws.
  bool operator()(double t, std::span<const double> y, std::span<double> yd);
  void count_step() { ++effort_.steps; }

 private:
  const Problem* problem_;
  Effort effort_;
};

class Integration {
 public:
  Integration() = default;
  Integration(const Integration&) = delete;
  Integration& operator=(const Integration&) = delete;
  virtual ~Integration() = default;

  virtual double time() const = 0;
  // One step, ending at `stop` at the latest. Throws SolverError where even the shortest step fails.
  virtual void advance(double stop) = 0;
  // y within the last step.
  virtual void dense(double t, std::span<double> y) = 0;
  // Goes on from y as its owner left it.
  virtual void start_afresh() = 0;
};

// From y at `start`, which the integration changes as it goes; `end` gives the scale of the shortest step. All that is
// handed over by reference outlives the integration.
struct Beginning {
  RightHandSide& f;
  std::span<double> y;
  double start, end;       // [s]
  const Options& options;  // its integrator, its tolerances
};

std::unique_ptr<Integration> sundials_runge_kutta(const Beginning& from);  // Integrator::dormand_prince
std::unique_ptr<Integration> runge_kutta_pair(const Beginning& from);      // ode45, ode23
std::unique_ptr<Integration> predictor_corrector(const Beginning& from);   // ode113

// What each of them says where it cannot go on.
SolverError gave_up(double t, const std::string& why);

}  // namespace rigstep::offline
