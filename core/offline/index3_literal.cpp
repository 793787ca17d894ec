#include "core/offline/index3_literal.h"

#include <omp.h>

#include <Eigen/LU>
#include <chrono>
#include <cmath>

#include "core/offline/index3_literal_tuned.h"
#include "core/offline/literal_chain.h"

// Each phase of the step is compiled twice: for any x86-64 processor and for those with 256-bit fused multiply-adds.
// The loader picks one at the start of the program, which takes glibc.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__clang__)
#define RIGSTEP_ALSO_WIDE __attribute__((flatten, target_clones("fma", "default")))  // Clang 14 knows no levels here
#elif defined(__x86_64__) && defined(__GLIBC__)
#define RIGSTEP_ALSO_WIDE __attribute__((flatten, target_clones("arch=x86-64-v3", "default")))
#else
#define RIGSTEP_ALSO_WIDE
#endif

namespace rigstep::offline {

namespace {

// The inverse of M with the penalty of normalisation, times -dt^2/4 (26).
inline void set_delta_as_printed(Leaf& leaf, const Vec4& p, double h2, double alpha) {
  const Mat34 G = G_of(p);
  Mat7 M = Mat7::Zero();
  M.topLeftCorner<3, 3>().diagonal().setConstant(leaf.mass);
  M.bottomRightCorner<4, 4>() = 4.0 * G.transpose() * leaf.J_b * G + h2 * alpha * p * p.transpose();
  as_matrix(leaf.delta) = -h2 * M.inverse();
}

}  // namespace

// 0 .. count - 1 in equal parts, as `omp for schedule(static)` does it; one copy of the loop for one thread and for
// many, since the compiler may contract another one to other bits.
template <class Visit>
void LiteralStepper::Chain::share(std::size_t count, const Visit& visit) {
  std::size_t first = 0, last = count;
  if (settings.threads > 1) {
    const auto thread = static_cast<std::size_t>(omp_get_thread_num());
    const auto threads = static_cast<std::size_t>(omp_get_num_threads());
    first = count * thread / threads;
    last = count * (thread + 1) / threads;
  }
  for (std::size_t k = first; k < last; ++k) visit(k);
  wait();
}

// By the first thread, while the others wait.
template <class Work>
void LiteralStepper::Chain::alone(const Work& work) {
  if (settings.threads <= 1 || omp_get_thread_num() == 0) work();
  wait();
}

void LiteralStepper::Chain::wait() {
  if (settings.threads <= 1) return;
#pragma omp barrier
}

// Phi and its Jacobians at the present pose (1) (3).
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::set_joint_terms() {
  share(hinge.size(), [&](std::size_t k) {
    Hinge& j = hinge[k];
    const Vec4 identity{1.0, 0.0, 0.0, 0.0};
    const Vec4 p = j.left_ground ? identity : p_of(state.q[k - 1]);
    const Vec4 o = j.right_ground ? identity : p_of(state.q[k]);
    const Vec3 r = j.left_ground ? Vec3(Vec3::Zero()) : Vec3(state.q[k - 1].head<3>());
    const Vec3 s = j.right_ground ? Vec3(Vec3::Zero()) : Vec3(state.q[k].head<3>());
    const Vec3 gap = r + rotated(p, j.left.point_b) - s - rotated(o, j.right.point_b);
    const Mat34 B = rotated_p(p, j.left.point_b), D = rotated_p(o, j.right.point_b);
    for (int i = 0; i < 3; ++i) {
      j.Phi[i] = gap[i];
      j.J_left[i] = lanes(0.0, 0.0, 0.0, B(i, 0), B(i, 1), B(i, 2), B(i, 3));
      j.J_right[i] = lanes(0.0, 0.0, 0.0, -D(i, 0), -D(i, 1), -D(i, 2), -D(i, 3));
      j.J_left[i][i] = 1.0;
      j.J_right[i][i] = -1.0;
    }
    if (j.rows == 5) {
      const Vec3 axis = rotated(o, j.right.axes_b.col(2));
      const Mat34 axis_p = rotated_p(o, j.right.axes_b.col(2));
      for (int i = 0; i < 2; ++i) {
        const Vec3 normal = rotated(p, j.left.axes_b.col(i));
        const Vec4 left = rotated_p(p, j.left.axes_b.col(i)).transpose() * axis;
        const Vec4 right = axis_p.transpose() * normal;
        j.Phi[3 + i] = normal.dot(axis);
        j.J_left[3 + i] = lanes(0.0, 0.0, 0.0, left[0], left[1], left[2], left[3]);
        j.J_right[3 + i] = lanes(0.0, 0.0, 0.0, right[0], right[1], right[2], right[3]);
      }
    }
    if (j.left_ground)
      for (int i = 0; i < j.rows; ++i) j.J_left[i] = Lanes{};
    if (j.right_ground)
      for (int i = 0; i < j.rows; ++i) j.J_right[i] = Lanes{};
  });
}

// What takes the place of Phi in the velocity projection (52).
void LiteralStepper::Chain::clear_terms() {
  share(hinge.size(), [&](std::size_t k) {
    for (int i = 0; i < hinge[k].rows; ++i) hinge[k].Phi[i] = 0.0;
  });
}

// What takes the place of Phi in the acceleration projection: -gamma (65).
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::set_acceleration_terms() {
  share(hinge.size(), [&](std::size_t k) {
    Hinge& j = hinge[k];
    const Vec4 identity{1.0, 0.0, 0.0, 0.0}, rest = Vec4::Zero();
    const Vec4 p = j.left_ground ? identity : p_of(state.q[k - 1]), pd = j.left_ground ? rest : p_of(state.qd[k - 1]);
    const Vec4 o = j.right_ground ? identity : p_of(state.q[k]), od = j.right_ground ? rest : p_of(state.qd[k]);
    const Vec3 point = 2.0 * (rotated(pd, j.left.point_b) - rotated(od, j.right.point_b));
    for (int i = 0; i < 3; ++i) j.Phi[i] = point[i];
    if (j.rows != 5) return;
    const Vec3 h = j.right.axes_b.col(2), axis = rotated(o, h), axis_rate = rotated_p(o, h) * od;
    for (int i = 0; i < 2; ++i) {
      const Vec3 u = j.left.axes_b.col(i);
      j.Phi[3 + i] = 2.0 * (rotated(pd, u).dot(axis) + rotated(p, u).dot(rotated(od, h)) +
                            Vec3(rotated_p(p, u) * pd).dot(axis_rate));
    }
  });
}

// The g of one body without the term M qdd: joint loads, normalisation, loads, gyroscopic terms (8) (12) (14).
void LiteralStepper::Chain::evaluate_body(int i) {
  Leaf& body = leaf[i];
  const Vec4 p = p_of(state.q[i]), pd = p_of(state.qd[i]);
  Lanes loads{};
  const Hinge& one = hinge[i];
  for (int k = 0; k < one.rows; ++k) loads += one.J_right[k] * state.lambda[one.first_row + k];
  if (i + 1 < static_cast<int>(hinge.size())) {
    const Hinge& two = hinge[i + 1];
    for (int k = 0; k < two.rows; ++k) loads += two.J_left[k] * state.lambda[two.first_row + k];
  }
  const Vec4 gyroscopic = 8.0 * (G_of(pd).transpose() * Vec3(body.J_b * (G_of(p) * pd)));
  for (int k = 0; k < 3; ++k) body.g[k] = loads[k] - body.mass * gravity[k];
  for (int k = 0; k < 4; ++k) body.g[3 + k] = loads[3 + k] + gyroscopic[k] + state.mu[i] * p[k];
  if (wrench.empty()) return;
  const Vec6& other = wrench[body.index];
  const Vec4 conjugate{p[0], -p[1], -p[2], -p[3]};
  const Vec4 turning = 2.0 * (G_of(p).transpose() * rotated(conjugate, other.tail<3>()));
  for (int k = 0; k < 3; ++k) body.g[k] -= other[k];
  for (int k = 0; k < 4; ++k) body.g[3 + k] -= turning[k];
}

// Blocks are multiplied from the left as they are printed, columns from the right.
template <int Rows>
void LiteralStepper::Chain::merge_as_printed(const Merge& op, Compound& out, bool top) {
  Hinge& j = hinge[op.hinge];
  const auto A_22 = as_matrix(delta(op.left, 2, 2)), B_11 = as_matrix(delta(op.right, 1, 1));
  const auto J_A = as_rows<Rows>(j.J_left), J_B = as_rows<Rows>(j.J_right);
  const Square<Rows> D =
      Square<Rows>::Identity() / settings.alpha - J_A * A_22 * J_A.transpose() - J_B * B_11 * J_B.transpose();
  const Square<Rows> C = D.inverse();
  as_square<Rows>(j.C) = C;
  if (top) return;
  const auto A_11 = as_matrix(delta(op.left, 1, 1)), A_12 = as_matrix(delta(op.left, 1, 2));
  const auto A_21 = as_matrix(delta(op.left, 2, 1)), B_12 = as_matrix(delta(op.right, 1, 2));
  const auto B_21 = as_matrix(delta(op.right, 2, 1)), B_22 = as_matrix(delta(op.right, 2, 2));
  as_matrix(out.delta_11) = A_11 + A_12 * J_A.transpose() * C * J_A * A_21;  // (36)
  as_matrix(out.delta_12) = A_12 * J_A.transpose() * C * J_B * B_12;         // (37)
  as_matrix(out.delta_21) = as_matrix(out.delta_12).transpose();
  as_matrix(out.delta_22) = B_22 + B_21 * J_B.transpose() * C * J_B * B_12;  // (38)
}

template <int Rows>
void LiteralStepper::Chain::assemble_as_printed(const Merge& op, int out) {
  Hinge& j = hinge[op.hinge];
  const auto A_12 = as_matrix(delta(op.left, 1, 2)), B_21 = as_matrix(delta(op.right, 2, 1));
  const auto A_13 = as_vector(motion[0][op.left]), A_23 = as_vector(motion[1][op.left]);
  const auto B_13 = as_vector(motion[0][op.right]), B_23 = as_vector(motion[1][op.right]);
  const auto J_A = as_rows<Rows>(j.J_left), J_B = as_rows<Rows>(j.J_right);
  const PerRow<Rows> beta = J_A * A_23 + J_B * B_13 + Eigen::Map<const PerRow<Rows>>(j.Phi);
  const PerRow<Rows> C_beta = as_square<Rows>(j.C) * beta;
  Eigen::Map<PerRow<Rows>>(j.C_beta) = C_beta;
  as_vector(motion[0][out]) = A_13 + A_12 * (J_A.transpose() * C_beta);  // (39)
  as_vector(motion[1][out]) = B_23 + B_21 * (J_B.transpose() * C_beta);
}

template <int Rows>
void LiteralStepper::Chain::disassemble_as_printed(const Merge& op, int out) {
  Hinge& j = hinge[op.hinge];
  const auto A_21 = as_matrix(delta(op.left, 2, 1)), B_12 = as_matrix(delta(op.right, 1, 2));
  const auto one = as_vector(load[0][out]), two = as_vector(load[1][out]);
  const auto J_A = as_rows<Rows>(j.J_left), J_B = as_rows<Rows>(j.J_right);
  const auto C = as_square<Rows>(j.C);
  const PerRow<Rows> increment =
      C * (J_A * (A_21 * one)) + C * (J_B * (B_12 * two)) + Eigen::Map<const PerRow<Rows>>(j.C_beta);  // (35)
  Eigen::Map<PerRow<Rows>>(j.increment) = increment;
  load[0][op.left] = load[0][out];
  as_vector(load[1][op.left]) = J_A.transpose() * increment;
  as_vector(load[0][op.right]) = J_B.transpose() * increment;
  load[1][op.right] = load[1][out];
}

// From the leaves to the root, one level after the other.
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::factorise() {
  const std::size_t last = merge.size() - 1;
  for (const std::vector<int>& level : levels)
    share(level.size(), [&](std::size_t i) {
      const auto k = static_cast<std::size_t>(level[i]);
      const bool three = hinge[merge[k].hinge].rows == 3;
      if (settings.tuned)
        three ? merge_tuned<3>(merge[k], compound[k], k == last) : merge_tuned<5>(merge[k], compound[k], k == last);
      else
        three ? merge_as_printed<3>(merge[k], compound[k], k == last)
              : merge_as_printed<5>(merge[k], compound[k], k == last);
    });
}

// x and the increments of all joints from the biases of the bodies and the Phi of the joints.
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::solve() {
  const int first = n() + 1;
  const std::size_t whole = motion[0].size() - 1;
  for (const std::vector<int>& level : levels)
    share(level.size(), [&](std::size_t i) {
      const int k = level[i];
      const bool three = hinge[merge[k].hinge].rows == 3;
      if (settings.tuned)
        three ? assemble_tuned<3>(merge[k], first + k) : assemble_tuned<5>(merge[k], first + k);
      else
        three ? assemble_as_printed<3>(merge[k], first + k) : assemble_as_printed<5>(merge[k], first + k);
    });
  alone([&] { load[0][whole] = load[1][whole] = Lanes{}; });
  for (auto level = levels.rbegin(); level != levels.rend(); ++level)
    share(level->size(), [&](std::size_t i) {
      const int k = (*level)[i];
      const bool three = hinge[merge[k].hinge].rows == 3;
      if (settings.tuned)
        three ? disassemble_tuned<3>(merge[k], first + k) : disassemble_tuned<5>(merge[k], first + k);
      else
        three ? disassemble_as_printed<3>(merge[k], first + k) : disassemble_as_printed<5>(merge[k], first + k);
    });
  share(x.size(), [&](std::size_t i) {
    const Lanes both = load[0][i] + load[1][i];
    x[i] = motion[0][i] + product(leaf[i].delta, both);  // (24) (25)
  });
}

void LiteralStepper::Chain::set_motion(std::size_t body, const BodyMotion& at) {
  const int i = place[body];
  const Eigen::Quaterniond A(at.p[0], at.p[1], at.p[2], at.p[3]);
  state.q[i] << at.r_0, at.p;
  state.qd[i] << at.v_0, 0.5 * (G_of(at.p).transpose() * (A.conjugate() * at.omega_0));
}

BodyMotion LiteralStepper::Chain::motion_of(std::size_t body) const {
  const Vec7 &q = state.q[place[body]], &qd = state.qd[place[body]];
  return {q.head<3>(), q.tail<4>(), qd.head<3>(), rotated(p_of(q), Vec3(2.0 * (G_of(p_of(q)) * p_of(qd))))};
}

void LiteralStepper::Chain::find_loads() {
  if (!applied) return;
  alone([&] {
    for (std::size_t b = 0; b < moving.size(); ++b) moving[b] = motion_of(b);
    applied(moving, wrench);
  });
}

RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::set_deltas() {
  share(x.size(), [&](std::size_t i) {
    const Vec4 p = p_of(state.q[i]);
    if (settings.tuned)
      set_delta_tuned(leaf[i], p, h2, settings.alpha);
    else
      set_delta_as_printed(leaf[i], p, h2, settings.alpha);
  });
}

// delta_13 = delta_23 = -(dt^2/4) M^-1 (g + Psi_q' alpha Psi) (27).
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::set_position_bias() {
  share(x.size(), [&](std::size_t i) {
    evaluate_body(static_cast<int>(i));
    Leaf& body = leaf[i];
    const Vec4 p = p_of(state.q[i]);
    const double penalty = settings.alpha * 0.5 * (p.squaredNorm() - 1.0);
    const Mat34 G = G_of(p);
    const Vec4 inertia = 4.0 * (G.transpose() * Vec3(body.J_b * (G * p_of(state.qdd[i]))));
    Lanes g{};
    for (int k = 0; k < 3; ++k) g[k] = body.g[k] + body.mass * state.qdd[i][k];
    for (int k = 0; k < 4; ++k) g[3 + k] = body.g[3 + k] + inertia[k] + penalty * p[k];
    motion[0][i] = product(body.delta, g);
    motion[1][i] = motion[0][i];
  });
}

// Adds the increments to q, lambda and mu (21) (34) and renews qd and qdd (15) (16).
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::update() {
  share(x.size(), [&](std::size_t i) {
    Vec7& q = state.q[i];
    const Vec4 p = p_of(q);
    double psi = 0.5 * (p.squaredNorm() - 1.0);
    for (int k = 0; k < 4; ++k) psi += p[k] * x[i][3 + k];
    state.mu[i] += settings.alpha * psi;
    for (int k = 0; k < 7; ++k) {
      q[k] += x[i][k];
      state.qd[i][k] = 2.0 / dt * q[k] + qd_hat[i][k];
      state.qdd[i][k] = 4.0 / (dt * dt) * q[k] + qdd_hat[i][k];
    }
  });
  share(hinge.size(), [&](std::size_t k) {
    const Hinge& j = hinge[k];
    for (int r = 0; r < j.rows; ++r) state.lambda[j.first_row + r] += j.increment[r];
  });
  alone([&] {
    double sum = 0.0;
    for (const Lanes& change : x)
      for (int k = 0; k < 7; ++k) sum += change[k] * change[k];
    last_increment = std::sqrt(sum);
  });
}

// theta = M^-1 M qd*, the outer M with the penalty of normalisation (45).
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::project_velocities() {
  clear_terms();
  share(x.size(), [&](std::size_t i) {
    const Vec4 p = p_of(state.q[i]);
    const double penalty = settings.alpha * p.dot(p_of(state.qd[i]));
    const Lanes row = lanes(0.0, 0.0, 0.0, penalty * p[0], penalty * p[1], penalty * p[2], penalty * p[3]);
    motion[0][i] = to_lanes(state.qd[i]) + product(leaf[i].delta, row);
    motion[1][i] = motion[0][i];
  });
  solve();
  share(x.size(), [&](std::size_t i) {
    for (int k = 0; k < 7; ++k) state.qd[i][k] = x[i][k];
  });
}

// xi (60) with nu = -pd'pd of the projected velocities.
RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::project_accelerations() {
  set_acceleration_terms();
  share(x.size(), [&](std::size_t i) {
    const Vec4 p = p_of(state.q[i]);
    const double penalty = settings.alpha * (p.dot(p_of(state.qdd[i])) + p_of(state.qd[i]).squaredNorm());
    const Lanes row = lanes(0.0, 0.0, 0.0, penalty * p[0], penalty * p[1], penalty * p[2], penalty * p[3]);
    motion[0][i] = to_lanes(state.qdd[i]) + product(leaf[i].delta, row);
    motion[1][i] = motion[0][i];
  });
  solve();
  share(x.size(), [&](std::size_t i) {
    for (int k = 0; k < 7; ++k) state.qdd[i][k] = x[i][k];
  });
}

RIGSTEP_ALSO_WIDE void LiteralStepper::Chain::predict() {
  share(x.size(), [&](std::size_t i) {  // 3a, 3b
    Vec7 &q = state.q[i], &qd = state.qd[i], &qdd = state.qdd[i];
    qd_hat[i] = -(2.0 / dt * q + qd);
    qdd_hat[i] = -(4.0 / (dt * dt) * q + 4.0 / dt * qd + qdd);
    q += dt * qd + 0.5 * dt * dt * qdd;
    qd = 2.0 / dt * q + qd_hat[i];
    qdd = 4.0 / (dt * dt) * q + qdd_hat[i];
  });
}

// Adds what has passed since the phase before ended.
void LiteralStepper::Chain::end_phase(double LiteralPhases::*phase) {
  if (!settings.measure_phases) return;
  alone([&] {
    const auto now = std::chrono::steady_clock::now();
    if (phase != nullptr) phases.*phase += std::chrono::duration<double>(now - phase_began).count();
    phase_began = now;
  });
}

void LiteralStepper::Chain::step_once() {
  end_phase(nullptr);
  predict();
  for (int k = 0; k < settings.iterations; ++k) {
    const bool new_blocks = k == 0 || !settings.modified_newton;
    find_loads();
    set_joint_terms();  // 3c
    if (new_blocks) set_deltas();
    set_position_bias();          // 3d
    if (new_blocks) factorise();  // 3e
    solve();                      // 3e, 3f, 3g
    update();                     // 3h
  }
  end_phase(&LiteralPhases::newton);
  if (settings.refactorise_for_projections) {
    set_joint_terms();
    set_deltas();
    factorise();
  }
  project_velocities();  // 4
  end_phase(&LiteralPhases::velocities);
  project_accelerations();  // 5
  end_phase(&LiteralPhases::accelerations);
  alone([&] { ++state.step; });
}

// 3.5 step 1: M qdd + Phi_q' lambda + Psi_q' mu = Q, Phi_q qdd = gamma by the same factor, the multipliers
// accumulated until even the smallest sensible penalty has converged.
void LiteralStepper::Chain::find_start() {
  constexpr int kPasses = 30;
  find_loads();
  set_joint_terms();
  set_deltas();
  factorise();
  set_acceleration_terms();
  for (int pass = 0; pass < kPasses; ++pass) {
    for (int i = 0; i < n(); ++i) {
      evaluate_body(i);
      const Vec4 p = p_of(state.q[i]);
      const double penalty = settings.alpha * p_of(state.qd[i]).squaredNorm();
      Lanes g{};
      for (int k = 0; k < 3; ++k) g[k] = leaf[i].g[k] / h2;
      for (int k = 0; k < 4; ++k) g[3 + k] = leaf[i].g[3 + k] / h2 + penalty * p[k];
      motion[0][i] = product(leaf[i].delta, g);
      motion[1][i] = motion[0][i];
    }
    solve();
    for (int i = 0; i < n(); ++i) {
      const Vec4 p = p_of(state.q[i]);
      double psi = p_of(state.qd[i]).squaredNorm();
      for (int k = 0; k < 4; ++k) psi += p[k] * x[i][3 + k];
      state.mu[i] += h2 * settings.alpha * psi;
      for (int k = 0; k < 7; ++k) state.qdd[i][k] = x[i][k];
    }
    for (const Hinge& j : hinge)
      for (int r = 0; r < j.rows; ++r) state.lambda[j.first_row + r] += h2 * j.increment[r];
  }
}

double LiteralStepper::step() noexcept {
  Chain& chain = *chain_;
  if (chain.settings.threads <= 1) {
    chain.step_once();
  } else {
#pragma omp parallel num_threads(chain.settings.threads)
    chain.step_once();
  }
  return chain.last_increment;
}

}  // namespace rigstep::offline
