// Eigenvalues of dense symmetric matrices: at load time and in reports. One instance of what takes a compiler ten
// seconds.
#pragma once

#include <Eigen/Core>

namespace rigstep::index3 {

struct Spectrum {
  Eigen::VectorXd values;   // (n) ascending
  Eigen::MatrixXd vectors;  // (n x n) of unit length, one in each column
};

Spectrum spectrum(const Eigen::MatrixXd& symmetric);

// (n) Ascending.
Eigen::VectorXd eigenvalues(const Eigen::MatrixXd& symmetric);

}  // namespace rigstep::index3
