#include "core/index3/start/primal_bodies.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "core/index3/compile/tuned.h"
#include "core/index3/compile/tuning.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/mechanism/body_groups.h"

namespace rigstep::index3 {

namespace {

using Eigen::Index;
using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;
using LongVector = Eigen::Matrix<long double, Eigen::Dynamic, 1>;
using LongVec6 = Eigen::Matrix<long double, 6, 1>;
using LongMat3 = Eigen::Matrix<long double, 3, 3>;
using Eigen::VectorXd;

constexpr double kClearGain = 0.6;    // of the operations: they do not tell all of the time
constexpr int kMostRowsOfPart = 600;  // of what the primal bodies hold together: its rows are looked at all together
constexpr int kMostDenseRows = 600;   // beyond, the comparison is with the dual form
constexpr int kRefinements = 4;       // of a dense solve, the first one included
constexpr double kLeastHold =
    1e-3;  // of a row on the bodies between the primal bodies, against that on the primal bodies
constexpr double kNothing = 1e-7;      // of a row that has length 1
constexpr double kMostError = 1e-8;    // of the hybrid form, relative
constexpr double kPerturbation = 0.1;  // of the largest arm and [rad]

std::vector<int> bodies_with_many_rows(const Plan& plan, const std::vector<Constraint>& constraints) {
  std::vector<int> rows(plan.mechanism.bodies().size(), 0), primal_bodies;
  for (const Constraint& c : constraints)
    for (const int body : c.bodies)
      if (body != kGround) rows[body] += c.format.rows;
  for (int i = 0; i < static_cast<int>(rows.size()); ++i)
    if (rows[i] >= kLeastRowsOfPrimalBody) primal_bodies.push_back(i);
  return primal_bodies;
}

double draw(std::mt19937& random) { return std::ldexp(static_cast<double>(random()), -31) - 1.0; }

// Any pose near the start, not a consistent one: a start pose is often a special one.
State perturbed(const Plan& plan, State x) {
  std::mt19937 random(1);
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    Vec6 move;
    for (int k = 0; k < 3; ++k) move[k] = kPerturbation * draw(random), move[3 + k] = kPerturbation * draw(random);
    move = in_plane(plan.planar.normal[i], move);
    x.body[i].r += plan.length * move.head<3>();
    x.body[i].p = turned(x.body[i].p, move.tail<3>());
  }
  return x;
}

// ---- which constraints are eliminated last

// Constraints of the bodies that hang together when the primal bodies are taken out.
std::vector<std::vector<int>> parts_between(const Plan& plan, const std::vector<bool>& is_primal) {
  BodyGroups groups(is_primal.size());
  const auto first_of = [&](int c) {  // kGround: primal bodies and ground only
    for (const int body : plan.bodies_of_constraint[c])
      if (body != kGround && !is_primal[body]) return body;
    return kGround;
  };
  for (const int c : plan.eliminated)
    for (const int body : plan.bodies_of_constraint[c])
      if (body != kGround && !is_primal[body]) groups.join(body, first_of(c));
  std::vector<std::vector<int>> parts(is_primal.size() + 1);
  for (const int c : plan.eliminated) parts[groups.group_of(first_of(c))].push_back(c);
  return parts;
}

// Rows one after the other, made orthogonal on the bodies between the primal bodies in the metric of the mass.
class Basis {
 public:
  explicit Basis(Index columns, Index primal_columns) : columns_(columns), primal_columns_(primal_columns) {}

  // false: the row would be held by the primal bodies alone
  bool add(VectorXd row) {
    row /= std::max(row.norm(), 1e-300);
    for (int pass = 0; pass < 2; ++pass)
      for (const VectorXd& other : rows_) {
        const double part = other.head(columns_).dot(row.head(columns_));
        row -= part * other;
      }
    const double own = row.head(columns_).norm(), on_primal_bodies = row.tail(primal_columns_).norm();
    if (own < kLeastHold * on_primal_bodies && on_primal_bodies > kNothing) return false;
    if (own > kNothing) rows_.push_back(row / own);
    return true;
  }

  std::size_t size() const { return rows_.size(); }
  void cut(std::size_t size) { rows_.resize(size); }

 private:
  Index columns_, primal_columns_;
  std::vector<VectorXd> rows_;
};

// Columns of the bodies in the rows of a part: those between the primal bodies first.
class Columns {
 public:
  Columns(const Plan& plan, const std::vector<int>& part, const std::vector<bool>& is_primal)
      : of_(is_primal.size(), -1) {
    for (const bool primal_bodies : {false, true}) {
      for (const int c : part)
        for (const int body : plan.bodies_of_constraint[c])
          if (body != kGround && is_primal[body] == primal_bodies && of_[body] < 0) of_[body] = all, all += 6;
      if (!primal_bodies) own = all;
    }
  }
  Index of(int body) const { return of_[body]; }
  Index own = 0, all = 0;

 private:
  std::vector<Index> of_;
};

// J M^-1/2 of a body
Vec6 weighted(const Plan& plan, const Workspace& w, int body, const Vec6& J) {
  const Body& b = plan.mechanism.bodies()[body];
  Vec6 result;
  result.head<3>() = J.head<3>() / std::sqrt(b.mass);
  result.tail<3>() = b.inertia_b.llt().matrixL().solve(w.placement[body].A.transpose() * J.tail<3>());
  return result;
}

// marks those among the constraints of a part that are eliminated last, at the pose in w
void mark_eliminated_last(const Plan& plan, const Workspace& w, const std::vector<int>& part,
                          const std::vector<bool>& is_primal, std::vector<Constraint>& constraints) {
  const Columns columns(plan, part, is_primal);
  Basis basis(columns.own, columns.all - columns.own);
  for (const int c : part) {
    Constraint& constraint = constraints[plan.eliminated_as[c]];
    const std::size_t before = basis.size();
    for (int row = plan.first_row[c]; row < plan.first_row[c + 1] && !constraint.eliminated_last; ++row) {
      VectorXd J = VectorXd::Zero(columns.all);
      for_each_block(plan, w, row, [&](int body, const Vec6& block) {
        J.segment<6>(columns.of(body)) += weighted(plan, w, body, block);
      });
      constraint.eliminated_last = !basis.add(std::move(J));
    }
    if (constraint.eliminated_last) basis.cut(before);
  }
}

// false: a part is too large for that
bool find_eliminated_last(const Plan& plan, const std::vector<int>& primal_bodies,
                          std::vector<Constraint>& constraints) {
  std::vector<bool> is_primal(plan.mechanism.bodies().size(), false);
  for (const int primal_body : primal_bodies) is_primal[primal_body] = true;
  const auto parts = parts_between(plan, is_primal);
  for (const auto& part : parts) {
    int rows = 0;
    for (const int c : part) rows += plan.first_row[c + 1] - plan.first_row[c];
    if (rows > kMostRowsOfPart) return false;
  }
  Workspace w(plan);
  const State start = start_pose(plan);
  for (const State& x : {start, perturbed(plan, start)}) {
    evaluate_state(plan, x, w);
    for (const auto& part : parts) mark_eliminated_last(plan, w, part, is_primal, constraints);
  }
  return true;
}

// ---- verification

// Twists (n x 6) projected onto the velocity constraints by the elimination, at the pose x. Not finite: it failed.
VectorXd project(const Plan& plan, const State& x, const VectorXd& twists) {
  Workspace w(plan);
  StepArrays& a = w.arrays;
  evaluate_state(plan, x, w);
  enter_lanes(plan, x, w);
  iterate_from_last(plan, w);
  constrain_couplings(plan, w, true);
  tangent_of_forces(plan, {0.0, 0.0}, w);
  const int bodies = static_cast<int>(plan.elimination.body.size());
  for (int i = 0; i < bodies; ++i) set_motion(plan, i, twists.segment<6>(6 * i), w);
  AssemblySweep up = further_pass(RightHandSide::quadratic);
  up.constrain = up.with_stiffness = up.factorise = true;
  up.tangent = {.geometric = 0.0, .with_force_derivatives = false, .compliance = ComplianceOf::projections};
  if (!plan.kernels->assemble(a, up)) return VectorXd::Constant(twists.size(), NAN);
  plan.kernels->disassemble(a, motion_update(Multiplier::sigma));
  VectorXd result(twists.size());
  for (int i = 0; i < bodies; ++i) result.segment<6>(6 * i) = motion(plan, w, i);
  return result;
}

// S x = b, only the lower half of S filled: solved in double, where it would be less accurate than the sweep, and
// refined with residuals in extended precision, which is slow where the processor does not have it.
LongVector solve_refined(const LongMatrix& S, const LongVector& b) {
  const Eigen::LDLT<Eigen::MatrixXd> factor(S.cast<double>());
  LongVector x = LongVector::Zero(b.size());
  for (int k = 0; k < kRefinements; ++k) {
    const LongVector residual = b - S.selfadjointView<Eigen::Lower>() * x;
    x += factor.solve(residual.cast<double>()).cast<long double>();
  }
  return x;
}

// The same by a dense solve with pivots.
VectorXd project_dense(const Plan& plan, const State& x, const VectorXd& twists) {
  Workspace w(plan);
  evaluate_state(plan, x, w);
  struct BlockOfRow {
    int row;
    LongVec6 J, J_M_inverse;
  };
  std::vector<std::vector<BlockOfRow>> blocks(plan.mechanism.bodies().size());
  for (int row = 0; row < plan.rows(); ++row)
    for_each_block(plan, w, row, [&](int body, const Vec6& J) {
      blocks[body].push_back({row, J.cast<long double>(), LongVec6::Zero()});
    });
  LongMatrix S = LongMatrix::Zero(plan.rows(), plan.rows());  // only the lower half is filled
  LongVector lambda = LongVector::Zero(plan.rows());
  for (int row = 0; row < plan.rows(); ++row) S(row, row) = plan.compliance[row];
  for (std::size_t body = 0; body < blocks.size(); ++body) {
    const LongVec6 twist = twists.segment<6>(static_cast<Index>(6 * body)).cast<long double>();
    const Body& b = plan.mechanism.bodies()[body];
    const Mat3 rounded = w.placement[body].A * b.inertia_b.inverse() * w.placement[body].A.transpose();
    const LongMat3 inverse = (0.5 * (rounded + rounded.transpose())).cast<long double>();  // exactly symmetric
    for (BlockOfRow& one : blocks[body])
      one.J_M_inverse << one.J.head<3>() / static_cast<long double>(b.mass), inverse * one.J.tail<3>();
    for (const BlockOfRow& one : blocks[body]) {
      lambda[one.row] += one.J.dot(twist);
      for (const BlockOfRow& other : blocks[body])
        if (other.row <= one.row) S(one.row, other.row) += one.J_M_inverse.dot(other.J);
    }
  }
  lambda = solve_refined(S, lambda);
  VectorXd result = twists;
  for (std::size_t body = 0; body < blocks.size(); ++body) {
    LongVec6 change = LongVec6::Zero();
    for (const BlockOfRow& one : blocks[body]) change += one.J_M_inverse * lambda[one.row];
    result.segment<6>(static_cast<Index>(6 * body)) -= change.cast<double>();
  }
  return result;
}

}  // namespace

double projection_error(const Plan& plan) {
  std::mt19937 random(2);
  VectorXd twists(static_cast<Index>(6 * plan.mechanism.bodies().size()));
  for (double& each : twists) each = draw(random);
  twists = in_planes(plan.planar, std::move(twists));
  const State start = start_pose(plan);
  Settings settings = plan.settings;
  settings.primal_bodies = PrimalBodies::dual;
  settings.threads = 1;  // project() goes through one part
  double error = 0.0;
  for (const State& x : {start, perturbed(plan, start)}) {
    const VectorXd want = plan.rows() <= kMostDenseRows ? project_dense(plan, x, twists)
                                                        : project(make_plan(plan.mechanism, settings), x, twists);
    const double of_pose = (project(plan, x, twists) - want).cwiseAbs().maxCoeff() / twists.cwiseAbs().maxCoeff();
    error = std::isfinite(of_pose) ? std::max(error, of_pose) : INFINITY;
  }
  return error;
}

namespace {

// Also at the ends of the ranges of tunable masses.
double largest_error(Plan& plan) {
  double error = projection_error(plan);
  const std::vector<Parameter>& parameters = plan.mechanism.parameters();
  std::vector<ParameterValue> chosen, least, most;
  for (int k = 0; k < static_cast<int>(parameters.size()); ++k) {
    if (!moves_weights(parameters[k])) continue;
    chosen.push_back({k, parameters[k].value});
    least.push_back({k, parameters[k].minimum});
    most.push_back({k, parameters[k].maximum});
  }
  if (chosen.empty()) return error;
  for (const std::vector<ParameterValue>* end : {&least, &most}) {
    tune(plan, *end);
    error = std::max(error, projection_error(plan));
  }
  tune(plan, chosen);
  return error;
}

}  // namespace

void choose_primal_bodies(Plan& plan) {
  using Reason = PrimalChoice::Reason;
  PrimalChoice& choice = plan.primal_choice;
  choice.primal_bodies = bodies_with_many_rows(plan, plan.constraints);
  if (choice.primal_bodies.empty()) return;
  choice.reason = Reason::requested;
  if (plan.settings.primal_bodies == PrimalBodies::dual) return;
  choice.reason = Reason::too_large;
  std::vector<Constraint> marked = plan.constraints;
  if (!find_eliminated_last(plan, choice.primal_bodies, marked)) return;
  choice.eliminated_last = static_cast<int>(
      std::count_if(marked.begin(), marked.end(), [](const Constraint& c) { return c.eliminated_last; }));
  Elimination hybrid = compile(marked, plan.has_own_tangent, plan.settings.order, plan.lanes, choice.primal_bodies);
  choice.dual = plan.elimination.multiply_adds;
  choice.hybrid = hybrid.multiply_adds;
  choice.reason = Reason::not_cheaper;
  const bool pays = static_cast<double>(choice.hybrid) <= kClearGain * static_cast<double>(choice.dual);
  if (!pays && plan.settings.primal_bodies != PrimalBodies::primal) return;
  Elimination dual = std::move(plan.elimination);
  plan.lay_out(std::move(hybrid));
  choice.error = largest_error(plan);
  choice.reason = choice.error <= kMostError ? Reason::primal : Reason::not_accurate;
  if (choice.reason == Reason::primal)
    plan.constraints = std::move(marked);
  else
    plan.lay_out(std::move(dual));
}

std::string describe_elimination(const Plan& plan) {
  using Reason = PrimalChoice::Reason;
  const PrimalChoice& choice = plan.primal_choice;
  std::string primal_bodies;
  for (const int primal_body : choice.primal_bodies)
    primal_bodies += (primal_bodies.empty() ? "\"" : ", \"") + plan.mechanism.bodies()[primal_body].name + "\"";
  const auto count = [](long multiply_adds) { return std::to_string(multiply_adds); };
  switch (choice.reason) {
    case Reason::no_candidate:
      return "dual: no body carries " + std::to_string(kLeastRowsOfPrimalBody) + " constraint rows";
    case Reason::requested:
      return "dual, as asked for";
    case Reason::not_cheaper:
      return "dual: to keep " + primal_bodies + " primal would take " + count(choice.hybrid) +
             " multiply-adds instead of " + count(choice.dual) + ", slower ones: it pays below " +
             count(std::lround(kClearGain * static_cast<double>(choice.dual)));
    case Reason::too_large:
      return "dual: what " + primal_bodies + " hold together is too large to find out whether they can stay primal";
    case Reason::not_accurate:
      return "dual: with " + primal_bodies + " primal a solve differs from " +
             (plan.rows() <= kMostDenseRows ? "a pivoted one" : "the dual form's");
    case Reason::primal:
      return "hybrid: with " + primal_bodies + " primal it takes " + count(choice.hybrid) +
             " multiply-adds instead of " + count(choice.dual);
  }
  return {};
}

}  // namespace rigstep::index3
