#include "core/index3/step/iterate_forces.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/index3/step/forces_in_lanes.h"
#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

// Numbers that replace others: whether that changes them.
class Change {
 public:
  void replace(double from, double to, double scale) {
    change_ = std::max(change_, std::abs(to - from) * scale);
    largest_ = std::max(largest_, std::abs(to) * scale);
  }
  bool is_clear() const { return change_ > kSteady * largest_; }

 private:
  double change_ = 0.0, largest_ = 1.0;
};

// ... where nobody asks.
struct AnyChange {
  void replace(double, double, double) {}
  bool is_clear() const { return true; }
};

template <class Change>
bool write_element(const Plan& plan, std::size_t k, const TangentFactors& factors, Workspace& w) {
  const Element& element = plan.elements[k];
  evaluate_rows(plan, element, factors, w);
  const ConstraintPlace& place = plan.elimination.constraint_place[plan.first_element() + static_cast<int>(k)];
  Change change;
  for (std::size_t s = 0; s < element.bodies.size(); ++s) {
    if (element.bodies[s] == kGround) continue;
    const auto& rows = w.element_rows[s];
    const std::array<double, 6>& scale = w.inverse_root[element.bodies[s]];
    for (const Place& at : place.handles[s]) {
      double* const handle = w.arrays.handles + at.base;
      for (int n = 0; n < kRowsOfHandle; ++n) handle[n * at.stride] = 0.0;  // its load lies on the bodies
      for (int n = 0; n < 6 * element.rows; ++n) {
        double& number = handle[(kRowsOfHandle + n) * at.stride];
        change.replace(number, rows[n / 6][n % 6], scale[n % 6]);
        number = rows[n / 6][n % 6];
      }
    }
  }
  return change.is_clear();
}

// the elastic row of a joint: the elements along it are one spring and damper
template <class Change>
bool write_elasticity(const Plan& plan, int joint, double tangent, Workspace& w) {
  const double elasticity = std::sqrt(tangent);
  const RowFormat& format = plan.constraints[plan.eliminated_as[joint]].format;
  const int row = format.rows - 1;
  Change change;
  for (const int body : plan.bodies_of_constraint[joint]) {
    if (body == kGround) continue;
    const auto& [of_force, y, z, of_torque, b, c] = w.inverse_root[body];  // the same in all directions
    const double scale = format.general() ? std::max(of_force, plan.length * of_torque) : of_torque;
    change.replace(row_value(plan, w.arrays.elasticity, joint, row), elasticity, scale);
  }
  write_row(plan, joint, row, elasticity, w.arrays.elasticity);
  return change.is_clear();
}

// What joins bodies: elastic rows of joints, and elements with rows of their own. Says whether any of it has changed.
template <class Change>
bool write_rows(const Plan& plan, const TangentFactors& factors, Workspace& w) {
  bool has_changed = false;
  for (const int j : plan.elastic_joints) {
    const double tangent = elastic_tangent(plan, j, factors, w);
    has_changed = write_elasticity<Change>(plan, j, tangent, w) || has_changed;
  }
  for (std::size_t k = 0; k < plan.elements.size(); ++k)
    has_changed = write_element<Change>(plan, k, factors, w) || has_changed;
  return has_changed;
}

// What is applied one by one, as actions beside those that lanes have found.
void write_actions(const Plan& plan, bool with_tangent, Workspace& w) {
  double* to = w.found.data() + plan.found.one_by_one;
  for (const int i : plan.loaded_one_by_one) {
    std::copy_n(w.Q[i].data(), kLoadNumbers, to);
    double* block = to + kLoadNumbers;
    if (with_tangent && plan.has_own_tangent[i])
      for (int row = 0; row < 6; ++row)
        for (int column = 0; column <= row; ++column) *block++ = w.tangent[i](row, column);
    to += kActionNumbers;
  }
}

bool sum_actions(const Plan& plan, Renewal renewal, Workspace& w) {
  using OwnBlocks = ActionTables::OwnBlocks;
  const Vec3& g = plan.mechanism.gravity_0();
  const OwnBlocks blocks = renewal == Renewal::none     ? OwnBlocks::kept
                           : renewal == Renewal::always ? OwnBlocks::replaced
                                                        : OwnBlocks::compared;
  return plan.kernels->sum_actions(w.arrays, {plan.loaded_leaves.data(),
                                              static_cast<int>(plan.loaded_leaves.size()),
                                              plan.actions.data(),
                                              w.found.data(),
                                              {g[0], g[1], g[2]},
                                              blocks});
}

}  // namespace

bool load_iterate(const ForceProblem& at, Renewal renewal, Workspace& w) noexcept {
  const Plan& plan = at.plan;
  const bool with_tangent = renewal != Renewal::none;
  evaluate_in_lanes(plan, with_tangent ? &at.factors : nullptr, w);
  evaluate_one_by_one(plan, at.inputs, at.t, at.last_coordinate, w);
  follow_iterate(plan, w);
  apply_one_by_one(plan, at.inputs, at.t, w);
  if (with_tangent) tangent_one_by_one(plan, at.factors, w);
  write_actions(plan, with_tangent, w);
  const bool blocks_change = sum_actions(plan, renewal, w);
  if (renewal == Renewal::where_changed) return write_rows<Change>(plan, at.factors, w) || blocks_change;
  if (renewal == Renewal::always) write_rows<AnyChange>(plan, at.factors, w);
  return with_tangent;
}

void tangent_of_forces(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept {
  force_tangent(plan, factors, w);
  write_rows<AnyChange>(plan, factors, w);
  for (const int i : plan.loaded_bodies)
    if (plan.has_own_tangent[i]) write_own_block(plan, i, w.tangent[i], w);
}

}  // namespace rigstep::index3
