#include "core/index3/compile/divide_evaluations.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/index3/compile/connectivity.h"
#include "core/index3/compile/coordinate_rows.h"
#include "core/index3/physics/inputs.h"

namespace rigstep::index3 {

namespace {

// Joints along which something acts.
void find_measured_joints(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  plan.is_measured.assign(m.joints().size(), false);
  const auto measure = [&plan](int joint) {
    if (joint >= 0) plan.is_measured[joint] = true;
  };
  for_each_connectivity(
      plan, [&](int, int, const Connectivity& connects) { measure(joint_of_own_coordinate(m, connects.coordinate)); });
  for (const Input& input : m.inputs()) measure(joint_of_effort(m, input));
  for (int j = 0; j < plan.first_coupling(); ++j)
    if (plan.is_measured[j]) plan.measured_joints.push_back(j);
}

// ---- force elements

template <class Kind>
bool acts_along_measured_joint(const Plan& plan, const Kind& element) {
  if constexpr (HasLaw<Kind>) return measured_joint(plan, coordinate_of_tangent(element)) >= 0;
  if constexpr (std::is_same_v<Kind, AppliedEffort>) return measured_joint(plan, element.coordinate) >= 0;
  return false;
}

bool is_between_points(const Spring& spring) { return spring.kind != Spring::Kind::in_joint; }
bool is_between_points(const Stop& stop) { return !stop.is_along_freedom(); }

// (ascending) those that are so
template <class Kind, class Is>
std::vector<int> indices_where(const std::vector<Kind>& elements, const Is& is) {
  std::vector<int> found;
  for (int k = 0; k < static_cast<int>(elements.size()); ++k)
    if (is(elements[k])) found.push_back(k);
  return found;
}

// What lanes evaluate beside what acts along measured joints: where there are several of equal form, since one alone is
// evaluated sooner by itself; stops also along a joint that is measured anyway.
void find_elements_in_lanes(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  const auto of_points = [](const auto& element) { return is_between_points(element); };
  std::vector<int> springs = indices_where(m.springs(), of_points), stops = indices_where(m.all<Stop>(), of_points);
  if (springs.size() + stops.size() < 2) springs.clear(), stops.clear();
  const std::vector<int> along =
      indices_where(m.all<Stop>(), [&plan](const Stop& stop) { return measured_joint(plan, stop.coordinate) >= 0; });
  std::vector<int>& all_stops = std::get<kind_of<Stop>>(plan.in_lanes);
  std::merge(stops.begin(), stops.end(), along.begin(), along.end(), std::back_inserter(all_stops));
  std::get<kind_of<Spring>>(plan.in_lanes) = std::move(springs);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>)
      if (m.all<Kind>().size() > 1)
        std::get<kind_of<Kind>>(plan.in_lanes) = indices_where(m.all<Kind>(), [](const Kind&) { return true; });
  });
}

bool contains(const std::vector<int>& ascending, int index) {
  return std::binary_search(ascending.begin(), ascending.end(), index);
}

// Whether somebody reads what it does at the end of a step: an output, or the energy.
bool is_read_at_end(const Plan& plan, int kind, int index, const Connectivity& connects) {
  const std::vector<Output>& outputs = plan.mechanism.outputs();
  return connects.keeps_energy_in_reading || std::any_of(outputs.begin(), outputs.end(), [&](const Output& o) {
           return o.element == index && o.element_kind == kind;
         });
}

void divide_elements(Plan& plan) {
  find_elements_in_lanes(plan);
  for_each_connectivity(plan, [&](int kind, int index, const Connectivity& connects) {
    visit_kind(kind, [&]<class Kind>() {
      const auto add_to = [index](auto& lists) { std::get<kind_of<Kind>>(lists).push_back(index); };
      const bool is_along = acts_along_measured_joint(plan, plan.mechanism.all<Kind>()[index]);
      const bool in_lanes = contains(plan.lanes_of<Kind>(), index);
      if (is_along && std::is_same_v<Kind, AppliedEffort>) plan.efforts_along_joints.push_back(index);
      if (!is_along && (!in_lanes || ActsOverStep<Kind>)) add_to(plan.applied_one_by_one);
      if (!is_along && !in_lanes) add_to(plan.evaluated_one_by_one);
      if (!is_read_at_end(plan, kind, index, connects)) return;
      add_to(plan.read_at_end);
      if (!in_lanes) add_to(plan.evaluated_at_end);
    });
  });
}

void divide_inputs(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  for (int k = 0; k < static_cast<int>(m.inputs().size()); ++k) {
    const int joint = joint_of_effort(m, m.inputs()[k]);
    (joint >= 0 && plan.is_measured[joint] ? plan.inputs_along_joints : plan.inputs_one_by_one).push_back(k);
  }
}

bool is_evaluated_one_by_one(const Plan& plan, int kind, int index) {
  bool is = false;
  visit_kind(kind, [&]<class Kind>() { is = contains(std::get<kind_of<Kind>>(plan.evaluated_one_by_one), index); });
  return is;
}

// ---- what they look at

// What one by one is looked at: of all force elements, inputs and loads, or without those that lanes evaluate.
struct LookedAt {
  std::set<int> bodies, joints, coordinates;
};
LookedAt looked_at(const Plan& plan, bool also_in_lanes) {
  const Mechanism& m = plan.mechanism;
  LookedAt all;
  for_each_connectivity(plan, [&](int kind, int index, const Connectivity& connects) {
    if (!also_in_lanes && !is_evaluated_one_by_one(plan, kind, index)) return;
    all.bodies.insert(connects.bodies.begin(), connects.bodies.end());
    if (connects.coordinate >= 0) all.coordinates.insert(connects.coordinate);
  });
  for (const int coordinate : all.coordinates) all.joints.insert(m.coordinates()[coordinate].joint);
  for (const Input& input : m.inputs()) {
    if (input.kind == Input::Kind::signal || turns_about_ground(m, input)) continue;
    if (input.kind != Input::Kind::joint_effort)
      all.bodies.insert(input.body);
    else if (also_in_lanes || !plan.is_measured[input.joint])
      all.joints.insert(input.joint);
  }
  for (const AppliedLoad& load : m.loads()) all.bodies.insert(load.body);
  for (const int j : all.joints) all.bodies.insert({m.joints()[j].first, m.joints()[j].second});
  all.bodies.erase(kGround);
  return all;
}

void find_pose_dependent(Plan& plan) {
  const auto list = [](const std::set<int>& of) { return std::vector<int>(of.begin(), of.end()); };
  const LookedAt one_by_one = looked_at(plan, false), all = looked_at(plan, true);
  plan.followed_one_by_one = list(one_by_one.coordinates), plan.followed_by_forces = list(all.coordinates);
  plan.pose_dependent_bodies = list(one_by_one.bodies), plan.pose_dependent_joints = list(one_by_one.joints);
  plan.bodies_of_forces = list(all.bodies), plan.joints_of_forces = list(all.joints);
}

bool is_coupled(const Mechanism& m, int coordinate) {
  return std::any_of(m.couplings().begin(), m.couplings().end(), [coordinate](const Coupling& coupling) {
    return coupling.first == coordinate || coupling.second == coordinate;
  });
}

// ... and what else a step loads, or needs at its end
void find_loaded_and_followed(Plan& plan) {
  const Mechanism& m = plan.mechanism;
  std::set<int> loaded(plan.pose_dependent_bodies.begin(), plan.pose_dependent_bodies.end()), bodies = loaded;
  std::set<int> joints(plan.pose_dependent_joints.begin(), plan.pose_dependent_joints.end()), followed;
  for (const Input& input : m.inputs())
    if (turns_about_ground(m, input)) loaded.insert(m.joints()[input.joint].second);
  std::set<int> one_by_one = loaded;
  one_by_one.insert(plan.bodies_over_step.begin(), plan.bodies_over_step.end());
  plan.loaded_one_by_one.assign(one_by_one.begin(), one_by_one.end());
  for (const int j : plan.measured_joints) loaded.insert({m.joints()[j].first, m.joints()[j].second});
  for_each_connectivity(plan, [&](int, int, const Connectivity& connects) {
    loaded.insert(connects.bodies.begin(), connects.bodies.end());
  });
  loaded.erase(kGround);
  plan.loaded_bodies.assign(loaded.begin(), loaded.end());
  for (int k = 0; k < static_cast<int>(m.coordinates().size()); ++k) {
    const int joint = m.coordinates()[k].joint;
    if (plan.is_measured[joint] || is_coupled(m, k)) continue;
    if (joint_of_own_coordinate(m, k) >= 0)
      plan.measured_at_end.push_back(joint);
    else
      followed.insert(joint);
  }
  for (const int j : followed) {
    if (joints.insert(j).second) plan.followed_joints.push_back(j);
    for (const int body : {m.joints()[j].first, m.joints()[j].second})
      if (body != kGround && bodies.insert(body).second) plan.followed_bodies.push_back(body);
  }
}

bool acts_over_step(int kind) {
  bool acts = false;
  visit_kind(kind, [&]<class Kind>() { acts = ActsOverStep<Kind>; });
  return acts;
}

void find_what_acts_over_step(Plan& plan) {
  std::set<int> bodies, joints, coordinates;
  for_each_connectivity(plan, [&](int kind, int, const Connectivity& connects) {
    if (!acts_over_step(kind)) return;
    bodies.insert(connects.bodies.begin(), connects.bodies.end());
    if (connects.coordinate < 0) return;
    coordinates.insert(connects.coordinate);
    joints.insert(plan.mechanism.coordinates()[connects.coordinate].joint);
  });
  bodies.erase(kGround);
  plan.bodies_over_step.assign(bodies.begin(), bodies.end());
  plan.joints_over_step.assign(joints.begin(), joints.end());
  plan.coordinates_over_step.assign(coordinates.begin(), coordinates.end());
}

}  // namespace

void divide_evaluations(Plan& plan) {
  find_measured_joints(plan);
  divide_elements(plan);
  divide_inputs(plan);
  find_pose_dependent(plan);
  find_what_acts_over_step(plan);
  find_loaded_and_followed(plan);
}

}  // namespace rigstep::index3
