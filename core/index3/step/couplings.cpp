#include "core/index3/step/couplings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/index3/step/lane_access.h"

namespace rigstep::index3 {

namespace {

// What lanes have found of a coordinate (schedule.h).
struct FoundCoordinate {
  FoundInLane in;
  double value() const { return in[0]; }
  double rate() const { return in[1]; }
  double quadratic() const { return in[2]; }
  double acceleration() const { return in[3]; }
  Vec6 on_first() const { return in.six(kGradientOfCoordinate); }
  Vec6 on_second() const {
    Vec6 J;
    J << -in.three(kGradientOfCoordinate), -in.three(kGradientOfCoordinate + 6);
    return J;
  }
  Vec6 stiffness_of_first() const { return in.six(kStiffnessOfCoordinate); }
  Vec6 stiffness_of_second() const { return in.six(kStiffnessOfCoordinate + 6); }
};

FoundCoordinate found_of(const Plan& plan, const Workspace& w, int coordinate) {
  const Place& at = plan.found_coordinate[coordinate];
  return {{w.coordinates_found.data() + at.base, at.stride}};
}

void evaluate(const Plan& plan, bool with_stiffness, bool with_velocity, Workspace& w) {
  plan.kernels->evaluate_coordinates(
      w.arrays, {plan.coordinate_batches.data(), static_cast<int>(plan.coordinate_batches.size()),
                 plan.coordinate_constants.data(), w.coordinates_found.data(), with_stiffness, with_velocity});
}

// One coupling and what is found of its coordinates.
struct EvaluatedCoupling {
  const Coupling& coupling;
  int constraint;
  FoundCoordinate first, second;
  double sum(double of_first, double of_second) const { return of_first + coupling.ratio * of_second; }
};

// f(coupling) of all, after lanes have evaluated their coordinates
template <class F>
void for_couplings(const Plan& plan, bool with_stiffness, bool with_velocity, Workspace& w, const F& f) {
  const std::vector<Coupling>& all = plan.mechanism.couplings();
  if (all.empty()) return;
  evaluate(plan, with_stiffness, with_velocity, w);
  for (int k = 0; k < static_cast<int>(all.size()); ++k)
    f(EvaluatedCoupling{all[k], plan.first_coupling() + k, found_of(plan, w, all[k].first),
                        found_of(plan, w, all[k].second)});
}

double value_of(const Plan& plan, const FoundCoordinate& found, int coordinate, double last) {
  const JointCoordinate& of = plan.mechanism.coordinates()[coordinate];
  const double value = found.value() + of.offset;
  return is_length(of.freedom) ? value : unwrapped(value, last);
}

double gap_of(const Plan& plan, const Workspace& w, const EvaluatedCoupling& c) {
  return c.sum(value_of(plan, c.first, c.coupling.first, w.reference[c.coupling.first]),
               value_of(plan, c.second, c.coupling.second, w.reference[c.coupling.second])) -
         plan.coupling_constant[c.constraint - plan.first_coupling()];
}

// What the coupling does to one of its bodies: its Jacobian, and the geometric stiffness of a unit multiplier, as a
// handle has it.
struct CoupledSide {
  Vec6 J = Vec6::Zero(), K = Vec6::Zero();
};
using CoupledSides = std::array<CoupledSide, kMaxSides>;

void add(const CoupledBodies& bodies, const Joint& joint, const FoundCoordinate& found, double factor,
         CoupledSides& sides) {
  for (std::size_t s = 0; s < sides.size(); ++s) {
    if (bodies[s] == kGround) continue;
    if (bodies[s] == joint.first)
      sides[s].J += factor * found.on_first(), sides[s].K += factor * found.stiffness_of_first();
    if (bodies[s] == joint.second)
      sides[s].J += factor * found.on_second(), sides[s].K += factor * found.stiffness_of_second();
  }
}

void write_handle(const Workspace& w, Place at, const CoupledSide& side, double lambda) {
  double* const handle = w.arrays.handles + at.base;
  for (int k = 0; k < 6; ++k) {
    handle[k * at.stride] = lambda * side.J[k];
    handle[(kStiffnessOfHandle + k) * at.stride] = lambda * side.K[k];
    handle[(kRowsOfHandle + k) * at.stride] = side.J[k];
  }
}

void write_handles(const Plan& plan, const Workspace& w, const EvaluatedCoupling& c) {
  const Mechanism& m = plan.mechanism;
  const CoupledBodies& bodies = plan.bodies_of_constraint[c.constraint];
  CoupledSides sides;
  add(bodies, m.joints()[m.coordinates()[c.coupling.first].joint], c.first, 1.0, sides);
  add(bodies, m.joints()[m.coordinates()[c.coupling.second].joint], c.second, c.coupling.ratio, sides);
  const double lambda = row_value(plan, w.arrays.lambda, c.constraint, 0);
  const ConstraintPlace& place = plan.elimination.constraint_place[plan.eliminated_as[c.constraint]];
  for (std::size_t s = 0; s < place.handles.size(); ++s)
    if (bodies[s] != kGround)
      for (const Place& at : place.handles[s]) write_handle(w, at, sides[s], lambda);
}

}  // namespace

void constrain_couplings(const Plan& plan, Workspace& w, bool with_stiffness, Gaps gaps) noexcept {
  for_couplings(plan, with_stiffness, false, w, [&](const EvaluatedCoupling& c) {
    if (gaps == Gaps::written) write_row(plan, c.constraint, 0, gap_of(plan, w, c), w.arrays.Phi);
    write_handles(plan, w, c);
  });
}

void measure_gaps_of_couplings(const Plan& plan, double factor, Workspace& w) noexcept {
  for_couplings(plan, false, false, w, [&](const EvaluatedCoupling& c) {
    write_row(plan, c.constraint, 0, factor * gap_of(plan, w, c), w.arrays.Phi);
  });
}

void measure_velocities_of_couplings(const Plan& plan, Workspace& w) noexcept {
  for_couplings(plan, false, true, w, [&](const EvaluatedCoupling& c) {
    write_row(plan, c.constraint, 0, c.sum(c.first.rate(), c.second.rate()), w.arrays.quadratic);
  });
}

void find_quadratic_terms_of_couplings(const Plan& plan, Workspace& w) noexcept {
  for_couplings(plan, false, true, w, [&](const EvaluatedCoupling& c) {
    write_row(plan, c.constraint, 0, c.sum(c.first.quadratic(), c.second.quadratic()), w.arrays.quadratic);
  });
}

void measure_residuals_of_couplings(const Plan& plan, Workspace& w, StepReport& report) noexcept {
  for_couplings(plan, false, true, w, [&](const EvaluatedCoupling& c) {
    const auto note = [](double residual, double& largest) { largest = std::max(largest, std::abs(residual)); };
    note(gap_of(plan, w, c), report.position_residual);
    note(c.sum(c.first.rate(), c.second.rate()), report.velocity_residual);
    note(c.sum(c.first.acceleration(), c.second.acceleration()), report.acceleration_residual);
  });
}

Coordinate coupled_coordinate(const Plan& plan, const Workspace& w, int coordinate, double last) noexcept {
  const FoundCoordinate found = found_of(plan, w, coordinate);
  return {value_of(plan, found, coordinate, last), found.rate(), found.on_first(), found.on_second()};
}

}  // namespace rigstep::index3
