#include "core/offline/families.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace rigstep::offline {

std::span<const Family> families() {
  static constexpr std::string_view kDivideAndConquer[] = {"hamiltonian_dca", "featherstone_dca"};
  static constexpr std::string_view kIndex2[] = {"ida"};
  static constexpr std::string_view kComplements[] = {
      "zero_eigenvalue", "schur", "putd_householder", "putd_gauss", "svd", "qr", "partitioning", "wang_huston"};
  static constexpr std::string_view kTrees[] = {
      "tree_hamilton_lu",     "tree_hamilton_cholesky",     "tree_hamilton_mass_matrix", "tree_hamilton_multipliers",
      "tree_newton_euler_lu", "tree_newton_euler_cholesky", "tree_lagrange_second_kind", "tree_lagrange_first_kind"};
  static constexpr std::string_view kPrinted[] = {"index3_literal"};
  static constexpr Family kAll[] = {
      {"relative coordinates", "kinematics of joints (joint_tree), compliances of compounds", kDivideAndConquer},
      {"hinge coordinates", "kinematics of hinges (tree_kinematics), mass matrices of open trees", kTrees},
      {"natural complements", "Euler angles, accelerations by projection; constraint rows as in index 2", kComplements},
      {"index 2", "positions and velocities by stabilised multipliers; constraint rows as in natural complements",
       kIndex2},
      {"printed index 3", "Euler parameters, its own constraint rows, extrapolated trapezoidal rule", kPrinted}};
  return kAll;
}

const Family& family_of(std::string_view solver) {
  for (const Family& family : families())
    if (std::ranges::find(family.solvers, solver) != family.solvers.end()) return family;
  throw std::invalid_argument(std::string(solver) + ": belongs to no family: add it in core/offline/families.cpp");
}

}  // namespace rigstep::offline
