#include "core/index3/compile/tuning.h"

#include <algorithm>
#include <array>

#include "core/mechanism/numbers.h"

namespace rigstep::index3 {

namespace {

const Joint& followed_joint(const Mechanism& m, int coordinate) {
  return m.joints()[m.coordinates()[coordinate].joint];
}

Eigen::Index rows_of_kind(std::span<const Row> rows, bool cosines) {
  return std::count_if(rows.begin(), rows.end(),
                       [&](const Row& r) { return (r.form == Row::Form::cosine) == cosines; });
}

// Those of a kind together, since they have one unit.
void choose_for_joint(Plan& plan, int j) noexcept {
  const Joint& joint = plan.mechanism.joints()[j];
  const Placement first = placement_at_start(plan.mechanism, joint.first);
  const Placement second = placement_at_start(plan.mechanism, joint.second);
  const JointPlacement at = place_joint(joint, first, second);
  const auto rows = rows_of(joint.type);
  for (const bool cosines : {false, true}) {
    const Eigen::Index size = rows_of_kind(rows, cosines);
    if (size == 0) continue;
    std::array<RowsOnBody, 2> on{RowsOnBody{joint.first, first.A, {}}, RowsOnBody{joint.second, second.A, {}}};
    for (RowsOnBody& body : on) body.J.resize(6, size);
    Eigen::Index column = 0;
    for (const Row& row : rows) {
      if ((row.form == Row::Form::cosine) != cosines) continue;
      const RowValue value = evaluate(row, at);
      on[0].J.col(column) = value.J_first, on[1].J.col(column) = value.J_second;
      ++column;
    }
    const double of_rows = plan.compliance_choice.of(on);
    for (std::size_t k = 0; k < rows.size(); ++k)
      if ((rows[k].form == Row::Form::cosine) == cosines) plan.compliance[plan.first_row[j] + k] = of_rows;
  }
}

CoupledJacobians jacobians_at_start(const Plan& plan, int constraint) noexcept {
  const Mechanism& m = plan.mechanism;
  if (constraint >= plan.first_driver()) {
    const Coordinate c = coordinate_at_start(m, m.drivers()[constraint - plan.first_driver()].coordinate);
    return {c.first, c.second, Vec6::Zero(), Vec6::Zero()};
  }
  const Coupling& coupling = m.couplings()[constraint - plan.first_coupling()];
  return coupled_jacobians(plan.bodies_of_constraint[constraint], followed_joint(m, coupling.first),
                           coordinate_at_start(m, coupling.first), followed_joint(m, coupling.second),
                           coordinate_at_start(m, coupling.second), coupling.ratio);
}

}  // namespace

void choose_compliance(Plan& plan, int constraint) noexcept {
  if (constraint < plan.first_coupling()) return choose_for_joint(plan, constraint);
  const CoupledJacobians J = jacobians_at_start(plan, constraint);
  std::array<RowsOnBody, 4> on;
  for (std::size_t k = 0; k < J.size(); ++k) {
    const int body = plan.bodies_of_constraint[constraint][k];
    on[k].body = body;
    on[k].A = placement_at_start(plan.mechanism, body).A;
    on[k].J = J[k];
  }
  plan.compliance[plan.first_row[constraint]] = plan.compliance_choice.of(on);
}

void tune(Plan& plan, std::span<const ParameterValue> values) noexcept {
  bool masses_change = false;
  for (const ParameterValue& each : values) {
    plan.mechanism.set_parameter(each.index, each.value);
    for (const Target& target : plan.mechanism.parameters()[each.index].targets) {
      if (target.owner_kind == owner_kind_of<Body>) masses_change = true;
      if (target.owner_kind == owner_kind_of<Driver>)
        renew(plan.mechanism.drivers()[target.owner], plan.drivers[target.owner]);
      for_each_kind([&]<class Kind>() {
        if (target.owner_kind == owner_kind_of<Kind>)
          renew(plan.mechanism.all<Kind>()[target.owner], plan.dt(),
                std::get<kind_of<Kind>>(plan.element_constants)[target.owner]);
      });
    }
  }
  if (!masses_change) return;
  plan.compliance_choice.follow(plan.mechanism);
  for (int c = 0; c < plan.mechanism.constraints(); ++c) {
    if (plan.eliminated_as[c] < 0) continue;
    choose_compliance(plan, c);
    plan.write_compliance(plan.eliminated_as[c]);
  }
}

}  // namespace rigstep::index3
