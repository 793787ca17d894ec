#include "core/offline/solver.h"

#include "core/offline/absolute_system.h"
#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"
#include "core/offline/literal_judge.h"
#include "core/offline/natural_complement.h"
#include "core/offline/stabilised_index2.h"

namespace rigstep::offline {

namespace {

template <Complement method>
Trajectory complement(const Scenario& scenario, const Options& options) {
  ComplementSettings settings;
  settings.method = method;
  return natural_complement(scenario, options, settings).trajectory;
}

}  // namespace

std::span<const Solver> solvers() {
  static constexpr Solver all[] = {
      {"hamiltonian_dca", "Hamilton's canonical equations in joint coordinates by divide and conquer [000]",
       hamiltonian_dca_obstacle, hamiltonian_dca},
      {"featherstone_dca", "accelerations in joint coordinates by divide and conquer, loops drift (baseline of [000])",
       featherstone_dca_obstacle, featherstone_dca},
      {"ida", "index 2 with stabilised positions by IDA, absolute coordinates, every joint and load", absolute_obstacle,
       stabilised_index2},
      {"index3_literal", "the stepper's twin: index-3 divide and conquer as printed, extrapolated to dt = 0 [001]",
       literal_index3_obstacle, literal_index3},
      {"zero_eigenvalue", "natural complement in Euler angles: zero eigenvectors of the Jacobian squared [002]",
       complement_obstacle, complement<Complement::zero_eigenvalue>},
      {"schur", "natural complement in Euler angles: Schur decomposition of the Jacobian squared [002]",
       complement_obstacle, complement<Complement::schur>},
      {"putd_householder",
       "natural complement in Euler angles: pseudo upper triangular decomposition, Householder [002]",
       complement_obstacle, complement<Complement::putd_householder>},
      {"putd_gauss", "natural complement in Euler angles: pseudo upper triangular decomposition, Gauss [002]",
       complement_obstacle, complement<Complement::putd_gauss>},
      {"svd", "natural complement in Euler angles: singular value decomposition of the Jacobian [002]",
       complement_obstacle, complement<Complement::svd>},
      {"qr", "natural complement in Euler angles: QR decomposition with column pivoting [002]", complement_obstacle,
       complement<Complement::qr>},
      {"partitioning", "natural complement in Euler angles: coordinate partitioning [002]", complement_obstacle,
       complement<Complement::partitioning>},
      {"wang_huston", "natural complement in Euler angles: Wang-Huston, multipliers by pseudo-inverse [002]",
       complement_obstacle, complement<Complement::wang_huston>},
  };
  return all;
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
