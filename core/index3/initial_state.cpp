#include "core/index3/initial_state.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/index3/forces.h"
#include "core/index3/sweeps.h"
#include "core/index3/tangent.h"

namespace rigstep::index3 {

namespace {

constexpr double kGapTolerance = 1e-6;  // [-] of an arm, [rad], of the velocities
constexpr int kAssemblyIterations = 100;
constexpr int kPasses = 20;  // of one sweep each; close to a singular pose a few do not suffice

void place_bodies(const State& x, Workspace& w) {
  for (std::size_t i = 0; i < x.body.size(); ++i) w.placement[i] = placement_of(x.body[i]);
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// one solve of the dual system for the motion in w.bias
void close_once(const Plan& plan, Workspace& w) {
  assemble(plan, w);
  disassemble(plan, w);
  close_joints(plan, w);
}

// mass-orthogonal Newton steps on the position constraints; returns the residual left
double close_positions(const Plan& plan, State& x, Workspace& w, int iterations) {
  for (int k = 0;; ++k) {
    place_bodies(x, w);
    evaluate_constraints(plan, w);
    const double residual = largest(w.Phi);
    if (k == iterations || residual < 1e-15) return residual;
    factorise(plan, x.lambda, {}, w);
    std::fill(w.bias.begin(), w.bias.end(), Vec6(Vec6::Zero()));
    std::copy(w.Phi.begin(), w.Phi.end(), w.rhs_term.begin());
    close_once(plan, w);
    double turn = 0.0;
    for (const Vec6& d : w.bias) turn = std::max(turn, d.tail<3>().norm());
    const double damping = std::min(1.0, 0.5 / std::max(turn, 1e-300));  // half a radian at most in one step
    for (std::size_t i = 0; i < x.body.size(); ++i) {
      x.body[i].r += damping * w.bias[i].head<3>();
      x.body[i].p = turned(x.body[i].p, damping * w.bias[i].tail<3>());
    }
  }
}

void close_velocities(const Plan& plan, State& x, Workspace& w) {
  place_bodies(x, w);
  evaluate_constraints(plan, w);
  factorise(plan, x.lambda, {}, w);
  for (std::size_t i = 0; i < x.body.size(); ++i) w.bias[i] << w.placement[i].v, w.placement[i].w;
  std::fill(w.rhs_term.begin(), w.rhs_term.end(), 0.0);
  for (int sweep = 0; sweep < kPasses; ++sweep) close_once(plan, w);
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    x.body[i].v = w.bias[i].head<3>();
    x.body[i].w_b = w.placement[i].A.transpose() * w.bias[i].tail<3>();
  }
}

void follow_coordinates(const Plan& plan, State& x, Workspace& w) {
  std::fill(x.coordinate.begin(), x.coordinate.end(), 0.0);
  for (std::size_t k = 0; k < x.coordinate.size(); ++k)  // unwrapping starts at what the description says
    x.coordinate[k] = plan.mechanism.coordinates()[k].offset;
  apply_forces(plan, Inputs{}, 0.0, x.coordinate, w);
  x.coordinate = w.coordinate;
}

// M a + J' lambda = Q, J a + quadratic = 0 with the factorisation of the plain mass matrix
void solve_accelerations(const Plan& plan, State& x, Workspace& w) {
  evaluate_quadratic_terms(plan, w);
  std::fill(x.lambda.begin(), x.lambda.end(), 0.0);
  std::vector<Vec6> loads(x.body.size());
  for (int pass = 0; pass < kPasses; ++pass) {
    std::fill(loads.begin(), loads.end(), Vec6(Vec6::Zero()));
    add_joint_loads(plan, w, x.lambda, loads);
    for (std::size_t i = 0; i < x.body.size(); ++i) {
      const Vec3& w_b = x.body[i].w_b;
      const Vec3 gyroscopic_b = w_b.cross(plan.mechanism.bodies()[i].inertia_b * w_b);
      Vec6 load = w.Q[i] - loads[i];
      load.tail<3>() -= w.placement[i].A * gyroscopic_b;
      w.bias[i] = w.M_inverse[i] * load;
    }
    close_once(plan, w);
    for (std::size_t row = 0; row < x.lambda.size(); ++row) x.lambda[row] += w.Lambda[row];
  }
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    x.body[i].a = w.bias[i].head<3>();
    x.body[i].alpha_b = w.placement[i].A.transpose() * w.bias[i].tail<3>();
  }
}

std::string text(const char* format, double a, double b = 0.0) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, format, a, b);
  return buffer;
}

bool keeps_normals_parallel(JointType type) { return type == JointType::prismatic || type == JointType::fixed; }

bool keeps_axes_parallel(JointType type) {
  return type == JointType::revolute || type == JointType::cylindrical || type == JointType::parallel_axes ||
         keeps_normals_parallel(type);
}

double row_velocity(const Workspace& w, const Joint& joint, int row) {
  const Placement &first = placement(w, joint.first), &second = placement(w, joint.second);
  return w.J_first[row].head<3>().dot(first.v) + w.J_first[row].tail<3>().dot(first.w) +
         w.J_second[row].head<3>().dot(second.v) + w.J_second[row].tail<3>().dot(second.w);
}

JointGap gap_of(const Plan& plan, int j, const Workspace& w) {
  const Joint& joint = plan.mechanism.joints()[j];
  const JointPlacement& at = w.joint[j];
  JointGap gap;
  double distance2 = 0.0;
  const auto rows = rows_of(joint.type);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const int row = plan.first_row[j] + static_cast<int>(k);
    if (rows[k].form == Row::Form::cosine)
      gap.angle = std::max(gap.angle, std::asin(std::min(1.0, std::abs(w.Phi[row]))));
    else
      distance2 += w.Phi[row] * w.Phi[row];
    gap.velocity = std::max(gap.velocity, std::abs(row_velocity(w, joint, row)));
  }
  gap.distance = std::sqrt(distance2);
  gap.length =
      std::max(joint.first == kGround ? 0.0 : at.s_first.norm(), joint.second == kGround ? 0.0 : at.s_second.norm());
  gap.upside_down = (keeps_axes_parallel(joint.type) && at.axes_first.col(2).dot(at.axes_second.col(2)) < 0.0) ||
                    (keeps_normals_parallel(joint.type) && at.axes_first.col(0).dot(at.axes_second.col(0)) < 0.0);
  return gap;
}

double velocity_scale(const Mechanism& mechanism) {
  double scale = 0.0;
  for (const Body& b : mechanism.bodies()) scale = std::max({scale, b.velocity_0.norm(), b.angular_velocity_0.norm()});
  return scale;
}

}  // namespace

StartError::StartError(int joint_, std::string field_, std::string problem_, std::string remedy_)
    : MechanismError(std::move(field_), std::move(problem_), std::move(remedy_)), joint(joint_) {}

std::vector<JointGap> start_gaps(const Mechanism& mechanism) {
  const Plan plan(mechanism, {});
  Workspace w(plan);
  place_bodies(State(mechanism, plan.rows()), w);
  evaluate_constraints(plan, w);
  std::vector<JointGap> gaps;
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j) gaps.push_back(gap_of(plan, static_cast<int>(j), w));
  return gaps;
}

void require_consistent_start(const Mechanism& mechanism) {
  const std::vector<JointGap> gaps = start_gaps(mechanism);
  const double speed = velocity_scale(mechanism);
  const auto badness = [speed](const JointGap& g) {
    const double distance = g.distance / (g.length > 0.0 ? g.length : 1.0);
    const double velocity = speed > 0.0 ? g.velocity / (speed * std::max(1.0, g.length)) : 0.0;
    return g.upside_down ? 1e300 : std::max({distance, g.angle, velocity});
  };
  const auto worst = std::max_element(gaps.begin(), gaps.end(),
                                      [&](const JointGap& a, const JointGap& b) { return badness(a) < badness(b); });
  if (worst == gaps.end() || badness(*worst) <= kGapTolerance) return;
  const int j = static_cast<int>(worst - gaps.begin());
  const std::string field = "joint \"" + mechanism.joints()[j].name + "\"";
  const std::string remedy = "correct the start pose, or let `rigstep check FILE --assemble` find the nearest one";
  if (worst->upside_down)
    throw StartError(j, field, "the axes of its two sides point in opposite directions at the start",
                     "turn the axis or normal of one side round");
  if (worst->distance > kGapTolerance * (worst->length > 0.0 ? worst->length : 1.0) || worst->angle > kGapTolerance)
    throw StartError(j, field, text("is open by %.6g m and %.6g rad at the start", worst->distance, worst->angle),
                     remedy);
  throw StartError(j, field, text("its start velocities differ by %.6g m/s or rad/s", worst->velocity),
                   "correct the start velocities, or let `rigstep check FILE --assemble` find the nearest ones");
}

Assembly assemble(const Mechanism& mechanism) {
  const Plan plan(mechanism, {});
  Workspace w(plan);
  State x(mechanism, plan.rows());
  Assembly result;
  result.residual = close_positions(plan, x, w, kAssemblyIterations);
  close_velocities(plan, x, w);
  place_bodies(x, w);
  double velocity = 0.0, speed = 0.0;
  for (std::size_t j = 0; j < w.joint.size(); ++j)
    velocity = std::max(velocity, gap_of(plan, static_cast<int>(j), w).velocity);
  for (const Placement& at : w.placement) speed = std::max({speed, at.v.norm(), at.w.norm()});
  result.closed = result.residual < 1e-12 && velocity <= kGapTolerance * speed;
  result.bodies = mechanism.bodies();
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    Body& b = result.bodies[i];
    const double move = (x.body[i].r - b.position_0).norm();
    const double cosine = std::min(1.0, std::abs(x.body[i].p.dot(b.orientation)));
    result.largest_turn = std::max(result.largest_turn, 2.0 * std::acos(cosine));
    if (result.most_moved.empty() || move > result.largest_move) {
      result.largest_move = move;
      result.most_moved = b.name;
    }
    b.position_0 = x.body[i].r;
    b.orientation = x.body[i].p;
    b.velocity_0 = x.body[i].v;
    b.angular_velocity_0 = rotation_matrix(x.body[i].p) * x.body[i].w_b;
  }
  return result;
}

State closed(const Plan& plan, State x, Workspace& w) {
  close_positions(plan, x, w, kAssemblyIterations);
  return x;
}

State initial_state(const Plan& plan, Workspace& w) {
  require_consistent_start(plan.mechanism);
  State x(plan.mechanism, plan.rows());
  close_positions(plan, x, w, 3);
  close_velocities(plan, x, w);
  place_bodies(x, w);
  follow_coordinates(plan, x, w);
  solve_accelerations(plan, x, w);
  evaluate_state(plan, x, w);
  return x;
}

void evaluate_state(const Plan& plan, const State& x, Workspace& w) noexcept {
  place_bodies(x, w);
  evaluate_constraints(plan, w);
  apply_forces(plan, Inputs{}, 0.0, x.coordinate, w);
}

}  // namespace rigstep::index3
