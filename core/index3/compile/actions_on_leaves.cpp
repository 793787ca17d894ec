#include "core/index3/compile/actions_on_leaves.h"

#include <algorithm>
#include <array>
#include <map>

namespace rigstep::index3 {

namespace {

// An action on one body.
struct PlacedAction {
  Place from;
  bool has_tangent;
};

// Actions on a body, in the order in which they are summed whatever its lanes: of what is applied one by one, of
// measured joints, of springs and of the other kinds. Those of one group lie beside each other.
using Group = std::vector<PlacedAction>;
constexpr std::size_t kOneByOne = 0, kAlongJoints = 1, kFirstKind = 2;
using Groups = std::array<Group, kFirstKind + ElementKinds::kCount>;

Place number_of(const Place& first, int number) { return {first.base + number * first.stride, first.stride}; }

void add(std::vector<Groups>& all, int body, std::size_t group, const PlacedAction& action) {
  if (body != kGround) all[static_cast<std::size_t>(body)][group].push_back(action);
}

void add_one_by_one(const Plan& plan, std::vector<Groups>& all) {
  int at = plan.found.one_by_one;
  for (const int body : plan.loaded_one_by_one) {
    add(all, body, kOneByOne, {{at, 1}, plan.has_own_tangent[body]});
    at += kActionNumbers;
  }
}

void add_along_joints(const Plan& plan, std::vector<Groups>& all) {
  for (const int j : plan.measured_joints) {
    const Joint& joint = plan.mechanism.joints()[j];
    const Place found = plan.found_in_lane(plan.found.scalars, kScalarNumbers, plan.lane_of_joint[j]);
    add(all, joint.first, kAlongJoints, {number_of(found, kActionsOfScalar), false});
    add(all, joint.second, kAlongJoints, {number_of(found, kActionsOfScalar + kActionNumbers), false});
  }
}

// element: one of those in lanes; offsets: where among the numbers that are found of it its actions begin
template <class Kind, class Offsets>
void add_element(const Plan& plan, int element, const Place& found, const Offsets& offsets, std::vector<Groups>& all) {
  const Connectivity connects = connectivity(plan.mechanism.all<Kind>()[element], plan.constants<Kind>()[element]);
  const std::vector<int>&bodies = connects.bodies, &own = connects.own_tangent;
  for (std::size_t k = 0; k < bodies.size(); ++k)
    add(all, bodies[k], kFirstKind + kind_of<Kind>,
        {number_of(found, offsets[k]), std::find(own.begin(), own.end(), bodies[k]) != own.end()});
}

void add_springs(const Plan& plan, std::vector<Groups>& all) {
  std::map<int, int> lane_of_spring;
  for (int k = 0; k < static_cast<int>(plan.scalar_lanes.size()); ++k)
    if (const auto [kind, index] = plan.scalar_lanes[k].between_points; kind == kind_of<Spring>)
      lane_of_spring.emplace(index, k);
  for (const auto& [spring, lane] : lane_of_spring)
    add_element<Spring>(plan, spring, plan.found_in_lane(plan.found.scalars, kScalarNumbers, lane),
                        std::array{kActionsOfScalar, kActionsOfScalar + kActionNumbers}, all);
}

template <class Kind>
void add_elements(const Plan& plan, std::vector<Groups>& all) {
  constexpr std::size_t kKind = kind_of<Kind>;
  std::map<int, int> lane_of_element;
  const std::vector<int>& elements = plan.element_lanes[kKind].element;
  for (int k = 0; k < static_cast<int>(elements.size()); ++k) lane_of_element.emplace(elements[k], k);
  for (const auto& [element, lane] : lane_of_element)
    add_element<Kind>(plan, element, plan.found_in_lane(plan.found.elements[kKind], Stepped<Kind>::kLaneFound, lane),
                      Stepped<Kind>::kActions, all);
}

// (bodies)
std::vector<Groups> actions_on_bodies(const Plan& plan) {
  std::vector<Groups> all(plan.mechanism.bodies().size());
  add_one_by_one(plan, all);
  add_along_joints(plan, all);
  add_springs(plan, all);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) add_elements<Kind>(plan, all);
  });
  return all;
}

// By leaf, the loaded bodies in its lanes; -1: none.
std::map<int, std::vector<int>> loaded_bodies_of_leaves(const Plan& plan) {
  const Elimination& e = plan.elimination;
  std::map<int, std::vector<int>> leaves;
  for (const int body : plan.loaded_bodies)
    e.at_all_places(body, [&](const BodyPlace& place) {
      const auto leaf = static_cast<int>(&e.leaf_at(body, place) - e.leaves.data());
      const auto [bodies, is_new] = leaves.try_emplace(leaf, static_cast<std::size_t>(place.width), -1);
      bodies->second[static_cast<std::size_t>(place.lane)] = body;
    });
  return leaves;
}

// The actions number `rank` of a group on the bodies of a leaf, beside each other; false: none has so many.
bool find_beside(const Plan& plan, const std::vector<Groups>& all, const std::vector<int>& bodies, std::size_t group,
                 std::size_t rank, Action& action) {
  bool any = false;
  for (std::size_t lane = 0; lane < bodies.size(); ++lane) {
    action.from.of_lane[lane] = {plan.found.nothing, 0};
    if (bodies[lane] < 0) continue;
    const Group& here = all[static_cast<std::size_t>(bodies[lane])][group];
    if (rank >= here.size()) continue;
    action.from.of_lane[lane] = here[rank].from;
    action.has_tangent = action.has_tangent || here[rank].has_tangent;
    any = true;
  }
  action.from.pattern = pattern_of(action.from.of_lane, static_cast<int>(bodies.size()));
  return any;
}

}  // namespace

void place_actions(Plan& plan) {
  const std::vector<Groups> all = actions_on_bodies(plan);
  plan.loaded_leaves.clear(), plan.actions.clear();
  for (const auto& [leaf, bodies] : loaded_bodies_of_leaves(plan)) {
    const int first = static_cast<int>(plan.actions.size());
    for (std::size_t group = 0; group < std::tuple_size_v<Groups>; ++group)
      for (std::size_t rank = 0;; ++rank) {
        Action beside;
        if (!find_beside(plan, all, bodies, group, rank, beside)) break;
        plan.actions.push_back(beside);
      }
    plan.loaded_leaves.push_back({leaf, first, static_cast<int>(plan.actions.size()) - first});
  }
}

}  // namespace rigstep::index3
