#include "core/index3/compile/plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/index3/compile/actions_on_leaves.h"
#include "core/index3/compile/coordinates_in_lanes.h"
#include "core/index3/compile/forces_in_lanes.h"
#include "core/index3/compile/tuned.h"

namespace rigstep::index3 {

namespace {

bool is_isotropic(const Body& body) { return body.inertia_b == body.inertia_b(0, 0) * Mat3::Identity(); }

// ---- constants in lanes

// Of an eliminated constraint; nothing where lanes do not evaluate it.
JointInLanes joint_in_lanes(const Plan& plan, int c, RowFormat format) {
  if (c >= plan.first_element()) return {};
  if (const int driver = plan.eliminated[c] - plan.first_driver(); driver >= 0) {
    return joint_of_coordinate(plan.mechanism,
                               plan.mechanism.coordinates()[plan.mechanism.drivers()[driver].coordinate]);
  }
  if (plan.eliminated[c] >= plan.first_coupling()) return {};
  const Joint& joint = plan.mechanism.joints()[plan.eliminated[c]];
  if (format.lines == RowFormat::kDistance) return {joint, Vec3::Constant(joint.length)};
  const bool begins_with_axis = format.general() ? format.rows == 1 : format.cosines == 1;
  return {joint, joint.in_first.axes_b.col(begins_with_axis ? 2 : 0)};
}

// Compliance of element and elastic rows in the projections: so large that their Lambda is zero to rounding.
// factorise_few_pivots multiplies up to four pivots, which must not overflow.
constexpr double kIdle = 1e60;
static_assert(kIdle * kIdle * kIdle * kIdle < 1e300, "products of four pivots are finite");

// In the middle of a step of a closed loop, rows that depend on each other at its ends do not quite: the chord leaves
// the surface of the constraints by h^2. With a compliance far above the square of that, what the rows then hold too
// much of stays small, h^3 / compliance; below 1e-3 two passes still close the joints. Chosen by Bricard's linkage and
// random drives through the singular pose of the four-bar (extrapolated_step_test).
constexpr double kSofterMiddle = 1e3;    // than at the end of the step
constexpr double kSoftestMiddle = 1e-4;  // [relative]: a compliance that is given and larger stays as it is

// The row of the mechanism that a row of an eliminated joint, coupling or driver is.
int row_of_model(const Plan& plan, int c, int row) noexcept {
  const int constraint = plan.eliminated[c], driver = plan.driver_in_row(constraint, row);
  return driver < 0 ? plan.first_row[constraint] + row : plan.first_row[plan.first_driver() + driver];
}

// Of a row of an eliminated constraint, by ComplianceOf.
std::array<double, 3> compliance_of(const Plan& plan, int c, int row) noexcept {
  constexpr std::array kElastic{1.0, kIdle, kIdle};
  if (plan.elimination.constraints[c].format.is_elastic(row)) return kElastic;
  if (c < plan.first_element()) {
    const double compliance = plan.compliance[row_of_model(plan, c, row)];
    const bool is_soft = plan.settings.order_of_accuracy == 4 && plan.has_loops;
    const double most = std::max(1.0, kSoftestMiddle / plan.settings.relative_compliance);
    const double of_middle = is_soft ? std::min(kSofterMiddle, most) * compliance : compliance;
    return {of_middle, compliance, of_middle};
  }
  if (c < plan.first_element() + static_cast<int>(plan.elements.size())) return kElastic;
  return {0.0, 0.0, 0.0};  // of primal bodies
}

template <class F>
void at_all_places(const ConstraintPlace& place, const F& f) {
  for (const RowsPlace& copy : place.copies) f(copy);
  f(place);
}

void write_rows(Plan& plan, int c, Place at) noexcept {
  const std::size_t rows = static_cast<std::size_t>(plan.elimination.rows);
  const RowFormat& format = plan.elimination.constraints[c].format;
  for (int k = 0; k < format.rows; ++k) {
    const bool has_multiplier = c < plan.first_element() && !format.is_elastic(k);
    const double multiplier_scale = has_multiplier ? 4.0 / (plan.dt() * plan.dt()) : 0.0;
    const std::size_t row = static_cast<std::size_t>(at.base + k * at.stride);
    const std::array<double, 3> compliance = compliance_of(plan, c, k);
    for (std::size_t of = 0; of < compliance.size(); ++of) plan.compliance_in_lanes[of * rows + row] = compliance[of];
    plan.multiplier_scale[row] = multiplier_scale;
    plan.carried[row] = multiplier_scale > 0.0 ? compliance[0] / multiplier_scale : 0.0;
  }
}

void write_constants(Plan& plan) {
  const Elimination& e = plan.elimination;
  for (int c = 0; c < static_cast<int>(e.constraint_place.size()); ++c) {
    if (e.constraints[c].is_padding) continue;
    const RowFormat format = e.constraints[c].format;
    const JointInLanes joint = joint_in_lanes(plan, c, format);
    at_all_places(e.constraint_place[c], [&](const RowsPlace& at) {
      const ConstraintBatch& batch = e.constraint_batches[at.batch];
      write_rows(plan, c, at.rows);
      if (!format.in_lanes()) return;
      index3::write_constants(joint, batch.width,
                              plan.constraint_constants.data() + kConstraintConstants * batch.position +
                                  (at.rows.base - batch.row_position));
    });
  }
}

}  // namespace

Place record_of(const Elimination& e, int body) {
  return body == kGround ? e.ground.front().of(0) : e.body[body].of(0);
}

void write_vectors(std::initializer_list<Vec3> vectors, int width, double* to) {
  for (const Vec3& v : vectors)
    for (int i = 0; i < 3; ++i, to += width) *to = v[i];
}

void write_joint(const Joint& joint, const Vec3& first_axis_b, int width, double* to) {
  const JointFrame &first = joint.in_first, &second = joint.in_second;
  write_vectors(
      {first.point_b, second.point_b, first_axis_b, first.axes_b.col(1), second.axes_b.col(2), second.axes_b.col(1)},
      width, to);
}

Plan::Plan(const Mechanism& mechanism_, const Settings& settings_) : mechanism(mechanism_), settings(settings_) {}

Elimination Plan::divided(int threads) const {
  const bool is_hybrid = primal_choice.reason == PrimalChoice::Reason::primal;
  return compile(constraints, has_own_tangent, settings.order, lanes,
                 is_hybrid ? primal_choice.primal_bodies : std::vector<int>{}, std::clamp(threads, 1, kMostThreads));
}

void Plan::write_compliance(int eliminated_constraint) noexcept {
  at_all_places(elimination.constraint_place[eliminated_constraint],
                [&](const RowsPlace& at) { write_rows(*this, eliminated_constraint, at.rows); });
}

void Plan::lay_out(Elimination chosen) {
  elimination = std::move(chosen);
  const std::vector<bool> tuned = tuned_bodies(mechanism);
  for (Leaf& leaf : elimination.leaves) leaf.is_isotropic = true;
  for (std::size_t i = 0; i < mechanism.bodies().size(); ++i)
    for (const int leaf : elimination.leaves_of_body[i])
      if (!is_isotropic(mechanism.bodies()[i]) || tuned[i]) elimination.leaves[leaf].is_isotropic = false;
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  constraint_constants = AlignedDoubles(size(kConstraintConstants * elimination.constraint_positions), 0.0);
  compliance_in_lanes = AlignedDoubles(size(3 * elimination.rows), 0.0);
  multiplier_scale = AlignedDoubles(size(elimination.rows), 0.0);
  carried = AlignedDoubles(size(elimination.rows), 0.0);
  write_constants(*this);
  place_forces_in_lanes(*this);
  place_actions(*this);
  place_coupled_coordinates(*this);
}

}  // namespace rigstep::index3
