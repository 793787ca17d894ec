#include "core/index3/plan.h"

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

#include "core/index3/constraints.h"

namespace rigstep::index3 {

namespace {

constexpr double kIdle = 1e60;  // compliance of a row that takes no part: its multiplier vanishes against any other
constexpr int kMostRowsOfBody = 1500;  // its compliance between all its joints is one dense block

void require_moderate_hubs(const Mechanism& mechanism, const std::vector<Connection>& connections,
                           const std::vector<int>& first_row) {
  std::vector<int> rows(mechanism.bodies().size(), 0);
  for (std::size_t c = 0; c < connections.size(); ++c)
    for (const int body : {connections[c].first, connections[c].second})
      if (body != kGround) rows[body] += first_row[c + 1] - first_row[c];
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] > kMostRowsOfBody)
      throw MechanismError(
          "body \"" + mechanism.bodies()[i].name + "\"",
          "carries joints with " + std::to_string(rows[i]) + " constraint rows, bushings and springs included",
          "a body carries at most " + std::to_string(kMostRowsOfBody) + "; split it with fixed joints");
}

std::vector<BushingRows> rows_of_bushings(const Mechanism& mechanism, double dt) {
  std::vector<BushingRows> rows;
  for (const Bushing& bushing : mechanism.bushings()) rows.push_back(bushing_rows(bushing, dt));
  return rows;
}

std::vector<int> number_rows(const Mechanism& mechanism, const std::vector<Connection>& connections,
                             const std::vector<BushingRows>& bushings) {
  std::vector<int> first_row{0};
  for (const Connection& c : connections) {
    int rows = 1;
    if (c.kind == Connection::Kind::joint) rows = static_cast<int>(rows_of(mechanism.joints()[c.index].type).size());
    if (c.kind == Connection::Kind::bushing) rows = bushings[c.index].count;
    first_row.push_back(first_row.back() + rows);
  }
  require_moderate_hubs(mechanism, connections, first_row);
  return first_row;
}

// Union-find over bodies and the ground: a joint between two already connected parts closes a loop.
bool closes_loops(const Mechanism& mechanism) {
  const int n = static_cast<int>(mechanism.bodies().size());
  std::vector<int> parent(n + 1);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&parent, n](int body) {
    int i = body == kGround ? n : body;
    while (parent[i] != i) i = parent[i];
    return i;
  };
  for (const Joint& joint : mechanism.joints()) {
    const int a = root(joint.first), b = root(joint.second);
    if (a == b) return true;
    parent[a] = b;
  }
  return false;
}

// Diagonal of J M^-1 J' of one joint at the start pose, averaged over its rows of a kind: independent of the choice of
// the rows' axes and of the unit of length.
void choose_compliance(const Plan& plan, const State& start, int joint_index, std::vector<double>& compliance) {
  const Mechanism& m = plan.mechanism;
  const Joint& joint = m.joints()[joint_index];
  const auto placement = [&](int body) { return body == kGround ? Placement{} : placement_of(start.body[body]); };
  const Placement first = placement(joint.first), second = placement(joint.second);
  const auto inverse_mass = [&m](int body, const Mat3& A, const Vec6& J) {
    if (body == kGround) return 0.0;
    const Vec3 torque_b = A.transpose() * J.tail<3>();
    return J.head<3>().squaredNorm() / m.bodies()[body].mass +
           torque_b.dot(m.bodies()[body].inertia_b.inverse() * torque_b);
  };
  const JointPlacement at = place(joint, first, second);
  const auto rows = rows_of(joint.type);
  double sum[2] = {0.0, 0.0};
  int count[2] = {0, 0};
  for (const Row& row : rows) {
    const RowValue value = evaluate(row, at);
    const int kind = row.form == Row::Form::cosine;
    sum[kind] +=
        inverse_mass(joint.first, first.A, value.J_first) + inverse_mass(joint.second, second.A, value.J_second);
    ++count[kind];
  }
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const int kind = rows[k].form == Row::Form::cosine;
    compliance[plan.first_row[joint_index] + k] = plan.settings.relative_compliance * sum[kind] / count[kind];
  }
}

}  // namespace

Plan::Plan(const Mechanism& mechanism_, const Settings& settings_)
    : mechanism(mechanism_),
      settings(settings_),
      connection(connections(mechanism)),
      bushing_rows(rows_of_bushings(mechanism, dt())),
      first_row(number_rows(mechanism, connection, bushing_rows)),
      compliance(first_row.back(), kIdle),
      elimination(compile(mechanism, first_row, settings_.order)),
      carries_spring(mechanism.bodies().size(), false),
      has_loops(closes_loops(mechanism)) {
  const auto carries = [this](int body) {
    if (body != kGround) carries_spring[body] = true;
  };
  const auto carry = [&carries](const auto& elements) {
    for (const auto& element : elements) {
      if (element.first != kGround && element.second != kGround) continue;  // element rows
      carries(element.first);
      carries(element.second);
    }
  };
  carry(mechanism.springs());
  for (const Spring& spring : mechanism.springs())
    if (spring.kind == Spring::Kind::between_points) {
      carries(spring.first);
      carries(spring.second);
    }
  carry(mechanism.frictions());
  carry(mechanism.motors());
  for (const Drag& drag : mechanism.drags()) carries(drag.body);
  for (const Tyre& tyre : mechanism.tyres()) carries(tyre.body);
  if (settings.relative_compliance < 0.0) settings.relative_compliance = has_loops ? 1e-8 : 1e-10;
  if (settings.sweeps == 0) settings.sweeps = has_loops ? 2 : 1;
  double longest = 0.0;
  for (const Joint& joint : mechanism.joints()) {
    if (joint.first != kGround) longest = std::max(longest, joint.in_first.point_b.norm());
    if (joint.second != kGround) longest = std::max(longest, joint.in_second.point_b.norm());
  }
  if (longest > 0.0) length = longest;
  const State start(mechanism, rows());
  for (int j = 0; j < static_cast<int>(mechanism.joints().size()); ++j) {
    joint_of_row.insert(joint_of_row.end(), first_row[j + 1] - first_row[j], j);
    choose_compliance(*this, start, j, compliance);
  }
  for (std::size_t c = 0; c < connection.size(); ++c)
    connection_of_row.insert(connection_of_row.end(), first_row[c + 1] - first_row[c], static_cast<int>(c));
  newton_compliance = compliance;
  std::fill(newton_compliance.begin() + rows(), newton_compliance.end(), 1.0);
}

}  // namespace rigstep::index3
