// The linear algebra of the natural complements [002]: accelerations from (2.5) by projection on the null space of the
// Jacobian, or by what is equivalent to that. One short function a method. Offline only.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "core/offline/natural_complement.h"

namespace rigstep::offline {

// M qdd + Phi_q' lambda = Q, Phi_q qdd = Gamma (2.5), at an instant.
struct Equations {
  Eigen::MatrixXd M, Phi_q;  // (n x n), (m x n)
  Eigen::VectorXd Q, Gamma;  // (n), (m)
};

// Which rows and which coordinates stand for all.
struct Selection {
  std::vector<Eigen::Index> rows;         // independent ones
  std::vector<Eigen::Index> dependent;    // coordinates u
  std::vector<Eigen::Index> independent;  // coordinates v
};
Selection select(const Eigen::MatrixXd& Phi_q);

// Largest element of Phi_u^-1 Phi_v: grows beyond bounds where the selection stops to be valid.
double growth(const Eigen::MatrixXd& Phi_q, const Selection& chosen);

// P with Phi_q P = 0 (3.4); `chosen` is used by the PUTD methods alone. Not for partitioning and wang_huston.
Eigen::MatrixXd projection(Complement method, const Eigen::MatrixXd& Phi_q, const Selection& chosen);

struct Accelerations {
  Eigen::VectorXd qdd;    // (n)
  Eigen::Index rank = 0;  // of the Jacobian, as the method decides it
};
Accelerations accelerations(Complement method, const Equations& at, const Selection& chosen);

bool uses_selection(Complement method);

// A^+ b, with singular values below 1e-6 of the largest as zero.
Eigen::VectorXd pseudo_inverse_times(const Eigen::MatrixXd& A, const Eigen::VectorXd& b);

}  // namespace rigstep::offline
