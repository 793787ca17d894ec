// Nets and ladders with many more constraint rows than freedoms taken away, deep inside the mechanism, run with the
// default compliance and two projection passes.
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/physics/constraints.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper_access.h"
#include "core/offline/dense.h"
#include "tests/support/mechanisms.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

struct VelocityError {
  double value;   // how far the velocities are from the nearest ones that all joints allow, of any body [m/s, rad/s]
  int redundant;  // rows
};

VelocityError velocity_error(const index3::Plan& plan, const index3::State& x) {
  index3::Workspace w(plan);
  index3::evaluate_state(plan, x, w);
  const Eigen::Index columns = 6 * static_cast<Eigen::Index>(x.body.size());
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(plan.rows(), columns);
  Eigen::VectorXd v(columns);
  for (int row = 0; row < plan.rows(); ++row)
    index3::for_each_block(plan, w, row,
                           [&](int body, const Vec6& block) { J.block<1, 6>(row, 6 * body) = block.transpose(); });
  for (std::size_t i = 0; i < x.body.size(); ++i)
    v.segment<6>(6 * static_cast<Eigen::Index>(i)) << x.body[i].v, index3::rotation_matrix(x.body[i].p) * x.body[i].w_b;
  const offline::LeastSquares error = offline::least_squares(J, J * v, 1e-9);
  return {error.x.cwiseAbs().maxCoeff(), plan.rows() - error.rank};
}

struct Run {
  StepStatus worst = StepStatus::ok;
  double velocity_residual = 0.0;
  double velocity_error = 0.0;  // at the end
  double speed = 0.0;           // of the fastest mass centre at the end [m/s]
  int redundant = 0;            // rows at the end
};

Run run(const Description& d, std::int64_t dt_ns, std::int64_t time_ns) {
  index3::Stepper s(build(d), {.dt_ns = dt_ns});
  REQUIRE(s.settings().projection_passes == 2);
  Run r;
  for (std::int64_t t = 0; t < time_ns; t += dt_ns) {
    const StepReport report = s.step(Inputs{});
    r.worst = std::max(r.worst, report.status);
    if (failed(report.status)) return r;
    r.velocity_residual = std::max(r.velocity_residual, report.velocity_residual);
  }
  const VelocityError error = velocity_error(index3::plan_of(s), s.state());
  r.velocity_error = error.value;
  r.redundant = error.redundant;
  for (const index3::BodyState& b : s.state().body) r.speed = std::max(r.speed, b.v.norm());
  return r;
}

void check(const Run& r, int redundant) {
  MESSAGE(r.redundant << " redundant rows: velocity residual " << r.velocity_residual << ", velocity error "
                      << r.velocity_error << " m/s at speeds up to " << r.speed << " m/s");
  CHECK(r.worst == StepStatus::ok);
  CHECK(r.redundant >= redundant);
  CHECK(r.speed > 1.0);
  CHECK(r.velocity_residual <= 1e-8);
  CHECK(r.velocity_error <= 1e-8);
}

}  // namespace

TEST_CASE("a ladder with 32 loops keeps its velocities to 1e-8 until it whips") {
  for (const Description& d : {ladder(32), in_space(ladder(32))})
    for (const std::int64_t dt : {kMs, 10 * kMs}) check(run(d, dt, 850 * kMs), 96);
}

// A load that pushes an ideal loop through its flat pose has a reaction without bound there. Its joints give way, so
// the steps that pass it say that they have not converged, and go on: one or two for each loop.
TEST_CASE("ladders whose loops are pushed through their flat poses go on") {
  for (const auto& [loops, is_planar] :
       {std::pair{4, false}, {8, false}, {16, false}, {32, false}, {4, true}, {32, true}})
    for (const std::int64_t dt : {kMs, 2 * kMs, 5 * kMs}) {
      CAPTURE(loops);
      CAPTURE(is_planar);
      CAPTURE(dt);
      index3::Stepper s(build(is_planar ? ladder(loops) : in_space(ladder(loops))), {.dt_ns = dt});
      const auto energy = [&s] { return index3::energy(index3::plan_of(s), s.state(), index3::workspace_of(s)); };
      const double at_start = energy().potential;
      int not_converged = 0;
      double kinetic = 0.0, won = 0.0;
      for (std::int64_t k = 0; k < 3000 * kMs / dt; ++k) {
        const StepReport report = s.step(Inputs{});
        REQUIRE_FALSE(failed(report.status));
        if (report.status != StepStatus::ok) ++not_converged;
        kinetic = std::max(kinetic, energy().kinetic);
        won = std::max(won, energy().kinetic + energy().potential - at_start);
      }
      MESSAGE(loops << " loops at " << 1e-6 * static_cast<double>(dt) << " ms: " << not_converged
                    << " steps not converged, " << won / kinetic << " of the kinetic energy won");
      CHECK(not_converged <= 2 * loops);
      CHECK(won < (dt > 2 * kMs ? 0.25 : 0.01) * kinetic);
    }
}

TEST_CASE("nets of 8 x 8 plates keep their velocities to 1e-8, on ball joints and on hinges") {
  check(run(net(8, JointType::spherical), kMs, 600 * kMs), 33);
  check(run(net(8, JointType::spherical), 10 * kMs, 1000 * kMs), 33);
  Description hinged = net(8, JointType::revolute);
  hinged.gravity.z() = 5.0;  // across the hinges
  check(run(hinged, kMs, 600 * kMs), 177);
  check(run(hinged, 10 * kMs, 1000 * kMs), 177);
}
