#include "core/index3/step/applied_forces.h"

#include <algorithm>
#include <type_traits>

#include "core/index3/physics/inputs.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/forces_in_lanes.h"
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

void apply_input(const Mechanism& m, const Input& input, double value, Workspace& w) {
  if (input.kind == Input::Kind::signal) return;
  if (input.kind == Input::Kind::joint_effort) {
    const Joint& joint = m.joints()[input.joint];
    if (turns_about_ground(m, input)) {
      w.Q[joint.second].tail<3>() += value * joint.in_first.axes_b.col(2);
      return;
    }
    const Loads loads{w.Q.data()};
    Vec6 on_first, on_second;
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

// but inputs along measured joints
void apply_loads_and_inputs(const Plan& plan, const Inputs& inputs, double t, Workspace& w) {
  const Mechanism& m = plan.mechanism;
  for (const AppliedLoad& load : m.loads()) apply_load(load, t, w);
  for (const int k : plan.inputs_one_by_one) apply_input(m, m.inputs()[k], inputs.value[k], w);
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

void follow(const Plan& plan, const std::vector<int>& coordinates, const std::vector<double>& last, Workspace& w) {
  const Surroundings at = surroundings(plan, w);
  for (const int k : coordinates) w.coordinate[k] = follow_coordinate(k, last[k], at);
}

// Evaluates only the elements that act over a step, with coordinates unwrapped from w.reference.
void evaluate_over_step(const Plan& plan, Workspace& w) {
  follow(plan, plan.coordinates_over_step, w.reference, w);
  const Surroundings at = surroundings(plan, w);
  for_each_over_step(plan, w, [&](const auto& element, const auto& constants, auto& evaluated, const auto&) {
    evaluated = evaluate(element, constants, at);
  });
}

// Which elements: all, or those of one of the plan's lists.
enum class Which { all, applied_one_by_one, evaluated_one_by_one, read_at_end, evaluated_at_end };

const auto& list_of(const Plan& plan, Which which) {
  return which == Which::applied_one_by_one     ? plan.applied_one_by_one
         : which == Which::evaluated_one_by_one ? plan.evaluated_one_by_one
         : which == Which::read_at_end          ? plan.read_at_end
                                                : plan.evaluated_at_end;
}

// f(index) of these elements of a kind
template <class Kind, class F>
void for_each_of(const Plan& plan, Which which, const F& f) {
  if (which == Which::all) {
    for (std::size_t k = 0; k < plan.mechanism.all<Kind>().size(); ++k) f(k);
    return;
  }
  for (const int k : std::get<kind_of<Kind>>(list_of(plan, which))) f(static_cast<std::size_t>(k));
}

template <class Kind>
constexpr bool kIsScalar = std::is_base_of_v<EvaluatedScalar, EvaluatedOf<Kind>>;

// w.along_joint of the joints with elastic rows, of which all elements are evaluated
void sum_along_joints(const Plan& plan, Which which, Workspace& w) {
  for (const int j : plan.elastic_joints) {
    if (which != Which::all && plan.is_measured[j]) continue;
    ScalarEffort& sum = w.along_joint[j];
    sum = {0.0, 0.0, 0.0};
    for (const ElementOfKind& element : plan.coordinate_rows[j].elements)
      visit_kind(element.kind, [&]<class Kind>() {
        if constexpr (kIsScalar<Kind>) sum = sum + w.evaluated<Kind>()[element.index].effort;
      });
  }
}

void evaluate_elements(const Plan& plan, Which which, const double* inputs, double t, Workspace& w) {
  const Surroundings at = surroundings_at(plan.mechanism, w, inputs, t);
  for_each_kind([&]<class Kind>() {
    for_each_of<Kind>(plan, which, [&](std::size_t k) {
      w.evaluated<Kind>()[k] = evaluate(plan.mechanism.all<Kind>()[k], plan.constants<Kind>()[k], at);
    });
  });
}

// w.tangent of these bodies
void sum_own_blocks(const Plan& plan, Which which, const std::vector<int>& bodies, const TangentFactors& factors,
                    Workspace& w) {
  for (const int i : bodies)
    if (plan.has_own_tangent[i]) w.tangent[i].setZero();
  const Surroundings at = surroundings(plan, w);
  const OwnTangents tangents{w.tangent.data()};
  for_each_kind_summed([&]<class Kind>() {
    const std::vector<Kind>& elements = plan.mechanism.all<Kind>();
    for_each_of<Kind>(plan, which, [&](std::size_t k) {
      if (plan.is_in_coordinate_row(elements[k])) return;
      const EvaluatedOf<Kind>& evaluated = w.evaluated<Kind>()[k];
      if constexpr (ActsOverStep<Kind>)
        add_tangent(elements[k], w.start<Kind>()[k], evaluated, at, factors, tangents);
      else
        add_tangent(elements[k], plan.constants<Kind>()[k], evaluated, at, factors, tangents);
    });
  });
}

}  // namespace

Surroundings surroundings(const Plan& plan, const Workspace& w) noexcept {
  return surroundings_at(plan.mechanism, w, w.input.data(), 0.0);
}

void follow_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept {
  const Surroundings at = surroundings(plan, w);
  for (std::size_t k = 0; k < plan.mechanism.coordinates().size(); ++k)
    w.coordinate[k] = follow_coordinate(static_cast<int>(k), last_coordinate[k], at);
}

void follow_reached_coordinates(const Plan& plan, const std::vector<double>& last_coordinate, Workspace& w) noexcept {
  measure_joints_at_end(plan, w);
  const Surroundings at = surroundings(plan, w);
  for (std::size_t k = 0; k < plan.mechanism.coordinates().size(); ++k) {
    const int joint = plan.mechanism.coordinates()[k].joint;
    const int coordinate = static_cast<int>(k);
    w.coordinate[k] = plan.lane_of_joint[joint] >= 0       ? measured_coordinate(plan, w, joint)
                      : plan.found_coordinate[k].base >= 0 ? coupled_coordinate(plan, w, coordinate, last_coordinate[k])
                                                           : follow_coordinate(coordinate, last_coordinate[k], at);
  }
}

void take_inputs(const Plan& plan, const Inputs& inputs, Workspace& w) noexcept {
  std::copy_n(inputs.value.begin(), plan.mechanism.inputs().size(), w.input.begin());
}

void evaluate_elements(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                       Workspace& w) noexcept {
  follow(plan, plan.followed_by_forces, last_coordinate, w);
  evaluate_elements(plan, Which::all, inputs.value.data(), t, w);
  sum_along_joints(plan, Which::all, w);
}

void evaluate_one_by_one(const Plan& plan, const Inputs& inputs, double t, const std::vector<double>& last_coordinate,
                         Workspace& w) noexcept {
  follow(plan, plan.followed_one_by_one, last_coordinate, w);
  evaluate_elements(plan, Which::evaluated_one_by_one, inputs.value.data(), t, w);
  sum_along_joints(plan, Which::evaluated_one_by_one, w);
}

void apply_forces(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (const int i : plan.loaded_bodies) w.Q[i] << m.bodies()[i].mass * m.gravity_0(), Vec3::Zero();
  apply_loads_and_inputs(plan, inputs, t, w);
  for (const int k : plan.inputs_along_joints) apply_input(m, m.inputs()[k], inputs.value[k], w);
  const Surroundings at = surroundings_at(m, w, inputs.value.data(), t);
  const Loads loads{w.Q.data()};
  for_each_kind_summed([&]<class Kind>() {
    for (std::size_t k = 0; k < m.all<Kind>().size(); ++k)
      w.reading<Kind>()[k] = apply(m.all<Kind>()[k], plan.constants<Kind>()[k], w.evaluated<Kind>()[k], at, loads);
  });
}

void apply_one_by_one(const Plan& plan, const Inputs& inputs, double t, Workspace& w) noexcept {
  const Mechanism& m = plan.mechanism;
  for (const int i : plan.loaded_one_by_one) w.Q[i].setZero();
  apply_loads_and_inputs(plan, inputs, t, w);
  const Surroundings at = surroundings_at(m, w, inputs.value.data(), t);
  const Loads loads{w.Q.data()};
  for_each_kind_summed([&]<class Kind>() {
    for_each_of<Kind>(plan, Which::applied_one_by_one, [&](std::size_t k) {
      const EvaluatedOf<Kind>& evaluated = w.evaluated<Kind>()[k];
      if constexpr (ActsOverStep<Kind>)
        apply_over_step(m.all<Kind>()[k], w.start<Kind>()[k], evaluated, at, loads);
      else
        apply(m.all<Kind>()[k], plan.constants<Kind>()[k], evaluated, at, loads);
    });
  });
}

void read_elements(const Plan& plan, double t, Workspace& w) noexcept {
  evaluate_at_end(plan, w);
  evaluate_elements(plan, Which::evaluated_at_end, w.input.data(), t, w);
  const Surroundings at = surroundings_at(plan.mechanism, w, w.input.data(), t);
  const Loads unused{w.Q.data()};
  for_each_kind([&]<class Kind>() {
    for_each_of<Kind>(plan, Which::read_at_end, [&](std::size_t k) {
      w.reading<Kind>()[k] =
          apply(plan.mechanism.all<Kind>()[k], plan.constants<Kind>()[k], w.evaluated<Kind>()[k], at, unused);
    });
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
  for (const int i : plan.bodies_over_step) w.Q[i].setZero(), w.Q_over_step[i].setZero();
  evaluate_over_step(plan, w);
  const Surroundings at = surroundings(plan, w);
  const Loads now{w.Q.data()}, over_step{w.Q_over_step.data()};
  for_each_over_step(plan, w,
                     [&](const auto& element, const auto& constants, const auto& evaluated, const auto& start) {
                       apply(element, constants, evaluated, at, now);
                       apply_over_step(element, start, evaluated, at, over_step);
                     });
  for (const int i : plan.bodies_over_step) w.Q[i] -= w.Q_over_step[i];
}

void force_tangent(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept {
  sum_own_blocks(plan, Which::all, plan.loaded_bodies, factors, w);
}

void tangent_one_by_one(const Plan& plan, const TangentFactors& factors, Workspace& w) noexcept {
  sum_own_blocks(plan, Which::applied_one_by_one, plan.loaded_one_by_one, factors, w);
}

double elastic_tangent(const Plan& plan, int joint, const TangentFactors& factors, const Workspace& w) noexcept {
  double sum = along_scalar(w.along_joint[joint], factors);
  if (!plan.acts_over_step()) return sum;
  for (const ElementOfKind& element : plan.coordinate_rows[joint].elements)
    visit_kind(element.kind, [&]<class Kind>() {
      if constexpr (ActsOverStep<Kind>) sum += factors.stiffness * w.start<Kind>()[element.index].stiffness;
    });
  return sum;
}

void evaluate_rows(const Plan& plan, const Element& element, const TangentFactors& factors, Workspace& w) noexcept {
  const Surroundings at = surroundings(plan, w);
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
