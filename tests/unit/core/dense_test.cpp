#include "core/offline/dense.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/support/random.h"

namespace rigstep::offline {
namespace {

using Eigen::MatrixXd;

MatrixXd random_matrix(test::Random& random, int rows, int columns) {
  MatrixXd A(rows, columns);
  for (int k = 0; k < columns; ++k) A.col(k) = random.values(rows);
  return A;
}

MatrixXd of_rank(test::Random& random, int rows, int columns, int rank) {
  return random_matrix(random, rows, rank) * random_matrix(random, rank, columns);
}

constexpr std::pair<int, int> kShapes[] = {{1, 1}, {4, 4}, {7, 3}, {3, 7}, {6, 6}};

}  // namespace

TEST_CASE("least squares come nearest, have the least norm and the rank, for any shape and rank") {
  test::Random random(1);
  for (const auto& [rows, columns] : kShapes)
    for (int rank = 0; rank <= std::min(rows, columns); ++rank) {
      CAPTURE(rank);
      const MatrixXd A = of_rank(random, rows, columns, rank), b = random_matrix(random, rows, 2);
      const LeastSquares solved = least_squares(A, b, 1e-10);
      CHECK(solved.rank == rank);
      CHECK((A.transpose() * (A * solved.x - b)).norm() < 1e-9);
      // x lies in the span of the rows: x = A' y for some y
      const MatrixXd in_rows = A.transpose() * least_squares(A.transpose(), solved.x, 1e-10).x;
      CHECK((in_rows - solved.x).norm() < 1e-9 * (1.0 + solved.x.norm()));
    }
}

TEST_CASE("a threshold of zero leaves out what is exactly zero, and nothing else") {
  const MatrixXd A = Eigen::Vector2d(1.0, 0.0).asDiagonal(), nearly = Eigen::Vector2d(1.0, 1e-300).asDiagonal();
  CHECK(least_squares(A, MatrixXd::Ones(2, 1), 0.0).x == MatrixXd(Eigen::Vector2d(1.0, 0.0)));
  CHECK(least_squares(nearly, MatrixXd::Ones(2, 1), 0.0).rank == 2);
}

TEST_CASE("a decomposition with pivots puts the columns in order: A E = Q R") {
  test::Random random(2);
  for (const auto& [rows, columns] : kShapes)
    for (int rank = 0; rank <= std::min(rows, columns); ++rank) {
      CAPTURE(rank);
      const MatrixXd A = of_rank(random, rows, columns, rank);
      const PivotedQr qr = pivoted_qr(A, 1e-10);
      CHECK(qr.rank == rank);
      CHECK((qr.Q * qr.R - A(Eigen::all, qr.order)).norm() < 1e-13 * (1.0 + A.norm()));
      CHECK((qr.Q.transpose() * qr.Q - MatrixXd::Identity(rows, rows)).norm() < 1e-13);
      CHECK(MatrixXd(qr.R.triangularView<Eigen::StrictlyLower>()).norm() == 0.0);
    }
}

TEST_CASE("eigenvalues ascend and their vectors are those of the matrix") {
  test::Random random(3);
  const MatrixXd A = random_matrix(random, 6, 6), S = A + A.transpose();
  const Spectrum modes = spectrum(S);
  CHECK((S * modes.vectors - modes.vectors * modes.values.asDiagonal()).norm() < 1e-13 * S.norm());
  CHECK((eigenvalues(S) - modes.values).norm() < 1e-13 * S.norm());
  CHECK(std::is_sorted(modes.values.begin(), modes.values.end()));
}

TEST_CASE("singular vectors and Schur's form build the matrix up again") {
  test::Random random(4);
  const MatrixXd A = of_rank(random, 6, 4, 3);
  const LeftSingularVectors left = left_singular_vectors(A, 1e-10);
  CHECK(left.rank == 3);
  CHECK((A.transpose() * left.vectors.rightCols(3)).norm() < 1e-13 * A.norm());
  const MatrixXd square = random_matrix(random, 5, 5);
  const Schur decomposed = schur(square);
  CHECK((decomposed.U * decomposed.T * decomposed.U.transpose() - square).norm() < 1e-13 * square.norm());
}

TEST_CASE("nothing comes of what is empty, and no number of what is not finite") {
  CHECK(least_squares(MatrixXd(0, 3), MatrixXd(0, 1)).x == MatrixXd::Zero(3, 1));
  CHECK(least_squares(MatrixXd(3, 0), MatrixXd(3, 1)).x.size() == 0);
  CHECK(pivoted_qr(MatrixXd(3, 0), 1e-10).Q == MatrixXd::Identity(3, 3));
  CHECK(spectrum(MatrixXd(0, 0)).values.size() == 0);
  MatrixXd A = MatrixXd::Identity(3, 3);
  A(1, 1) = std::numeric_limits<double>::quiet_NaN();
  CHECK(least_squares(A, MatrixXd::Ones(3, 1)).x.array().isNaN().all());
  CHECK(pivoted_qr(A, 1e-10).Q.array().isNaN().all());
  CHECK(spectrum(A).values.array().isNaN().all());
  CHECK(left_singular_vectors(A, 1e-10).vectors.array().isNaN().all());
  CHECK(schur(A).T.array().isNaN().all());
}

}  // namespace rigstep::offline
