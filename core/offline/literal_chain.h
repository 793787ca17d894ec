// What the index-3 form as printed (index3_literal.cpp) and its tuned twin (index3_literal_tuned.h) work on: a serial
// chain, its bodies as leaves and its joints as hinges of a balanced binary tree. Private to these files.
#pragma once

#include <chrono>
#include <type_traits>
#include <vector>

#include "core/offline/index3_literal.h"

namespace rigstep::offline {

namespace literal {

// Seven coordinates in eight lanes, the last one zero: a compound's algebra is made of these.
using Quad = double __attribute__((vector_size(32)));

struct alignas(64) Lanes {
  union {
    Quad half[2];
    double value[8];
  };
  double operator[](int k) const { return value[k]; }
  double& operator[](int k) { return value[k]; }
  Lanes& operator+=(const Lanes& b) {
    half[0] += b.half[0];
    half[1] += b.half[1];
    return *this;
  }
};

inline Lanes lanes(double a, double b, double c, double d, double e, double f, double g) {
  return {{{Quad{a, b, c, d}, Quad{e, f, g, 0.0}}}};
}

inline Lanes operator+(const Lanes& a, const Lanes& b) { return {{{a.half[0] + b.half[0], a.half[1] + b.half[1]}}}; }

inline Lanes operator*(const Lanes& a, double s) { return {{{a.half[0] * s, a.half[1] * s}}}; }

struct Columns {
  Lanes column[7];
};

using Vec4 = Eigen::Matrix<double, 4, 1, Eigen::DontAlign>;
using Mat7 = Eigen::Matrix<double, 7, 7>;
using Mat4 = Eigen::Matrix<double, 4, 4, Eigen::DontAlign>;
using Mat34 = Eigen::Matrix<double, 3, 4, Eigen::DontAlign>;

constexpr int kMaxRows = 5;

// What stands in lanes, as vectors and matrices.
template <class Matrix>
using InLanes = Eigen::Map<Matrix, Eigen::Unaligned, Eigen::OuterStride<8>>;

template <class T>
inline auto as_vector(T& lanes) {
  return Eigen::Map<std::conditional_t<std::is_const_v<T>, const Vec7, Vec7>>(lanes.value);
}

inline InLanes<const Mat7> as_matrix(const Columns& m) { return InLanes<const Mat7>(m.column[0].value); }
inline InLanes<Mat7> as_matrix(Columns& m) { return InLanes<Mat7>(m.column[0].value); }

template <int Rows>
using PerRow = Eigen::Matrix<double, Rows, 1>;

template <int Rows>
using Square = Eigen::Matrix<double, Rows, Rows>;

template <int Rows>
inline auto as_square(double (&C)[kMaxRows][kMaxRows]) {
  return Eigen::Map<Square<Rows>, Eigen::Unaligned, Eigen::OuterStride<kMaxRows>>(C[0]);
}

template <int Rows>
inline auto as_rows(const Lanes (&row)[kMaxRows]) {
  return InLanes<const Eigen::Matrix<double, Rows, 7, Eigen::RowMajor>>(row[0].value);
}

// a . b + c . d
inline double dot2(const Lanes& a, const Lanes& b, const Lanes& c, const Lanes& d) {
  const Quad s = a.half[0] * b.half[0] + a.half[1] * b.half[1] + c.half[0] * d.half[0] + c.half[1] * d.half[1];
  return (s[0] + s[2]) + (s[1] + s[3]);
}

// columns * x
inline Lanes product(const Columns& m, const Lanes& x) {
  Lanes out = m.column[0] * x[0];
  for (int k = 1; k < 7; ++k) out += m.column[k] * x[k];
  return out;
}

inline Lanes to_lanes(const Vec7& x) { return lanes(x[0], x[1], x[2], x[3], x[4], x[5], x[6]); }

inline Mat34 G_of(const Vec4& p) {
  Mat34 G;
  G << -p[1], p[0], p[3], -p[2],  //
      -p[2], -p[3], p[0], p[1],   //
      -p[3], p[2], -p[1], p[0];
  return G;
}

// A(p) s, quadratic in p.
inline Vec3 rotated(const Vec4& p, const Vec3& s) {
  const Vec3 e = p.tail<3>();
  return (p[0] * p[0] - e.squaredNorm()) * s + 2.0 * e.dot(s) * e + 2.0 * p[0] * e.cross(s);
}

// d(A(p) s) / dp
inline Mat34 rotated_p(const Vec4& p, const Vec3& s) {
  const Vec3 e = p.tail<3>();
  Mat34 B;
  B.col(0) = 2.0 * (p[0] * s + e.cross(s));
  Mat3 skew;
  skew << 0.0, -s[2], s[1], s[2], 0.0, -s[0], -s[1], s[0], 0.0;
  B.rightCols<3>() = 2.0 * (e * s.transpose() - s * e.transpose() + e.dot(s) * Mat3::Identity() - p[0] * skew);
  return B;
}

// A joint between a body or the ground on its left and one on its right.
struct Hinge {
  int rows = 3;
  int first_row = 0;
  bool left_ground = false, right_ground = false;
  JointFrame left, right;

  double Phi[kMaxRows];    // (1), or what takes its place in the projections: 0, -gamma
  Lanes J_left[kMaxRows];  // (3) rows of Phi_q with respect to the left body
  Lanes J_right[kMaxRows];

  // factor, and the result of a solution
  double C[kMaxRows][kMaxRows];  // below (35)
  Lanes U[kMaxRows];             // tuned: rows of Phi_q delta_21 of the left compound
  Lanes V[kMaxRows];             // tuned: rows of Phi_q delta_12 of the right compound
  double C_beta[kMaxRows];
  double increment[kMaxRows];  // of lambda, sigma or kappa
};

// (24) (28)-(33): motion of both handles by the loads on them.
struct Compound {
  Columns delta_11, delta_12, delta_21, delta_22;
};

struct Leaf {
  std::size_t index = 0;  // into Mechanism::bodies()
  double mass = 0.0;
  Mat3 J_b, J_b_inverse;
  Columns delta;  // (26), the same for all four
  Vec7 g;         // (12)
};

struct Merge {
  int left = 0, right = 0, hinge = 0;  // nodes: leaves, then compounds in the order of merging
};

inline Vec4 p_of(const Vec7& q) { return q.tail<4>(); }

[[noreturn]] void refuse(const std::string& field, const std::string& problem);
bool has_more_than_gravity(const Mechanism& mechanism);

}  // namespace literal

using namespace literal;

struct LiteralStepper::Chain {
  LiteralSettings settings;
  double dt = 0.0, h2 = 0.0;  // step and dt^2 / 4 [s] [s^2]
  Vec3 gravity;
  std::vector<int> place;             // (bodies of the mechanism) place in the chain
  std::vector<Leaf> leaf;             // (n + 1) the last one is the ground, which no load moves
  std::vector<Hinge> hinge;           // (n), one more if the end is on the ground
  std::vector<Merge> merge;           // in order; the last one ties the whole chain to the ground
  std::vector<Compound> compound;     // one per merge; the last one, which nothing moves, stays empty
  std::vector<Lanes> motion[2];       // (nodes) delta_i3, theta_i3 or xi_i3 of handles 1 and 2
  std::vector<Lanes> load[2];         // (nodes) on handles 1 and 2
  std::vector<Lanes> x;               // (n) what a solution finds: increments, velocities or accelerations
  std::vector<Vec7> qd_hat, qdd_hat;  // (n) (15) (16)
  std::vector<Vec6> wrench;           // (bodies of the mechanism) empty: gravity alone
  std::vector<BodyMotion> moving;     // (bodies of the mechanism) where loads are requested
  LiteralStepper::Loads applied;      // may be empty
  LiteralState state;
  std::vector<std::vector<int>> levels;  // merges by their height above the leaves
  double last_increment = 0.0;           // norm over all q
  LiteralPhases phases;
  std::chrono::steady_clock::time_point phase_began;

  int n() const { return static_cast<int>(leaf.size()) - 1; }

  const Columns& delta(int node, int row, int column) const {
    if (node <= n()) return leaf[node].delta;
    const Compound& c = compound[node - n() - 1];
    return row == 1 ? (column == 1 ? c.delta_11 : c.delta_12) : (column == 1 ? c.delta_21 : c.delta_22);
  }

  void read(const Mechanism& mechanism);
  void size_buffers();
  int add_merges(int first, int last);
  void find_start();

  // The loops of a step; called by all threads of a team.
  template <class Visit>
  void share(std::size_t count, const Visit& visit);
  template <class Work>
  void alone(const Work& work);
  void wait();

  void set_joint_terms();
  void set_acceleration_terms();
  void clear_terms();
  void evaluate_body(int i);
  void set_motion(std::size_t body, const BodyMotion& at);
  BodyMotion motion_of(std::size_t body) const;
  void find_loads();
  void set_deltas();
  void set_position_bias();
  template <int Rows>
  void merge_as_printed(const Merge& op, Compound& out, bool top);
  template <int Rows>
  void assemble_as_printed(const Merge& op, int out);
  template <int Rows>
  void disassemble_as_printed(const Merge& op, int out);
  template <int Rows>
  void merge_tuned(const Merge& op, Compound& out, bool top);
  template <int Rows>
  void assemble_tuned(const Merge& op, int out);
  template <int Rows>
  void disassemble_tuned(const Merge& op, int out);
  void factorise();
  void solve();
  void update();
  void project_velocities();
  void project_accelerations();
  void predict();
  void end_phase(double LiteralPhases::*phase);
  void step_once();
};

}  // namespace rigstep::offline
