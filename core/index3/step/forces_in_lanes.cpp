#include "core/index3/step/forces_in_lanes.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/index3/compile/coordinate_rows.h"
#include "core/index3/kernels/sweeps.h"

namespace rigstep::index3 {

namespace {

constexpr double kAddsNothing = -0.0;  // not even to the sign of a zero

// Where the numbers of lane k begin, where there are so many in each.
double* first_of_lane(const Plan& plan, AlignedDoubles& numbers, int each, int k) {
  return numbers.data() + plan.found_in_lane(0, each, k).base;
}
FoundInLane found_at(const Workspace& w, const Place& place) { return {w.found.data() + place.base, place.stride}; }
FoundInLane found_of_scalar(const Plan& plan, const Workspace& w, int k) {
  return found_at(w, plan.found_in_lane(plan.found.scalars, kScalarNumbers, k));
}

template <std::size_t N>
void write(const std::array<double, N>& numbers, int stride, double* to) {
  for (std::size_t k = 0; k < N; ++k, to += stride) *to = numbers[k];
}

void hold_effort(const Plan& plan, int joint, double effort, Workspace& w) {
  first_of_lane(plan, w.held_along_scalars, kHeldNumbers, plan.lane_of_joint[joint])[2 * plan.lanes_of_forces] +=
      effort;
}

Coordinate coordinate_in(const FoundInLane& found) {
  Coordinate x{found[0], found[1], {}, {}};
  x.first << -found.three(2), -found.three(5);
  x.second << found.three(2), found.three(8);
  return x;
}
ScalarEffort effort_in(const FoundInLane& found) {
  return {found[kEffortAlong], found[kEffortAlong + 1], found[kEffortAlong + 2]};
}

// a spring or stop between points
template <class Evaluated>
void read_points(const FoundInLane& found, Evaluated& element) {
  element.x = coordinate_in(found);
  element.arm_first = found.three(kArmsOfPoints), element.arm_second = found.three(kArmsOfPoints + 3);
}

void evaluate_scalars(const Plan& plan, ScalarTables::Of of, const TangentFactors* factors, Workspace& w) {
  const bool is_iterate = of == ScalarTables::Of::iterate;
  plan.kernels->evaluate_scalars(
      w.arrays, {plan.lanes_of_forces, plan.scalar_batches.data(),
                 is_iterate ? plan.scalar_batches_of_iterates : static_cast<int>(plan.scalar_batches.size()),
                 plan.laws.data(), plan.scalar_constants.data(), plan.law_tables.data(), w.held_along_scalars.data(),
                 w.law_numbers.data(), w.found.data() + plan.found.scalars, factors, of});
}

template <class Kind>
auto kernel_of(const Kernels& kernels) {
  if constexpr (std::is_same_v<Kind, Tyre>) return kernels.evaluate_tyres;
  if constexpr (std::is_same_v<Kind, Bushing>) return kernels.evaluate_bushings;
  if constexpr (std::is_same_v<Kind, Drag>) return kernels.evaluate_drags;
}

template <class Kind>
void evaluate_elements(const Plan& plan, bool at_end, const TangentFactors* factors, Workspace& w) {
  const std::vector<ElementBatch>& batches = plan.element_lanes[kind_of<Kind>].batches;
  if (batches.empty()) return;
  kernel_of<Kind> (*plan.kernels)(w.arrays, {plan.lanes_of_forces, batches.data(), static_cast<int>(batches.size()),
                                             w.element_numbers[kind_of<Kind>].data(),
                                             w.found.data() + plan.found.elements[kind_of<Kind>], at_end, factors});
}

template <class Kind>
void read_elements(const Plan& plan, Workspace& w) {
  const std::vector<int>& elements = plan.element_lanes[kind_of<Kind>].element;
  for (std::size_t k = 0; k < plan.lanes_of<Kind>().size(); ++k)
    w.evaluated<Kind>()[elements[k]] = from_lane(
        plan.mechanism.all<Kind>()[elements[k]],
        found_at(
            w, plan.found_in_lane(plan.found.elements[kind_of<Kind>], Stepped<Kind>::kLaneFound, static_cast<int>(k))));
}

// of one between points
void read_scalar(const Plan& plan, int lane, Workspace& w) {
  const FoundInLane found = found_of_scalar(plan, w, lane);
  const ElementOfKind& element = plan.scalar_lanes[lane].between_points;
  if (element.kind == kind_of<Spring>) {
    EvaluatedSpring& spring = w.evaluated<Spring>()[element.index];
    read_points(found, spring), spring.effort = effort_in(found);
  } else {
    read_points(found, w.evaluated<Stop>()[element.index]);
  }
}

void read_stops_along_joints(const Plan& plan, Workspace& w) {
  for (const int k : plan.lanes_of<Stop>())
    if (const int joint = measured_joint(plan, plan.mechanism.all<Stop>()[k].coordinate); joint >= 0)
      w.evaluated<Stop>()[k].x = measured_coordinate(plan, w, joint);
}

// What iterates need of it one by one: of elements with rows of their own.
template <class Kind>
constexpr bool kHasRows = Stepped<Kind>::kMostRows > 0;

// its numbers are written again for each step
template <class Kind>
constexpr bool kIsRenewed = requires(const Kind& element, const double* inputs) {
  lane_numbers(element, inputs);
};

// What the kernel of this kind takes.
template <class Kind>
void write_element_numbers(const Plan& plan, const double* inputs, Workspace& w) {
  const std::vector<int>& elements = plan.element_lanes[kind_of<Kind>].element;
  for (int k = 0; k < static_cast<int>(elements.size()); ++k) {
    const Kind& element = plan.mechanism.all<Kind>()[elements[k]];
    double* const to = first_of_lane(plan, w.element_numbers[kind_of<Kind>], Stepped<Kind>::kLaneNumbers, k);
    if constexpr (kIsRenewed<Kind>)
      write(lane_numbers(element, inputs), plan.lanes_of_forces, to);
    else
      write(lane_numbers(element), plan.lanes_of_forces, to);
  }
}

// Numbers without effect for all lanes of the plan's laws.
AlignedDoubles idle_law_numbers(const Plan& plan) {
  AlignedDoubles all(kLawNumbers * plan.elements_in_laws.size(), 0.0);
  const std::vector<double> no_inputs(plan.mechanism.inputs().size(), 0.0);
  for (int k = 0; k < static_cast<int>(plan.elements_in_laws.size()); ++k)
    visit_kind(plan.elements_in_laws[k].kind, [&]<class Kind>() {
      if constexpr (HasLaw<Kind>)
        write(law_numbers(Kind{}, no_inputs.data()), plan.lanes_of_forces, first_of_lane(plan, all, kLawNumbers, k));
    });
  return all;
}

}  // namespace

void make_room_in_lanes(const Plan& plan, Workspace& w) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  w.held_along_scalars = AlignedDoubles(kHeldNumbers * plan.scalar_lanes.size(), 0.0);
  w.found = AlignedDoubles(plan.found.size, kNaN);
  // bodies without own-body blocks never write theirs
  std::fill_n(w.found.data() + plan.found.one_by_one, kActionNumbers * plan.loaded_one_by_one.size(), 0.0);
  w.found.data()[plan.found.nothing] = kAddsNothing;
  w.law_numbers = idle_law_numbers(plan);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) {
      const std::size_t lanes = plan.element_lanes[kind_of<Kind>].element.size();
      w.element_numbers[kind_of<Kind>] = AlignedDoubles(Stepped<Kind>::kLaneNumbers * lanes, kNaN);
    }
  });
}

void follow_elements_in_lanes(const Plan& plan, Workspace& w) noexcept {
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind> && !kIsRenewed<Kind>) write_element_numbers<Kind>(plan, nullptr, w);
  });
}

void hold_forces_in_lanes(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                          Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (int k = 0; k < static_cast<int>(plan.scalar_lanes.size()); ++k) {
    if (plan.scalar_lanes[k].joint < 0) continue;
    const int coordinate = plan.scalar_lanes[k].coordinate;
    const bool is_followed = coordinate >= 0;
    write(std::array{is_followed ? m.coordinates()[coordinate].offset : 0.0,
                     is_followed ? last_coordinate[coordinate] : 0.0, 0.0},
          plan.lanes_of_forces, first_of_lane(plan, w.held_along_scalars, kHeldNumbers, k));
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
        write(law_numbers(m.all<Kind>()[element.index], inputs.value.data()), plan.lanes_of_forces,
              first_of_lane(plan, w.law_numbers, kLawNumbers, k));
    });
  }
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind> && kIsRenewed<Kind>) write_element_numbers<Kind>(plan, inputs.value.data(), w);
  });
}

void evaluate_in_lanes(const Plan& plan, const TangentFactors* factors, Workspace& w) noexcept {
  evaluate_scalars(plan, ScalarTables::Of::iterate, factors, w);
  for (const int k : plan.stops_in_lanes) read_scalar(plan, k, w);
  read_stops_along_joints(plan, w);
  if (factors != nullptr) {
    for (const int j : plan.measured_joints)
      w.along_joint[j] = effort_in(found_of_scalar(plan, w, plan.lane_of_joint[j]));
    for (const int k : plan.springs_with_rows) read_scalar(plan, k, w);
  }
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) {
      evaluate_elements<Kind>(plan, false, factors, w);
      if (kHasRows<Kind> && factors != nullptr) read_elements<Kind>(plan, w);
    }
  });
}

void measure_joints_at_end(const Plan& plan, Workspace& w) noexcept {
  evaluate_scalars(plan, ScalarTables::Of::joints_at_end, nullptr, w);
}

void evaluate_at_end(const Plan& plan, Workspace& w) noexcept {
  evaluate_scalars(plan, ScalarTables::Of::points_at_end, nullptr, w);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) evaluate_elements<Kind>(plan, true, nullptr, w);
  });
  read_lanes(plan, w);
}

void read_lanes(const Plan& plan, Workspace& w) noexcept {
  for (int k = 0; k < static_cast<int>(plan.scalar_lanes.size()); ++k)
    if (plan.scalar_lanes[k].is_between_points()) read_scalar(plan, k, w);
  read_stops_along_joints(plan, w);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) read_elements<Kind>(plan, w);
  });
}

Coordinate measured_coordinate(const Plan& plan, const Workspace& w, int joint) noexcept {
  return coordinate_in(found_of_scalar(plan, w, plan.lane_of_joint[joint]));
}

}  // namespace rigstep::index3
