// Decompositions of dense matrices that several reference solvers need, and tests to compare with: compiled once.
#pragma once

#include <Eigen/Core>
#include <vector>

namespace rigstep::offline {

struct LeastSquares {
  Eigen::MatrixXd x;  // of all that come nearest, the one of least norm, per column
  int rank = 0;       // of A
};
// A x = b; of columns that others nearly combine to, as far as the condition number exceeds 1 / `threshold`, A has
// none. x is not a number where A or b is not finite.
LeastSquares least_squares(const Eigen::MatrixXd& A, const Eigen::MatrixXd& b, double threshold = 1e-12);

// A E = Q R, where E takes the columns of A in the order `order`.
struct PivotedQr {
  Eigen::MatrixXd Q;       // orthonormal, as many rows and columns as A has rows
  Eigen::MatrixXd R;       // upper triangular, shape of A, its diagonal falling in magnitude
  std::vector<int> order;  // of each column of R: which column of A it is
  int rank = 0;            // of A
};
// Pivots below `threshold` times the largest count as zero. Where A is not finite, Q and R are not a number and the
// rank is 0.
PivotedQr pivoted_qr(const Eigen::MatrixXd& A, double threshold);

struct Spectrum {
  Eigen::VectorXd values;   // ascending
  Eigen::MatrixXd vectors;  // orthonormal, in columns
};
// Not a number where the matrix is not finite or the iteration fails; its lower triangle is read.
Spectrum spectrum(const Eigen::MatrixXd& symmetric);
Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& symmetric);  // ascending

struct LeftSingularVectors {
  Eigen::MatrixXd vectors;  // orthonormal, in columns: those of large singular values first; as many as A has rows
  int rank = 0;             // of A
};
// Singular values below `threshold` times the largest count as zero. Vectors are not a number where A is not finite or
// the iteration fails.
LeftSingularVectors left_singular_vectors(const Eigen::MatrixXd& A, double threshold);

struct Schur {
  Eigen::MatrixXd T;  // upper triangular but for blocks of 2 on the diagonal; diagonal where A is symmetric
  Eigen::MatrixXd U;  // orthonormal: A = U T U'
};
// T and U are not a number where A is not finite or the iteration fails.
Schur schur(const Eigen::MatrixXd& square);

}  // namespace rigstep::offline
