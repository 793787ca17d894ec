#include "core/index3/outputs/diagnostics.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <random>

#include "core/index3/compile/size_limits.h"
#include "core/index3/compile/symmetric_eigen.h"
#include "core/index3/physics/drivers.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

// Residuals, beside the scale of their quantity. Chosen: only the status depends on them; stepper_test holds that a
// good step stays a thousand times below ("a step whose residuals are above ...").
constexpr double kPositionLimit = 1e-7;
constexpr double kVelocityLimit = 1e-6;
constexpr double kAccelerationLimit = 1e-3;
constexpr double kLeastMove = 1e-3;  // of the largest arm in a step: what stands still may be moved by its inputs

constexpr double kNoShare = 1e-10;           // in a redundant combination, of its length one
constexpr double kRoundingOfVector = 1e-15;  // of an eigenvector whose eigenvalue is 1 away from the next

double along(const Vec6& J, const Vec3& linear, const Vec3& angular) {
  return J.head<3>().dot(linear) + J.tail<3>().dot(angular);
}

Eigen::MatrixXd dense_jacobian(const Plan& plan, const Workspace& w) {
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(plan.rows(), 6 * static_cast<int>(w.placement.size()));
  for (int row = 0; row < plan.rows(); ++row)
    for_each_block(plan, w, row,
                   [&](int body, const Vec6& J_body) { J.block<1, 6>(row, 6 * body) = J_body.transpose(); });
  return J;
}

// J M^-1/2 with the rows scaled to unit length, by `scale`; the plain mass matrix
Eigen::MatrixXd scaled_jacobian(const Plan& plan, const Workspace& w, Eigen::VectorXd& scale) {
  Eigen::MatrixXd J = dense_jacobian(plan, w);
  for (std::size_t i = 0; i < w.placement.size(); ++i) {
    const Body& body = plan.mechanism.bodies()[i];
    const Mat3 inertia = w.placement[i].A * body.inertia_b * w.placement[i].A.transpose();
    const Mat3 root = inertia.llt().matrixL();
    auto columns = J.middleCols<6>(6 * static_cast<int>(i));
    columns.leftCols<3>() /= std::sqrt(body.mass);
    columns.rightCols<3>() = columns.rightCols<3>().eval() * root.inverse().transpose();
  }
  scale = J.rowwise().norm().cwiseInverse();
  return scale.asDiagonal() * J;
}

// Motion of both bodies of a joint.
struct Ends {
  Ends(const State& x, const Joint& joint) {
    const auto fill = [&x](int body, Placement& at, Vec3& a, Vec3& alpha) {
      if (body == kGround) return;
      at = placement_of(x.body[body]);
      a = x.body[body].a;
      alpha = at.A * x.body[body].alpha_b;
    };
    fill(joint.first, first, a_first, alpha_first);
    fill(joint.second, second, a_second, alpha_second);
  }
  Placement first, second;
  Vec3 a_first = Vec3::Zero(), alpha_first = Vec3::Zero(), a_second = Vec3::Zero(), alpha_second = Vec3::Zero();
};

void note(double position, double velocity, double acceleration, StepReport& report) {
  report.position_residual = std::max(report.position_residual, std::abs(position));
  report.velocity_residual = std::max(report.velocity_residual, std::abs(velocity));
  report.acceleration_residual = std::max(report.acceleration_residual, std::abs(acceleration));
}

void add_residuals(const Joint& joint, const JointPlacement& at, const Ends& ends, StepReport& report) {
  for (const Row& r : rows_of(joint.type)) {
    const RowValue row = evaluate(r, at);
    note(row.Phi, along(row.J_first, ends.first.v, ends.first.w) + along(row.J_second, ends.second.v, ends.second.w),
         along(row.J_first, ends.a_first, ends.alpha_first) + along(row.J_second, ends.a_second, ends.alpha_second) +
             quadratic(r, at, ends.first, ends.second),
         report);
  }
}

// A joint coordinate and its derivatives with respect to time; the value is not unwrapped.
struct CoordinateMotion {
  double value, rate, acceleration;
};

CoordinateMotion motion_of(const JointCoordinate& c, const JointPlacement& at, const Ends& ends) {
  const Coordinate x = coordinate(c.freedom, at, ends.first, ends.second);
  return {x.value + c.offset, x.rate,
          along(x.first, ends.a_first, ends.alpha_first) + along(x.second, ends.a_second, ends.alpha_second) +
              coordinate_quadratic(c.freedom, at, ends.first, ends.second)};
}

// of a coupling or driver; ends_of(joint); reference: from where angles are unwrapped
template <class EndsOf>
void add_residuals(const Plan& plan, int constraint, const std::vector<double>& reference,
                   const std::vector<Prescribed>& drive, const EndsOf& ends_of, StepReport& report) {
  const Mechanism& m = plan.mechanism;
  const auto moving = [&](int k) {
    const JointCoordinate& c = m.coordinates()[k];
    const Joint& joint = m.joints()[c.joint];
    const Ends ends = ends_of(joint);
    const JointPlacement at = place_joint(joint, ends.first, ends.second);
    CoordinateMotion x = motion_of(c, at, ends);
    x.value = followed(c.freedom, at, x.value, reference[k]);
    return x;
  };
  if (const int k = constraint - plan.first_driver(); k >= 0) {
    const int driven = m.drivers()[k].coordinate;
    const CoordinateMotion x = moving(driven);
    return note(driver_gap(m.coordinates()[driven].freedom, x.value, drive[k].value), x.rate - drive[k].rate,
                x.acceleration - drive[k].acceleration, report);
  }
  const int k = constraint - plan.first_coupling();
  const Coupling& c = m.couplings()[k];
  const CoordinateMotion x = moving(c.first), y = moving(c.second);
  note(x.value + c.ratio * y.value - plan.coupling_constant[k], x.rate + c.ratio * y.rate,
       x.acceleration + c.ratio * y.acceleration, report);
}

// The redundant combinations of a pose: loads in the joints that do nothing to the bodies.
struct Redundancy {
  Eigen::MatrixXd combination;  // (rows x redundant) orthonormal, of the rows scaled to unit length
  Eigen::VectorXd scale;        // (rows) that makes multipliers of them
};

// load of a joint on its second body, world frame, about its joint point, for given multipliers of its rows
Vec6 load_of(const Plan& plan, const Workspace& w, int joint, const Eigen::VectorXd& lambda) {
  Vec6 load = Vec6::Zero();
  for (int row = plan.first_row[joint]; row < plan.first_row[joint + 1]; ++row) load -= lambda[row] * w.J_second[row];
  load.tail<3>() -= w.joint[joint].s_second.cross(load.head<3>());
  return load;
}

std::vector<std::array<bool, 6>> open_loads(const Plan& plan, const Workspace& w, const Redundancy& r) {
  std::vector<std::array<bool, 6>> open(plan.mechanism.joints().size(), std::array<bool, 6>{});
  for (Eigen::Index k = 0; k < r.combination.cols(); ++k) {
    const Eigen::VectorXd lambda = r.combination.col(k).cwiseProduct(r.scale);
    const double largest = lambda.cwiseAbs().maxCoeff();
    for (std::size_t j = 0; j < open.size(); ++j) {
      const Vec6 load = load_of(plan, w, static_cast<int>(j), lambda);
      for (int c = 0; c < 6; ++c) open[j][c] = open[j][c] || std::abs(load[c]) > 1e-6 * largest;
    }
  }
  return open;
}

// What has the same label, ascending; -1 has none.
std::vector<std::vector<int>> by_label(const std::vector<int>& label) {
  std::vector<std::vector<int>> lists;
  for (std::size_t k = 0; k < label.size(); ++k) {
    if (label[k] < 0) continue;
    if (lists.size() <= static_cast<std::size_t>(label[k])) lists.resize(static_cast<std::size_t>(label[k]) + 1);
    lists[label[k]].push_back(static_cast<int>(k));
  }
  std::erase_if(lists, [](const std::vector<int>& list) { return list.empty(); });
  return lists;
}

// Constraints that share a redundant combination: blocks of the projector on them. gap: smallest eigenvalue that is not
// zero.
std::vector<std::vector<int>> groups_of(const Plan& plan, const Redundancy& r, double gap) {
  const double no_share = std::max(kNoShare, kRoundingOfVector / gap);
  std::vector<int> group(static_cast<std::size_t>(plan.mechanism.constraints()));
  for (std::size_t c = 0; c < group.size(); ++c) group[c] = static_cast<int>(c);
  std::vector<bool> has_share(group.size(), false);
  for (int row = 0; row < plan.rows(); ++row) {
    const Eigen::VectorXd shared = r.combination * r.combination.row(row).transpose();
    for (int other = 0; other <= row; ++other) {
      if (std::abs(shared[other]) < no_share) continue;
      const int a = group[plan.constraint_of_row[row]], b = group[plan.constraint_of_row[other]];
      has_share[plan.constraint_of_row[row]] = true;
      if (a != b) std::replace(group.begin(), group.end(), b, a);
    }
  }
  for (std::size_t c = 0; c < group.size(); ++c)
    if (!has_share[c]) group[c] = -1;
  return by_label(group);
}

// a random motion that the joints allow, its largest displacement or rotation a hundredth
Eigen::VectorXd small_motion(const Plan& plan, const Workspace& w) {
  const Eigen::MatrixXd J = dense_jacobian(plan, w).topRows(plan.first_row[plan.first_driver()]);
  Eigen::VectorXd motion(J.cols());
  std::mt19937 random(1);
  for (Eigen::Index k = 0; k < motion.size(); ++k) motion[k] = static_cast<double>(random()) / 4294967296.0 - 0.5;
  if (J.rows() > 0) {  // less its part along the constraints
    const auto [values, vectors] = spectrum(J * J.transpose());
    const Eigen::ArrayXd along = (vectors.transpose() * (J * motion)).array();
    const double least = kRankTolerance * values.maxCoeff();
    motion -= J.transpose() * (vectors * (values.array() > least).select(along / values.array(), 0.0).matrix());
  }
  double largest = 0.0;
  for (Eigen::Index k = 0; k < motion.size(); k += 6)
    largest = std::max({largest, motion.segment<3>(k).norm() / plan.length, motion.segment<3>(k + 3).norm()});
  if (largest > 0.0) motion *= 0.01 / largest;
  return motion;
}

}  // namespace

Energy energy(const Plan& plan, const State& x, const Workspace& w) noexcept {
  double kinetic = 0.0;
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const Body& body = plan.mechanism.bodies()[i];
    kinetic += 0.5 * body.mass * x.body[i].v.squaredNorm() + 0.5 * x.body[i].w_b.dot(body.inertia_b * x.body[i].w_b);
  }
  return {kinetic, potential_energy(plan, x, w)};
}

void residuals(const Plan& plan, const State& x, StepReport& report) noexcept {
  report.position_residual = report.velocity_residual = report.acceleration_residual = 0.0;
  for (std::size_t j = 0; j < plan.mechanism.joints().size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    const Ends ends(x, joint);
    add_residuals(joint, place_joint(joint, ends.first, ends.second), ends, report);
  }
  for (int c = plan.first_coupling(); c < plan.mechanism.constraints(); ++c)
    add_residuals(
        plan, c, x.coordinate, x.drive, [&x](const Joint& joint) { return Ends(x, joint); }, report);
}

void measure_residuals(const Plan& plan, Workspace& w, const Residuals& found, StepReport& report) noexcept {
  report.position_residual = found.position;
  report.velocity_residual = found.velocity;
  report.acceleration_residual = found.acceleration;
  measure_residuals_of_couplings(plan, w, report);
}

ResidualLimits residual_limits(const Plan& plan, const State& start) {
  const Mechanism& m = plan.mechanism;
  const double L = plan.length;
  double speed = kLeastMove * L / plan.dt(), acceleration = m.gravity_0().norm();
  for (const BodyState& b : start.body) {
    speed = std::max(speed, b.v.norm() + L * b.w_b.norm());
    acceleration = std::max(acceleration, b.a.norm() + L * (b.alpha_b.norm() + b.w_b.squaredNorm()));
  }
  for (const Driver& driver : m.drivers())
    speed = std::max(speed,
                     typical_rate(driver.function) * (is_length(m.coordinates()[driver.coordinate].freedom) ? 1.0 : L));
  speed = std::max(speed, std::sqrt(L * acceleration));
  acceleration = std::max(acceleration, speed * speed / L);
  const double of_unit = std::min(1.0, 1.0 / L);  // rows are lengths, or angles and cosines
  return {kPositionLimit * std::min(1.0, L), kVelocityLimit * speed * of_unit,
          kAccelerationLimit * acceleration * of_unit};
}

Rank rank_at(const Plan& plan, const State& x) {
  Rank result;
  result.redundancy_share.assign(static_cast<std::size_t>(plan.mechanism.constraints()), 0.0);
  result.open_loads.assign(plan.mechanism.joints().size(), std::array<bool, 6>{});
  result.degrees_of_freedom = 6 * static_cast<int>(x.body.size());
  if (!plan.has_loops) {  // joints of a tree are independent
    result.rank = plan.rows();
    result.degrees_of_freedom -= result.rank;
    return result;
  }
  require_moderate_rank(plan.rows());
  Workspace w(plan);
  evaluate_pose(plan, x, w);
  Redundancy redundancy;
  const Eigen::MatrixXd J = scaled_jacobian(plan, w, redundancy.scale);
  const auto [values, vectors] = spectrum(J * J.transpose());
  result.redundant = static_cast<int>((values.array() < kRankTolerance).count());
  result.rank = plan.rows() - result.redundant;
  result.degrees_of_freedom -= result.rank;
  if (result.rank > 0) result.margin = std::min(1.0, std::sqrt(values[result.redundant]));  // ascending
  if (result.redundant == 0) return result;
  redundancy.combination = vectors.leftCols(result.redundant);
  for (int row = 0; row < plan.rows(); ++row)
    result.redundancy_share[plan.constraint_of_row[row]] += redundancy.combination.row(row).squaredNorm();
  result.open_loads = open_loads(plan, w, redundancy);
  result.groups = groups_of(plan, redundancy, result.margin * result.margin);
  return result;
}

State regular_pose(const Plan& plan, const State& x) {
  Workspace w(plan);
  evaluate_pose(plan, x, w);
  const Eigen::VectorXd motion = small_motion(plan, w);
  State y = x;
  for (std::size_t i = 0; i < y.body.size(); ++i) {
    y.body[i].r += motion.segment<3>(6 * static_cast<Eigen::Index>(i));
    y.body[i].p = turned(y.body[i].p, motion.segment<3>(6 * static_cast<Eigen::Index>(i) + 3));
  }
  evaluate_pose(plan, y, w);
  for (std::size_t k = 0; k < w.drive.size(); ++k)
    w.drive[k].value += w.Phi[plan.first_row[plan.first_driver() + static_cast<int>(k)]];
  return closed(plan, y, w);
}

StartRank start_rank(const Plan& plan, const State& start) {
  const Rank at_start = rank_at(plan, start);
  return {at_start, plan.has_loops ? rank_at(plan, regular_pose(plan, start)) : at_start};
}

StartRank start_rank(const Mechanism& mechanism) {
  const Plan plan = make_plan(mechanism, {});
  return start_rank(plan, start_pose(plan));
}

std::vector<std::vector<int>> open_groups(const StartRank& rank) {
  std::vector<int> group(rank.start.redundancy_share.size(), -1);
  int groups = 0;
  for (const Rank* each : {&rank.start, &rank.nearby})
    for (const std::vector<int>& constraints : each->groups) {
      for (const int c : constraints)
        if (const int joined = group[c]; joined >= 0) std::replace(group.begin(), group.end(), joined, groups);
      for (const int c : constraints) group[c] = groups;
      ++groups;
    }
  return by_label(group);
}

std::vector<double> arms(const Plan& plan) {
  std::vector<double> arm(plan.mechanism.bodies().size(), 0.0);
  for (const Joint& joint : plan.mechanism.joints()) {
    if (joint.first != kGround) arm[joint.first] = std::max(arm[joint.first], joint.in_first.point_b.norm());
    if (joint.second != kGround) arm[joint.second] = std::max(arm[joint.second], joint.in_second.point_b.norm());
  }
  for (double& length : arm)
    if (length == 0.0) length = plan.length;
  return arm;
}

}  // namespace rigstep::index3
