#include "server/bench/phases.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/lane_access.h"
#include "core/index3/plan.h"
#include "core/index3/workspace.h"
#include "server/bench/timing.h"

namespace rigstep::server {

namespace {

using index3::LeavesToRoot;
using index3::Multiplier;
using index3::RightHandSide;
using index3::RootToLeaves;

index3::Settings settings_of(double dt) {
  index3::Settings settings;
  settings.dt_ns = std::llround(1e9 * dt);
  return settings;
}

// the phases of the start state's step, on a workspace of their own
class Phases {
 public:
  Phases(const Mechanism& mechanism, double dt) : plan_(mechanism, settings_of(dt)), w_(plan_) {
    const index3::State start = initial_state(plan_, w_);
    enter_lanes(plan_, start, w_);
    plan_.kernels->predict(w_.lanes);
    constrain_general(plan_, w_, true);
    take_inputs(plan_, {}, w_);
    tangent_of_forces(plan_, h2(), 0.5 * dt, w_);
  }

  const index3::Plan& plan() const { return plan_; }
  void predict() { plan_.kernels->predict(w_.lanes); }
  void up(LeavesToRoot::Start start, RightHandSide rhs, bool constrain, bool factorise, int stage) {
    LeavesToRoot up;
    up.start = start;
    up.assemble = true;
    up.rhs = rhs;
    up.constrain = constrain;
    up.with_stiffness = factorise;
    up.keep_sides = stage == 1;
    up.factorise = {factorise, h2(), stage == 0, stage};
    plan_.kernels->assemble(w_.lanes, up);
  }
  void down(Multiplier kind, RootToLeaves::Finish finish) {  // as all but the last iteration
    plan_.kernels->disassemble(w_.lanes, {true, kind, finish, false});
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

std::vector<std::pair<std::string, double>> phase_shares(const Mechanism& mechanism, double dt, double step_us) {
  Phases phases(mechanism, dt);
  const int iterations = phases.plan().settings.iterations, sweeps = phases.plan().settings.sweeps;
  using Start = LeavesToRoot::Start;
  using Finish = RootToLeaves::Finish;
  const auto at_predictor = [&] { phases.predict(); };
  const double predict = lowest_us([] {}, at_predictor);
  const double up_first =
      lowest_us(at_predictor, [&] { phases.up(Start::free_motion, RightHandSide::Phi, true, true, 0); });
  const double up = lowest_us(at_predictor, [&] { phases.up(Start::free_motion, RightHandSide::Phi, true, false, 0); });
  const double down = lowest_us(at_predictor, [&] { phases.down(Multiplier::sigma, Finish::displacements); });
  at_predictor();
  const double velocities_up =
      lowest_us([] {}, [&] { phases.up(Start::velocities, RightHandSide::rate, true, true, 1); });
  const double velocities_down = lowest_us([] {}, [&] { phases.down(Multiplier::sigma, Finish::velocities); });
  const double again = lowest_us([] {},
                                 [&] {
                                   phases.down(Multiplier::sigma, Finish::motion);
                                   phases.up(Start::same_motion, RightHandSide::rate, false, false, 1);
                                 });
  const double accelerations_up =
      lowest_us([] {}, [&] { phases.up(Start::accelerations, RightHandSide::quadratic, false, false, 1); });
  const double accelerations_down = lowest_us([] {}, [&] { phases.down(Multiplier::sigma, Finish::accelerations); });
  const int tangents = phases.plan().tangents.count;
  std::vector<std::pair<std::string, double>> shares{
      {"predictor", predict},
      {"Newton", tangents * up_first + (iterations - tangents) * up + iterations * down},
      {"velocity projection", velocities_up + velocities_down + (sweeps - 1) * again},
      {"acceleration projection", accelerations_up + accelerations_down + (sweeps - 1) * again}};
  double rest = 1.0;
  for (auto& [name, share] : shares) rest -= share = std::min(1.0, share / step_us);
  shares.emplace_back("rest", std::max(0.0, rest));
  return shares;
}

double multiply_adds_per_step(const Mechanism& mechanism, double dt) {
  const index3::Plan plan(mechanism, settings_of(dt));
  const index3::Elimination& e = plan.elimination;
  const int iterations = plan.settings.iterations, sweeps = plan.settings.sweeps;
  double bodies = 0.0, turning_bodies = 0.0, leaf_rows = 0.0, solve = 0.0;
  for (const index3::Leaf& leaf : e.leaves) {
    bodies += leaf.width;
    if (!leaf.is_round) turning_bodies += leaf.width;
    leaf_rows += leaf.width * leaf.rows;
  }
  for (const index3::Front& f : e.fronts) solve += f.width * f.pivots * (2.0 * f.rows + f.pivots + 1.0);
  constexpr double kPredict = 100.0, kFreeMotion = 100.0, kMove = 75.0, kVelocities = 60.0, kAccelerations = 50.0;
  constexpr double kRow = 18.0;       // constraint, its loads and what it sees of a motion, of one of its bodies
  constexpr double kInertia = 110.0;  // rotated, with geometric stiffness, inverted
  constexpr double kTurning = 90.0;   // the turning torque's share of that
  constexpr double kTangent = 55.0;   // the inertia torque's derivative, in the iterations
  const double iteration = bodies * (kFreeMotion + kMove) + kRow * leaf_rows + 12.0 * leaf_rows + solve;
  const double projections = bodies * (kVelocities + kAccelerations) + 2.0 * sweeps * (12.0 * leaf_rows + solve);
  return kPredict * bodies + iterations * iteration + projections +
         (plan.tangents.count + 1.0) *
             (static_cast<double>(e.multiply_adds) + kInertia * bodies + kTurning * turning_bodies) +
         plan.tangents.count * kTangent * bodies;
}

}  // namespace rigstep::server
