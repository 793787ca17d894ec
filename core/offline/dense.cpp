#include "core/offline/dense.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace rigstep::offline {

LeastSquares least_squares(const Eigen::MatrixXd& A, const Eigen::MatrixXd& b, double threshold) {
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> decomposition;
  decomposition.setThreshold(threshold);
  decomposition.compute(A);
  return {decomposition.solve(b), static_cast<int>(decomposition.rank())};
}

Spectrum spectrum(const Eigen::MatrixXd& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

}  // namespace rigstep::offline
