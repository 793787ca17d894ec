#include "core/offline/dense.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

// Of LAPACK, which is compiled already: Eigen's templates for these take the compiler longer than all that calls them.
// As gfortran passes arguments: the lengths of texts last.
// NOLINTBEGIN(readability-identifier-naming): the names are LAPACK's
extern "C" {
void dgels_(const char* form, const int* rows, const int* columns, const int* right_sides, double* A,
            const int* A_stride, double* b, const int* b_stride, double* work, const int* work_size, int* status,
            std::size_t form_length);
void dgeqp3_(const int* rows, const int* columns, double* A, const int* A_stride, int* pivots, double* factors,
             double* work, const int* work_size, int* status);
void dorgqr_(const int* rows, const int* columns, const int* reflectors, double* A, const int* A_stride,
             const double* factors, double* work, const int* work_size, int* status);
void dormqr_(const char* side, const char* form, const int* rows, const int* columns, const int* reflectors,
             const double* A, const int* A_stride, const double* factors, double* C, const int* C_stride, double* work,
             const int* work_size, int* status, std::size_t side_length, std::size_t form_length);
void dsyev_(const char* vectors, const char* triangle, const int* size, double* A, const int* A_stride, double* values,
            double* work, const int* work_size, int* status, std::size_t vectors_length, std::size_t triangle_length);
void dgesdd_(const char* which, const int* rows, const int* columns, double* A, const int* A_stride, double* values,
             double* U, const int* U_stride, double* V_transposed, const int* V_stride, double* work,
             const int* work_size, int* integers, int* status, std::size_t which_length);
void dgees_(const char* vectors, const char* sort, int (*chosen)(const double*, const double*), const int* size,
            double* A, const int* A_stride, int* chosen_count, double* real, double* imaginary, double* U,
            const int* U_stride, double* work, const int* work_size, int* flags, int* status,
            std::size_t vectors_length, std::size_t sort_length);
}
// NOLINTEND(readability-identifier-naming)

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

// Of A E = Q R, A not empty: R on and over the diagonal, below it the reflectors that Q is the product of.
struct Reflectors {
  Eigen::MatrixXd R;
  std::vector<double> factors;
  std::vector<int> order;  // of each column of R: which column of A it is
  int rank = 0;            // pivots above `threshold` times the largest
};
Reflectors decompose(const Eigen::MatrixXd& A, double threshold) {
  const int rows = static_cast<int>(A.rows()), columns = static_cast<int>(A.cols()), least = std::min(rows, columns);
  Reflectors result{A, std::vector<double>(static_cast<std::size_t>(least)),
                    std::vector<int>(static_cast<std::size_t>(columns), 0), 0};  // 0: any column may come first
  int status = 0;
  with_work([&](double* work, int size) {
    dgeqp3_(&rows, &columns, result.R.data(), &rows, result.order.data(), result.factors.data(), work, &size, &status);
  });
  for (int& column : result.order) --column;  // LAPACK counts from 1
  const auto pivot = [&result](int k) { return std::abs(result.R(k, k)); };
  while (result.rank < least && pivot(result.rank) > threshold * pivot(0)) ++result.rank;
  return result;
}

// The eigenvalues of `A`; with vectors == "V" it becomes its eigenvectors.
Eigen::VectorXd decompose_symmetric(Eigen::MatrixXd& A, const char* vectors) {
  const int size = static_cast<int>(A.rows());
  Eigen::VectorXd values(size);
  int status = A.allFinite() ? 0 : kNotFinite;
  if (status == 0 && size > 0)
    with_work([&](double* work, int work_size) {
      dsyev_(vectors, "L", &size, A.data(), &size, values.data(), work, &work_size, &status, 1, 1);
    });
  if (status != 0) {
    values.setConstant(kNotANumber);
    A.setConstant(kNotANumber);
  }
  return values;
}

}  // namespace

LeastSquares least_squares(const Eigen::MatrixXd& A, const Eigen::MatrixXd& b, double threshold) {
  const int rows = static_cast<int>(A.rows()), columns = static_cast<int>(A.cols()),
            right_sides = static_cast<int>(b.cols());
  if (rows == 0 || columns == 0) return {Eigen::MatrixXd::Zero(columns, right_sides), 0};
  if (!A.allFinite() || !b.allFinite()) return {Eigen::MatrixXd::Constant(columns, right_sides, kNotANumber), 0};
  const Reflectors A_E = decompose(A, threshold);
  Eigen::MatrixXd right = b, x = Eigen::MatrixXd::Zero(columns, right_sides);
  const int reflectors = static_cast<int>(A_E.factors.size());
  int status = 0;
  with_work([&](double* work, int size) {
    dormqr_("L", "T", &rows, &right_sides, &reflectors, A_E.R.data(), &rows, A_E.factors.data(), right.data(), &rows,
            work, &size, &status, 1, 1);
  });
  if (A_E.rank == 0) return {x, 0};
  // of the least norm: R has full rank in its first rows, and may have more columns
  Eigen::MatrixXd R = A_E.R.topRows(A_E.rank), in_order = Eigen::MatrixXd::Zero(columns, right_sides);
  for (int k = 0; k < A_E.rank; ++k) R.col(k).tail(A_E.rank - 1 - k).setZero();
  in_order.topRows(A_E.rank) = right.topRows(A_E.rank);
  with_work([&](double* work, int size) {
    dgels_("N", &A_E.rank, &columns, &right_sides, R.data(), &A_E.rank, in_order.data(), &columns, work, &size, &status,
           1);
  });
  for (int k = 0; k < columns; ++k) x.row(A_E.order[static_cast<std::size_t>(k)]) = in_order.row(k);
  return {x, A_E.rank};
}

PivotedQr pivoted_qr(const Eigen::MatrixXd& A, double threshold) {
  const int rows = static_cast<int>(A.rows()), columns = static_cast<int>(A.cols()), least = std::min(rows, columns);
  PivotedQr result{Eigen::MatrixXd::Identity(rows, rows), A, {}, 0};
  for (int k = 0; k < columns; ++k) result.order.push_back(k);
  if (least == 0) return result;
  if (!A.allFinite()) {
    result.Q.setConstant(kNotANumber);
    result.R.setConstant(kNotANumber);
    return result;
  }
  const Reflectors A_E = decompose(A, threshold);
  result.R = A_E.R.triangularView<Eigen::Upper>();
  result.order = A_E.order;
  result.rank = A_E.rank;
  result.Q.leftCols(least) = A_E.R.leftCols(least);
  int status = 0;
  with_work([&](double* work, int size) {
    dorgqr_(&rows, &rows, &least, result.Q.data(), &rows, A_E.factors.data(), work, &size, &status);
  });
  return result;
}

Spectrum spectrum(const Eigen::MatrixXd& symmetric) {
  Eigen::MatrixXd vectors = symmetric;
  const Eigen::VectorXd values = decompose_symmetric(vectors, "V");
  return {values, vectors};
}

Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& symmetric) {
  Eigen::MatrixXd copy = symmetric;
  return decompose_symmetric(copy, "N");
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
