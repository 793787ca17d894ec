// Every byte that a step may touch and that does not survive it, grouped by the phase that writes it.
// Sized once; starts as NaN, so that anything read before it is written shows at once.
#pragma once

#include <array>
#include <vector>

#include "core/index3/compile/aligned.h"
#include "core/index3/compile/plan.h"
#include "core/index3/kernels/sweeps.h"
#include "core/index3/physics/constraints.h"
#include "core/index3/physics/elements/list.h"
#include "core/index3/step/exchange.h"

namespace rigstep::index3 {

template <class Kind>
using ReadingOf = typename Stepped<Kind>::Reading;
template <class Kind>
using EvaluatedOf = typename Stepped<Kind>::Evaluated;

// What a thread has noticed in its part of a step, on cache lines of its own: processors fetch two at a time.
struct alignas(128) PartStatus {
  bool failed = false;    // some front has no positive pivots
  bool complete = false;  // nobody was late
  StepMeasures measures;
};

struct Workspace {
  explicit Workspace(const Plan& plan);
  std::size_t bytes() const noexcept;

  // Takes over what parameters have changed in the plan: compliance and force elements; the mass and inertia of a body,
  // and its weight. Between two steps.
  void follow_parameters(const Plan& plan) noexcept;
  void follow_body(const Plan& plan, int body) noexcept;

  // what the elements of one kind do
  template <class Kind>
  std::vector<ReadingOf<Kind>>& reading() noexcept {
    return std::get<kind_of<Kind>>(readings);
  }
  template <class Kind>
  const std::vector<ReadingOf<Kind>>& reading() const noexcept {
    return std::get<kind_of<Kind>>(readings);
  }

  // what their loads and their tangent have in common
  template <class Kind>
  std::vector<EvaluatedOf<Kind>>& evaluated() noexcept {
    return std::get<kind_of<Kind>>(evaluations);
  }
  template <class Kind>
  const std::vector<EvaluatedOf<Kind>>& evaluated() const noexcept {
    return std::get<kind_of<Kind>>(evaluations);
  }

  // what they keep of the begin of the step
  template <class Kind>
  std::vector<StartOf<Kind>>& start() noexcept {
    return std::get<kind_of<Kind>>(starts);
  }
  template <class Kind>
  const std::vector<StartOf<Kind>>& start() const noexcept {
    return std::get<kind_of<Kind>>(starts);
  }

  // The instant that the step has reached becomes the last one.
  void advance() noexcept;

  // the plan's, which parameters change, so that a late worker of the workspace in reserve reads none of it
  AlignedDoubles compliance, carried;

  // force elements in lanes; what a step holds is written by hold_forces_in_lanes
  AlignedDoubles held_along_scalars;  // kHeldNumbers of each scalar
  AlignedDoubles law_numbers;         // kLawNumbers of each lane of plan.laws
  // (kinds) of each lane of plan.element_lanes, what its kernel takes
  std::array<AlignedDoubles, ElementKinds::kCount> element_numbers;
  // (plan.found) what kernels find, written by evaluate_in_lanes; behind it the actions that are applied one by one, by
  // load_iterate
  AlignedDoubles found;

  AlignedDoubles coordinates_found;  // kCoordinateNumbers of each lane of plan.coordinate_batches, by couplings.h

  // written by follow_body: (bodies) what makes a row on a body one of unit inertia at most, by direction: 1 / root of
  // its mass, and root of the trace of its inverse inertia, whatever its axes
  std::vector<std::array<double, 6>> inverse_root;

  // the step in lanes, written by its kernels (schedule.h says what)
  AlignedDoubles block;                 // all of it
  StepArrays arrays;                    // views into it, with the operations of the first part, mostly the only one
  std::vector<StepArrays> parts;        // the same arrays, each with the operations of one part
  std::vector<StepArrays> borders;      // (parts) ... with those of its border
  std::vector<StepArrays> tops;         // (parts) ... with those of the top, which joins all parts
  Exchange exchange;                    // between the parts
  std::vector<PartStatus> part_status;  // (parts)

  // The same quantities one by one: during a step only of the pose-dependent bodies and joints, at the end of one of
  // order 4 of those that forces look at, after evaluate_state of everything.

  // written by evaluate_drivers, evaluate_state
  std::vector<double> reference;  // (followed coordinates) at the last instant: angles are unwrapped from there
  std::vector<Prescribed> drive;  // (drivers) prescribed motion at the end of the step

  // written by gather_poses, gather_reached_by_forces, gather_last_instant, evaluate_state
  std::vector<Placement> placement;  // (bodies) of the current iterate

  // written by gather_poses, gather_reached_by_forces (joint alone), evaluate_constraints
  std::vector<JointPlacement> joint;  // (joints)
  std::vector<Vec6> J_first;          // (rows) Jacobian with respect to the first body   (3)
  std::vector<Vec6> J_second;         // (rows)                      the second body
  std::vector<Vec6> J_third;          // (couplings) the bodies of the second joint
  std::vector<Vec6> J_fourth;         // (couplings)
  std::vector<double> Phi;            // (rows) position constraints [m] or [-]           (1)

  // written by evaluate_elements, evaluate_one_by_one and evaluate_in_lanes (coordinates by follow_coordinates and
  // follow_reached_coordinates, too, they and evaluations by start_elements and replace_loads_over_step), apply_forces,
  // force_tangent; coordinates and what read_elements reads of the committed step, all else of its last iterate; by
  // apply_one_by_one and tangent_one_by_one loads without weights and tangents of what iterates apply so
  std::vector<Coordinate> coordinate;                // (followed coordinates) with unwrapped values [m] or [rad]; at
                                                     // iterates those of measured joints are in lanes only
  std::vector<ScalarEffort> along_joint;             // (joints) what force elements along a coordinate row do together
  ElementKinds::VectorsOf<EvaluatedOf> evaluations;  // (elements of each kind)
  std::vector<Vec6> Q;                               // (bodies) force [N] and torque [N m], world frame
  ElementKinds::VectorsOf<ReadingOf> readings;       // (elements of each kind)
  std::vector<Mat6> tangent;                         // (bodies) dt^2/4 K + dt/2 C, world frame

  // written by start_elements; by replace_loads_over_step; by evaluate_rows
  ElementKinds::VectorsOf<StartOf> starts;                       // (elements of each kind) that act over a step
  std::vector<Vec6> Q_over_step;                                 // (bodies) of these alone, over the step
  std::vector<std::array<Vec6, kMostElementRows>> element_rows;  // (bodies of the element at hand) its rows

  // written by evaluate_iterate
  bool renews_tangent = true;  // the tangent of force elements asks for it

  // written by take_inputs
  std::vector<double> input;  // (input channels) of this step
};

inline const Placement& placement(const Workspace& w, int body) noexcept {
  return body == kGround ? kGroundPlacement : w.placement[body];
}

// Jacobian of a row with respect to body k of its constraint,
// plan.bodies_of_constraint[plan.constraint_of_row[row]][k].
inline const Vec6& block(const Plan& plan, const Workspace& w, int row, int k) noexcept {
  if (k < 2) return k == 0 ? w.J_first[row] : w.J_second[row];
  const int coupling = plan.constraint_of_row[row] - plan.first_coupling();
  return k == 2 ? w.J_third[coupling] : w.J_fourth[coupling];
}

// Runs f(body, Jacobian) for every moving body that the row acts on.
template <class Visit>
void for_each_block(const Plan& plan, const Workspace& w, int row, const Visit& f) {
  const CoupledBodies& bodies = plan.bodies_of_constraint[plan.constraint_of_row[row]];
  for (int k = 0; k < 4; ++k)
    if (bodies[k] != kGround) f(bodies[k], block(plan, w, row, k));
}

// w.joint, and the Jacobians and w.Phi of all joints, couplings and drivers, from w.placement, w.reference and w.drive,
// (1) (3). Load time and diagnostics.
void evaluate_constraints(const Plan& plan, Workspace& w) noexcept;

// What a row adds to J v and to J a besides the bodies' motion: Phi_t, and J-dot v + Phi_tt. Of a coupling or driver.
struct RowTerms {
  double velocity;
  double acceleration;
};
RowTerms row_terms(const Plan& plan, const Workspace& w, int constraint) noexcept;

// Phi_t of every row: minus the prescribed rate of a driver, else zero. Load time and diagnostics.
void evaluate_velocity_terms(const Plan& plan, const Workspace& w, std::vector<double>& rates) noexcept;

// J-dot v + Phi_tt of every row, from w.joint, the velocities in w.placement and the prescribed accelerations. Load
// time and diagnostics.
void evaluate_quadratic_terms(const Plan& plan, const Workspace& w, std::vector<double>& quadratic) noexcept;

}  // namespace rigstep::index3
