// One sweep over the compounds against a dense solve of the same dual system.
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "core/index3/forces.h"
#include "core/index3/initial_state.h"
#include "core/index3/sweeps.h"
#include "core/index3/tangent.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

struct Dense {
  MatrixXd J, M_inverse;
  VectorXd compliance;
};

Dense dense(const Plan& plan, const Workspace& w) {
  const Index bodies = static_cast<Index>(w.placement.size());
  Dense d{MatrixXd::Zero(plan.all_rows(), 6 * bodies), MatrixXd::Zero(6 * bodies, 6 * bodies),
          VectorXd(plan.all_rows())};
  for (int row = 0; row < plan.all_rows(); ++row) {
    const Connection& joint = plan.connection[plan.connection_of_row[row]];
    if (joint.first != kGround) d.J.block<1, 6>(row, 6 * joint.first) = w.J_first[row].transpose();
    if (joint.second != kGround) d.J.block<1, 6>(row, 6 * joint.second) = w.J_second[row].transpose();
    d.compliance[row] = plan.newton_compliance[row];
  }
  for (Index i = 0; i < bodies; ++i) d.M_inverse.block<6, 6>(6 * i, 6 * i) = w.M_inverse[static_cast<std::size_t>(i)];
  return d;
}

struct Errors {
  double Lambda, motion;  // relative to the largest element
};

// .stiffness and .damping are dt^2/4 and dt/2 of one dt, as element rows assume
// random bias and right-hand side through one sweep and through the dense solver
Errors sweep_errors(const Mechanism& m, MergeOrder order, unsigned seed, bool consistent) {
  const Plan plan(m, {.order = order});
  Workspace w(plan);
  State x(m, plan.rows());
  evaluate_state(plan, x, w);
  test::Random random(seed);
  for (double& lambda : x.lambda) lambda = random.uniform();
  take_inputs(plan, {}, w);
  factorise(plan, x.lambda, {.geometric = 0.25e-4, .stiffness = 0.25e-4, .damping = 0.5e-2}, w);
  const Dense d = dense(plan, w);
  VectorXd bias = random.values(d.J.cols());
  const VectorXd rhs = consistent ? VectorXd(d.J * random.values(d.J.cols())) : random.values(plan.all_rows());
  for (std::size_t i = 0; i < w.bias.size(); ++i) w.bias[i] = bias.segment<6>(6 * static_cast<Index>(i));
  for (int row = 0; row < plan.all_rows(); ++row) w.rhs_term[row] = rhs[row];
  assemble(plan, w);
  disassemble(plan, w);
  close_joints(plan, w);
  REQUIRE(w.failed_row == -1);

  // in extended precision: in double it would be less accurate than the sweep
  const LongMatrix J = d.J.cast<long double>(), M_inverse = d.M_inverse.cast<long double>();
  LongMatrix S = J * M_inverse * J.transpose();
  S.diagonal() += d.compliance.cast<long double>();
  const LongMatrix b = J * bias.cast<long double>() + rhs.cast<long double>();
  const VectorXd want = S.partialPivLu().solve(b).cast<double>();
  const VectorXd motion =
      (bias.cast<long double>() - M_inverse * J.transpose() * S.partialPivLu().solve(b)).cast<double>();
  const VectorXd Lambda = Eigen::Map<const VectorXd>(w.Lambda.data(), plan.all_rows());
  VectorXd moved(bias.size());
  for (std::size_t i = 0; i < w.bias.size(); ++i) moved.segment<6>(6 * static_cast<Index>(i)) = w.bias[i];
  return {(Lambda - want).cwiseAbs().maxCoeff() / want.cwiseAbs().maxCoeff(),
          (moved - motion).cwiseAbs().maxCoeff() / motion.cwiseAbs().maxCoeff()};
}

constexpr MergeOrder kOrders[] = {MergeOrder::fewest_operations, MergeOrder::fewest_levels};

}  // namespace

TEST_CASE("one sweep over a random tree solves the dual system of all its joints") {
  for (unsigned seed = 1; seed <= 20; ++seed)
    for (const MergeOrder order : kOrders) {
      const Mechanism m = test::build(test::random_tree(seed, 3 + static_cast<int>(seed)));
      const Errors error = sweep_errors(m, order, seed, false);
      CAPTURE(seed);
      CHECK(error.Lambda < 1e-10);
      CHECK(error.motion < 1e-10);
    }
}

TEST_CASE("one sweep over random closed loops solves the dual system of all their joints") {
  for (unsigned seed = 1; seed <= 20; ++seed)
    for (const MergeOrder order : kOrders) {
      const Mechanism m = test::build(test::random_loops(seed, 3 + static_cast<int>(seed) / 2));
      const Errors error = sweep_errors(m, order, seed, true);
      CAPTURE(seed);
      CHECK(error.motion < 1e-10);
      // a redundant row is held by its compliance alone, 1e-8 of the others: that much accuracy is lost
      CHECK(error.Lambda < 1e-7);
    }
}

TEST_CASE("one sweep gives the motion of chains, branches and redundant ladders") {
  for (const MergeOrder order : kOrders) {
    for (const JointType type : {JointType::spherical, JointType::revolute, JointType::universal})
      CHECK(sweep_errors(test::build(test::chain(20, type)), order, 1, false).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::tree(31, 2, JointType::revolute)), order, 2, false).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::tree(21, 20, JointType::revolute)), order, 3, false).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::ladder(8)), order, 4, true).motion < 1e-10);
    CHECK(sweep_errors(test::build(test::four_bar(0.6)), order, 5, true).motion < 1e-10);
  }
}

}  // namespace rigstep::index3
