// Everything about a stepper that never changes after loading, but for what follows from the values of tunable
// parameters (compile/tuning.h): numbers, never which numbers there are.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "core/index3/compile/aligned.h"
#include "core/index3/compile/compliance.h"
#include "core/index3/compile/elimination.h"
#include "core/index3/compile/planar_motion.h"
#include "core/index3/physics/constraints.h"
#include "core/index3/physics/drivers.h"
#include "core/index3/physics/elements/list.h"
#include "core/index3/settings.h"

namespace rigstep::index3 {

struct Kernels;  // kernels/sweeps.h

template <class Kind>
using ConstantsOf = typename Stepped<Kind>::Constants;

// What is eliminated like a constraint between bodies, but with rows of compliance 1 and without a multiplier: Newton's
// tangent of a force element. It takes no part in the projections.
struct Element {
  int kind;                 // kind_of<...>
  int index;                // among the mechanism's elements of this kind
  std::vector<int> bodies;  // two at least; one of two may be the ground
  int rows;
};

// A force element of the mechanism.
struct ElementOfKind {
  int kind;   // kind_of<...>
  int index;  // among the mechanism's elements of this kind; -1: none
};

// The row of a joint's own coordinate, with which its constraint ends where there is a driver or are elements.
struct CoordinateRow {
  int driver = -1;                      // that holds it; -1: none
  std::vector<ElementOfKind> elements;  // along it; where there is a driver they need no row
  bool exists() const { return driver >= 0 || !elements.empty(); }
};

// Which bodies the elimination keeps primal, and what spoke for or against it (primal_bodies.h).
struct PrimalChoice {
  enum class Reason {
    no_candidate,  // no body carries that many rows
    requested,     // the settings say dual
    not_cheaper,   // the hybrid form takes as many operations
    too_large,     // to find out whether it is sound
    not_accurate,  // it is not sound
    primal,
  } reason = Reason::no_candidate;
  std::vector<int> primal_bodies;  // bodies, chosen or not
  int eliminated_last = 0;         // constraints that must wait for the primal bodies
  long dual = 0, hybrid = 0;       // multiply-adds a factorisation; 0: not counted
  double error = 0.0;              // of the hybrid form, relative
};

// How far bodies move in the iterations of a step [largest arm, rad].
struct IterateMoves {
  double since_tangent = 0.0;  // since the last tangent was made
  double last = std::numeric_limits<double>::infinity(), before_last = last;
  void add(double move, bool has_new_tangent) noexcept {
    since_tangent = has_new_tangent ? move : since_tangent + move;
    before_last = last, last = move;
  }
  // Whether the next iteration with the same tangent would still move them by more than this, if each does so by the
  // same fraction of what the one before did. So it is where a load jumps: bodies hardly move, but the multipliers jump
  // and with them the geometric stiffness.
  bool converge_slowly(double settled) const noexcept { return last * last > settled * before_last; }
};

// Iterations of a step, from the first on, that may have a tangent of their own.
struct Tangents {
  int count = 1;
  double near = -1.0;  // what bodies move without a new one [largest arm, rad]; below 0: each of these has its own
  bool with_forces = false;        // ... unless that of the force elements has changed
  double near_projections = -1.0;  // what bodies move without a new one for the projections; below 0: nothing
  const char* why = "";
  double settled = 0.0;  // what another iteration without a new one may move bodies [largest arm, rad]
  // Whether force elements may ask for a new tangent: not where the last iteration moved bodies by `settled` or less.
  bool may_follow_forces(const IterateMoves& moves) const noexcept { return with_forces && moves.last > settled; }
  int least() const noexcept { return near < 0.0 ? count : 1; }  // where motion is smooth
  bool renews(int iteration, const IterateMoves& moves) const noexcept {
    return iteration < count && (moves.since_tangent > near || moves.converge_slowly(settled));
  }
};

// A lane of the scalars that force elements act along; neither of a joint nor between points: the batch's first one
// again, with nothing along it.
struct ScalarLane {
  int joint = -1;                        // whose own coordinate it is
  int coordinate = -1;                   // ... the followed one; -1: none
  ElementOfKind between_points{-1, -1};  // the spring or stop between whose points it is
  bool is_used() const { return joint >= 0 || is_between_points(); }
  bool is_between_points() const { return between_points.index >= 0; }
};

// Force elements that lanes evaluate otherwise than along a scalar, of one kind.
struct ElementLanes {
  std::vector<ElementBatch> batches;
  std::vector<int> element;  // (lanes of these) among those of the kind
};

// What lanes find of force elements lies in one array: where each part of it begins.
struct FoundPlaces {
  int scalars = 0;                                   // kScalarNumbers of each
  std::array<int, ElementKinds::kCount> elements{};  // (kinds) Stepped<Kind>::kLaneFound of each
  int one_by_one = 0;                                // (plan.loaded_one_by_one) actions, kActionNumbers of each
  int nothing = 0;                                   // a number that adds nothing
  int size = 0;
};

// indices into the elements of a kind
template <class Kind>
using IndexAmong = int;

// The record of a body, or of the ground.
Place record_of(const Elimination& elimination, int body);

// Into a lane, one behind the other; and a joint's points and axes so, as kernels want them.
void write_vectors(std::initializer_list<Vec3> vectors, int width, double* to);
void write_joint(const Joint& joint, const Vec3& first_axis_b, int width, double* to);

struct Plan {
  // Without anything that follows from them: make_plan() fills it in (start/make_plan.h).
  Plan(const Mechanism& mechanism, const Settings& settings);

  // Takes over an elimination of this mechanism, with everything that lies in its lanes.
  void lay_out(Elimination chosen);

  // The compliance of a constraint of the elimination, into its lanes. In the loop, too.
  void write_compliance(int eliminated_constraint) noexcept;

  // The chosen elimination, divided among as many of these threads as make the step shortest.
  Elimination divided(int threads) const;

  Mechanism mechanism;
  Settings settings;                   // with the automatic values filled in
  std::vector<int> first_row;          // (constraints + 1) global row where each joint, coupling or driver begins
  std::vector<int> constraint_of_row;  // (rows) constraint: joints, then couplings, then drivers
  std::vector<bool> is_length;         // (rows) measured in metres, else in radians or as a cosine
  std::vector<double> compliance;      // (rows) added to the diagonal of J M^-1 J'
  ComplianceChoice compliance_choice;
  std::vector<CoupledBodies> bodies_of_constraint;  // (constraints) that it acts on; first those of the joint
  std::vector<double> coupling_constant;            // (couplings) first coordinate + ratio * second [unit of the first]
  std::vector<DriverPlan> drivers;                  // (drivers)
  std::vector<Prescribed> start_drive;              // (drivers) at the start; inputs: at rest where the start pose is
  ElementKinds::VectorsOf<ConstantsOf> element_constants;  // (elements of each kind)
  std::vector<CoordinateRow> coordinate_rows;              // (joints)
  std::vector<int> elastic_joints;                         // those whose coordinate row is elastic
  std::vector<Element> elements;                           // those with rows of their own: first the kinds with several
  std::vector<bool> has_own_tangent;                       // (bodies) has own-body blocks in the force tangent
  PlanarMotion planar;     // bodies that never leave a plane, and the rows of joints that this leaves idle
  double length = 1.0;     // largest arm of a joint on a body; 1 where there is none [m]
  bool has_loops = false;  // constraints may depend on each other: joints close loops, or couplings or drivers do
  Tangents tangents;

  std::vector<int> eliminated_as;    // (constraints) as which constraint of the elimination; -1: no rows
  std::vector<int> first_row_there;  // (constraints) ... and as which of its rows: of drivers also the row of a joint
  std::vector<int> eliminated_rows;  // (constraints) how many of its rows, the first ones; the others are idle
  std::vector<int> eliminated;       // the other way round: which constraint; there the elements follow
  std::vector<Constraint> constraints;  // what the elimination is compiled from
  Elimination elimination;
  PrimalChoice primal_choice;  // which bodies stay primal there, and why
  const Kernels* kernels = nullptr;
  int lanes = 1;            // of the widest batches of these
  int lanes_of_forces = 1;  // of batches of scalars and force elements

  // what every iteration evaluates one by one: bodies and joints with force elements, and inputs whose loads change
  // with the pose, but for what is evaluated in lanes
  std::vector<int> pose_dependent_bodies;
  std::vector<int> pose_dependent_joints;
  // all that force elements, inputs and loads look at: for the end of a step of order 4
  std::vector<int> bodies_of_forces, joints_of_forces;
  // the pose-dependent bodies, those that are loaded in lanes, and those that inputs load alike in all poses
  std::vector<int> loaded_bodies;
  std::vector<int> loaded_one_by_one;  // those of them to which iterates add loads one by one
  // what is evaluated only when a step is made, for its joint coordinates; none of the pose-dependent and measured ones
  std::vector<int> followed_bodies;
  std::vector<int> followed_joints;
  std::vector<int> followed_one_by_one;  // coordinates along which force elements act that are evaluated one by one
  std::vector<int> followed_by_forces;   // ... along which any do
  // revolute and prismatic joints along which force elements or inputs act: their coordinates are measured in lanes
  std::vector<int> measured_joints;
  std::vector<bool> is_measured;  // (joints) one of these
  // other revolute and prismatic joints whose coordinates are followed: measured in lanes at the end of a step
  std::vector<int> measured_at_end;
  std::vector<int> inputs_one_by_one;
  std::vector<int> inputs_along_joints;   // measured ones
  std::vector<int> efforts_along_joints;  // elements of kind AppliedEffort, likewise
  // Iterates sum what acts along measured joints in lanes; of the other elements they evaluate those of `in_lanes`
  // there, and apply them there unless they act over a step.
  ElementKinds::VectorsOf<IndexAmong> in_lanes, applied_one_by_one, evaluated_one_by_one;
  // At the end of a step: those that outputs or the energy read; of these, what is not evaluated in lanes then.
  ElementKinds::VectorsOf<IndexAmong> read_at_end, evaluated_at_end;
  // What elements that act over a step load and look at: at both ends of a step they are evaluated one by one.
  std::vector<int> bodies_over_step, joints_over_step, coordinates_over_step;

  bool has_force_elements = false;  // any at all

  // in lanes (schedule.h); a workspace has its own compliance_in_lanes and carried, which its kernels read
  AlignedDoubles constraint_constants, compliance_in_lanes, multiplier_scale, carried;
  std::vector<ScalarBatch> scalar_batches;
  int scalar_batches_of_iterates = 0;    // the first of these: the others are measured at the end of a step
  std::vector<ScalarLane> scalar_lanes;  // of these
  std::vector<int> stops_in_lanes, springs_with_rows;  // lanes of those between points that iterates look at one by one
  std::vector<int> lane_of_joint;                      // (joints) among these; -1: none
  std::vector<LawBatch> laws;                          // of these batches
  std::vector<ElementOfKind> elements_in_laws;         // (lanes of these)
  AlignedDoubles scalar_constants, law_tables;
  std::array<ElementLanes, ElementKinds::kCount> element_lanes;  // (kinds)
  FoundPlaces found;
  std::vector<LoadedLeaf> loaded_leaves;
  std::vector<Action> actions;                      // of these
  std::vector<CoordinateBatch> coordinate_batches;  // of the coordinates that couplings hold
  std::vector<Place> found_coordinate;  // (followed coordinates) what they find of it; base -1: it is not coupled
  int lanes_of_coordinates = 0;         // of these batches, all together
  AlignedDoubles coordinate_constants;

  template <class Kind>
  const std::vector<ConstantsOf<Kind>>& constants() const {
    return std::get<kind_of<Kind>>(element_constants);
  }
  // Its tangent acts along a joint's coordinate that has a row: there it stands, or a driver leaves nothing to it.
  template <class Kind>
  bool is_in_coordinate_row(const Kind& element) const {
    const int coordinate = coordinate_of_tangent(element);
    return coordinate >= 0 && coordinate_rows[mechanism.coordinates()[coordinate].joint].exists();
  }
  // The driver whose row this is of an eliminated joint, coupling or driver; -1: another row.
  int driver_in_row(int constraint, int row) const {
    const bool is_coordinate =
        constraint < first_coupling() && row >= first_row[constraint + 1] - first_row[constraint];
    return is_coordinate ? coordinate_rows[constraint].driver : -1;
  }
  template <class Kind>
  const std::vector<int>& lanes_of() const {
    return std::get<kind_of<Kind>>(in_lanes);
  }
  // The place of what is found of a scalar or an element in this lane: number 0 of so many of each.
  Place found_in_lane(int first, int numbers, int k) const {
    const int lane = k % lanes_of_forces;
    return {first + numbers * (k - lane) + lane, lanes_of_forces};
  }
  // Some force element does: Newton's equations have other loads than the instant.
  bool acts_over_step() const { return !bodies_over_step.empty(); }
  // else all loads are those of the step
  bool depends_on_pose() const {
    return !pose_dependent_bodies.empty() || scalar_batches_of_iterates > 0 || !coordinate_batches.empty() ||
           std::any_of(element_lanes.begin(), element_lanes.end(),
                       [](const ElementLanes& of_kind) { return !of_kind.batches.empty(); });
  }
  int rows() const { return first_row.back(); }
  int first_coupling() const { return static_cast<int>(mechanism.joints().size()); }  // as a constraint
  int first_element() const { return static_cast<int>(eliminated.size()); }           // in the elimination
  int first_driver() const { return first_coupling() + static_cast<int>(mechanism.couplings().size()); }
  double dt() const { return 1e-9 * static_cast<double>(settings.dt_ns); }  // [s]
  double time_of(std::uint64_t step) const {                                // of the state after so many steps [s]
    return 1e-9 * static_cast<double>(static_cast<std::int64_t>(step) * settings.dt_ns);
  }
};

}  // namespace rigstep::index3
