#include "core/index3/compile/plan.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/index3/compile/compliance.h"
#include "core/index3/compile/size_limits.h"
#include "core/index3/physics/constraints.h"
#include "core/index3/physics/kinematics.h"
#include "core/index3/start/primal_bodies.h"
#include "core/index3/step/applied_forces.h"
#include "core/mechanism/body_groups.h"

namespace rigstep::index3 {

namespace {

// From these on Newton's iteration needs a tangent each time.
constexpr double kSlender = 1e3;            // ratio of a body's principal moments of inertia
constexpr double kUneven = 1e3;             // ratio of the masses of joined bodies
constexpr double kFast = 0.25;              // angle that a body turns in a step [rad]
constexpr double kQuick = 0.025;            // step times the rate at which gravity swings a body
constexpr std::int64_t kLong = 10'000'000;  // step [ns]
constexpr int kMostRowsOfBody = 1500;       // its compliance between all its joints is one dense block

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

std::vector<BushingRows> rows_of_bushings(const Mechanism& mechanism, double dt) {
  std::vector<BushingRows> rows;
  for (const Bushing& bushing : mechanism.bushings()) rows.push_back(bushing_rows(bushing, dt));
  return rows;
}

std::vector<Element> elements_of(const Mechanism& m, const std::vector<BushingRows>& bushings) {
  using Kind = Element::Kind;
  std::vector<Element> all;
  const auto add = [&all](Kind kind, std::size_t index, const auto& element, int rows) {
    all.push_back({kind, static_cast<int>(index), element.first, element.second, rows});
  };
  const auto add_between = [&add](Kind kind, const auto& elements) {
    for (std::size_t k = 0; k < elements.size(); ++k)
      if (elements[k].first != kGround && elements[k].second != kGround) add(kind, k, elements[k], 1);
  };
  for (std::size_t k = 0; k < bushings.size(); ++k)
    if (bushings[k].count > 0) add(Kind::bushing, k, m.bushings()[k], bushings[k].count);
  add_between(Kind::spring, m.springs());
  add_between(Kind::friction, m.frictions());
  add_between(Kind::motor, m.motors());
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

void require_moderate_bodies(const Plan& plan) {
  std::vector<int> rows(plan.mechanism.bodies().size(), 0);
  for (std::size_t c = 0; c < plan.bodies.size(); ++c)
    for (const int body : plan.bodies[c])
      if (body != kGround) rows[body] += plan.first_row[c + 1] - plan.first_row[c];
  for (const Element& element : plan.elements)
    for (const int body : {element.first, element.second})
      if (body != kGround) rows[body] += element.rows;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i] > kMostRowsOfBody)
      throw MechanismError(
          "body \"" + plan.mechanism.bodies()[i].name + "\"",
          "carries joints with " + std::to_string(rows[i]) + " constraint rows, bushings and springs included",
          "a body carries at most " + std::to_string(kMostRowsOfBody) + "; split it with fixed joints");
}

// A joint between two parts that hang together already closes a loop, and so does a coupling or a driver, which hold
// what a joint leaves free.
bool closes_loops(const Mechanism& mechanism) {
  BodyGroups groups(mechanism.bodies().size());
  if (!mechanism.couplings().empty()) return true;
  for (const CoupledBodies& pair : acted_on(mechanism)) {
    if (pair[0] == pair[1]) continue;  // a joint without rows
    if (!groups.join(pair[0], pair[1])) return true;
  }
  return false;
}

bool is_isotropic(const Body& body) { return body.inertia_b == body.inertia_b(0, 0) * Mat3::Identity(); }

bool is_slender(const Body& body) {
  const Vec3 moments = Eigen::SelfAdjointEigenSolver<Mat3>(body.inertia_b, Eigen::EigenvaluesOnly).eigenvalues();
  return moments[2] > kSlender * moments[0];
}

// A joint that holds points of its bodies and lets these turn.
bool is_pivot(const Joint& joint) {
  const auto rows = rows_of(joint.type);
  const auto cosines =
      std::count_if(rows.begin(), rows.end(), [](const Row& r) { return r.form == Row::Form::cosine; });
  return cosines < static_cast<std::ptrdiff_t>(rows.size()) && cosines < 3;
}

// Rate [1/s] at which gravity swings a body about its pivot's point; the mass adds nothing to its inertia, since at the
// end of a chain that point gives way.
double swing_rate(const Mechanism& m, int body, const JointFrame& frame) {
  if (body == kGround) return 0.0;
  const Body& b = m.bodies()[body];
  const Mat3 turns = b.inertia_b.inverse() * skew(frame.point_b);  // by a force at the point
  return std::sqrt(b.mass * m.gravity_0().norm() * std::sqrt(0.5) * turns.norm());
}

bool is_uneven(const Mechanism& m, const Joint& joint) {
  if (joint.first == kGround || joint.second == kGround) return false;
  const double first = m.bodies()[joint.first].mass, second = m.bodies()[joint.second].mass;
  return std::max(first, second) >= kUneven * std::min(first, second);
}

// Force elements that are stiffer or softer at the end of a step than at its begin: what comes to rest, or to a stop.
bool slopes_change(const Mechanism& m) {
  const auto has_table = [](const Spring& spring) {
    return !spring.stiffness_table.empty() || !spring.damping_table.empty();
  };
  return !m.frictions().empty() || !m.motors().empty() || !m.tyres().empty() ||
         std::any_of(m.springs().begin(), m.springs().end(), has_table);
}

// The tangent of the predictor serves all iterations where that is near enough to the end of the step. In closed loops
// it is not: redundant rows are independent there by as much as the joints are open, which turns their rounding into
// motion, and near a singular pose a loop's stiffness changes within the step. Slender bodies, uneven masses, rotors,
// bodies that gravity swings quickly (at the end of a whip above all) and long steps turn or load what inertia there is
// so much within a step that each iteration needs its own.
Tangents tangents_of(const Mechanism& m, const Settings& settings, bool has_loops) {
  const auto each = [&](const char* why) { return Tangents{settings.iterations, why}; };
  if (std::any_of(m.bodies().begin(), m.bodies().end(), is_slender)) return each("a body is slender");
  if (std::any_of(m.joints().begin(), m.joints().end(), [&m](const Joint& joint) { return is_uneven(m, joint); }))
    return each("masses of joined bodies differ a thousandfold");
  const double dt = 1e-9 * static_cast<double>(settings.dt_ns);
  if (std::any_of(m.bodies().begin(), m.bodies().end(),
                  [dt](const Body& body) { return body.angular_velocity_0.norm() * dt > kFast; }))
    return each("a body turns by more than a quarter of a radian a step at the start");
  if (slopes_change(m)) return each("friction, motors, tyres or tables");
  if (settings.dt_ns > kLong) return each("the step is above 10 ms");
  if (has_loops) return each("closed loops");
  if (std::any_of(m.joints().begin(), m.joints().end(), [&m, dt](const Joint& joint) {
        return is_pivot(joint) && (swing_rate(m, joint.first, joint.in_first) * dt > kQuick ||
                                   swing_rate(m, joint.second, joint.in_second) * dt > kQuick);
      }))
    return each("gravity swings a body quickly for the step");
  return {1, "the predictor is near enough"};
}

// The compliance of the rows of one joint at the start pose: those of a kind together, since they have one unit.
void choose_compliance(const Plan& plan, const State& start, const ComplianceChoice& choice, int joint_index,
                       std::vector<double>& compliance) {
  const Mechanism& m = plan.mechanism;
  const Joint& joint = m.joints()[joint_index];
  const auto placement = [&](int body) { return body == kGround ? Placement{} : placement_of(start.body[body]); };
  const Placement first = placement(joint.first), second = placement(joint.second);
  const JointPlacement at = place(joint, first, second);
  const auto rows = rows_of(joint.type);
  for (const bool cosines : {false, true}) {
    std::vector<int> of_kind;
    for (int k = 0; k < static_cast<int>(rows.size()); ++k)
      if ((rows[k].form == Row::Form::cosine) == cosines) of_kind.push_back(k);
    if (of_kind.empty()) continue;
    const auto size = static_cast<Eigen::Index>(of_kind.size());
    std::vector<RowsOnBody> on{{joint.first, first.A, {}}, {joint.second, second.A, {}}};
    for (RowsOnBody& body : on) body.J.resize(6, size);
    for (Eigen::Index k = 0; k < size; ++k) {
      const RowValue value = evaluate(rows[of_kind[k]], at);
      on[0].J.col(k) = value.J_first, on[1].J.col(k) = value.J_second;
    }
    const double of_rows = choice.of(on);
    for (const int k : of_kind) compliance[plan.first_row[joint_index] + k] = of_rows;
  }
}

// Couplings and drivers at the start pose: compliance of their rows, constants, start of the drives.
void prepare_couplings_and_drivers(Plan& plan, const State& start, const ComplianceChoice& choice) {
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
    std::vector<RowsOnBody> on;
    for (std::size_t k = 0; k < J.size(); ++k)
      on.push_back({plan.bodies[constraint][k], placement(plan.bodies[constraint][k]).A, J[k]});
    plan.compliance[plan.first_row[constraint]] = choice.of(on);
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
    plan.start_drive.push_back(prescribed_at_start(driver, plan.drivers.back(), c.value));
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

RowFormat format_of(JointType type) {
  const int rows = static_cast<int>(rows_of(type).size());
  switch (type) {
    case JointType::spherical:
    case JointType::gimbal:
    case JointType::point_on_point:
    case JointType::revolute:
    case JointType::universal:
    case JointType::fixed:
      return {rows, rows - 3};
    default:
      return {rows, RowFormat::kGeneral};
  }
}

// What has rows, as the elimination sees it.
std::vector<Constraint> constraints_of(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  std::vector<Constraint> constraints;
  for (int c = 0; c < m.constraints(); ++c) {
    plan.eliminated_as.push_back(-1);
    const int rows = plan.first_row[c + 1] - plan.first_row[c];
    if (rows == 0) continue;
    plan.eliminated_as.back() = static_cast<int>(constraints.size());
    plan.eliminated.push_back(c);
    const CoupledBodies& on = plan.bodies[c];
    const bool is_coupling = c >= plan.first_coupling() && c < plan.first_driver();
    constraints.push_back(
        {c < plan.first_coupling() ? format_of(m.joints()[c].type) : RowFormat{rows, RowFormat::kGeneral},
         {on.begin(), on.begin() + (is_coupling ? 4 : 2)}});
  }
  for (const Element& element : plan.elements)
    constraints.push_back({{element.rows, RowFormat::kGeneral}, {element.first, element.second}});
  return constraints;
}

void observe(Plan& plan, const std::vector<Constraint>& constraints) {
  const Mechanism& m = plan.mechanism;
  std::set<int> bodies, joints;
  for (std::size_t c = 0; c < plan.eliminated.size(); ++c) {
    if (!constraints[c].format.general()) continue;
    plan.general_constraints.push_back(plan.eliminated[c]);
    if (plan.eliminated[c] < plan.first_coupling()) joints.insert(plan.eliminated[c]);
  }
  plan.loads_follow_coordinates = !m.frictions().empty() || !m.motors().empty() || !m.efforts().empty() ||
                                  !m.couplings().empty() || !m.drivers().empty() ||
                                  std::any_of(m.springs().begin(), m.springs().end(),
                                              [](const Spring& s) { return s.kind == Spring::Kind::in_joint; });
  if (plan.loads_follow_coordinates)
    for (const JointCoordinate& coordinate : m.coordinates()) joints.insert(coordinate.joint);
  for (const Input& input : m.inputs()) {
    if (input.kind == Input::Kind::signal || turns_about_ground(m, input)) continue;
    input.kind == Input::Kind::joint_effort ? joints.insert(input.joint) : bodies.insert(input.body);
  }
  for (const AppliedLoad& load : m.loads()) bodies.insert(load.body);
  const auto add_both = [&bodies](const auto& elements) {
    for (const auto& element : elements) bodies.insert({element.first, element.second});
  };
  add_both(m.springs()), add_both(m.frictions()), add_both(m.motors()), add_both(m.bushings());
  add_both(m.efforts());
  for (const Drag& drag : m.drags()) bodies.insert(drag.body);
  for (const Tyre& tyre : m.tyres()) bodies.insert(tyre.body);
  for (const int j : joints) bodies.insert({m.joints()[j].first, m.joints()[j].second});
  bodies.erase(kGround);
  plan.pose_dependent_bodies.assign(bodies.begin(), bodies.end());
  plan.pose_dependent_joints.assign(joints.begin(), joints.end());
  std::set<int> loaded = bodies;
  for (const Input& input : m.inputs())
    if (turns_about_ground(m, input)) loaded.insert(m.joints()[input.joint].second);
  plan.loaded_bodies.assign(loaded.begin(), loaded.end());
  for (const JointCoordinate& coordinate : m.coordinates()) {
    const Joint& joint = m.joints()[coordinate.joint];
    if (joints.insert(coordinate.joint).second) plan.followed_joints.push_back(coordinate.joint);
    for (const int body : {joint.first, joint.second})
      if (body != kGround && bodies.insert(body).second) plan.followed_bodies.push_back(body);
  }
  plan.shows_forces = !m.bushings().empty() || !m.tyres().empty() ||  // their energy
                      std::any_of(m.outputs().begin(), m.outputs().end(), [](const Output& o) {
                        return o.kind == Output::Kind::force_element || o.kind == Output::Kind::drag;
                      });
}

// ---- constants in lanes

// Points and axes of a constraint on the lane-th place of its batch.
void write_constraint(Plan& plan, const Joint& joint, RowFormat format, int position, int width, int lane) {
  const Mat3 &first = joint.in_first.axes_b, &second = joint.in_second.axes_b;
  const bool universal = format.cosines == 1;
  const Vec3 vectors[] = {joint.in_first.point_b, joint.in_second.point_b, universal ? first.col(2) : first.col(0),
                          first.col(1),           second.col(2),           second.col(1)};
  double* to = plan.constraint_constants.data() + kConstraintConstants * position + lane;
  for (const Vec3& v : vectors)
    for (int i = 0; i < 3; ++i, to += width) *to = v[i];
}

// compliance: of each row, in the iterations and in the projections
void write_rows(Plan& plan, Place at, const std::vector<std::array<double, 2>>& compliance, double gain) {
  const std::size_t projections = static_cast<std::size_t>(plan.elimination.rows);
  for (std::size_t k = 0; k < compliance.size(); ++k) {
    const std::size_t row = static_cast<std::size_t>(at.base) + k * static_cast<std::size_t>(at.stride);
    plan.compliance_in_lanes[row] = compliance[k][0];
    plan.compliance_in_lanes[projections + row] = compliance[k][1];
    plan.gain[row] = gain;
    plan.carried[row] = gain > 0.0 ? compliance[k][0] / gain : 0.0;
  }
}

// Element rows take no part in the projections: their multiplier vanishes against any other.
constexpr double kIdle = 1e60;
static_assert(kIdle * kIdle * kIdle * kIdle < 1e300, "pivots of three rows are ratios of such products");

std::vector<std::array<double, 2>> compliances(const Plan& plan, int c, int rows) {
  std::vector<std::array<double, 2>> result(static_cast<std::size_t>(rows), {0.0, 0.0});  // of primal bodies
  if (c < plan.first_element())
    for (int k = 0; k < rows; ++k) result[k].fill(plan.compliance[plan.first_row[plan.eliminated[c]] + k]);
  else if (c < plan.first_element() + static_cast<int>(plan.elements.size()))
    for (auto& both : result) both = {1.0, kIdle};
  return result;
}

void write_constants(Plan& plan) {
  const Elimination& e = plan.elimination;
  const double four_over_dt2 = 4.0 / (plan.dt() * plan.dt());
  for (int c = 0; c < static_cast<int>(e.constraint.size()); ++c) {
    const ConstraintPlace& place = e.constraint[c];
    if (e.constraints[c].is_padding) continue;
    const bool has_multiplier = c < plan.first_element();
    const RowFormat format = e.constraints[c].format;
    Joint joint;
    if (has_multiplier && plan.eliminated[c] < plan.first_coupling())
      joint = plan.mechanism.joints()[plan.eliminated[c]];
    const auto compliance = compliances(plan, c, format.rows);
    std::vector<RowsPlace> places = place.copies;
    places.push_back(place);
    for (const RowsPlace& at : places) {
      const ConstraintBatch& batch = e.batches[at.batch];
      write_rows(plan, at.rows, compliance, has_multiplier ? four_over_dt2 : 0.0);
      if (!format.general())
        write_constraint(plan, joint, format, batch.position, batch.width, at.rows.base - batch.row_position);
    }
  }
}

}  // namespace

Plan::Plan(const Mechanism& mechanism_, const Settings& settings_)
    : mechanism(mechanism_),
      settings(settings_),
      first_row(number_rows(mechanism)),
      compliance(first_row.back()),
      bodies(acted_on(mechanism)),
      bushing_rows(rows_of_bushings(mechanism, dt())),
      elements(elements_of(mechanism, bushing_rows)),
      carries_spring(mechanism.bodies().size(), false),
      has_loops(closes_loops(mechanism)),
      kernels(&kernels_for_this_processor(settings.instruction_set)) {
  require_moderate_bodies(*this);
  const auto carries = [this](int body) {
    if (body != kGround) carries_spring[body] = true;
  };
  const auto carry = [&carries](const auto& all) {
    for (const auto& element : all) {
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
  tangents = tangents_of(mechanism, settings, has_loops);
  if (settings.relative_compliance < 0.0) settings.relative_compliance = has_loops ? 1e-7 : 1e-10;
  if (settings.projection_passes == 0) settings.projection_passes = has_loops ? 2 : 1;
  double longest = 0.0;
  for (const Joint& joint : mechanism.joints()) {
    if (joint.first != kGround) longest = std::max(longest, joint.in_first.point_b.norm());
    if (joint.second != kGround) longest = std::max(longest, joint.in_second.point_b.norm());
  }
  if (longest > 0.0) length = longest;
  const State start(mechanism, rows());
  const ComplianceChoice choice(mechanism, has_loops, settings.relative_compliance);
  for (int j = 0; j < static_cast<int>(mechanism.joints().size()); ++j)
    choose_compliance(*this, start, choice, j, compliance);
  name_rows(*this, joint_of_row, is_length);
  prepare_couplings_and_drivers(*this, start, choice);
  for (const AppliedEffort& effort : mechanism.efforts()) efforts.push_back(prepare(effort.function));
  constraints = constraints_of(*this);
  observe(*this, constraints);
  require_moderate_joints(constraints, static_cast<int>(mechanism.bodies().size()));
  lay_out(compile(constraints, carries_spring, settings.order, kernels->lanes));
  choose_primal_bodies(*this);
  require_moderate_elimination(elimination, settings.primal_bodies == PrimalBodies::dual);
  if (settings.threads > 1) lay_out(divided(settings.threads));
}

Elimination Plan::divided(int threads) const {
  const bool is_hybrid = primal_choice.reason == PrimalChoice::Reason::primal;
  return compile(constraints, carries_spring, settings.order, kernels->lanes,
                 is_hybrid ? primal_choice.primal_bodies : std::vector<int>{}, std::clamp(threads, 1, kMostThreads));
}

void Plan::lay_out(Elimination chosen) {
  elimination = std::move(chosen);
  for (Leaf& leaf : elimination.leaves) leaf.is_isotropic = true;
  for (std::size_t i = 0; i < mechanism.bodies().size(); ++i)
    for (const int leaf : elimination.leaves_of_body[i])
      if (!is_isotropic(mechanism.bodies()[i])) elimination.leaves[leaf].is_isotropic = false;
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  constraint_constants = AlignedDoubles(size(kConstraintConstants * elimination.constraint_positions), 0.0);
  compliance_in_lanes = AlignedDoubles(size(2 * elimination.rows), 0.0);
  gain = AlignedDoubles(size(elimination.rows), 0.0);
  carried = AlignedDoubles(size(elimination.rows), 0.0);
  write_constants(*this);
}

}  // namespace rigstep::index3
