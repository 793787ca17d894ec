#include "core/mechanism/nearest_motion.h"

#include <Eigen/Dense>
#include <Eigen/SparseCholesky>
#include <algorithm>

namespace rigstep {

namespace {

constexpr double kRegularisation = 1e-9;  // of rows that repeat others, times their diagonal

using RowsOnBody = std::vector<std::vector<std::pair<int, Vec6>>>;  // (bodies) rows with the body's part of J

// J M^-1 J', regularised
Eigen::SparseMatrix<double> dual_matrix(const RowsOnBody& on_body, const std::vector<InverseMass>& inverse_mass,
                                        Eigen::Index count) {
  Eigen::VectorXd diagonal = Eigen::VectorXd::Zero(count);
  std::vector<Eigen::Triplet<double>> entries;
  for (std::size_t i = 0; i < on_body.size(); ++i)
    for (const auto& [row, J] : on_body[i]) {
      const Vec6 y = inverse_mass[i] * J;
      for (const auto& [other, K] : on_body[i]) {
        if (other >= row) entries.emplace_back(other, row, K.dot(y));
        if (other == row) diagonal[row] += K.dot(y);
      }
    }
  const double least = 1e-12 * std::max(diagonal.maxCoeff(), 1e-300);
  for (int r = 0; r < count; ++r) entries.emplace_back(r, r, kRegularisation * diagonal[r] + least);
  Eigen::SparseMatrix<double> S(count, count);
  S.setFromTriplets(entries.begin(), entries.end());
  return S;
}

}  // namespace

std::vector<Vec6> nearest_motion(const std::vector<MotionRow>& rows, const std::vector<InverseMass>& inverse_mass,
                                 std::vector<Vec6> motion, int passes) {
  if (rows.empty()) return motion;
  RowsOnBody on_body(motion.size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const auto& [body, J] : rows[r].on)
      on_body[static_cast<std::size_t>(body)].emplace_back(static_cast<int>(r), J);
  const auto count = static_cast<Eigen::Index>(rows.size());
  const Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> cholesky(dual_matrix(on_body, inverse_mass, count));
  for (int pass = 0; pass < passes; ++pass) {
    Eigen::VectorXd b(count);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double excess = -rows[r].rate;
      for (const auto& [body, J] : rows[r].on) excess += J.dot(motion[static_cast<std::size_t>(body)]);
      b[static_cast<Eigen::Index>(r)] = excess;
    }
    const Eigen::VectorXd x = cholesky.solve(b);
    for (std::size_t i = 0; i < on_body.size(); ++i) {
      Vec6 load = Vec6::Zero();
      for (const auto& [row, J] : on_body[i]) load += x[row] * J;
      motion[i] -= inverse_mass[i] * load;
    }
  }
  return motion;
}

}  // namespace rigstep
