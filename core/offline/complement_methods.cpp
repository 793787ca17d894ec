#include "core/offline/complement_methods.h"

#include <Eigen/Dense>
#include <cmath>
#include <limits>

#include "core/offline/dense.h"

namespace rigstep::offline {

namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kRank = 1e-6;   // singular values below it, relative to the largest, count as zero
constexpr int kRefinements = 2;  // of (2.5)

MatrixXd selected_rows(const MatrixXd& Phi_q, const Selection& chosen) { return Phi_q(chosen.rows, Eigen::all); }

// As (3.15) decides it, for few equations.
Index rank_of(const MatrixXd& A) {
  const VectorXd modes = eigenvalues(A * A.transpose());
  return (modes.array() > kRank * kRank * modes.maxCoeff()).count();
}

MatrixXd columns_of_small(const MatrixXd& vectors, const VectorXd& eigenvalues) {
  std::vector<Index> small;
  for (Index k = 0; k < eigenvalues.size(); ++k)
    if (!(std::abs(eigenvalues[k]) > kRank * kRank * eigenvalues.cwiseAbs().maxCoeff()))  // also what is no number
      small.push_back(k);
  return vectors(Eigen::all, small);
}

// The last n - r unit vectors: D_2' of (3.21).
MatrixXd last_unit_vectors(Index n, Index r) {
  MatrixXd D2 = MatrixXd::Zero(n, n - r);
  D2.bottomRows(n - r).setIdentity();
  return D2;
}

MatrixXd zero_eigenvalue(const MatrixXd& Phi_q) {
  const Spectrum modes = spectrum(Phi_q.transpose() * Phi_q);  // (3.9) (3.10)
  return columns_of_small(modes.vectors, modes.values);        // (3.15)
}

MatrixXd schur_decomposition(const MatrixXd& Phi_q) {
  const Schur decomposed = schur(Phi_q.transpose() * Phi_q);       // (3.16)
  return columns_of_small(decomposed.U, decomposed.T.diagonal());  // (3.19)
}

MatrixXd putd_householder(const MatrixXd& Phi_q, const Selection& chosen) {
  const Eigen::HouseholderQR<MatrixXd> upper(selected_rows(Phi_q, chosen).transpose());                   // (3.20)
  return upper.householderQ() * last_unit_vectors(Phi_q.cols(), static_cast<Index>(chosen.rows.size()));  // (3.23)
}

MatrixXd putd_gauss(const MatrixXd& Phi_q, const Selection& chosen) {
  const Eigen::FullPivLU<MatrixXd> upper(selected_rows(Phi_q, chosen).transpose());  // (3.20), H' = L^-1 P
  const Index n = Phi_q.cols(), r = static_cast<Index>(chosen.rows.size());
  MatrixXd L = MatrixXd::Identity(n, n);
  L.leftCols(r).triangularView<Eigen::StrictlyLower>() = upper.matrixLU();
  const MatrixXd HD2 = L.transpose().triangularView<Eigen::UnitUpper>().solve(last_unit_vectors(n, r));
  return upper.permutationP().transpose() * HD2;  // (3.23)
}

MatrixXd svd(const MatrixXd& Phi_q) {
  const LeftSingularVectors decomposed = left_singular_vectors(Phi_q.transpose(), kRank);  // (3.24)
  return decomposed.vectors.rightCols(Phi_q.cols() - decomposed.rank);                     // (3.28)
}

// Off the constraint manifold, where an integrator looks too, redundant rows of a loop are nearly but not exactly
// combinations of the others: R_2 is small, and not zero as in (3.32). Each column of P takes from Q_1 what makes
// Phi_q P as small as it can be over all rows. Q_2 alone leaves the error to the rows that come last, and accelerations
// jump where the pivots change.
MatrixXd qr(const MatrixXd& Phi_q) {
  const PivotedQr decomposed = pivoted_qr(Phi_q.transpose(), kRank);  // (3.31)
  const Index n = Phi_q.cols(), r = decomposed.rank;
  const MatrixXd R1 = decomposed.R.topRows(r).transpose(), R2 = decomposed.R.bottomRows(n - r).transpose();
  MatrixXd combined = last_unit_vectors(n, r);
  combined.topRows(r) = -least_squares(R1, R2, 0.0).x;
  return decomposed.Q * combined;  // (3.36) where R_2 is zero
}

// Accelerations by a projection, B = P'.
Accelerations projected(const Equations& at, const MatrixXd& P) {
  MatrixXd X(at.Phi_q.rows() + P.cols(), P.rows());
  X << at.Phi_q, P.transpose();
  VectorXd right = VectorXd::Zero(X.rows());
  right.head(at.Phi_q.rows()) = at.Gamma;
  const VectorXd S_Gamma = least_squares(X, right, kRank).x;  // (3.8)
  const MatrixXd reduced = P.transpose() * at.M * P;
  const VectorXd vdd = reduced.ldlt().solve(P.transpose() * (at.Q - at.M * S_Gamma));  // (3.7)
  return {S_Gamma + P * vdd, P.rows() - P.cols()};                                     // (3.5)
}

Accelerations partitioning(const Equations& at, const Selection& chosen) {
  const auto &u = chosen.dependent, &v = chosen.independent;
  const Index s = static_cast<Index>(v.size());
  MatrixXd right(at.Phi_q.rows(), s + 1);
  right << MatrixXd(at.Phi_q(Eigen::all, v)), at.Gamma;
  const LeastSquares solved = least_squares(at.Phi_q(Eigen::all, u), right, kRank);
  const MatrixXd ratio = solved.x.leftCols(s);        // Phi_u^-1 Phi_v
  const VectorXd particular = solved.x.rightCols(1);  // Phi_u^-1 Gamma
  const MatrixXd M_uu = at.M(u, u), M_uv = at.M(u, v), M_vv = at.M(v, v);
  const VectorXd Q_u = at.Q(u), Q_v = at.Q(v);
  const MatrixXd mixed = M_uv - M_uu * ratio;
  const MatrixXd M = M_vv - M_uv.transpose() * ratio - ratio.transpose() * mixed;                          // (3.39)
  const VectorXd Q = Q_v - M_uv.transpose() * particular - ratio.transpose() * (Q_u - M_uu * particular);  // (3.39)
  const VectorXd vdd = M.ldlt().solve(Q), udd = particular - ratio * vdd;                                  // (3.38)
  VectorXd qdd(at.Q.size());
  for (std::size_t k = 0; k < v.size(); ++k) qdd[v[k]] = vdd[static_cast<Index>(k)];
  for (std::size_t k = 0; k < u.size(); ++k) qdd[u[k]] = udd[static_cast<Index>(k)];
  return {qdd, solved.rank};
}

// Of a symmetric matrix whose rank is known: its small eigenvalues may be large beside those of another mechanism.
MatrixXd pseudo_inverse(const MatrixXd& K, Index rank) {
  const Spectrum modes = spectrum(K);
  const auto vectors = modes.vectors.rightCols(rank);
  return vectors * modes.values.tail(rank).cwiseInverse().asDiagonal() * vectors.transpose();
}

// Where a body has next to no moment of inertia about an axis, the rounding of what that makes of M^-1 disturbs all
// other rows: what a solution leaves of (2.5) is solved for again, and added.
Accelerations wang_huston(const Equations& at) {
  const Eigen::LDLT<MatrixXd> M(at.M);
  const MatrixXd spread = M.solve(MatrixXd(at.Phi_q.transpose()));  // M^-1 Phi_q'
  const Index rank = rank_of(at.Phi_q);
  const MatrixXd inverse = pseudo_inverse(at.Phi_q * spread, rank);
  VectorXd qdd = VectorXd::Zero(at.Q.size()), multipliers = VectorXd::Zero(at.Gamma.size());
  for (int k = 0; k <= kRefinements; ++k) {
    const VectorXd free = M.solve(at.Q - at.M * qdd + at.Phi_q.transpose() * multipliers);  // M^-1 Q
    const VectorXd more = inverse * (at.Gamma - at.Phi_q * (qdd + free));                   // (3.41)
    multipliers += more;
    qdd += free + spread * more;  // (3.42)
  }
  return {qdd, rank};
}

}  // namespace

Selection select(const MatrixXd& Phi_q) {
  Selection chosen;
  if (Phi_q.rows() == 0) {
    for (Index k = 0; k < Phi_q.cols(); ++k) chosen.independent.push_back(k);
    return chosen;
  }
  Eigen::FullPivLU<MatrixXd> eliminated;
  eliminated.setThreshold(kRank);
  const Index rank = eliminated.compute(Phi_q).rank();
  for (Index j = 0; j < Phi_q.rows(); ++j)
    if (eliminated.permutationP().indices()[j] < rank) chosen.rows.push_back(j);
  for (Index k = 0; k < Phi_q.cols(); ++k)
    (k < rank ? chosen.dependent : chosen.independent).push_back(eliminated.permutationQ().indices()[k]);
  return chosen;
}

double growth(const MatrixXd& Phi_q, const Selection& chosen) {
  if (chosen.dependent.empty() || chosen.independent.empty()) return 0.0;
  const MatrixXd rows = selected_rows(Phi_q, chosen);
  const MatrixXd u = rows(Eigen::all, chosen.dependent), v = rows(Eigen::all, chosen.independent);
  const MatrixXd ratio = u.partialPivLu().solve(v);
  return ratio.allFinite() ? ratio.cwiseAbs().maxCoeff() : std::numeric_limits<double>::infinity();
}

MatrixXd projection(Complement method, const MatrixXd& Phi_q, const Selection& chosen) {
  switch (method) {
    case Complement::zero_eigenvalue:
      return zero_eigenvalue(Phi_q);
    case Complement::schur:
      return schur_decomposition(Phi_q);
    case Complement::putd_householder:
      return putd_householder(Phi_q, chosen);
    case Complement::putd_gauss:
      return putd_gauss(Phi_q, chosen);
    case Complement::svd:
      return svd(Phi_q);
    case Complement::qr:
      return qr(Phi_q);
    case Complement::partitioning:
    case Complement::wang_huston:
      break;  // by themselves, without a projection
  }
  return {};
}

Accelerations accelerations(Complement method, const Equations& at, const Selection& chosen) {
  if (at.Phi_q.rows() == 0) return {at.M.ldlt().solve(at.Q), 0};
  if (method == Complement::partitioning) return partitioning(at, chosen);
  if (method == Complement::wang_huston) return wang_huston(at);
  return projected(at, projection(method, at.Phi_q, chosen));
}

bool uses_selection(Complement method) {
  return method == Complement::putd_householder || method == Complement::putd_gauss ||
         method == Complement::partitioning;
}

VectorXd pseudo_inverse_times(const MatrixXd& A, const VectorXd& b) { return least_squares(A, b, kRank).x; }

}  // namespace rigstep::offline
