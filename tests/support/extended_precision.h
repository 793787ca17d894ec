// Dense linear algebra in extended precision, by plain loops: what steps are compared with must be more accurate than
// they are, and Eigen's templates for one more type of number take the compiler half a minute.
#pragma once

#include <Eigen/Core>

namespace rigstep::test {

using LongMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

LongMatrix product(const LongMatrix& A, const LongMatrix& B);

// Of all x with J x = b, the one of least norm. A row whose part outside the span of the rows before it is at most
// `threshold` of its norm is left out: b must fit to it.
LongMatrix minimum_norm(const LongMatrix& J, const LongMatrix& b, long double threshold);

struct DualSolution {
  Eigen::VectorXd multipliers;  // Lambda of (J M^-1 J' + C) Lambda = J bias + rhs
  Eigen::VectorXd motion;       // bias - M^-1 J' Lambda
  double asymmetry = 0.0;       // of the matrix, relative to its norm
};
// M^-1 holds a block of 6 x 6 a body; C is diagonal, and positive wherever a row is redundant.
DualSolution solve_dual(const Eigen::MatrixXd& J, const Eigen::MatrixXd& M_inverse, const Eigen::VectorXd& compliance,
                        const Eigen::VectorXd& bias, const Eigen::VectorXd& rhs);

}  // namespace rigstep::test
