#include "core/offline/dense.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <Eigen/SVD>

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

Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

LeftSingularVectors left_singular_vectors(const Eigen::MatrixXd& A, double threshold) {
  Eigen::BDCSVD<Eigen::MatrixXd> decomposition(A, Eigen::ComputeFullU);
  decomposition.setThreshold(threshold);
  return {decomposition.matrixU(), static_cast<int>(decomposition.rank())};
}

}  // namespace rigstep::offline
