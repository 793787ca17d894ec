#include "tests/support/extended_precision.h"

#include <cmath>
#include <vector>

namespace rigstep::test {

namespace {

using Eigen::Index;
using LongVector = std::vector<long double>;

LongVector row_of(const LongMatrix& J, Index row) {
  LongVector x;
  for (Index k = 0; k < J.cols(); ++k) x.push_back(J(row, k));
  return x;
}

long double dot(const LongVector& a, const LongVector& b) {
  long double sum = 0.0L;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

void add(long double factor, const LongVector& a, LongVector& to) {
  for (std::size_t k = 0; k < a.size(); ++k) to[k] += factor * a[k];
}

// x of S x = b by S = L D L', without pivots: S is positive definite, and its lower triangle is read.
LongVector solve_positive(LongMatrix S, LongVector b) {
  const Index n = S.rows();
  for (Index k = 0; k < n; ++k)
    for (Index i = k + 1; i < n; ++i) {
      const long double l = S(i, k) / S(k, k);
      for (Index j = i; j < n; ++j) S(j, i) -= l * S(j, k);
    }
  // below the diagonal stands L D
  const auto at = [&b](Index k) -> long double& { return b[static_cast<std::size_t>(k)]; };
  for (Index k = 0; k < n; ++k)
    for (Index i = k + 1; i < n; ++i) at(i) -= S(i, k) / S(k, k) * at(k);
  for (Index k = n - 1; k >= 0; --k) {
    for (Index i = k + 1; i < n; ++i) at(k) -= S(i, k) * at(i);
    at(k) /= S(k, k);
  }
  return b;
}

double asymmetry_of(const LongMatrix& S) {
  long double difference = 0.0L, size = 0.0L;
  for (Index i = 0; i < S.rows(); ++i)
    for (Index j = 0; j < S.cols(); ++j) {
      difference += (S(i, j) - S(j, i)) * (S(i, j) - S(j, i));
      size += S(i, j) * S(i, j);
    }
  return static_cast<double>(std::sqrt(difference / size));
}

}  // namespace

LongMatrix product(const LongMatrix& A, const LongMatrix& B) {
  LongMatrix C = LongMatrix::Zero(A.rows(), B.cols());
  for (Index j = 0; j < B.cols(); ++j)
    for (Index k = 0; k < A.cols(); ++k)
      for (Index i = 0; i < A.rows(); ++i) C(i, j) += A(i, k) * B(k, j);
  return C;
}

// Gram and Schmidt, each row twice: x is the sum of orthonormal directions, each as long as its row demands.
LongMatrix minimum_norm(const LongMatrix& J, const LongMatrix& b, long double threshold) {
  std::vector<LongVector> directions;
  LongVector x(static_cast<std::size_t>(J.cols()), 0.0L);
  for (Index row = 0; row < J.rows(); ++row) {
    const LongVector whole = row_of(J, row);
    LongVector rest = whole;
    for (int pass = 0; pass < 2; ++pass)
      for (const LongVector& direction : directions) add(-dot(direction, rest), direction, rest);
    const long double length = std::sqrt(dot(rest, rest));
    if (length <= threshold * std::sqrt(dot(whole, whole))) continue;
    for (long double& component : rest) component /= length;
    add((b(row, 0) - dot(whole, x)) / length, rest, x);
    directions.push_back(rest);
  }
  LongMatrix result(J.cols(), 1);
  for (Index k = 0; k < J.cols(); ++k) result(k, 0) = x[static_cast<std::size_t>(k)];
  return result;
}

DualSolution solve_dual(const Eigen::MatrixXd& J, const Eigen::MatrixXd& M_inverse, const Eigen::VectorXd& compliance,
                        const Eigen::VectorXd& bias, const Eigen::VectorXd& rhs) {
  const Index rows = J.rows();
  LongMatrix S = LongMatrix::Zero(rows, rows), M_inverse_Jt = LongMatrix::Zero(J.cols(), rows);
  LongVector b(static_cast<std::size_t>(rows));
  for (Index row = 0; row < rows; ++row) {
    S(row, row) = compliance[row];
    b[static_cast<std::size_t>(row)] = rhs[row];
    for (Index k = 0; k < J.cols(); ++k)
      b[static_cast<std::size_t>(row)] += static_cast<long double>(J(row, k)) * bias[k];
  }
  for (Index at = 0; at < J.cols(); at += 6) {
    std::vector<Index> on;  // rows that act on this body
    for (Index row = 0; row < rows; ++row)
      if (!J.block(row, at, 1, 6).isZero(0.0)) on.push_back(row);
    for (const Index row : on)
      for (Index i = at; i < at + 6; ++i)
        for (Index k = at; k < at + 6; ++k)
          M_inverse_Jt(i, row) += static_cast<long double>(M_inverse(i, k)) * J(row, k);
    for (const Index row : on)
      for (const Index other : on)
        for (Index k = at; k < at + 6; ++k) S(row, other) += J(row, k) * M_inverse_Jt(k, other);
  }
  const LongVector multipliers = solve_positive(S, b);
  DualSolution solution{Eigen::VectorXd(rows), bias, asymmetry_of(S)};
  for (Index k = 0; k < bias.size(); ++k) {
    long double motion = bias[k];
    for (Index row = 0; row < rows; ++row) motion -= M_inverse_Jt(k, row) * multipliers[static_cast<std::size_t>(row)];
    solution.motion[k] = static_cast<double>(motion);
  }
  for (Index row = 0; row < rows; ++row)
    solution.multipliers[row] = static_cast<double>(multipliers[static_cast<std::size_t>(row)]);
  return solution;
}

}  // namespace rigstep::test
