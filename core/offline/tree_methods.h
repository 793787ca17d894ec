// Linear equations of a tree of bodies in their three matrix structures, sections 5 and 7 of
//
//   [003] V. Ivanov, V. Shimanovskiy: Matrix equations of the motion of multibody systems with a tree structure in
//         Hamiltonian variables. J. Appl. Comput. Mech. 9 (2023).
//
//   M v - S' mu = load,   -S v + A u = -bias,   A' mu = p                                           (22) (33)
//
// u are rates and mu momenta where load = 0, bias = v^r (22); u are accelerations and mu reactions where
// load = F + F^c, bias = w^r, p = 0 (33). Spatial quantities are (linear, angular) in the axes of their body, about
// its origin O. Algorithms are templates over the scalar: double, or Counted for table 1. Errata of the paper:
//
//   (11)       the unit blocks of S stand at j = i, not at j = 1
//   section 4  (A-dot' - Omega A') mu in the derivation of (23): A-dot' - A' Omega, as in (23) itself
//   (37)       the matrix of the multipliers is that of (38), Z'S M^-1 S'Z; and v = M^-1 S'mu with all of
//              mu = A (A'A)^-1 p + Z lambda, of which v = M^-1 S'Z lambda lacks the part in p
//   1, 3       C_j* in M_i* stands for C_j; the second loop of algorithm 3 runs outwards, i = 1 : N
//   section 8  HZU is said to be solved by algorithm 2: its matrix takes algorithm 3, as section 7 has it
//
// Owned by one run; nothing is allocated after the first solve of a system. Offline only.
#pragma once

#include <Eigen/Core>
#include <array>
#include <cmath>
#include <vector>

#include "core/mechanism/types.h"

namespace rigstep::offline {

// A number that counts what is done with it: additions, multiplications, divisions and square roots, one each.
struct Counted {
  double value = 0.0;
  static inline thread_local long operations = 0;

  Counted() = default;
  Counted(double v) : value(v) {}  // NOLINT: constants become numbers
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  friend Counted operator-(Counted a) { return {-a.value}; }
  friend Counted operator+(Counted a, Counted b) { return counted(a.value + b.value); }
  friend Counted operator-(Counted a, Counted b) { return counted(a.value - b.value); }
  friend Counted operator*(Counted a, Counted b) { return counted(a.value * b.value); }
  friend Counted operator/(Counted a, Counted b) { return counted(a.value / b.value); }
  friend Counted sqrt(Counted a) { return counted(std::sqrt(a.value)); }

 private:
  static Counted counted(double result) {
    ++operations;
    return {result};
  }
};

}  // namespace rigstep::offline

template <>
struct Eigen::NumTraits<rigstep::offline::Counted> : Eigen::NumTraits<double> {
  using Real = rigstep::offline::Counted;
  using NonInteger = rigstep::offline::Counted;
  using Nested = rigstep::offline::Counted;
  // NOLINTBEGIN(readability-identifier-naming): Eigen's names
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = 1,
    RequireInitialization = 1,
    ReadCost = 1,
    AddCost = 1,
    MulCost = 1
  };
  // NOLINTEND(readability-identifier-naming)
};

namespace rigstep::offline {

template <class T>
using Three = Eigen::Matrix<T, 3, 1>;
template <class T>
using Axes = Eigen::Matrix<T, 3, 3>;
template <class T>
using Six = Eigen::Matrix<T, 6, 1>;
template <class T>
using Symmetric6 = Eigen::Matrix<T, 6, 6>;  // both halves are filled

// A body and the hinge that it hangs on, i = 0 ... N - 1 in the paper's order: each after its inner body.
template <class T>
struct TreeBody {
  int inner = -1;                // k_i, -1: the ground
  int freedoms = 0;              // n_i
  int rate = 0;                  // where p_i and u_i begin
  Axes<T> G;                     // inner axes -> own axes
  Three<T> rho;                  // own origin from the inner one, inner axes [m]
  std::array<Six<T>, 6> A;       // n_i columns: motion of the hinge per unit of its rates
  std::array<Six<T>, 6> Z;       // 6 - n_i columns, an orthonormal basis of what is normal to A
  std::array<Six<T>, 6> A_plus;  // n_i rows of (A'A)^-1 A'
  T mass;                        // M_i, about the origin: [kg]
  Three<T> moment;               // mass times mass centre [kg m]
  Axes<T> inertia;               // [kg m^2]
  Symmetric6<T> M_inverse;
};

template <class T>
struct TreeSystem {
  std::vector<TreeBody<T>> body;   // (N)
  std::vector<Six<T>> load, bias;  // (N)
  std::vector<T> p;                // (rates)
  std::vector<T> u;                // (rates) solved for
  std::vector<Six<T>> v, mu;       // (N)     solved for
};

TreeSystem<Counted> counted(const TreeSystem<double>& system);

enum class TreeMatrix {
  extended_lu,           // (32) by algorithm 1; EMH in momenta
  extended_ltdl,         // (32) by algorithm 2; EMH in momenta
  tangent,               // (34) by algorithm 3; DAH in momenta
  orthogonal,            // (38) by algorithm 3; HZU in momenta
  extended_lu_products,  // algorithm 1 with H M* = M* - M*A D (M*A)', for counts alone: no solver has it
};

// Operations of Counted in the last solve.
struct TreeOperations {
  long form = 0;        // of the matrices; projection passes: all that goes inwards
  long eliminate = 0;   // Cholesky factors; projection passes: none
  long substitute = 0;  // right-hand sides, u, v and mu; projection passes: all that goes outwards

  long all() const { return form + eliminate + substitute; }
};

template <class T>
class TreeSolver {
 public:
  explicit TreeSolver(TreeMatrix matrix) : matrix_(matrix) {}

  // u, v and mu from the rest. Systems of one run have the same tree and freedoms. Singular matrices give values that
  // are not finite.
  void solve(TreeSystem<T>& system);
  const TreeOperations& operations() const { return operations_; }

 private:
  using Vector = std::vector<T>;
  void reserve(const TreeSystem<T>& system);

  void eliminate_inwards_lu(TreeSystem<T>& system);  // algorithm 1
  void solve_outwards_lu(TreeSystem<T>& system);
  void eliminate_inwards_ltdl(TreeSystem<T>& system);  // algorithm 2
  void solve_outwards_ltdl(TreeSystem<T>& system);

  void form_tangent(const TreeSystem<T>& system);  // D of (34) by composite bodies
  void eliminate_tangent();                        // algorithm 3
  void solve_tangent(TreeSystem<T>& system);

  void form_orthogonal(const TreeSystem<T>& system);  // H of (38), one front per body
  void eliminate_orthogonal(const TreeSystem<T>& system);
  void solve_orthogonal(TreeSystem<T>& system);

  struct Sweep {
    Symmetric6<T> M;  // M_i*
    Six<T> phi;
    std::array<Six<T>, 6> MA;  // columns of M_i* A_i
    std::array<Six<T>, 6> V;   // rows (algorithm 2)
    Eigen::Matrix<T, 6, 6> D;  // D_i (1), L_i (2)
    Six<T> eta;                // (2)
  };
  struct Rigid {
    T mass;
    Three<T> moment;
    Axes<T> inertia;
  };
  // Square lower triangle of the hinge of a body and those of its children, rows packed one after the other.
  struct Front {
    std::vector<int> multiplier;  // (rows) which lambda
    std::vector<Six<T>> column;   // (rows) of S'Z in the axes of the body
    Vector value;
  };
  static std::size_t packed(int row) { return static_cast<std::size_t>(row) * (static_cast<std::size_t>(row) + 1) / 2; }

  TreeMatrix matrix_;
  TreeOperations operations_;
  std::vector<std::vector<int>> children_;  // (N)
  std::vector<Sweep> sweep_;                // (N) extended
  std::vector<Rigid> composite_;            // (N) tangent
  std::vector<std::vector<int>> path_;      // (rates) those on the way from the ground, this one last
  std::vector<Vector> row_;                 // (rates) lower triangle of D at the columns of the path
  std::vector<Front> front_;                // (N) orthogonal
  std::vector<int> multiplier_;             // (N) where lambda_i begins
  std::vector<int> row_of_inner_;           // (N) where the block of the hinge begins in the front of its inner body
  Vector right_;                            // Q, h and the solution of algorithm 3
  std::vector<Six<T>> momentum_;            // (N)
};

extern template class TreeSolver<double>;
extern template class TreeSolver<Counted>;

// (23): p-dot = (A-dot' - A' Omega) mu + A' F*, with F* summed up inwards from the wrenches (N) on the bodies about
// their origins. A_rate: (rates) columns of A-dot. pd: (rates).
template <class T>
void momentum_rates(const TreeSystem<T>& system, const std::vector<Six<T>>& A_rate, std::vector<Six<T>>& wrench, T* pd);

extern template void momentum_rates(const TreeSystem<double>&, const std::vector<Six<double>>&,
                                    std::vector<Six<double>>&, double*);
extern template void momentum_rates(const TreeSystem<Counted>&, const std::vector<Six<Counted>>&,
                                    std::vector<Six<Counted>>&, Counted*);

template <class T>
Six<T> spatial(const Three<T>& linear, const Three<T>& angular) {
  Six<T> v;
  v << linear, angular;
  return v;
}

// C v of (10)
template <class T>
Six<T> outwards(const TreeBody<T>& body, const Six<T>& v) {
  const Three<T> linear = v.template head<3>(), angular = v.template tail<3>();
  return spatial<T>(body.G * (linear + angular.cross(body.rho)), body.G * angular);
}

// C' f
template <class T>
Six<T> inwards(const TreeBody<T>& body, const Six<T>& f) {
  const Three<T> force = body.G.transpose() * f.template head<3>();
  return spatial<T>(force, body.G.transpose() * f.template tail<3>() + body.rho.cross(force));
}

// M v of a body about its origin
template <class T, class Inertia>
Six<T> momentum(const Inertia& body, const Six<T>& v) {
  const Three<T> linear = v.template head<3>(), angular = v.template tail<3>();
  return spatial<T>(body.mass * linear - body.moment.cross(angular),
                    body.moment.cross(linear) + body.inertia * angular);
}

// Omega' x of (9), Omega that of the motion
template <class T>
Six<T> omega_transposed(const Six<T>& motion, const Six<T>& x) {
  const Three<T> v = motion.template head<3>(), omega = motion.template tail<3>();
  const Three<T> linear = x.template head<3>(), angular = x.template tail<3>();
  return -spatial<T>(omega.cross(linear) + v.cross(angular), omega.cross(angular));
}

}  // namespace rigstep::offline
