#include "server/view/acting_forces.h"

#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper_access.h"

namespace rigstep::server {
namespace {

using index3::Loads;
using index3::Placement;
using index3::Plan;

// f(element, constants) of every force element.
template <class F>
void for_each_element(const Plan& plan, const F& f) {
  for_each_kind([&]<class Kind>() {
    const std::vector<Kind>& elements = plan.mechanism.all<Kind>();
    for (std::size_t k = 0; k < elements.size(); ++k) f(elements[k], plan.constants<Kind>()[k]);
  });
}

// Its force acts along a line: the point of it that is nearest to the mass centre, with the torque that remains.
void append(const Placement& at, const Vec6& load, std::vector<float>& numbers) {
  const Vec3 force = load.head<3>(), torque = load.tail<3>();
  const double square = force.squaredNorm();
  const Vec3 arm = square > 0.0 ? Vec3(force.cross(torque) / square) : Vec3(Vec3::Zero());
  const Vec3 rest = torque - arm.cross(force);
  for (const Vec3& v : {Vec3(at.r + arm), force, rest})
    for (int k = 0; k < 3; ++k) numbers.push_back(static_cast<float>(v[k]));
}

void append(const Placement& at, const Vec3& point_b, const Vec3& force, const Vec3& torque,
            std::vector<float>& numbers) {
  for (const Vec3& v : {Vec3(at.r + at.A * point_b), force, torque})
    for (int k = 0; k < 3; ++k) numbers.push_back(static_cast<float>(v[k]));
}

void append_load(const AppliedLoad& load, double time, const Placement& at, std::vector<float>& numbers) {
  const double scale = load.constant + load.amplitude * std::sin(load.angular_frequency * time + load.phase);
  const Mat3 turn = load.frame == Frame::body ? at.A : Mat3(Mat3::Identity());
  append(at, load.point_b, scale * (turn * load.force), scale * (turn * load.torque), numbers);
}

// A body's; those in joints act on both of its bodies.
bool acts_on_body(const Input& input) {
  return input.kind == Input::Kind::body_force || input.kind == Input::Kind::body_torque;
}

void append_input(const Input& input, double value, const Placement& at, std::vector<float>& numbers) {
  const Vec3 acting = value * (input.frame == Frame::body ? Vec3(at.A * input.direction) : input.direction);
  const bool is_force = input.kind == Input::Kind::body_force;
  append(at, is_force ? input.point_b : Vec3(Vec3::Zero()), is_force ? acting : Vec3(Vec3::Zero()),
         is_force ? Vec3(Vec3::Zero()) : acting, numbers);
}

// Of an effort in a joint, on its second and its first body.
std::vector<int> moved_bodies(const Joint& joint) {
  std::vector<int> bodies;
  for (const int body : {joint.second, joint.first})
    if (body != kGround) bodies.push_back(body);
  return bodies;
}

}  // namespace

ActingForces::ActingForces(const Mechanism& m) {
  const Plan plan = index3::make_plan(m, {});
  for_each_element(plan, [this](const auto& element, const auto& constants) {
    for (const int body : index3::connectivity(element, constants).bodies)
      if (body != kGround) list_.push_back({element.name, body});
  });
  for (const AppliedLoad& load : m.loads()) list_.push_back({load.name, load.body});
  for (const Input& input : m.inputs()) {
    if (acts_on_body(input)) list_.push_back({input.name, input.body});
    if (input.kind == Input::Kind::joint_effort)
      for (const int body : moved_bodies(m.joints()[static_cast<std::size_t>(input.joint)]))
        list_.push_back({input.name, body});
  }
}

std::vector<float> ActingForces::read(const index3::Stepper& stepper, const Inputs& inputs) {
  const Plan& plan = index3::plan_of(stepper);
  const Mechanism& m = plan.mechanism;
  if (workspace_ == nullptr || workspace_->input.size() != m.inputs().size())
    workspace_ = std::make_unique<index3::Workspace>(plan);
  index3::Workspace& w = *workspace_;
  index3::evaluate_state(plan, stepper.state(), w);
  index3::take_inputs(plan, inputs, w);
  index3::Surroundings at = index3::surroundings(plan, w);
  at.time = plan.time_of(stepper.state().step);
  std::vector<Vec6> on(m.bodies().size(), Vec6::Zero());
  std::vector<float> numbers;
  for_each_element(plan, [&](const auto& element, const auto& constants) {
    const std::vector<int> bodies = index3::connectivity(element, constants).bodies;
    index3::apply(element, constants, index3::evaluate(element, constants, at), at, Loads{on.data()});
    for (const int body : bodies) {
      if (body == kGround) continue;
      append(at.placement(body), on[static_cast<std::size_t>(body)], numbers);
      on[static_cast<std::size_t>(body)].setZero();
    }
  });
  for (const AppliedLoad& load : m.loads()) append_load(load, at.time, at.placement(load.body), numbers);
  for (std::size_t k = 0; k < m.inputs().size(); ++k) {
    const Input& input = m.inputs()[k];
    if (acts_on_body(input)) append_input(input, inputs.value[k], at.placement(input.body), numbers);
    if (input.kind != Input::Kind::joint_effort) continue;
    const Joint& joint = m.joints()[static_cast<std::size_t>(input.joint)];
    Vec6 first, second;
    index3::coordinate_gradient(input.freedom, w.joint[static_cast<std::size_t>(input.joint)], first, second);
    for (const int body : moved_bodies(joint))
      append(at.placement(body), inputs.value[k] * (body == joint.second ? second : first), numbers);
  }
  return numbers;
}

}  // namespace rigstep::server
