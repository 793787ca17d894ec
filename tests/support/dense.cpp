#include "tests/support/dense.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>

namespace rigstep::test {

LeastSquares least_squares(const Eigen::MatrixXd& A, const Eigen::MatrixXd& b, double threshold) {
  Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd> decomposition;
  decomposition.setThreshold(threshold);
  decomposition.compute(A);
  return {decomposition.solve(b), static_cast<int>(decomposition.rank())};
}

Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

}  // namespace rigstep::test
