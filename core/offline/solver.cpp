#include "core/offline/solver.h"

#include "core/offline/absolute_system.h"
#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"
#include "core/offline/literal_solver.h"
#include "core/offline/natural_complement.h"
#include "core/offline/stabilised_index2.h"
#include "core/offline/tree_hamiltonian.h"

namespace rigstep::offline {

namespace {

template <Complement Method>
Trajectory complement(const Scenario& scenario, const Options& options) {
  ComplementSettings settings;
  settings.method = Method;
  settings.position_tolerance = 0.01 * options.absolute_tolerance;  // open joints disturb reactions
  settings.velocity_tolerance = 0.1 * options.absolute_tolerance;
  return natural_complement(scenario, options, settings).trajectory;
}

constexpr std::string_view kTreeNames[2][4] = {
    {"tree_hamilton_lu", "tree_hamilton_cholesky", "tree_hamilton_mass_matrix", "tree_hamilton_multipliers"},
    {"tree_newton_euler_lu", "tree_newton_euler_cholesky", "tree_lagrange_second_kind", "tree_lagrange_first_kind"}};

template <TreeState State, TreeMatrix Matrix>
Trajectory tree(const Scenario& scenario, const Options& options) {
  return simulate_tree(scenario, options, {State, Matrix},
                       kTreeNames[static_cast<int>(State)][static_cast<int>(Matrix)]);
}

}  // namespace

std::span<const Solver> solvers() {
  static constexpr Solver kAll[] = {
      {"hamiltonian_dca", "Hamilton's canonical equations in joint coordinates by divide and conquer [000]",
       hamiltonian_dca_unsupported_reason, hamiltonian_dca},
      {"featherstone_dca", "accelerations in joint coordinates by divide and conquer, loops drift (baseline of [000])",
       featherstone_dca_unsupported_reason, featherstone_dca},
      {"ida", "index 2 with stabilised positions by IDA, absolute coordinates, every joint and load",
       absolute_unsupported_reason, stabilised_index2},
      {"index3_literal", "the stepper's twin: index-3 divide and conquer as printed, extrapolated to dt = 0 [001]",
       literal_index3_unsupported_reason, literal_index3},
      {"zero_eigenvalue", "natural complement in Euler angles: zero eigenvectors of the Jacobian squared [002]",
       complement_unsupported_reason, complement<Complement::zero_eigenvalue>},
      {"schur", "natural complement in Euler angles: Schur decomposition of the Jacobian squared [002]",
       complement_unsupported_reason, complement<Complement::schur>},
      {"putd_householder",
       "natural complement in Euler angles: pseudo upper triangular decomposition, Householder [002]",
       complement_unsupported_reason, complement<Complement::putd_householder>},
      {"putd_gauss", "natural complement in Euler angles: pseudo upper triangular decomposition, Gauss [002]",
       complement_unsupported_reason, complement<Complement::putd_gauss>},
      {"svd", "natural complement in Euler angles: singular value decomposition of the Jacobian [002]",
       complement_unsupported_reason, complement<Complement::svd>},
      {"qr", "natural complement in Euler angles: QR decomposition with column pivoting [002]",
       complement_unsupported_reason, complement<Complement::qr>},
      {"partitioning", "natural complement in Euler angles: coordinate partitioning [002]",
       complement_unsupported_reason, complement<Complement::partitioning>},
      {"wang_huston", "natural complement in Euler angles: Wang-Huston, multipliers by pseudo-inverse [002]",
       complement_unsupported_reason, complement<Complement::wang_huston>},
      {kTreeNames[0][0], "open trees: Hamilton's equations, extended, swept by LU elimination (EMH, algorithm 1) [003]",
       tree_unsupported_reason, tree<TreeState::momenta, TreeMatrix::extended_lu>},
      {kTreeNames[0][1],
       "open trees: Hamilton's equations, extended, swept by L'DL elimination (EMH, algorithm 2) [003]",
       tree_unsupported_reason, tree<TreeState::momenta, TreeMatrix::extended_ltdl>},
      {kTreeNames[0][2], "open trees: Hamilton's equations, rates from the joint-space mass matrix (DAH) [003]",
       tree_unsupported_reason, tree<TreeState::momenta, TreeMatrix::tangent>},
      {kTreeNames[0][3], "open trees: Hamilton's equations, rates from Lagrange multipliers (HZU) [003]",
       tree_unsupported_reason, tree<TreeState::momenta, TreeMatrix::orthogonal>},
      {kTreeNames[1][0], "open trees: Newton-Euler equations in hinge coordinates, swept by LU elimination [003]",
       tree_unsupported_reason, tree<TreeState::rates, TreeMatrix::extended_lu>},
      {kTreeNames[1][1], "open trees: Newton-Euler equations in hinge coordinates, swept by L'DL elimination [003]",
       tree_unsupported_reason, tree<TreeState::rates, TreeMatrix::extended_ltdl>},
      {kTreeNames[1][2], "open trees: Lagrange's equations of the second kind, joint-space mass matrix [003]",
       tree_unsupported_reason, tree<TreeState::rates, TreeMatrix::tangent>},
      {kTreeNames[1][3], "open trees: Lagrange's equations of the first kind, multipliers of the hinges [003]",
       tree_unsupported_reason, tree<TreeState::rates, TreeMatrix::orthogonal>},
  };
  return kAll;
}

const Solver* find_solver(std::string_view name) {
  for (const Solver& solver : solvers())
    if (solver.name == name) return &solver;
  return nullptr;
}

std::string solver_names() {
  std::string names;
  for (const Solver& solver : solvers()) names += (names.empty() ? "" : ", ") + std::string(solver.name);
  return names;
}

}  // namespace rigstep::offline
