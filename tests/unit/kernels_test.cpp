#include "core/index3/kernels.h"

#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <limits>
#include <vector>

#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd positive_definite(test::Random& random, Index n) {
  MatrixXd R(n, n);
  for (Index k = 0; k < n; ++k) R.col(k) = random.values(n);
  return R * R.transpose() + MatrixXd::Identity(n, n);
}

MatrixXd lower_only(const MatrixXd& W) {  // the upper half may hold anything
  MatrixXd L = MatrixXd::Constant(W.rows(), W.cols(), std::numeric_limits<double>::quiet_NaN());
  L.triangularView<Eigen::Lower>() = W;
  return L;
}

constexpr double kRounding = 1e-12;

}  // namespace

TEST_CASE("elimination leaves the Schur complement between the pending rows and the factor of the others") {
  test::Random random(1);
  for (int n = 1; n <= 24; ++n)
    for (int e = 0; e <= n; ++e) {
      const MatrixXd W = positive_definite(random, n);
      MatrixXd F = lower_only(W);
      REQUIRE(kernels::eliminate(F.data(), n, e) == -1);
      const Index p = n - e;
      const MatrixXd schur = W.bottomRightCorner(p, p) -
                             W.bottomLeftCorner(p, e) * W.topLeftCorner(e, e).ldlt().solve(W.topRightCorner(e, p));
      const MatrixXd left = F.bottomRightCorner(p, p);
      CHECK((left - schur).triangularView<Eigen::Lower>().toDenseMatrix().norm() < kRounding * W.norm());
      MatrixXd L = F.topLeftCorner(e, e).triangularView<Eigen::Lower>();
      L.diagonal() = L.diagonal().cwiseInverse();
      CHECK((L * L.transpose() - W.topLeftCorner(e, e)).norm() < kRounding * W.norm());
    }
}

TEST_CASE("up and down solve the whole system when every row is eliminated") {
  test::Random random(2);
  for (int n = 1; n <= 24; ++n) {
    const MatrixXd W = positive_definite(random, n);
    const VectorXd b = random.values(n);
    MatrixXd F = lower_only(W);
    kernels::eliminate(F.data(), n, n);
    VectorXd x = b;
    kernels::solve_up(F.data(), n, n, x.data());
    kernels::solve_down(F.data(), n, n, x.data());
    CHECK((x - W.ldlt().solve(b)).norm() < kRounding * n);
  }
}

TEST_CASE("with pending rows, up reduces their right-hand side and down uses their solution") {
  test::Random random(3);
  for (int n = 2; n <= 24; ++n)
    for (int e = 1; e < n; ++e) {
      const MatrixXd W = positive_definite(random, n);
      const VectorXd b = random.values(n), x = W.ldlt().solve(b);
      const Index p = n - e;
      MatrixXd F = lower_only(W);
      kernels::eliminate(F.data(), n, e);
      VectorXd v = b;
      kernels::solve_up(F.data(), n, e, v.data());
      const VectorXd reduced = b.tail(p) - W.bottomLeftCorner(p, e) * W.topLeftCorner(e, e).ldlt().solve(b.head(e));
      CHECK((v.tail(p) - reduced).norm() < kRounding * n);
      v.tail(p) = x.tail(p);
      kernels::solve_down(F.data(), n, e, v.data());
      CHECK((v - x).norm() < kRounding * n);
    }
}

TEST_CASE("a child's pending block lands on its places in the lower half of the parent, in any order of places") {
  test::Random random(4);
  for (int trial = 0; trial < 50; ++trial) {
    const int e = random.below(4), p = 1 + random.below(6), n = p + random.below(5), size = e + p;
    std::vector<int> place(static_cast<std::size_t>(n));
    for (int k = 0; k < n; ++k) place[k] = k;
    for (int k = n; k > 1; --k) std::swap(place[k - 1], place[random.below(k)]);
    const MatrixXd child = positive_definite(random, size);
    MatrixXd parent = MatrixXd::Ones(n, n), want = parent;
    for (Index i = 0; i < p; ++i)
      for (Index k = 0; k < p; ++k) want(place[i], place[k]) += child(e + i, e + k);
    const MatrixXd lower = lower_only(child);
    kernels::scatter_add(lower.data(), size, e, place.data(), parent.data(), n);
    CHECK((parent - want).triangularView<Eigen::Lower>().toDenseMatrix().norm() < kRounding);
  }
}

TEST_CASE("the first pivot that is not positive is named; what is not a number goes through") {
  MatrixXd W = MatrixXd::Identity(4, 4);
  W(1, 1) = 0.0;
  W(2, 2) = -1.0;
  CHECK(kernels::eliminate(W.data(), 4, 4) == 1);
  MatrixXd V = MatrixXd::Identity(4, 4);
  V(3, 3) = -1.0;
  MatrixXd V_pending = V;
  CHECK(kernels::eliminate(V.data(), 4, 4) == 3);
  CHECK(kernels::eliminate(V_pending.data(), 4, 3) == -1);
  MatrixXd N = MatrixXd::Identity(2, 2);
  N(0, 0) = std::numeric_limits<double>::quiet_NaN();
  CHECK(kernels::eliminate(N.data(), 2, 2) == -1);
  CHECK(std::isnan(N(0, 0)));
}

}  // namespace rigstep::index3
