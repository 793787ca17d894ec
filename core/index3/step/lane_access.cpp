#include "core/index3/step/lane_access.h"

#include <Eigen/LU>
#include <algorithm>

namespace rigstep::index3 {

static_assert(kLow == kDoublesPerBody && kStateFields == kLow + 3, "lanes hold a body as the state does");

namespace {

template <int N>
Eigen::Matrix<double, N, 1> gather(const double* array, Place at, int first = 0) {
  Eigen::Matrix<double, N, 1> values;
  for (int k = 0; k < N; ++k) values[k] = array[at.base + (first + k) * at.stride];
  return values;
}

template <class Values>
void scatter(double* array, Place at, int first, const Values& values) {
  for (int k = 0; k < static_cast<int>(values.size()); ++k) array[at.base + (first + k) * at.stride] = values[k];
}

template <class F>
void at_all_rows(const ConstraintPlace& c, const F& f) {
  f(c.rows);
  for (const RowsPlace& copy : c.copies) f(copy.rows);
}

void write_load(const Plan& plan, int body, const Vec6& load, Workspace& w) {
  plan.elimination.at_all_places(body,
                                 [&](const BodyPlace& at) { scatter(w.arrays.body, at.of(kLoadField), 0, load); });
}

void write_loads(const Plan& plan, Workspace& w, int body) { write_load(plan, body, w.Q[body], w); }

Mat3 rotation_at(const Workspace& w, const BodyPlace& at) {
  const auto a = gather<9>(w.arrays.body, at.of(kRotationField));
  Mat3 A;
  A << a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8];
  return A;
}

void place_joints(const Plan& plan, const std::vector<int>& joints, Workspace& w) {
  for (const int j : joints) {
    const Joint& joint = plan.mechanism.joints()[j];
    w.joint[j] = place_joint(joint, placement(w, joint.first), placement(w, joint.second));
  }
}

void gather(const Plan& plan, const std::vector<int>& bodies, const std::vector<int>& joints, Workspace& w) {
  const double two_over_dt = w.arrays.step.two_over_dt;
  for (const int i : bodies) {
    const BodyPlace& place = plan.elimination.body[i];
    const Place last = place.of(w.arrays.last), next = place.of(w.arrays.next);
    Placement& at = w.placement[i];
    at.r = gather<3>(w.arrays.body, next);
    at.A = rotation_at(w, place);
    at.v =
        gather<3>(w.arrays.body, last, kV) + two_over_dt * gather<3>(w.arrays.body, place.of(kHistoryField + kBeyond));
    const EulerParameters p = gather<4>(w.arrays.body, next, kP);
    const EulerParameters minus_2_pd_hat = gather<4>(w.arrays.body, place.of(kHistoryField + kMinus2PdHat));
    at.w = at.A * twice_G(p, -0.5 * minus_2_pd_hat);
  }
  place_joints(plan, joints, w);
}

void gather_velocities(const Plan& plan, const std::vector<int>& bodies, Workspace& w) {
  for (const int i : bodies) {
    const Vec6 twist = gather<6>(w.arrays.body, plan.elimination.body[i].of(kTwistField));
    w.placement[i].v = twist.head<3>();
    w.placement[i].w = twist.tail<3>();
  }
}

// elements and primal bodies are never open and have no multiplier
void keep_closed(const Elimination& e, std::size_t constraint, StepArrays& a) {
  at_all_rows(e.constraint_place[constraint], [&](Place at) {
    for (int row = 0; row < e.constraints[constraint].format.rows; ++row) a.Phi[at.base + row * at.stride] = 0.0;
  });
}

// nobody evaluates padding
void clear_padding(const Elimination& e, std::size_t padding, StepArrays& a) {
  for (const std::vector<Place>& side : e.constraint_place[padding].handles)
    for (const Place& at : side)
      for (int n = 0; n < e.constraints[padding].format.handle_size(); ++n) a.handles[at.base + n * at.stride] = 0.0;
}

}  // namespace

void enter_lanes(const Plan& plan, const State& x, Workspace& w) noexcept {
  const Elimination& e = plan.elimination;
  StepArrays& a = w.arrays;
  for (int i = 0; i < static_cast<int>(x.body.size()); ++i) {
    const Eigen::Map<const Eigen::Matrix<double, kDoublesPerBody, 1>> values(x.body[i].r.data());
    e.at_all_places(i, [&](const BodyPlace& at) {
      scatter(a.body, at.of(a.last), 0, values);
      scatter(a.body, at.of(a.last), kLow, x.r_low[i]);
    });
    write_loads(plan, w, i);
  }
  std::fill_n(a.last_lambda, e.rows, 0.0);  // also of what only fills a lane
  std::fill_n(a.last_kappa, e.rows, 0.0);
  for (double* each : {a.rate, a.closed_at, a.closed_acceleration, a.elasticity}) std::fill_n(each, e.rows, 0.0);
  std::fill_n(a.quadratic, e.rows, 0.0);
  for (std::size_t k = plan.first_element(); k < e.constraints.size(); ++k)
    e.constraints[k].is_padding ? clear_padding(e, k, a) : keep_closed(e, k, a);
  for (int c = 0; c < plan.mechanism.constraints(); ++c) {
    for (int k = 0, row = plan.first_row[c]; k < plan.eliminated_rows[c]; ++k, ++row) {
      write_row(plan, c, k, x.lambda[row], a.last_lambda);
      write_row(plan, c, k, x.kappa[row], a.last_kappa);
    }
  }
}

void enter_weight(const Plan& plan, int body, Workspace& w) noexcept { write_loads(plan, w, body); }

void leave_lanes(const Plan& plan, const Workspace& w, Instant instant, State& x) noexcept {
  const Elimination& e = plan.elimination;
  const StepArrays& a = w.arrays;
  const bool last = instant == Instant::last;
  const int state = last ? a.last : a.next;
  const double *lambda = last ? a.last_lambda : a.lambda, *kappa = last ? a.last_kappa : a.kappa;
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const Place at = e.body[i].of(state);
    double* to = x.body[i].r.data();
    for (int k = 0; k < kDoublesPerBody; ++k) to[k] = a.body[at.base + k * at.stride];
    x.r_low[i] = gather<3>(a.body, at, kLow);
  }
  for (int c = 0; c < plan.mechanism.constraints(); ++c) {
    for (int k = 0, row = plan.first_row[c]; k < plan.eliminated_rows[c]; ++k, ++row) {
      x.lambda[row] = row_value(plan, lambda, c, k);
      x.kappa[row] = row_value(plan, kappa, c, k);
    }
  }
}

void iterate_from_last(const Plan& plan, Workspace& w) noexcept {
  StepArrays& a = w.arrays;
  for (int i = 0; i < static_cast<int>(plan.elimination.body.size()); ++i)
    plan.elimination.at_all_places(i, [&](const BodyPlace& at) {
      scatter(a.body, at.of(a.next), 0, gather<kStateFields>(a.body, at.of(a.last)));
    });
  std::copy_n(a.last_lambda, a.rows, a.lambda);
  plan.kernels->update_rotations(a);
}

void copy_last_instant(const Plan& plan, const Workspace& from, Workspace& to) noexcept {
  const StepArrays &a = from.arrays, &b = to.arrays;
  for (const Leaf& leaf : plan.elimination.leaves)
    std::copy_n(a.body + leaf.record + a.last * leaf.width, kStateFields * leaf.width,
                b.body + leaf.record + b.last * leaf.width);
  std::copy_n(a.last_lambda, a.rows, b.last_lambda);
  std::copy_n(a.last_kappa, a.rows, b.last_kappa);
}

void gather_poses(const Plan& plan, Workspace& w) noexcept {
  gather(plan, plan.pose_dependent_bodies, plan.pose_dependent_joints, w);
}

void gather_reached_by_forces(const Plan& plan, Workspace& w) noexcept {
  gather(plan, plan.bodies_of_forces, plan.joints_of_forces, w);
  gather_velocities(plan, plan.bodies_of_forces, w);
}

void place_joints_of_forces(const Plan& plan, Workspace& w) noexcept { place_joints(plan, plan.joints_of_forces, w); }

void gather_last_instant(const Plan& plan, Workspace& w) noexcept {
  for (const int i : plan.bodies_over_step) {
    BodyState body;
    Eigen::Map<Eigen::Matrix<double, kDoublesPerBody, 1>>(body.r.data()) =
        gather<kDoublesPerBody>(w.arrays.body, plan.elimination.body[i].of(w.arrays.last));
    w.placement[i] = placement_of(body);
  }
  place_joints(plan, plan.joints_over_step, w);
}

void gather_over_step(const Plan& plan, Workspace& w) noexcept {
  gather(plan, plan.bodies_over_step, plan.joints_over_step, w);
  gather_velocities(plan, plan.bodies_over_step, w);
}

void gather_reached(const Plan& plan, Workspace& w) noexcept {
  gather(plan, plan.followed_bodies, plan.followed_joints, w);
  gather_velocities(plan, plan.followed_bodies, w);
  gather_velocities(plan, plan.pose_dependent_bodies, w);
}

void evaluate_drivers(const Plan& plan, const State& last, const Inputs& inputs, double t, Workspace& w) noexcept {
  start_drivers(last, w);
  advance_drivers(plan, inputs, t, w);
}

void start_drivers(const State& last, Workspace& w) noexcept {
  std::copy(last.coordinate.begin(), last.coordinate.end(), w.reference.begin());
  std::copy(last.drive.begin(), last.drive.end(), w.drive.begin());
}

void advance_drivers(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept {
  for (std::size_t k = 0; k < w.drive.size(); ++k)
    set_drive(plan, static_cast<int>(k),
              prescribed_next(plan.mechanism.drivers()[k], plan.drivers[k], w.drive[k], inputs, t), w);
}

void write_row(const Plan& plan, int constraint, int row, double value, double* array) noexcept {
  const int there = plan.first_row_there[constraint] + row;
  at_all_rows(plan.elimination.constraint_place[plan.eliminated_as[constraint]],
              [&](Place at) { array[at.base + there * at.stride] = value; });
}

void set_drive(const Plan& plan, int driver, const Prescribed& motion, Workspace& w) noexcept {
  w.drive[driver] = motion;
  const int constraint = plan.first_driver() + driver;
  const double offset = plan.mechanism.coordinates()[plan.mechanism.drivers()[driver].coordinate].offset;
  write_row(plan, constraint, 0, -motion.rate, w.arrays.rate);
  write_row(plan, constraint, 0, motion.value - offset, w.arrays.closed_at);
  write_row(plan, constraint, 0, motion.acceleration, w.arrays.closed_acceleration);
}

void load_bodies(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept {
  apply_forces(plan, inputs, t, w);
  for (const int i : plan.loaded_bodies) write_loads(plan, w, i);
}

void write_own_block(const Plan& plan, int body, const Mat6& block, Workspace& w) noexcept {
  plan.elimination.at_all_places(body, [&](const BodyPlace& at) {
    double* to = w.arrays.tangent + plan.elimination.leaf_at(body, at).dense + at.lane;
    for (int row = 0; row < 6; ++row)
      for (int column = 0; column <= row; ++column, to += at.width) *to = block(row, column);
  });
}

void enter_load(const Plan& plan, int body, const Vec6& load, Workspace& w) noexcept {
  write_load(plan, body, load, w);
}

void change_state(const Plan& plan, int body, const Vec6& displacement, const Vec6& twist, Workspace& w) noexcept {
  const BodyPlace& place = plan.elimination.body[body];
  const Place next = place.of(w.arrays.next);
  Vec3 r = gather<3>(w.arrays.body, next);
  const EulerParameters p = turned(gather<4>(w.arrays.body, next, kP), displacement.tail<3>());
  Vec3 v = gather<3>(w.arrays.body, next, kV), w_b = gather<3>(w.arrays.body, next, kOmega);
  r += displacement.head<3>();
  v += twist.head<3>();
  w_b += rotation_at(w, place).transpose() * twist.tail<3>();
  plan.elimination.at_all_places(body, [&](const BodyPlace& each) {
    const Place at = each.of(w.arrays.next);
    scatter(w.arrays.body, at, kR, r), scatter(w.arrays.body, at, kP, p);
    scatter(w.arrays.body, at, kV, v), scatter(w.arrays.body, at, kOmega, w_b);
  });
}

void state_difference(const Plan& plan, int body, const Workspace& w, const Workspace& other, Vec6& displacement,
                      Vec6& twist) noexcept {
  const BodyPlace& place = plan.elimination.body[body];
  const Mat3 A = rotation_at(w, place);
  const Place at = place.of(w.arrays.next), at_other = place.of(other.arrays.next);
  const auto difference = [&](int of) -> Vec3 {
    return gather<3>(w.arrays.body, at, of) - gather<3>(other.arrays.body, at_other, of);
  };
  const EulerParameters p = gather<4>(w.arrays.body, at, kP);
  EulerParameters q = gather<4>(other.arrays.body, at_other, kP);
  if (p.dot(q) < 0.0) q = -q;
  displacement << difference(kR), A * twice_G(p, EulerParameters(p - q));
  twist << difference(kV), A * difference(kOmega);
}

void correct_accelerations(const Plan& plan, Workspace& w) noexcept {
  replace_loads_over_step(plan, w);
  for (const int i : plan.bodies_over_step) {
    const Body& body = plan.mechanism.bodies()[i];
    const Mat3& A = w.placement[i].A;
    Vec6 corrected = motion(plan, w, i);
    corrected.head<3>() += w.Q[i].head<3>() / body.mass;
    corrected.tail<3>() += A * (body.inertia_b.inverse() * (A.transpose() * w.Q[i].tail<3>()));
    set_motion(plan, i, corrected, w);
  }
}

Singular what_is_singular(const Plan& plan, const Workspace& w) noexcept {
  const Elimination& e = plan.elimination;
  const auto failed_pivot = [&](std::size_t c) {  // -1: none
    const auto [front, lane] = e.constraint_place[c].eliminated_by;
    const Front& f = e.fronts[front];
    for (int k = 0; k < f.pivots; ++k) {
      const double inverse_d = w.arrays.arena[f.factor + k * (k + 3) / 2 * f.width + lane];  // on L's packed diagonal
      if (!((f.is_primal ? -inverse_d : inverse_d) > 0.0)) return k;
    }
    return -1;
  };
  int singular = -1;
  for (int c = 0; c < static_cast<int>(e.constraints.size()); ++c)
    if (!e.constraints[c].is_padding && failed_pivot(c) >= 0 &&
        (singular < 0 || e.constraint_place[c].level < e.constraint_place[singular].level))
      singular = c;
  if (singular < 0) return {};
  if (singular < plan.first_element()) {
    const int constraint = plan.eliminated[singular], driver = plan.driver_in_row(constraint, failed_pivot(singular));
    return {-1, driver < 0 ? constraint : plan.first_driver() + driver};
  }
  const auto& sides = e.constraints[singular].bodies;
  const int body = sides.front() == kGround ? sides.back() : sides.front();
  const int bodies = static_cast<int>(e.body.size());
  return {body < bodies ? body : e.body_of_attachment[body - bodies], -1};
}

Vec6 motion(const Plan& plan, const Workspace& w, int body) noexcept {
  return gather<6>(w.arrays.body, plan.elimination.body[body].of(kMotionField));
}

void set_motion(const Plan& plan, int body, const Vec6& motion, Workspace& w) noexcept {
  plan.elimination.at_all_places(body,
                                 [&](const BodyPlace& at) { scatter(w.arrays.body, at.of(kMotionField), 0, motion); });
}

}  // namespace rigstep::index3
