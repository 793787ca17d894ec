#include "core/index3/outputs/loop_closure.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "core/index3/compile/symmetric_eigen.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/step/evaluate_state.h"
#include "core/mechanism/body_groups.h"

namespace rigstep::index3 {

namespace {

constexpr int kHalvings = 40;  // of the interval that holds the singular value

using Rows = Eigen::Matrix<double, Eigen::Dynamic, 6, Eigen::RowMajor, kMaxRows, 6>;
using RowVector = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMaxRows, 1>;
using RowSquare = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMaxRows, kMaxRows>;

Rows rows_on(const Plan& plan, const Workspace& w, int first_row, int rows, int side) {
  Rows J(rows, 6);
  for (int k = 0; k < rows; ++k) J.row(k) = block(plan, w, first_row + k, side).transpose();
  return J;
}

// Joints in the order in which they may enter the tree: those that hold most come first, so that few rows close loops.
std::vector<int> candidates(const Plan& plan) {
  std::vector<int> joints;
  const auto rows = [&plan](int j) { return plan.first_row[j + 1] - plan.first_row[j]; };
  for (int j = 0; j < plan.first_coupling(); ++j)
    if (rows(j) > 0) joints.push_back(j);
  std::stable_sort(joints.begin(), joints.end(), [&rows](int a, int b) { return rows(a) > rows(b); });
  return joints;
}

// Joints of a spanning tree over the bodies and the ground.
std::vector<int> tree_joints(const Plan& plan) {
  BodyGroups groups(plan.mechanism.bodies().size());
  std::vector<int> tree;
  for (const int j : candidates(plan))
    if (groups.join(plan.bodies_of_constraint[j][0], plan.bodies_of_constraint[j][1])) tree.push_back(j);
  return tree;
}

}  // namespace

LoopClosure::LoopClosure(const Plan& plan, const State& start) : plan_(&plan) {
  const std::vector<double> arm = arms(plan);
  for (const double length : arm) {
    member_.emplace_back();
    member_.back().arm = length;
  }
  grow_tree();
  place_closing_rows();
  const Eigen::Index m = static_cast<Eigen::Index>(row_.size());
  length2_.resize(m);
  gram_.resize(m, m);
  diagonal_.resize(m), off_.resize(m), v_.resize(m), p_.resize(m);
  if (m == 0) return;
  Workspace w(plan);
  evaluate_pose(plan, regular_pose(plan, start), w);
  sum_products(w);
  redundant_ = static_cast<int>((eigenvalues(gram_).array() < kRankTolerance).count());
}

// Parents, and the order from the leaves on; rows_ := what is left over.
void LoopClosure::grow_tree() {
  const std::vector<int> tree = tree_joints(*plan_);
  const int n = static_cast<int>(member_.size());
  std::vector<bool> reached(member_.size(), false);
  const auto hang_on = [&](int parent) {
    for (const int j : tree)
      for (const int side : {0, 1}) {
        const int body = plan_->bodies_of_constraint[j][side];
        if (plan_->bodies_of_constraint[j][1 - side] != parent || body == kGround || reached[body]) continue;
        reached[body] = true;
        order_.push_back(body);
        Member& member = member_[body];
        member.parent = parent;
        member.first_row = plan_->first_row[j];
        member.rows = plan_->first_row[j + 1] - plan_->first_row[j];
        member.side = side;
      }
  };
  hang_on(kGround);
  for (std::size_t done = 0, root = 0; static_cast<int>(order_.size()) < n || done < order_.size();) {
    if (done == order_.size()) {  // what does not hang on the ground: any of its bodies is the root
      while (reached[root]) ++root;
      reached[root] = true;
      order_.push_back(static_cast<int>(root));
    }
    hang_on(order_[done++]);
  }
  std::reverse(order_.begin(), order_.end());
  for (int c = 0; c < plan_->mechanism.constraints(); ++c)
    if (std::find(tree.begin(), tree.end(), c) == tree.end())
      for (int row = plan_->first_row[c]; row < plan_->first_row[c + 1]; ++row) row_.push_back(row);
}

void LoopClosure::place_closing_rows() {
  for (int k = 0; k < static_cast<int>(row_.size()); ++k) {
    const CoupledBodies& bodies = plan_->bodies_of_constraint[plan_->constraint_of_row[row_[k]]];
    for (int side = 0; side < 4; ++side) {
      if (bodies[side] == kGround) continue;
      for (int body = bodies[side]; body != kGround; body = member_[body].parent) {
        std::vector<int>& closing = member_[body].closing;
        if (closing.empty() || closing.back() != k) closing.push_back(k);
      }
      const int column = static_cast<int>(member_[bodies[side]].closing.size()) - 1;
      entry_.push_back({k, side, bodies[side], column});
    }
  }
  for (Member& member : member_) {
    member.load.resize(6, static_cast<Eigen::Index>(member.closing.size()));
    if (member.parent == kGround) continue;
    const std::vector<int>& above = member_[member.parent].closing;
    for (const int k : member.closing)
      member.in_parent.push_back(static_cast<int>(std::lower_bound(above.begin(), above.end(), k) - above.begin()));
  }
}

// gram_ := products of the closing rows' directions, after the tree has taken its share
void LoopClosure::sum_products(const Workspace& w) noexcept {
  for (Member& member : member_) {
    member.inertia.setZero();
    member.inertia.diagonal() << 1.0, 1.0, 1.0, Vec3::Constant(member.arm * member.arm);
    member.load.setZero();
  }
  length2_.setZero();
  for (const Entry& e : entry_) {
    const Vec6& J = block(*plan_, w, row_[e.closing], e.side);
    Member& member = member_[e.member];
    member.load.col(e.column) += J;
    length2_[e.closing] += J.head<3>().squaredNorm() + J.tail<3>().squaredNorm() / (member.arm * member.arm);
  }
  gram_.setZero();
  for (const int body : order_) eliminate(member_[body], w);
  for (Eigen::Index i = 0; i < gram_.rows(); ++i)
    for (Eigen::Index k = 0; k <= i; ++k) gram_(i, k) /= std::sqrt(length2_[i] * length2_[k]);
}

// Block elimination of a body and of its joint to the parent: L L' is its inertia with all that hangs on it, the rows
// of Q' are what the joint holds of its motion, orthonormal, and P is the same of the parent's.
void LoopClosure::eliminate(Member& member, const Workspace& w) noexcept {
  const Eigen::LLT<Eigen::Matrix<double, 6, 6>> inertia(member.inertia);
  const bool has_parent = member.parent != kGround;
  Rows Q = rows_on(*plan_, w, member.first_row, member.rows, member.side), P(member.rows, 6);
  for (int k = 0; k < member.rows; ++k) Q.row(k) = inertia.matrixL().solve(Vec6(Q.row(k).transpose())).transpose();
  const Eigen::LLT<RowSquare> S(Q * Q.transpose());
  S.matrixL().solveInPlace(Q);
  if (has_parent && member.rows > 0) {
    P = rows_on(*plan_, w, member.first_row, member.rows, 1 - member.side);
    S.matrixL().solveInPlace(P);
    member_[member.parent].inertia.noalias() += P.transpose().lazyProduct(P);
  }
  for (std::size_t c = 0; c < member.closing.size(); ++c) {
    auto load = member.load.col(static_cast<Eigen::Index>(c));
    Vec6 y = inertia.matrixL().solve(Vec6(load));
    if (member.rows > 0) {
      const RowVector held = Q.lazyProduct(y);
      y.noalias() -= Q.transpose().lazyProduct(held);
      if (has_parent) member_[member.parent].load.col(member.in_parent[c]).noalias() -= P.transpose().lazyProduct(held);
    }
    load = y;
    for (std::size_t k = 0; k <= c; ++k)
      gram_(member.closing[c], member.closing[k]) += y.dot(member.load.col(static_cast<Eigen::Index>(k)));
  }
}

// Householder's reflections on gram_, of which only the lower half is read
void LoopClosure::tridiagonalise() noexcept {
  const Eigen::Index n = gram_.rows();
  for (Eigen::Index k = 0; k + 1 < n; ++k) {
    const Eigen::Index rest = n - k - 1;
    auto A = gram_.bottomRightCorner(rest, rest);
    auto v = v_.head(rest), p = p_.head(rest);
    v = gram_.col(k).tail(rest);
    const double length = v.norm();
    off_[k] = v[0] > 0.0 ? -length : length;
    diagonal_[k] = gram_(k, k);
    v[0] -= off_[k];
    const double v2 = v.squaredNorm();
    if (v2 == 0.0) continue;
    p.setZero();
    for (Eigen::Index j = 0; j < rest; ++j) {
      const auto below = A.col(j).tail(rest - j - 1);
      p[j] += A(j, j) * v[j] + below.dot(v.tail(rest - j - 1));
      p.tail(rest - j - 1) += v[j] * below;
    }
    p *= 2.0 / v2;
    p -= p.dot(v) / v2 * v;
    for (Eigen::Index j = 0; j < rest; ++j)
      A.col(j).tail(rest - j) -= p[j] * v.tail(rest - j) + v[j] * p.tail(rest - j);
  }
  diagonal_[n - 1] = gram_(n - 1, n - 1);
}

// Sturm's count on the tridiagonal form
int LoopClosure::eigenvalues_below(double value) const noexcept {
  int count = 0;
  double pivot = 1.0;
  for (Eigen::Index k = 0; k < diagonal_.size(); ++k) {
    const double coupling = k == 0 ? 0.0 : off_[k - 1] * off_[k - 1] / pivot;
    pivot = diagonal_[k] - value - coupling;
    if (pivot == 0.0) pivot = -1e-300;
    if (pivot < 0.0) ++count;
  }
  return count;
}

double LoopClosure::margin(const Workspace& w) noexcept {
  if (redundant_ == static_cast<int>(row_.size())) return 1.0;
  sum_products(w);
  tridiagonalise();
  double low = 0.0, high = 1.0;
  for (int k = 0; k < kHalvings; ++k) {
    const double middle = 0.5 * (low + high);
    (eigenvalues_below(middle * middle) > redundant_ ? high : low) = middle;
  }
  return high;
}

std::size_t LoopClosure::bytes() const noexcept {
  std::size_t doubles = static_cast<std::size_t>(gram_.size() + 5 * gram_.rows());
  for (const Member& member : member_) doubles += 36 + static_cast<std::size_t>(member.load.size());
  return doubles * sizeof(double);
}

}  // namespace rigstep::index3
