// The hand-tuned twin of the form as printed, the same to rounding: M inverted in closed form, products that occur
// twice formed once, in vector registers. For the comparison of speed; index3_literal.cpp, which alone includes this,
// is the form to read.
#pragma once

#include "core/offline/literal_chain.h"

namespace rigstep::offline {

// Inverse of a symmetric positive definite matrix, in place, by L D L'.
template <int Rows>
inline void invert(double (&D)[Rows][Rows]) {
  double L[Rows][Rows], pivot[Rows], inverse[Rows][Rows];  // inverse: of L
  for (int i = 0; i < Rows; ++i) {
    double d = D[i][i];
    for (int j = 0; j < i; ++j) {
      double s = D[i][j];
      for (int k = 0; k < j; ++k) s -= L[i][k] * L[j][k] * pivot[k];
      L[i][j] = s / pivot[j];
      d -= L[i][j] * s;
    }
    pivot[i] = d;
  }
  for (int i = 0; i < Rows; ++i) {
    inverse[i][i] = 1.0;
    for (int j = 0; j < i; ++j) {
      double s = L[i][j];
      for (int k = j + 1; k < i; ++k) s += L[i][k] * inverse[k][j];
      inverse[i][j] = -s;
    }
  }
  double reciprocal[Rows];
  for (int i = 0; i < Rows; ++i) reciprocal[i] = 1.0 / pivot[i];
  for (int i = 0; i < Rows; ++i)
    for (int j = 0; j <= i; ++j) {
      double s = 0.0;
      for (int k = i; k < Rows; ++k) s += inverse[k][i] * inverse[k][j] * reciprocal[k];
      D[i][j] = D[j][i] = s;
    }
}

// The same in closed form, since G p = 0.
inline void set_delta_tuned(Leaf& leaf, const Vec4& p, double h2, double alpha) {
  const double norm2 = p.squaredNorm(), scale = 1.0 / (norm2 * norm2);
  const Mat34 G = G_of(p);
  const Mat34 JG = leaf.J_b_inverse * G;
  Mat4 block;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 4; ++j)
      block(j, k) =
          -scale * (0.25 * h2 * (G(0, j) * JG(0, k) + G(1, j) * JG(1, k) + G(2, j) * JG(2, k)) + p[j] * p[k] / alpha);
  for (int k = 0; k < 3; ++k) {
    leaf.delta.column[k] = Lanes{};
    leaf.delta.column[k][k] = -h2 / leaf.mass;
  }
  for (int k = 0; k < 4; ++k)
    leaf.delta.column[3 + k] = lanes(0.0, 0.0, 0.0, block(0, k), block(1, k), block(2, k), block(3, k));
}

// The same to rounding: delta_21 of a compound is the transpose of delta_12, and what occurs twice is formed once.
template <int Rows>
void LiteralStepper::Chain::merge_tuned(const Merge& op, Compound& out, bool top) {
  Hinge& j = hinge[op.hinge];
  const Columns& left_22 = delta(op.left, 2, 2);
  const Columns& left_12 = delta(op.left, 1, 2);
  const Columns& right_11 = delta(op.right, 1, 1);
  const Columns& right_21 = delta(op.right, 2, 1);
  double D[Rows][Rows];
  for (int r = 0; r < Rows; ++r) {
    const Lanes left = product(left_22, j.J_left[r]), right = product(right_11, j.J_right[r]);
    j.U[r] = product(left_12, j.J_left[r]);
    j.V[r] = product(right_21, j.J_right[r]);
    for (int s = r; s < Rows; ++s) D[s][r] = -dot2(j.J_left[s], left, j.J_right[s], right);
    D[r][r] += 1.0 / settings.alpha;
  }
  invert<Rows>(D);
  for (int r = 0; r < Rows; ++r)
    for (int s = 0; s < Rows; ++s) j.C[r][s] = D[r][s];
  if (top) return;
  Lanes UC[Rows], VC[Rows];
  for (int r = 0; r < Rows; ++r) {
    UC[r] = j.U[0] * D[0][r];
    VC[r] = j.V[0] * D[0][r];
    for (int s = 1; s < Rows; ++s) {
      UC[r] += j.U[s] * D[s][r];
      VC[r] += j.V[s] * D[s][r];
    }
  }
  const Columns& left_11 = delta(op.left, 1, 1);
  const Columns& right_22 = delta(op.right, 2, 2);
  for (int k = 0; k < 7; ++k) {
    Lanes a = left_11.column[k], b = UC[0] * j.V[0][k], c = VC[0] * j.U[0][k], d = right_22.column[k];
    a += UC[0] * j.U[0][k];
    d += VC[0] * j.V[0][k];
    for (int r = 1; r < Rows; ++r) {
      a += UC[r] * j.U[r][k];
      b += UC[r] * j.V[r][k];
      c += VC[r] * j.U[r][k];
      d += VC[r] * j.V[r][k];
    }
    out.delta_11.column[k] = a;  // (36)
    out.delta_12.column[k] = b;  // (37)
    out.delta_21.column[k] = c;  // (37)
    out.delta_22.column[k] = d;  // (38)
  }
}

template <int Rows>
void LiteralStepper::Chain::assemble_tuned(const Merge& op, int out) {
  Hinge& j = hinge[op.hinge];
  const Lanes &left = motion[1][op.left], &right = motion[0][op.right];
  double beta[Rows];
  for (int r = 0; r < Rows; ++r) beta[r] = j.Phi[r] + dot2(j.J_left[r], left, j.J_right[r], right);
  Lanes a = motion[0][op.left], b = motion[1][op.right];
  for (int r = 0; r < Rows; ++r) {
    double s = 0.0;
    for (int k = 0; k < Rows; ++k) s += j.C[r][k] * beta[k];
    j.C_beta[r] = s;
    a += j.U[r] * s;
    b += j.V[r] * s;
  }
  motion[0][out] = a;  // (39)
  motion[1][out] = b;
}

template <int Rows>
void LiteralStepper::Chain::disassemble_tuned(const Merge& op, int out) {
  Hinge& j = hinge[op.hinge];
  const Lanes &one = load[0][out], &two = load[1][out];
  double by_ends[Rows];
  for (int r = 0; r < Rows; ++r) by_ends[r] = dot2(j.U[r], one, j.V[r], two);
  Lanes a{}, b{};
  for (int r = 0; r < Rows; ++r) {
    double s = j.C_beta[r];
    for (int k = 0; k < Rows; ++k) s += j.C[r][k] * by_ends[k];
    j.increment[r] = s;  // (34)
    a += j.J_left[r] * s;
    b += j.J_right[r] * s;
  }
  load[0][op.left] = one;
  load[1][op.left] = a;
  load[0][op.right] = b;
  load[1][op.right] = two;
}

}  // namespace rigstep::offline
