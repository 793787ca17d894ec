#include "core/index3/step/applied_forces.h"

#include <algorithm>
#include <type_traits>

#include "core/index3/physics/inputs.h"
#include "core/mechanism/portable_math.h"

namespace rigstep::index3 {

namespace {

void apply_load(const AppliedLoad& load, double t, Workspace& w) {
  const Placement& at = w.placement[load.body];
  double scale = load.constant;
  if (load.amplitude != 0.0) scale += load.amplitude * sine(load.angular_frequency * t + load.phase);
  const Mat3 to_world = load.frame == Frame::body ? at.A : Mat3(Mat3::Identity());
  w.Q[load.body] += scale * load_at(to_world * load.force, to_world * load.torque, at.A * load.point_b);
}

void apply_input(const Plan& plan, const Input& input, double value, Workspace& w) {
  const Mechanism& m = plan.mechanism;
  if (input.kind == Input::Kind::signal) return;
  if (input.kind == Input::Kind::joint_effort) {
    const Joint& joint = m.joints()[input.joint];
    if (turns_about_ground(m, input)) {
      w.Q[joint.second].tail<3>() += value * joint.in_first.axes_b.col(2);
      return;
    }
    const Loads loads{w.Q.data()};
    Vec6 on_first, on_second;
    if (plan.is_measured[input.joint])
      on_first = w.own_coordinate[input.joint].first, on_second = w.own_coordinate[input.joint].second;
    else
      coordinate_gradient(input.freedom, w.joint[input.joint], on_first, on_second);
    loads.add(joint.first, value * on_first);
    loads.add(joint.second, value * on_second);
    return;
  }
  const Placement& at = w.placement[input.body];
  const Vec3 direction = input.frame == Frame::body ? Vec3(at.A * input.direction) : input.direction;
  const bool is_force = input.kind == Input::Kind::body_force;
  w.Q[input.body] += is_force ? load_at(value * direction, Vec3::Zero(), at.A * input.point_b)
                              : load_at(Vec3::Zero(), value * direction, Vec3::Zero());
}

// f(element, constants, evaluated, start) of every element that acts over a step
template <class F>
void for_each_over_step(const Plan& plan, Workspace& w, const F& f) {
  for_each_kind([&]<class Kind>() {
    if constexpr (ActsOverStep<Kind>)
      for (std::size_t k = 0; k < plan.mechanism.all<Kind>().size(); ++k)
        f(plan.mechanism.all<Kind>()[k], plan.constants<Kind>()[k], w.evaluated<Kind>()[k], w.start<Kind>()[k]);
  });
}

// time: only loads depend on it
Surroundings surroundings_at(const Mechanism& mechanism, const Workspace& w, const double* inputs, double time) {
  return {mechanism, w.placement.data(), w.joint.data(), w.coordinate.data(), inputs, time};
}

// Evaluates only the elements that act over a step, with coordinates unwrapped from w.reference.
void evaluate_over_step(const Plan& plan, Workspace& w) {
  if (plan.loads_follow_coordinates) follow_coordinates(plan, w.reference, w);
  const Surroundings at = surroundings(plan, w);
  for_each_over_step(plan, w, [&](const auto& element, const auto& constants, auto& evaluated, const auto&) {
    evaluated = evaluate(element, constants, at);
  });
}

// w.own_coordinate, of what the kernels have measured
void take_out_of_lanes(const Plan& plan, Workspace& w) {
  const std::size_t lanes = static_cast<std::size_t>(plan.lanes);
  for (std::size_t k = 0; k < plan.joint_in_batches.size(); ++k) {
    const int j = plan.joint_in_batches[k];
    if (j < 0) continue;
    const std::size_t lane = k % lanes;
    const double* const number = w.coordinates_in_lanes.data() + kCoordinateNumbers * (k - lane) + lane;
    const auto three = [&](std::size_t first) {
      return Vec3(number[first * lanes], number[(first + 1) * lanes], number[(first + 2) * lanes]);
    };
    Coordinate& x = w.own_coordinate[j];
    x.value = number[0], x.rate = number[lanes];
    x.first << -three(2), -three(5);
    x.second << three(2), three(8);
  }
}

}  // namespace

Surroundings surroundings(const Plan& plan, const Workspace& w) noexcept {
  return surroundings_at(plan.mechanism, w, w.input.data(), 0.0);
}

void follow_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept {
  const Surroundings at = surroundings(plan, w);
  for (std::size_t k = 0; k < plan.mechanism.coordinates().size(); ++k)
    w.coordinate[k] = follow_coordinate(static_cast<int>(k), last_coordinate[k], at);
  for (const int j : plan.measured_joints) {
    const Joint& joint = plan.mechanism.joints()[j];
    w.own_coordinate[j] = coordinate(*traits_of(joint.type).own_coordinate, w.joint[j], at.placement(joint.first),
                                     at.placement(joint.second));
  }
}

void measure_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept {
  plan.kernels->measure_coordinates(w.arrays, plan.coordinate_batches.data(),
                                    static_cast<int>(plan.coordinate_batches.size()), plan.coordinate_constants.data(),
                                    w.coordinates_in_lanes.data());
  take_out_of_lanes(plan, w);
  if (!plan.loads_follow_coordinates) return;
  const Surroundings at = surroundings(plan, w);
  for (std::size_t k = 0; k < plan.mechanism.coordinates().size(); ++k) {
    const auto& [joint, freedom, offset] = plan.mechanism.coordinates()[k];
    Coordinate& x = w.coordinate[k];
    if (!plan.is_measured[joint]) {
      x = follow_coordinate(static_cast<int>(k), last_coordinate[k], at);
      continue;
    }
    x = w.own_coordinate[joint];
    x.value = is_length(freedom) ? x.value + offset : unwrapped(x.value + offset, last_coordinate[k]);
  }
}

void take_inputs(const Plan& plan, const Inputs& inputs, Workspace& w) noexcept {
  std::copy_n(inputs.value.begin(), plan.mechanism.inputs().size(), w.input.begin());
}

void evaluate_elements(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                       Workspace& w) noexcept {
  if (plan.loads_follow_coordinates || !plan.measured_joints.empty()) follow_coordinates(plan, last_coordinate, w);
  evaluate_elements_at_coordinates(plan, inputs, t, w);
}

void evaluate_elements_at_coordinates(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept {
  const Surroundings at = surroundings_at(plan.mechanism, w, inputs.value.data(), t);
  for_each_kind([&]<class Kind>() {
    const std::vector<Kind>& elements = plan.mechanism.all<Kind>();
    for (std::size_t k = 0; k < elements.size(); ++k)
      w.evaluated<Kind>()[k] = evaluate(elements[k], plan.constants<Kind>()[k], at);
  });
}

void apply_forces(const Plan& plan, const Inputs& inputs, double t, ActingAt acting, Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (const int i : plan.loaded_bodies) w.Q[i] << m.bodies()[i].mass * m.gravity_0(), Vec3::Zero();
  for (const AppliedLoad& load : m.loads()) apply_load(load, t, w);
  for (std::size_t k = 0; k < m.inputs().size(); ++k) apply_input(plan, m.inputs()[k], inputs.value[k], w);
  const Surroundings at = surroundings_at(m, w, inputs.value.data(), t);
  const Loads loads{w.Q.data()};
  for_each_kind_summed([&]<class Kind>() {
    const std::vector<Kind>& elements = m.all<Kind>();
    for (std::size_t k = 0; k < elements.size(); ++k) {
      const EvaluatedOf<Kind>& evaluated = w.evaluated<Kind>()[k];
      if constexpr (ActsOverStep<Kind>)
        if (acting == ActingAt::step) {
          apply_over_step(elements[k], w.start<Kind>()[k], evaluated, at, loads);
          continue;
        }
      w.reading<Kind>()[k] = apply(elements[k], plan.constants<Kind>()[k], evaluated, at, loads);
    }
  });
}

void start_elements(const Plan& plan, Workspace& w) noexcept {
  evaluate_over_step(plan, w);
  for_each_over_step(plan, w, [&](const auto& element, const auto&, const auto& evaluated, auto& start) {
    start = start_step(element, evaluated);
  });
}

void follow_iterate(const Plan& plan, Workspace& w) noexcept {
  for_each_over_step(plan, w, [&](const auto& element, const auto& constants, const auto& evaluated, auto& start) {
    follow_iterate(element, constants, evaluated, start);
  });
}

void replace_loads_over_step(const Plan& plan, Workspace& w) noexcept {
  for (const int i : plan.loaded_bodies) w.Q[i].setZero(), w.Q_over_step[i].setZero();
  evaluate_over_step(plan, w);
  const Surroundings at = surroundings(plan, w);
  const Loads now{w.Q.data()}, over_step{w.Q_over_step.data()};
  for_each_over_step(plan, w,
                     [&](const auto& element, const auto& constants, const auto& evaluated, const auto& start) {
                       apply(element, constants, evaluated, at, now);
                       apply_over_step(element, start, evaluated, at, over_step);
                     });
  for (const int i : plan.loaded_bodies) w.Q[i] -= w.Q_over_step[i];
}

void force_tangent(const Plan& plan, double stiffness_factor, double damping_factor, Workspace& w) noexcept {
  for (const int i : plan.loaded_bodies)
    if (plan.has_own_tangent[i]) w.tangent[i].setZero();
  const Surroundings at = surroundings(plan, w);
  const TangentFactors factors{stiffness_factor, damping_factor};
  const OwnTangents tangents{w.tangent.data()};
  for_each_kind_summed([&]<class Kind>() {
    const std::vector<Kind>& elements = plan.mechanism.all<Kind>();
    for (std::size_t k = 0; k < elements.size(); ++k) {
      if (plan.is_in_coordinate_row(elements[k])) continue;
      const EvaluatedOf<Kind>& evaluated = w.evaluated<Kind>()[k];
      if constexpr (ActsOverStep<Kind>)
        add_tangent(elements[k], w.start<Kind>()[k], evaluated, at, factors, tangents);
      else
        add_tangent(elements[k], plan.constants<Kind>()[k], evaluated, at, factors, tangents);
    }
  });
}

double tangent_along_coordinate(const Plan& plan, int joint, double stiffness_factor, double damping_factor,
                                const Workspace& w) noexcept {
  double tangent = 0.0;
  for (const CoordinateRow::OfKind& element : plan.coordinate_rows[joint].elements)
    visit_kind(element.kind, [&]<class Kind>() {
      if constexpr (std::is_same_v<EvaluatedOf<Kind>, EvaluatedScalar>)
        tangent += w.evaluated<Kind>()[element.index].tangent({stiffness_factor, damping_factor});
    });
  return tangent;
}

void evaluate_rows(const Plan& plan, const Element& element, double stiffness_factor, double damping_factor,
                   Workspace& w) noexcept {
  const Surroundings at = surroundings(plan, w);
  const TangentFactors factors{stiffness_factor, damping_factor};
  visit_kind(element.kind, [&]<class Kind>() {
    const std::size_t k = static_cast<std::size_t>(element.index);
    const Kind& of_kind = plan.mechanism.all<Kind>()[k];
    const ConstantsOf<Kind>& constants = plan.constants<Kind>()[k];
    const EvaluatedOf<Kind>& evaluated = w.evaluated<Kind>()[k];
    if constexpr (ActsOverStep<Kind>)
      evaluate_rows(of_kind, constants, w.start<Kind>()[k], evaluated, at, factors, w.element_rows.data());
    else
      evaluate_rows(of_kind, constants, evaluated, at, factors, w.element_rows.data());
  });
}

double potential_energy(const Plan& plan, const State& x, const Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  double sum = 0.0;
  for (std::size_t i = 0; i < m.bodies().size(); ++i) sum -= m.bodies()[i].mass * m.gravity_0().dot(x.body[i].r);
  const Surroundings at = surroundings(plan, w);
  for_each_kind_summed([&]<class Kind>() {
    const std::vector<Kind>& elements = m.all<Kind>();
    for (std::size_t k = 0; k < elements.size(); ++k) sum += energy(elements[k], w.reading<Kind>()[k], at);
  });
  return sum;
}

}  // namespace rigstep::index3
