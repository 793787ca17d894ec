#include "core/index3/plan.h"

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

#include "core/index3/constraints.h"

namespace rigstep::index3 {

namespace {

constexpr int kMostRowsOfBody = 1500;  // its compliance between all its joints is one dense block

const Joint& joint_of(const Mechanism& mechanism, int coordinate) {
  return mechanism.joints()[mechanism.coordinates()[coordinate].joint];
}

// A joint without rows holds nothing, so it acts on no body.
std::vector<CoupledBodies> acted_on(const Mechanism& mechanism) {
  std::vector<CoupledBodies> bodies;
  for (const Joint& joint : mechanism.joints())
    bodies.push_back(rows_of(joint.type).empty() ? CoupledBodies{kGround, kGround, kGround, kGround}
                                                 : CoupledBodies{joint.first, joint.second, kGround, kGround});
  for (const Coupling& coupling : mechanism.couplings())
    bodies.push_back(coupled_bodies(joint_of(mechanism, coupling.first), joint_of(mechanism, coupling.second)));
  for (const Driver& driver : mechanism.drivers()) {
    const Joint& joint = joint_of(mechanism, driver.coordinate);
    bodies.push_back({joint.first, joint.second, kGround, kGround});
  }
  return bodies;
}

void require_moderate_hubs(const Mechanism& mechanism, const std::vector<int>& first_row) {
  std::vector<int> rows(mechanism.bodies().size(), 0);
  const std::vector<CoupledBodies> bodies = acted_on(mechanism);
  for (std::size_t c = 0; c < bodies.size(); ++c)
    for (const int body : bodies[c])
      if (body != kGround) rows[body] += first_row[c + 1] - first_row[c];
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] > kMostRowsOfBody)
      throw MechanismError(
          "body \"" + mechanism.bodies()[i].name + "\"",
          "carries joints with " + std::to_string(rows[i]) + " constraint rows",
          "a body carries at most " + std::to_string(kMostRowsOfBody) + "; split it with fixed joints");
}

std::vector<int> number_rows(const Mechanism& mechanism) {
  std::vector<int> first_row{0};
  for (const Joint& joint : mechanism.joints())
    first_row.push_back(first_row.back() + static_cast<int>(rows_of(joint.type).size()));
  for (std::size_t k = 0; k < mechanism.couplings().size() + mechanism.drivers().size(); ++k)
    first_row.push_back(first_row.back() + 1);
  require_moderate_hubs(mechanism, first_row);
  return first_row;
}

// Union-find over bodies and the ground: a joint between two already connected parts closes a loop, and so does a
// coupling or a driver, which hold what a joint leaves free.
bool closes_loops(const Mechanism& mechanism) {
  const int n = static_cast<int>(mechanism.bodies().size());
  std::vector<int> parent(n + 1);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&parent, n](int body) {
    int i = body == kGround ? n : body;
    while (parent[i] != i) i = parent[i];
    return i;
  };
  if (!mechanism.couplings().empty()) return true;
  for (const CoupledBodies& pair : acted_on(mechanism)) {
    if (pair[0] == pair[1]) continue;  // a joint without rows
    const int a = root(pair[0]), b = root(pair[1]);
    if (a == b) return true;
    parent[a] = b;
  }
  return false;
}

double inverse_mass_along(const Mechanism& m, int body, const Mat3& A, const Vec6& J) {
  if (body == kGround) return 0.0;
  const Vec3 torque_b = A.transpose() * J.tail<3>();
  return J.head<3>().squaredNorm() / m.bodies()[body].mass +
         torque_b.dot(m.bodies()[body].inertia_b.inverse() * torque_b);
}

// Diagonal of J M^-1 J' of one joint at the start pose, averaged over its rows of a kind: independent of the choice of
// the rows' axes and of the unit of length.
void choose_compliance(const Plan& plan, const State& start, int joint_index, std::vector<double>& compliance) {
  const Mechanism& m = plan.mechanism;
  const Joint& joint = m.joints()[joint_index];
  const auto placement = [&](int body) { return body == kGround ? Placement{} : placement_of(start.body[body]); };
  const Placement first = placement(joint.first), second = placement(joint.second);
  const JointPlacement at = place(joint, first, second);
  const auto rows = rows_of(joint.type);
  double sum[2] = {0.0, 0.0};
  int count[2] = {0, 0};
  for (const Row& row : rows) {
    const RowValue value = evaluate(row, at);
    const int kind = row.form == Row::Form::cosine;
    sum[kind] += inverse_mass_along(m, joint.first, first.A, value.J_first) +
                 inverse_mass_along(m, joint.second, second.A, value.J_second);
    ++count[kind];
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const int kind = rows[k].form == Row::Form::cosine;
    compliance[plan.first_row[joint_index] + k] = plan.settings.relative_compliance * sum[kind] / count[kind];
  }
}

// Couplings and drivers at the start pose: compliance of their rows, constants, start of the drives.
void prepare_couplings_and_drivers(Plan& plan, const State& start) {
  const Mechanism& m = plan.mechanism;
  const auto placement = [&](int body) { return body == kGround ? Placement{} : placement_of(start.body[body]); };
  const auto coordinate_at_start = [&](int k) {
    const auto& [joint_index, freedom, offset] = m.coordinates()[k];
    const Joint& joint = m.joints()[joint_index];
    const Placement first = placement(joint.first), second = placement(joint.second);
    const JointPlacement at = place(joint, first, second);
    Coordinate c = coordinate(freedom, at, first, second);
    c.value = followed(freedom, at, c.value + offset, offset);
    return c;
  };
  const auto set_compliance = [&](int constraint, const CoupledJacobians& J) {
    double sum = 0.0;
    for (std::size_t k = 0; k < J.size(); ++k)
      sum += inverse_mass_along(m, plan.bodies[constraint][k], placement(plan.bodies[constraint][k]).A, J[k]);
    plan.compliance[plan.first_row[constraint]] = plan.settings.relative_compliance * sum;
  };
  int constraint = plan.first_coupling();
  for (const Coupling& coupling : m.couplings()) {
    const Coordinate first = coordinate_at_start(coupling.first), second = coordinate_at_start(coupling.second);
    plan.coupling_constant.push_back(first.value + coupling.ratio * second.value);
    set_compliance(constraint, coupled_jacobians(plan.bodies[constraint], joint_of(m, coupling.first), first,
                                                 joint_of(m, coupling.second), second, coupling.ratio));
    ++constraint;
  }
  for (const Driver& driver : m.drivers()) {
    const Coordinate c = coordinate_at_start(driver.coordinate);
    plan.drivers.push_back(prepare(driver, plan.dt()));
    plan.start_drive.push_back(driver.channels() > 0 ? Prescribed{c.value, 0.0, 0.0}
                                                     : prescribed(driver, plan.drivers.back(), 0.0));
    set_compliance(constraint, {c.first, c.second, Vec6::Zero(), Vec6::Zero()});
    ++constraint;
  }
}

// which rows are measured in metres
void name_rows(const Plan& plan, std::vector<int>& constraint_of, std::vector<bool>& is_length_row) {
  const Mechanism& m = plan.mechanism;
  for (int c = 0; c < m.constraints(); ++c)
    constraint_of.insert(constraint_of.end(), static_cast<std::size_t>(plan.first_row[c + 1] - plan.first_row[c]), c);
  for (const Joint& joint : m.joints())
    for (const Row& row : rows_of(joint.type)) is_length_row.push_back(row.form != Row::Form::cosine);
  for (const Coupling& coupling : m.couplings())
    is_length_row.push_back(rigstep::is_length(m.coordinates()[coupling.first].freedom));
  for (const Driver& driver : m.drivers())
    is_length_row.push_back(rigstep::is_length(m.coordinates()[driver.coordinate].freedom));
}

}  // namespace

Plan::Plan(const Mechanism& mechanism_, const Settings& settings_)
    : mechanism(mechanism_),
      settings(settings_),
      first_row(number_rows(mechanism)),
      compliance(first_row.back()),
      bodies(acted_on(mechanism)),
      elimination(compile(static_cast<int>(mechanism.bodies().size()), bodies, first_row, settings_.order)),
      carries_spring(mechanism.bodies().size(), false),
      has_loops(closes_loops(mechanism)) {
  for (const Spring& spring : mechanism.springs())
    for (const int body : {spring.first, spring.second})
      if (body != kGround) carries_spring[body] = true;
  if (settings.relative_compliance < 0.0) settings.relative_compliance = has_loops ? 1e-8 : 1e-10;
  if (settings.sweeps == 0) settings.sweeps = has_loops ? 2 : 1;
  double longest = 0.0;
  for (const Joint& joint : mechanism.joints()) {
    if (joint.first != kGround) longest = std::max(longest, joint.in_first.point_b.norm());
    if (joint.second != kGround) longest = std::max(longest, joint.in_second.point_b.norm());
  }
  if (longest > 0.0) length = longest;
  const State start(mechanism, rows());
  for (int j = 0; j < static_cast<int>(mechanism.joints().size()); ++j) choose_compliance(*this, start, j, compliance);
  name_rows(*this, joint_of_row, is_length);
  prepare_couplings_and_drivers(*this, start);
}

}  // namespace rigstep::index3
