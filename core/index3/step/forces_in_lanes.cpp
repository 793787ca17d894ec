#include "core/index3/step/forces_in_lanes.h"

#include "core/index3/kernels/sweeps.h"

namespace rigstep::index3 {

namespace {

// Numbers of a lane, where there are so many in each: number k of it.
template <class Double>
struct LaneNumbers {
  Double* first;
  int lanes;
  Double& operator[](int k) const { return first[k * lanes]; }
  Vec3 three(int k) const { return {(*this)[k], (*this)[k + 1], (*this)[k + 2]}; }
  Vec6 six(int k) const {
    Vec6 values;
    values << three(k), three(k + 3);
    return values;
  }
};
template <class Double>
LaneNumbers<Double> of_lane(const Plan& plan, Double* numbers, int each, int k) {
  const int lane = k % plan.lanes;
  return {numbers + each * (k - lane) + lane, plan.lanes};
}
LaneNumbers<const double> found_of_scalar(const Plan& plan, const Workspace& w, int k) {
  return of_lane<const double>(plan, w.scalars.data(), kScalarNumbers, k);
}

template <class Numbers>
void write(const Numbers& numbers, LaneNumbers<double> to) {
  for (int k = 0; k < static_cast<int>(numbers.size()); ++k) to[k] = numbers[static_cast<std::size_t>(k)];
}

void hold_effort(const Plan& plan, int joint, double effort, Workspace& w) {
  of_lane(plan, w.held_along_scalars.data(), kHeldNumbers, plan.lane_of_joint[joint])[2] += effort;
}

Coordinate coordinate_in(const LaneNumbers<const double>& found) {
  Coordinate x{found[0], found[1], {}, {}};
  x.first << -found.three(2), -found.three(5);
  x.second << found.three(2), found.three(8);
  return x;
}
ScalarEffort effort_in(const LaneNumbers<const double>& found) {
  return {found[kEffortAlong], found[kEffortAlong + 1], found[kEffortAlong + 2]};
}

void evaluate_scalars(const Plan& plan, bool at_end, Workspace& w) {
  plan.kernels->evaluate_scalars(
      w.arrays, {plan.scalar_batches.data(), static_cast<int>(plan.scalar_batches.size()), plan.laws.data(),
                 plan.scalar_constants.data(), plan.law_tables.data(), w.held_along_scalars.data(),
                 w.law_numbers.data(), w.scalars.data(), at_end});
}

TyreForces tyre_in(const LaneNumbers<const double>& found) {
  TyreForces forces{};
  TyreContact& at = forces.contact;
  at.deflection = found[0], forces.normal = found[1];
  at.touches = found[8] != 0.0;
  forces.slip = {found[2], found[3], found[4], found[5], found[6], found[7]};
  at.normal = found.six(kWrenchesOfTyre), at.forward = found.six(kWrenchesOfTyre + 6);
  at.sideways = found.six(kWrenchesOfTyre + 12);
  return forces;
}

void evaluate_tyres(const Plan& plan, bool at_end, Workspace& w) {
  plan.kernels->evaluate_tyres(w.arrays, {plan.tyre_batches.data(), static_cast<int>(plan.tyre_batches.size()),
                                          w.tyre_numbers.data(), w.tyres.data(), at_end});
  for (std::size_t k = 0; k < plan.tyres_in_lanes.size(); ++k)
    w.evaluated<Tyre>()[plan.tyres_in_lanes[k]] =
        tyre_in(of_lane<const double>(plan, w.tyres.data(), kTyreFound, static_cast<int>(k)));
}

}  // namespace

AlignedDoubles idle_law_numbers(const Plan& plan) {
  AlignedDoubles all(kLawNumbers * plan.elements_in_laws.size(), 0.0);
  const std::vector<double> no_inputs(plan.mechanism.inputs().size(), 0.0);
  for (int k = 0; k < static_cast<int>(plan.elements_in_laws.size()); ++k)
    visit_kind(plan.elements_in_laws[k].kind, [&]<class Kind>() {
      if constexpr (HasLaw<Kind>)
        write(law_numbers(Kind{}, no_inputs.data()), of_lane(plan, all.data(), kLawNumbers, k));
    });
  return all;
}

void hold_forces_in_lanes(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                          Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (const int j : plan.measured_joints) {
    const int k = plan.lane_of_joint[j], coordinate = plan.scalar_lanes[k].coordinate;
    const LaneNumbers<double> held = of_lane(plan, w.held_along_scalars.data(), kHeldNumbers, k);
    held[0] = coordinate < 0 ? 0.0 : m.coordinates()[coordinate].offset;
    held[1] = coordinate < 0 ? 0.0 : last_coordinate[coordinate];
    held[2] = 0.0;
  }
  for (const int k : plan.inputs_along_joints) hold_effort(plan, m.inputs()[k].joint, inputs.value[k], w);
  for (const int k : plan.efforts_along_joints) {
    const AppliedEffort& effort = m.all<AppliedEffort>()[k];
    const double value = evaluate(effort.function, plan.constants<AppliedEffort>()[k], t).value;
    hold_effort(plan, m.coordinates()[effort.coordinate].joint, value, w);
  }
  for (int k = 0; k < static_cast<int>(plan.elements_in_laws.size()); ++k) {
    const ElementOfKind& element = plan.elements_in_laws[k];
    if (element.index < 0) continue;
    visit_kind(element.kind, [&]<class Kind>() {
      if constexpr (HasLaw<Kind>)
        write(law_numbers(m.all<Kind>()[element.index], inputs.value.data()),
              of_lane(plan, w.law_numbers.data(), kLawNumbers, k));
    });
  }
  for (int k = 0; k < static_cast<int>(plan.tyre_lanes.size()); ++k)
    write(tyre_numbers(m.tyres()[plan.tyre_lanes[k]], inputs.value.data()),
          of_lane(plan, w.tyre_numbers.data(), kTyreNumbers, k));
}

void evaluate_in_lanes(const Plan& plan, EvaluatedAt at, Workspace& w) noexcept {
  const bool at_end = at == EvaluatedAt::end;
  evaluate_scalars(plan, at_end, w);
  if (!at_end)
    for (const int j : plan.measured_joints)
      w.along_joint[j] = effort_in(found_of_scalar(plan, w, plan.lane_of_joint[j]));
  for (int k = 0; k < static_cast<int>(plan.scalar_lanes.size()); ++k) {
    if (plan.scalar_lanes[k].spring < 0) continue;
    const LaneNumbers<const double> found = found_of_scalar(plan, w, k);
    w.evaluated<Spring>()[plan.scalar_lanes[k].spring] = {
        {coordinate_in(found), effort_in(found)}, found.three(kArmsOfSpring), found.three(kArmsOfSpring + 3)};
  }
  evaluate_tyres(plan, at_end, w);
}

void add_loads_along_joints(const Plan& plan, Workspace& w) noexcept {
  const Loads loads{w.Q.data()};
  for (const int j : plan.measured_joints) {
    const Joint& joint = plan.mechanism.joints()[j];
    const Coordinate x = measured_coordinate(plan, w, j);
    loads.add(joint.first, w.along_joint[j].effort * x.first);
    loads.add(joint.second, w.along_joint[j].effort * x.second);
  }
}

Coordinate measured_coordinate(const Plan& plan, const Workspace& w, int joint) noexcept {
  return coordinate_in(found_of_scalar(plan, w, plan.lane_of_joint[joint]));
}

}  // namespace rigstep::index3
