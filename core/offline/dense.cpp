#include "core/offline/dense.h"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <limits>
#include <vector>

// Of LAPACK, which is compiled already: Eigen's templates for these two take the compiler a minute. As gfortran passes
// arguments: the lengths of texts last.
extern "C" {
void dgesdd_(const char* which, const int* rows, const int* columns, double* A, const int* A_stride, double* values,
             double* U, const int* U_stride, double* V_transposed, const int* V_stride, double* work,
             const int* work_size, int* integers, int* status, std::size_t which_length);
void dgees_(const char* vectors, const char* sort, int (*chosen)(const double*, const double*), const int* size,
            double* A, const int* A_stride, int* chosen_count, double* real, double* imaginary, double* U,
            const int* U_stride, double* work, const int* work_size, int* flags, int* status,
            std::size_t vectors_length, std::size_t sort_length);
}

namespace rigstep::offline {

namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr int kNotFinite = -1;  // status: LAPACK ends the program over some of such matrices

// call(work, its size), which asks for a size where it is -1
template <class Call>
void with_work(const Call& call) {
  double wanted = 0.0;
  call(&wanted, -1);
  std::vector<double> work(static_cast<std::size_t>(wanted));
  call(work.data(), static_cast<int>(work.size()));
}

}  // namespace

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
  const int rows = static_cast<int>(A.rows()), columns = static_cast<int>(A.cols()), least = std::min(rows, columns);
  if (least == 0) return {Eigen::MatrixXd::Identity(rows, rows), 0};
  Eigen::MatrixXd copy = A, U(rows, rows), V_transposed(columns, columns);
  Eigen::VectorXd values(least);
  std::vector<int> integers(8 * static_cast<std::size_t>(least));
  int status = A.allFinite() ? 0 : kNotFinite;
  if (status == 0)
    with_work([&](double* work, int size) {
      dgesdd_("A", &rows, &columns, copy.data(), &rows, values.data(), U.data(), &rows, V_transposed.data(), &columns,
              work, &size, integers.data(), &status, 1);
    });
  if (status != 0) return {Eigen::MatrixXd::Constant(rows, rows, kNotANumber), 0};
  return {U, static_cast<int>((values.array() > threshold * values.maxCoeff()).count())};
}

Schur schur(const Eigen::MatrixXd& square) {
  const int size = static_cast<int>(square.rows());
  Eigen::MatrixXd T = square, U(size, size);
  if (size == 0) return {T, U};
  Eigen::VectorXd real(size), imaginary(size);
  int chosen = 0, status = square.allFinite() ? 0 : kNotFinite;
  if (status == 0)
    with_work([&](double* work, int work_size) {
      dgees_("V", "N", nullptr, &size, T.data(), &size, &chosen, real.data(), imaginary.data(), U.data(), &size, work,
             &work_size, nullptr, &status, 1, 1);
    });
  if (status != 0) {
    T.setConstant(kNotANumber);
    U.setConstant(kNotANumber);
  }
  return {T, U};
}

}  // namespace rigstep::offline
