#include "core/index3/start/initial_state.h"

#include <Eigen/Dense>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"

namespace rigstep::index3 {

namespace {

constexpr double kGapTolerance = 1e-6;  // [-] of an arm, [rad], of the velocities
constexpr double kAtRest = 1e-12;       // [m/s], [rad/s]: rounding, also where joints hold everything and nothing moves
constexpr int kAssemblyIterations = 100;
constexpr int kPasses = 20;  // of one sweep each; close to a singular pose a few do not suffice

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// (compliance + J M^-1 J') Lambda = J motion + term at the pose in w, by a sparse Cholesky factorisation: at load time,
// and a check on the elimination that the loop uses.
class DualSystem {
 public:
  DualSystem(const Plan& plan, const Workspace& w) : plan_(plan), w_(w), on_body_(w.placement.size()) {
    for (int row = 0; row < plan.rows(); ++row)
      for_each_block(plan, w, row, [&](int body, const Vec6& J) { on_body_[body].push_back({row, J}); });
    for (std::size_t i = 0; i < w.placement.size(); ++i) {
      const Body& body = plan.mechanism.bodies()[i];
      const Mat3& A = w.placement[i].A;
      Eigen::Matrix<double, 6, 6> inverse = Eigen::Matrix<double, 6, 6>::Zero();
      inverse.topLeftCorner<3, 3>().diagonal().setConstant(1.0 / body.mass);
      inverse.bottomRightCorner<3, 3>() = A * body.inertia_b.inverse() * A.transpose();
      inverse_mass_.push_back(inverse);
    }
    factorise();
  }

  // motion := the nearest one, in the metric of the mass, with J motion + term = 0; adds to Lambda
  void close(std::vector<Vec6>& motion, const std::vector<double>& term, std::vector<double>& Lambda) const {
    if (plan_.rows() == 0) return;
    Eigen::VectorXd b = Eigen::Map<const Eigen::VectorXd>(term.data(), plan_.rows());
    for (std::size_t i = 0; i < motion.size(); ++i)
      for (const auto& [row, J] : on_body_[i]) b[row] += J.dot(motion[i]);
    const Eigen::VectorXd x = cholesky_.solve(b);
    for (int row = 0; row < plan_.rows(); ++row) Lambda[row] += x[row];
    for (std::size_t i = 0; i < motion.size(); ++i) {
      Vec6 load = Vec6::Zero();
      for (const auto& [row, J] : on_body_[i]) load += x[row] * J;
      motion[i] -= inverse_mass_[i] * load;
    }
  }

  // M^-1 (Q - gyroscopic - J' lambda)
  std::vector<Vec6> accelerations(const State& x) const {
    std::vector<Vec6> result;
    for (std::size_t i = 0; i < x.body.size(); ++i) {
      const Vec3& w_b = x.body[i].w_b;
      Vec6 load = w_.Q[i];
      load.tail<3>() -= w_.placement[i].A * w_b.cross(plan_.mechanism.bodies()[i].inertia_b * w_b);
      for (const auto& [row, J] : on_body_[i]) load -= x.lambda[row] * J;
      result.push_back(inverse_mass_[i] * load);
    }
    return result;
  }

 private:
  struct RowOnBody {
    int row;
    Vec6 J;
  };

  void factorise() {
    std::vector<Eigen::Triplet<double>> entries;
    entries.reserve(static_cast<std::size_t>(plan_.rows()));
    for (int row = 0; row < plan_.rows(); ++row) entries.emplace_back(row, row, plan_.compliance[row]);
    for (std::size_t i = 0; i < on_body_.size(); ++i)
      for (const RowOnBody& k : on_body_[i]) {
        const Vec6 y = inverse_mass_[i] * k.J;
        for (const RowOnBody& other : on_body_[i])
          if (other.row >= k.row) entries.emplace_back(other.row, k.row, other.J.dot(y));
      }
    Eigen::SparseMatrix<double> S(plan_.rows(), plan_.rows());
    S.setFromTriplets(entries.begin(), entries.end());
    cholesky_.compute(S);
  }

  const Plan& plan_;
  const Workspace& w_;
  std::vector<std::vector<RowOnBody>> on_body_;
  std::vector<Eigen::Matrix<double, 6, 6>> inverse_mass_;
  Eigen::SimplicialLDLT<Eigen::SparseMatrix<double>> cholesky_;
};

// mass-orthogonal Newton steps on the position constraints; returns the residual left
double close_positions(const Plan& plan, State& x, Workspace& w, int iterations) {
  std::vector<double> Lambda(w.Phi.size());
  for (int k = 0;; ++k) {
    place_bodies(x, w);
    evaluate_constraints(plan, w);
    const double residual = largest(w.Phi);
    if (k == iterations || residual < 1e-15) return residual;
    std::vector<Vec6> move(x.body.size(), Vec6::Zero());
    DualSystem(plan, w).close(move, w.Phi, Lambda);
    double turn = 0.0;
    for (const Vec6& d : move) turn = std::max(turn, d.tail<3>().norm());
    const double damping = std::min(1.0, 0.5 / std::max(turn, 1e-300));  // half a radian at most in one step
    for (std::size_t i = 0; i < x.body.size(); ++i) {
      x.body[i].r += damping * move[i].head<3>();
      x.body[i].p = turned(x.body[i].p, damping * move[i].tail<3>());
    }
  }
}

// unwrapping starts at what the description says, as start_pose sets it
void start_coordinates(const Plan& plan, State& x, Workspace& w) {
  follow_coordinates(plan, x.coordinate, w);
  evaluate_elements(plan, Inputs{}, 0.0, x.coordinate, w);
  apply_forces(plan, Inputs{}, 0.0, w);
  std::ranges::transform(w.coordinate, x.coordinate.begin(), &Coordinate::value);
}

// M a + J' lambda = Q, J a + quadratic = 0
void solve_accelerations(const Plan& plan, State& x, Workspace& w) {
  std::vector<double> quadratic_terms(w.Phi.size());
  evaluate_quadratic_terms(plan, w, quadratic_terms);
  std::fill(x.lambda.begin(), x.lambda.end(), 0.0);
  const DualSystem system(plan, w);
  std::vector<Vec6> a;
  for (int pass = 0; pass < kPasses; ++pass) {
    a = system.accelerations(x);
    system.close(a, quadratic_terms, x.lambda);
  }
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    x.body[i].a = a[i].head<3>();
    x.body[i].alpha_b = w.placement[i].A.transpose() * a[i].tail<3>();
  }
}

std::string text(const char* format, double a, double b = 0.0) {
  char buffer[160];
  std::snprintf(buffer, sizeof buffer, format, a, b);
  return buffer;
}

double row_velocity(const Plan& plan, const Workspace& w, int row) {
  const int constraint = plan.constraint_of_row[row];
  double rate = constraint < plan.first_driver() ? 0.0 : row_terms(plan, w, constraint).velocity;
  for_each_block(plan, w, row, [&](int body, const Vec6& J) {
    rate += J.head<3>().dot(w.placement[body].v) + J.tail<3>().dot(w.placement[body].w);
  });
  return rate;
}

JointGap gap_of_row(const Plan& plan, int row, const Workspace& w) {
  JointGap gap;
  (plan.is_length[row] ? gap.distance : gap.angle) = std::abs(w.Phi[row]);
  gap.velocity = std::abs(row_velocity(plan, w, row));
  return gap;
}

JointGap gap_of(const Plan& plan, int j, const Workspace& w) {
  if (j >= plan.first_coupling()) return gap_of_row(plan, plan.first_row[j], w);
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
    gap.velocity = std::max(gap.velocity, std::abs(row_velocity(plan, w, row)));
  }
  gap.distance = std::sqrt(distance2);
  gap.length =
      std::max(joint.first == kGround ? 0.0 : at.s_first.norm(), joint.second == kGround ? 0.0 : at.s_second.norm());
  using Parallel = JointTraits::Parallel;
  const Parallel parallel = traits_of(joint.type).parallel;
  gap.upside_down = (parallel != Parallel::nothing && at.axes_first.col(2).dot(at.axes_second.col(2)) < 0.0) ||
                    (parallel == Parallel::frames && at.axes_first.col(0).dot(at.axes_second.col(0)) < 0.0);
  return gap;
}

// Largest velocity of the bodies, or typical one of the drivers.
double velocity_scale(const Mechanism& mechanism) {
  double scale = 0.0;
  for (const Driver& driver : mechanism.drivers()) scale = std::max(scale, typical_rate(driver.function));
  for (const Body& b : mechanism.bodies()) scale = std::max({scale, b.velocity_0.norm(), b.angular_velocity_0.norm()});
  return scale;
}

}  // namespace

StartError::StartError(int joint_, std::string field_, std::string problem_, std::string remedy_)
    : MechanismError(std::move(field_), std::move(problem_), std::move(remedy_)), joint(joint_) {}

std::vector<JointGap> start_gaps(const Mechanism& mechanism) {
  const Plan plan = make_plan(mechanism, {});
  Workspace w(plan);
  place_bodies(start_pose(plan), w);
  evaluate_constraints(plan, w);
  std::vector<JointGap> gaps;
  gaps.reserve(static_cast<std::size_t>(mechanism.constraints()));
  for (int j = 0; j < mechanism.constraints(); ++j) gaps.push_back(gap_of(plan, j, w));
  return gaps;
}

void require_consistent_start(const Mechanism& mechanism) {
  const std::vector<JointGap> gaps = start_gaps(mechanism);
  const double speed = velocity_scale(mechanism);
  const auto badness = [speed](const JointGap& g) {
    const double distance = g.distance / (g.length > 0.0 ? g.length : 1.0);
    const bool moves = speed > 0.0 && g.velocity > kAtRest;
    const double velocity = moves ? g.velocity / (speed * std::max(1.0, g.length)) : 0.0;
    return g.upside_down ? 1e300 : std::max({distance, g.angle, velocity});
  };
  const auto worst = std::max_element(gaps.begin(), gaps.end(),
                                      [&](const JointGap& a, const JointGap& b) { return badness(a) < badness(b); });
  if (worst == gaps.end() || badness(*worst) <= kGapTolerance) return;
  const int j = static_cast<int>(worst - gaps.begin());
  const std::string field = mechanism.constraint_name(j);
  const std::string remedy = "correct the start pose, or let `rigstep check FILE --assemble` find the nearest one";
  if (worst->upside_down)
    throw StartError(j, field, "the axes of its two sides point in opposite directions at the start",
                     "turn the axis or normal of one side round");
  const bool is_driver = j >= mechanism.constraints() - static_cast<int>(mechanism.drivers().size());
  if (is_driver && std::max(worst->distance, worst->angle) > kGapTolerance)
    throw StartError(
        j, field,
        text("prescribes a value at time 0 that is %.6g m or %.6g rad from the start pose", worst->distance,
             worst->angle),
        "correct the motion or the start pose, or let `rigstep check FILE --assemble` find the nearest one");
  if (is_driver)
    throw StartError(
        j, field,
        text("prescribes a rate at time 0 that is %.6g m/s or rad/s from the start velocities", worst->velocity),
        "correct the motion or the start velocities, or let `rigstep check FILE --assemble` find the "
        "nearest ones");
  if (worst->distance > kGapTolerance * (worst->length > 0.0 ? worst->length : 1.0) || worst->angle > kGapTolerance)
    throw StartError(j, field, text("is open by %.6g m and %.6g rad at the start", worst->distance, worst->angle),
                     remedy);
  throw StartError(j, field, text("its start velocities differ by %.6g m/s or rad/s", worst->velocity),
                   "correct the start velocities, or let `rigstep check FILE --assemble` find the nearest ones");
}

void close_velocities(const Plan& plan, State& x, Workspace& w) {
  place_bodies(x, w);
  evaluate_constraints(plan, w);
  const DualSystem system(plan, w);
  std::vector<Vec6> twist(x.body.size());
  for (std::size_t i = 0; i < x.body.size(); ++i) twist[i] << w.placement[i].v, w.placement[i].w;
  std::vector<double> rates(w.Phi.size());
  evaluate_velocity_terms(plan, w, rates);
  std::vector<double> impulse(w.Phi.size());
  for (int pass = 0; pass < kPasses; ++pass) system.close(twist, rates, impulse);
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    x.body[i].v = twist[i].head<3>();
    x.body[i].w_b = w.placement[i].A.transpose() * twist[i].tail<3>();
  }
}

State start_pose(const Plan& plan) {
  State x(plan.mechanism, plan.rows());
  x.drive = plan.start_drive;
  for (std::size_t k = 0; k < x.coordinate.size(); ++k) x.coordinate[k] = plan.mechanism.coordinates()[k].offset;
  return x;
}

State closed(const Plan& plan, State x, Workspace& w) {
  close_positions(plan, x, w, kAssemblyIterations);
  return x;
}

State initial_state(const Plan& plan, Workspace& w) {
  require_consistent_start(plan.mechanism);
  State x = start_pose(plan);
  close_positions(plan, x, w, 3);
  close_velocities(plan, x, w);
  place_bodies(x, w);
  start_coordinates(plan, x, w);
  solve_accelerations(plan, x, w);
  keep_planar(plan.mechanism, plan.planar, x);
  evaluate_state(plan, x, w);
  return x;
}

}  // namespace rigstep::index3
