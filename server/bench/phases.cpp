#include "server/bench/phases.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/index3/compile/plan.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/step/workspace.h"
#include "server/machine/timing.h"

namespace rigstep::server {

namespace {

using index3::AssemblySweep;
using index3::ComplianceOf;
using index3::DisassemblySweep;
using index3::Multiplier;
using index3::RightHandSide;

index3::Settings settings_of(double dt, const char* instruction_set = nullptr) {
  index3::Settings settings;
  settings.dt_ns = std::llround(1e9 * dt);
  settings.instruction_set = instruction_set;
  return settings;
}

// the phases of the start state's step, on a workspace of their own
class Phases {
 public:
  Phases(const Mechanism& mechanism, double dt, const char* instruction_set)
      : plan_(index3::make_plan(mechanism, settings_of(dt, instruction_set))), w_(plan_) {
    const index3::State start = initial_state(plan_, w_);
    enter_lanes(plan_, start, w_);
    plan_.kernels->predict(w_.arrays);
    constrain_couplings(plan_, w_, true);
    tangent_of_forces(plan_, {h2(), 0.5 * dt}, w_);
  }

  const index3::Plan& plan() const { return plan_; }
  void predict() { plan_.kernels->predict(w_.arrays); }
  void up(AssemblySweep::Start start, RightHandSide rhs, bool constrain, bool factorise, ComplianceOf compliance) {
    AssemblySweep up;
    up.start = start;
    up.right_hand_sides = true;
    up.rhs = rhs;
    up.constrain = constrain;
    up.with_stiffness = factorise;
    const bool is_iteration = compliance == ComplianceOf::iterations;
    up.keep_sides = !is_iteration;
    up.factorise = factorise;
    up.tangent = {.geometric = h2(), .with_force_derivatives = is_iteration, .compliance = compliance};
    plan_.kernels->assemble(w_.arrays, up);
  }
  void down(Multiplier kind, DisassemblySweep::Finish finish) {  // as all but the last iteration
    plan_.kernels->disassemble(w_.arrays, {true, kind, finish, false});
  }

 private:
  double h2() const { return 0.25 * plan_.dt() * plan_.dt(); }
  index3::Plan plan_;
  index3::Workspace w_;
};

// lowest time of f() after prepare(), the cost of the clock taken off [us]
template <class Prepare, class F>
double lowest_us(const Prepare& prepare, const F& f) {
  using Clock = std::chrono::steady_clock;
  double lowest = 1e9;
  for (int k = 0; k < 100; ++k) {
    prepare();
    const auto begin = Clock::now();
    f();
    lowest = std::min(lowest, std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
  }
  return std::max(0.0, lowest - clock_cost_us());
}

}  // namespace

std::vector<std::pair<std::string, double>> phase_shares(const Mechanism& mechanism, double dt, double step_us,
                                                         const char* instruction_set) {
  Phases phases(mechanism, dt, instruction_set);
  const int iterations = phases.plan().settings.iterations,
            projection_passes = phases.plan().settings.projection_passes;
  using Start = AssemblySweep::Start;
  using Finish = DisassemblySweep::Finish;
  constexpr ComplianceOf kIterations = ComplianceOf::iterations, kProjections = ComplianceOf::projections;
  const auto at_predictor = [&] { phases.predict(); };
  const double predict = lowest_us([] {}, at_predictor);
  const double up_first =
      lowest_us(at_predictor, [&] { phases.up(Start::free_motion, RightHandSide::Phi, true, true, kIterations); });
  const double up =
      lowest_us(at_predictor, [&] { phases.up(Start::free_motion, RightHandSide::Phi, true, false, kIterations); });
  const double down = lowest_us(at_predictor, [&] { phases.down(Multiplier::sigma, Finish::displacements); });
  at_predictor();
  const double velocities_up =
      lowest_us([] {}, [&] { phases.up(Start::velocities, RightHandSide::rate, true, true, kProjections); });
  const double velocities_down = lowest_us([] {}, [&] { phases.down(Multiplier::sigma, Finish::velocities); });
  const double again = lowest_us([] {},
                                 [&] {
                                   phases.down(Multiplier::sigma, Finish::motion);
                                   phases.up(Start::same_motion, RightHandSide::rate, false, false, kProjections);
                                 });
  const double accelerations_up =
      lowest_us([] {}, [&] { phases.up(Start::accelerations, RightHandSide::quadratic, false, false, kProjections); });
  const double accelerations_down = lowest_us([] {}, [&] { phases.down(Multiplier::sigma, Finish::accelerations); });
  const int tangents = phases.plan().tangents.least();
  std::vector<std::pair<std::string, double>> shares{
      {"predictor", predict},
      {"Newton", tangents * up_first + (iterations - tangents) * up + iterations * down},
      {"velocity projection", velocities_up + velocities_down + (projection_passes - 1) * again},
      {"acceleration projection", accelerations_up + accelerations_down + (projection_passes - 1) * again}};
  double sum = 0.0;
  for (const auto& [name, us] : shares) sum += us;
  shares.emplace_back("rest", std::max(0.0, step_us - sum));
  for (auto& [name, share] : shares) share /= std::max(step_us, sum);
  return shares;
}

double multiply_adds_per_step(const Mechanism& mechanism, double dt) {
  const index3::Plan plan = index3::make_plan(mechanism, settings_of(dt));
  const index3::Elimination& e = plan.elimination;
  double bodies = 0.0, turning = 0.0, points = 0.0, cosines = 0.0, general = 0.0, blocks = 0.0;
  for (const index3::Leaf& leaf : e.leaves) {
    const int width = leaf.width;
    bodies += width;
    if (!leaf.is_isotropic) turning += width;
    if (leaf.is_primal) continue;
    blocks += 3.0 * width * leaf.rows * (leaf.rows + 1);
    for (int k = 0; k < leaf.handles; ++k) {
      const index3::RowFormat& format = e.handles[leaf.first_handle + k].format;
      if (format.general())
        general += width * format.rows;
      else
        points += width, cosines += width * format.cosines;
    }
  }
  double solve = 24.5 * points + 7.3 * cosines + 13.4 * general, eliminate = 0.0;
  for (const index3::Front& f : e.fronts) {
    solve += f.width * f.pivots * (2.0 * f.rows + f.pivots + 1.0);
    for (int size = f.rows + f.pivots; size > f.rows; --size) eliminate += 0.5 * f.width * size * (size + 1);
  }
  const double factorise =
      105.0 * bodies + 88.0 * turning + 33.5 * points + 50.0 * cosines + 18.5 * general + blocks + eliminate;
  const double iteration = 168.0 * bodies + 18.4 * points + 16.5 * cosines + solve, tangent = 55.0 * bodies;
  const int tangents = plan.tangents.least();
  return 160.0 * bodies + plan.settings.iterations * iteration + tangents * tangent + (tangents + 1) * factorise +
         2 * plan.settings.projection_passes * solve;
}

}  // namespace rigstep::server
