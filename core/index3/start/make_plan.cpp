#include "core/index3/start/make_plan.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/index3/compile/connectivity.h"
#include "core/index3/compile/coordinate_rows.h"
#include "core/index3/compile/coordinates_in_lanes.h"
#include "core/index3/compile/divide_evaluations.h"
#include "core/index3/compile/size_limits.h"
#include "core/index3/compile/tangents.h"
#include "core/index3/compile/tuned.h"
#include "core/index3/compile/tuning.h"
#include "core/index3/kernels/sweeps.h"
#include "core/index3/physics/constraints.h"
#include "core/index3/physics/kinematics.h"
#include "core/index3/start/primal_bodies.h"
#include "core/mechanism/body_groups.h"

namespace rigstep::index3 {

namespace {

// Its compliance between all its joints is one dense block, of 9 MB here. Chosen: bodies with more are refused.
constexpr int kMostRowsOfBody = 1500;

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

void prepare_elements(Plan& plan) {
  for_each_kind([&]<class Kind>() {
    for (const Kind& element : plan.mechanism.all<Kind>())
      std::get<kind_of<Kind>>(plan.element_constants).push_back(prepare(element, plan.dt()));
    if (!plan.mechanism.all<Kind>().empty()) plan.has_force_elements = true;
  });
}

bool has_several_rows(int kind) {
  bool several = false;
  visit_kind(kind, [&]<class Kind>() { several = Stepped<Kind>::kMostRows > 1; });
  return several;
}

std::vector<Element> elements_of(const Plan& plan) {
  std::vector<Element> all;
  for (const bool several : {true, false})
    for_each_connectivity(plan, [&](int kind, int index, const Connectivity& connects) {
      if (connects.rows > 0 && has_several_rows(kind) == several)
        all.push_back({kind, index, connects.bodies, connects.rows});
    });
  return all;
}

std::vector<int> number_rows(const Mechanism& mechanism) {
  std::vector<int> first_row{0};
  for (const Joint& joint : mechanism.joints())
    first_row.push_back(first_row.back() + static_cast<int>(rows_of(joint.type).size()));
  for (std::size_t k = 0; k < mechanism.couplings().size() + mechanism.drivers().size(); ++k)
    first_row.push_back(first_row.back() + 1);
  return first_row;
}

// (bodies) of all that acts on it
std::vector<int> rows_on_bodies(const Plan& plan) {
  std::vector<int> rows(plan.mechanism.bodies().size(), 0);
  for (std::size_t c = 0; c < plan.bodies_of_constraint.size(); ++c)
    for (const int body : plan.bodies_of_constraint[c])
      if (body != kGround) rows[body] += plan.first_row[c + 1] - plan.first_row[c];
  for (const int j : plan.elastic_joints)
    for (const int body : plan.bodies_of_constraint[j])
      if (body != kGround) ++rows[body];
  for (const Element& element : plan.elements)
    for (const int body : element.bodies)
      if (body != kGround) rows[body] += element.rows;
  return rows;
}

void require_moderate_bodies(const Plan& plan) {
  const std::vector<int> rows = rows_on_bodies(plan);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] > kMostRowsOfBody)
      throw MechanismError(
          "body \"" + plan.mechanism.bodies()[i].name + "\"",
          "carries joints with " + std::to_string(rows[i]) + " constraint rows, bushings and springs included",
          "a body carries at most " + std::to_string(kMostRowsOfBody) + "; split it with fixed joints");
}

void require_order(const Plan& plan) {
  const int order = plan.settings.order_of_accuracy;
  if (order != 2 && order != 4)
    throw MechanismError("order", "is " + std::to_string(order), "use 2, or 4 for smooth motions");
  if (order == 2) return;
  if (!allows_order_4(plan.mechanism))
    throw MechanismError("order", "is 4, but the mechanism has stops or ropes, whose forces end within a step",
                         "use 2");
}

// Equations in own coordinates of joints: their rows, of length 1.
using Equations = std::vector<std::vector<std::pair<int, double>>>;  // joint, factor

// Chosen: how far from dependent equations are [least singular value of their rows]. Eight gears in a cycle that are
// off by 3e-3 are not far enough for one pass of each projection.
constexpr double kIndependent = 1e-2;

bool are_independent(const Equations& equations) {
  const auto rows = static_cast<Eigen::Index>(equations.size());
  Eigen::MatrixXd products = Eigen::MatrixXd::Identity(rows, rows);
  for (Eigen::Index i = 0; i < rows; ++i)
    for (Eigen::Index j = 0; j < i; ++j)
      for (const auto& [joint, factor] : equations[static_cast<std::size_t>(i)])
        for (const auto& [other, other_factor] : equations[static_cast<std::size_t>(j)])
          if (joint == other) products(i, j) += factor * other_factor;
  products.diagonal().array() -= kIndependent * kIndependent;
  return Eigen::LLT<Eigen::MatrixXd>(products).info() == Eigen::Success;  // it reads the lower half
}

// Whether couplings, with the drivers of the joints that they couple, hold combinations of own coordinates of joints
// that are independent as equations: then they depend on each other in no pose of a tree.
bool couplings_are_independent(const Plan& plan) {
  const Mechanism& m = plan.mechanism;
  BodyGroups groups(m.joints().size());  // of joints that couplings connect
  std::vector<bool> is_coupled(m.joints().size(), false);
  for (const Coupling& coupling : m.couplings()) {
    const int first = joint_of_own_coordinate(m, coupling.first), second = joint_of_own_coordinate(m, coupling.second);
    if (first < 0 || second < 0 || first == second) return false;
    groups.join(first, second);
    is_coupled[first] = is_coupled[second] = true;
  }
  std::map<std::size_t, Equations> equations;  // by group
  for (const Coupling& coupling : m.couplings()) {
    const int first = joint_of_own_coordinate(m, coupling.first), second = joint_of_own_coordinate(m, coupling.second);
    const double length = std::sqrt(1.0 + coupling.ratio * coupling.ratio);
    equations[groups.group_of(first)].push_back({{first, 1.0 / length}, {second, coupling.ratio / length}});
  }
  for (const Driver& driver : m.drivers())
    if (const int joint = joint_of_own_coordinate(m, driver.coordinate); joint >= 0 && is_coupled[joint])
      equations[groups.group_of(joint)].push_back({{joint, 1.0}});
  return std::all_of(equations.begin(), equations.end(),
                     [](const auto& group) { return are_independent(group.second); });
}

// A joint between two parts that hang together already closes a loop, and so does a driver that is not a row of its
// joint, which holds what a joint leaves free, and so do couplings unless they are independent.
bool closes_loops(const Plan& plan) {
  BodyGroups groups(plan.mechanism.bodies().size());
  if (!plan.mechanism.couplings().empty() && !couplings_are_independent(plan)) return true;
  for (int c = 0; c < plan.mechanism.constraints(); ++c) {
    if (c >= plan.first_coupling() && c < plan.first_driver()) continue;
    const CoupledBodies& pair = plan.bodies_of_constraint[c];
    if (pair[0] == pair[1]) continue;  // a joint without rows
    if (c >= plan.first_driver() && is_row_of_joint(plan, c - plan.first_driver())) continue;
    if (!groups.join(pair[0], pair[1])) return true;
  }
  return false;
}

// What drives a joint along its own coordinate is a row of that joint, or a constraint of its own.
enum class DriverRows { of_joints, of_their_own };

// With them the elements that have rows of their own.
void choose_coordinate_rows(Plan& plan, DriverRows drivers) {
  plan.coordinate_rows = coordinate_rows_of(plan.mechanism, drivers == DriverRows::of_joints);
  plan.elastic_joints.clear();
  for (int j = 0; j < plan.first_coupling(); ++j)
    if (!plan.coordinate_rows[j].elements.empty()) plan.elastic_joints.push_back(j);
  plan.elements = elements_of(plan);
}

// Couplings and drivers at the start pose: constants, start of the drives.
void prepare_couplings_and_drivers(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  for (const Coupling& coupling : m.couplings()) {
    const Coordinate first = coordinate_at_start(m, coupling.first), second = coordinate_at_start(m, coupling.second);
    plan.coupling_constant.push_back(first.value + coupling.ratio * second.value);
  }
  for (const Driver& driver : m.drivers()) {
    plan.drivers.push_back(prepare(driver, plan.dt()));
    plan.start_drive.push_back(
        prescribed_at_start(driver, plan.drivers.back(), coordinate_at_start(m, driver.coordinate).value));
  }
}

// the constraint of each row, and whether the row is measured in metres
void classify_rows(const Plan& plan, std::vector<int>& constraint_of, std::vector<bool>& is_length_row) {
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

// How many rows along axes a joint begins with, if nothing but cosines follows.
int lines_of(std::span<const Row> rows) {
  if (rows.size() == 1 && rows[0].form == Row::Form::distance) return RowFormat::kDistance;
  const auto is_cosine = [](const Row& row) { return row.form == Row::Form::cosine; };
  const auto end = std::find_if_not(rows.begin(), rows.end(), [](const Row& r) { return r.form == Row::Form::line; });
  const int lines = static_cast<int>(end - rows.begin());
  return std::all_of(end, rows.end(), is_cosine) && lines < RowFormat::kDistance ? lines : RowFormat::kOneByOne;
}

RowFormat format_of(JointType type, const CoordinateRow& coordinate) {
  const std::span<const Row> rows = rows_of(type);
  if (!rows.empty() && rows.back().form == Row::Form::screw)
    return {static_cast<int>(rows.size()), RowFormat::kAnyRows, lines_of(rows.first(rows.size() - 1)),
            RowFormat::Coordinate::threaded};
  const int count = static_cast<int>(rows.size()), more = coordinate.exists() ? 1 : 0;
  using Coordinate = RowFormat::Coordinate;
  const Coordinate last = more == 0                ? Coordinate::none
                          : coordinate.driver >= 0 ? Coordinate::driven
                                                   : Coordinate::elastic;
  if (is_point_with_cosines(rows)) return {count + more, count - 3 + more, RowFormat::kOneByOne, last};
  return {count + more, RowFormat::kAnyRows, lines_of(rows), last};
}

constexpr RowFormat kPointAlone{3, 0};

// Whether the rows of a joint behind those of its point are idle, and none of its own coordinate follows.
bool has_idle_cosines(const Plan& plan, int joint) {
  const auto idle = plan.planar.is_idle.begin();
  return is_point_with_cosines(rows_of(plan.mechanism.joints()[joint].type)) && !plan.coordinate_rows[joint].exists() &&
         std::all_of(idle + plan.first_row[joint] + 3, idle + plan.first_row[joint + 1],
                     [](bool each) { return each; });
}

// Of a joint, coupling or driver.
RowFormat format_of(const Plan& plan, int c) {
  const Mechanism& m = plan.mechanism;
  if (c < plan.first_coupling())
    return has_idle_cosines(plan, c) ? kPointAlone : format_of(m.joints()[c].type, plan.coordinate_rows[c]);
  const int driver = c - plan.first_driver();
  if (driver < 0) return {1, RowFormat::kAnyRows, RowFormat::kOneByOne};
  return format_of_coordinate(m, m.coordinates()[m.drivers()[driver].coordinate]);
}

// What has rows, as the elimination sees it.
std::vector<Constraint> constraints_of(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  std::vector<Constraint> constraints;
  for (int c = 0; c < m.constraints(); ++c) {
    plan.eliminated_as.push_back(-1);
    plan.first_row_there.push_back(0);
    const int rows = plan.first_row[c + 1] - plan.first_row[c];
    plan.eliminated_rows.push_back(rows);
    if (rows == 0) continue;
    if (const int driver = c - plan.first_driver(); driver >= 0 && is_row_of_joint(plan, driver)) {
      const int joint = m.coordinates()[m.drivers()[driver].coordinate].joint;
      plan.eliminated_as.back() = plan.eliminated_as[joint];
      plan.first_row_there.back() = constraints[plan.eliminated_as[joint]].format.rows - 1;
      continue;
    }
    plan.eliminated_as.back() = static_cast<int>(constraints.size());
    plan.eliminated.push_back(c);
    const CoupledBodies& on = plan.bodies_of_constraint[c];
    const bool is_coupling = c >= plan.first_coupling() && c < plan.first_driver();
    constraints.push_back({format_of(plan, c), {on.begin(), on.begin() + (is_coupling ? 4 : 2)}});
    plan.eliminated_rows.back() = std::min(rows, constraints.back().format.rows);
  }
  for (const Element& element : plan.elements)
    constraints.push_back({{element.rows, RowFormat::kAnyRows}, element.bodies});
  return constraints;
}

// Bodies whose tangent mass matrix has own-body blocks of force elements.
std::vector<bool> bodies_with_own_tangent(const Plan& plan) {
  std::vector<bool> carries(plan.mechanism.bodies().size(), false);
  for_each_connectivity(plan, [&](int, int, const Connectivity& connects) {
    for (const int body : connects.own_tangent)
      if (body != kGround) carries[static_cast<std::size_t>(body)] = true;
  });
  return carries;
}

void choose_defaults(Settings& settings, bool has_loops) {
  if (settings.order_of_accuracy == 4) settings.threads = 1;
  if (settings.relative_compliance < 0.0) settings.relative_compliance = has_loops ? 1e-7 : 1e-10;
  if (settings.projection_passes == 0) settings.projection_passes = has_loops ? 2 : 1;
}

// largest arm of a joint on a body [m]; 1 where there is none
double characteristic_length(const Mechanism& m) {
  double longest = 0.0;
  for (const Joint& joint : m.joints()) {
    if (joint.first != kGround) longest = std::max(longest, joint.in_first.point_b.norm());
    if (joint.second != kGround) longest = std::max(longest, joint.in_second.point_b.norm());
  }
  return longest > 0.0 ? longest : 1.0;
}

void choose_compliances(Plan& plan) {
  plan.compliance_choice = ComplianceChoice(plan.mechanism, plan.has_loops, plan.settings.relative_compliance);
  plan.compliance.resize(static_cast<std::size_t>(plan.rows()));
  for (int c = 0; c < plan.mechanism.constraints(); ++c) choose_compliance(plan, c);
}

void describe_mechanism(Plan& plan, DriverRows drivers) {
  const Mechanism& m = plan.mechanism;
  plan.first_row = number_rows(m);
  plan.bodies_of_constraint = acted_on(m);
  prepare_elements(plan);
  choose_coordinate_rows(plan, drivers);
  plan.has_own_tangent = bodies_with_own_tangent(plan);
  plan.planar = planar_motion(plan);
  plan.has_loops = closes_loops(plan);
  plan.length = characteristic_length(m);
  classify_rows(plan, plan.constraint_of_row, plan.is_length);
}

// The structure must not depend on the values of tunable parameters: it is chosen at the middle of those ranges on
// which it might depend.
Mechanism at_middle(Mechanism mechanism) {
  for (int k = 0; k < static_cast<int>(mechanism.parameters().size()); ++k) {
    const Parameter& p = mechanism.parameters()[k];
    if (moves_weights(p)) mechanism.set_parameter(k, p.minimum + 0.5 * (p.maximum - p.minimum));
  }
  return mechanism;
}

// In its dual form, in one part.
Plan dual_plan(const Mechanism& mechanism, const Settings& settings, DriverRows drivers) {
  Plan plan(at_middle(mechanism), settings);
  plan.kernels = &kernels_for_this_processor(settings.instruction_set);
  plan.lanes = plan.kernels->lanes;
  describe_mechanism(plan, drivers);
  require_moderate_bodies(plan);
  require_order(plan);
  plan.tangents = tangents_of(mechanism, settings, plan.has_loops);
  choose_defaults(plan.settings, plan.has_loops);
  choose_compliances(plan);
  prepare_couplings_and_drivers(plan);
  plan.constraints = constraints_of(plan);
  divide_evaluations(plan);
  require_moderate_joints(plan.constraints, static_cast<int>(mechanism.bodies().size()));
  plan.lay_out(compile(plan.constraints, plan.has_own_tangent, plan.settings.order, plan.lanes));
  return plan;
}

// In closed loops drivers are eliminated after primal bodies, and so not with their joints (primal_bodies.h).
bool would_wait_for_primal_bodies(const Plan& plan) {
  const std::vector<int> rows = rows_on_bodies(plan);
  return plan.has_loops && *std::max_element(rows.begin(), rows.end()) >= kLeastRowsOfPrimalBody &&
         std::any_of(plan.coordinate_rows.begin(), plan.coordinate_rows.end(),
                     [](const CoordinateRow& row) { return row.driver >= 0; });
}

// With the choice of primal bodies.
Plan plan_in_one_part(const Mechanism& mechanism, const Settings& settings) {
  Plan plan = dual_plan(mechanism, settings, DriverRows::of_joints);
  if (settings.primal_bodies == PrimalBodies::dual || !would_wait_for_primal_bodies(plan)) {
    choose_primal_bodies(plan);
    return plan;
  }
  Plan other = dual_plan(mechanism, settings, DriverRows::of_their_own);
  choose_primal_bodies(other);
  if (other.primal_choice.reason == PrimalChoice::Reason::primal) return other;
  plan.primal_choice = other.primal_choice;
  if (plan.primal_choice.dual > 0) plan.primal_choice.dual = plan.elimination.multiply_adds;
  return plan;
}

}  // namespace

Plan make_plan(const Mechanism& mechanism, const Settings& settings) {
  Plan plan = plan_in_one_part(mechanism, settings);
  require_moderate_elimination(plan.elimination, plan.settings.primal_bodies == PrimalBodies::dual);
  if (plan.settings.threads > 1) plan.lay_out(plan.divided(plan.settings.threads));
  std::vector<ParameterValue> declared;
  for (int k = 0; k < static_cast<int>(mechanism.parameters().size()); ++k)
    if (moves_weights(mechanism.parameters()[k])) declared.push_back({k, mechanism.parameters()[k].value});
  tune(plan, declared);
  return plan;
}

}  // namespace rigstep::index3
