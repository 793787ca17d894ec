#include "core/index3/compile/forces_in_lanes.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/index3/compile/coordinate_rows.h"
#include "core/index3/physics/joint_traits.h"

namespace rigstep::index3 {

namespace {

// (lanes of scalars) indices of the elements of a kind along each
template <class Kind>
using AlongScalars = std::vector<int>;
using ElementsAlongScalars = ElementKinds::VectorsOf<AlongScalars>;

ElementsAlongScalars elements_along_scalars(const Plan& plan) {
  ElementsAlongScalars all;
  for_each_kind([&]<class Kind>() {
    auto& of_kind = std::get<kind_of<Kind>>(all);
    of_kind.resize(plan.scalar_lanes.size());
    if constexpr (HasLaw<Kind>)
      for (int k = 0; k < static_cast<int>(plan.mechanism.all<Kind>().size()); ++k) {
        const int joint = measured_joint(plan, coordinate_of_tangent(plan.mechanism.all<Kind>()[k]));
        if (joint >= 0) of_kind[plan.lane_of_joint[joint]].push_back(k);
      }
  });
  for (std::size_t lane = 0; lane < plan.scalar_lanes.size(); ++lane)
    if (const auto [kind, index] = plan.scalar_lanes[lane].between_points; kind == kind_of<Spring>)
      std::get<kind_of<Spring>>(all)[lane].push_back(index);
  return all;
}

// Per lane of a batch the element number `rank` along its scalar, -1 where there is none.
std::vector<int> elements_of_rank(const Plan& plan, const std::vector<std::vector<int>>& along, int first_lane,
                                  std::size_t rank) {
  std::vector<int> elements(static_cast<std::size_t>(plan.lanes_of_forces), -1);
  for (int lane = 0; lane < plan.lanes_of_forces; ++lane) {
    const std::vector<int>& here = along[first_lane + lane];
    if (rank < here.size()) elements[lane] = here[rank];
  }
  return elements;
}

int pieces_of(const Characteristic& table) { return std::max(1, static_cast<int>(table.x.size()) - 1); }

// The tables of as many springs as there are lanes, side by side at the end of `to`.
void place_tables(const std::vector<const Characteristic*>& of_lane, int pieces, std::vector<double>& to) {
  const std::size_t lanes = of_lane.size(), first = to.size();
  to.resize(first + lanes * static_cast<std::size_t>(1 + kTablePiece * pieces), 0.0);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const Characteristic& table = *of_lane[lane];
    const auto number = [&](int k) -> double& { return to[first + static_cast<std::size_t>(k) * lanes + lane]; };
    number(0) = table.empty() ? 1.0 : table.near();
    for (int k = 0; k < pieces; ++k) {
      const bool begins = k < pieces_of(table);
      double& begin = number(1 + kTablePiece * k);
      begin = begins ? 0.0 : std::numeric_limits<double>::infinity();
      if (!begins || table.empty()) continue;
      const std::size_t piece = static_cast<std::size_t>(k);
      begin = table.x[piece];
      number(2 + kTablePiece * k) = table.y[piece];
      number(3 + kTablePiece * k) = table.slope_of_piece(piece);
    }
  }
}

// elements: per lane; -1: none
void place_tables(const Plan& plan, const std::vector<int>& elements, LawBatch& law, std::vector<double>& tables) {
  static const Characteristic kNone;
  int which = 0;
  for (const auto member : {&Spring::stiffness_table, &Spring::damping_table}) {
    std::vector<const Characteristic*> of_lane;
    of_lane.reserve(elements.size());
    for (const int k : elements) of_lane.push_back(k < 0 ? &kNone : &(plan.mechanism.all<Spring>()[k].*member));
    if (std::any_of(of_lane.begin(), of_lane.end(), [](const Characteristic* table) { return !table->empty(); })) {
      for (const Characteristic* table : of_lane) law.pieces[which] = std::max(law.pieces[which], pieces_of(*table));
      law.table[which] = static_cast<int>(tables.size());
      place_tables(of_lane, law.pieces[which], tables);
    }
    ++which;
  }
}

template <class Kind>
void place_laws_of_kind(Plan& plan, const std::vector<std::vector<int>>& along, int first_lane,
                        std::vector<double>& tables) {
  for (std::size_t rank = 0;; ++rank) {
    const std::vector<int> elements = elements_of_rank(plan, along, first_lane, rank);
    if (std::all_of(elements.begin(), elements.end(), [](int k) { return k < 0; })) return;
    LawBatch law{Stepped<Kind>::kLaw};
    if constexpr (std::is_same_v<Kind, Spring>) place_tables(plan, elements, law, tables);
    plan.laws.push_back(law);
    for (const int k : elements) plan.elements_in_laws.push_back({kind_of<Kind>, k});
  }
}

void place_laws(Plan& plan) {
  plan.laws.clear(), plan.elements_in_laws.clear();
  const ElementsAlongScalars along = elements_along_scalars(plan);
  std::vector<double> tables;
  for (std::size_t b = 0; b < plan.scalar_batches.size(); ++b) {
    ScalarBatch& batch = plan.scalar_batches[b];
    batch.first_law = static_cast<int>(plan.laws.size());
    for_each_kind([&]<class Kind>() {
      if constexpr (HasLaw<Kind>)
        place_laws_of_kind<Kind>(plan, std::get<kind_of<Kind>>(along), static_cast<int>(b) * plan.lanes_of_forces,
                                 tables);
    });
    batch.laws = static_cast<int>(plan.laws.size()) - batch.first_law;
  }
  plan.law_tables = AlignedDoubles(tables.size(), 0.0);
  std::copy(tables.begin(), tables.end(), plan.law_tables.data());
}

// The followed coordinate of the joint's only freedom; -1: none.
int followed_along(const Mechanism& m, int joint) {
  const std::vector<JointCoordinate>& all = m.coordinates();
  const auto found =
      std::find_if(all.begin(), all.end(), [joint](const JointCoordinate& c) { return c.joint == joint; });
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

// What a scalar is, and the bodies that it acts on.
struct Scalar {
  ScalarBatch::Of of;
  int first, second;
};
// That of a spring or stop between points, with these.
struct BetweenPoints {
  Scalar scalar;
  Vec3 first_point_b, second_point_b, direction_0;
};
BetweenPoints between_points(const Mechanism& m, const ElementOfKind& element) {
  using Of = ScalarBatch::Of;
  if (element.kind == kind_of<Stop>) {
    const Stop& stop = m.all<Stop>()[element.index];
    return {{Of::distance, stop.first, stop.second}, stop.first_point_b, stop.second_point_b, Vec3::Zero()};
  }
  const Spring& spring = m.springs()[element.index];
  const Of of = spring.kind == Spring::Kind::along_direction ? Of::projection : Of::distance;
  return {{of, spring.first, spring.second}, spring.first_point_b, spring.second_point_b, spring.direction_0};
}
Scalar scalar_of(const Mechanism& m, const ScalarLane& lane) {
  using Of = ScalarBatch::Of;
  if (lane.is_between_points()) return between_points(m, lane.between_points).scalar;
  const Joint& joint = m.joints()[lane.joint];
  return {is_length(*traits_of(joint.type).own_coordinate) ? Of::displacement : Of::angle, joint.first, joint.second};
}

void write_scalar_constants(const Mechanism& m, const ScalarLane& lane, int width, double* to) {
  if (lane.is_between_points()) {
    const BetweenPoints at = between_points(m, lane.between_points);
    write_vectors({at.first_point_b, at.second_point_b, at.direction_0}, width, to);
    to[kIsOnGround * width] = at.scalar.first == kGround || at.scalar.second == kGround ? 1.0 : 0.0;
    return;
  }
  const Joint& joint = m.joints()[lane.joint];
  write_joint(joint, joint.in_first.axes_b.col(0), width, to);
}

// By the places of the bodies, so that neighbouring lanes find neighbours.
template <class T, class Bodies>
void sort_by_records(const Plan& plan, std::vector<T>& all, const Bodies& bodies_of) {
  const auto records = [&](const T& each) {
    const auto [first, second] = bodies_of(each);
    return std::pair(record_of(plan.elimination, first).base, record_of(plan.elimination, second).base);
  };
  std::stable_sort(all.begin(), all.end(), [&](const T& a, const T& b) { return records(a) < records(b); });
}

// One kind of scalar after the other, each from a batch of its own on.
void add_in_batches(const Plan& plan, const std::vector<ScalarLane>& all, std::vector<ScalarLane>& ordered) {
  using Of = ScalarBatch::Of;
  for (const Of of : {Of::angle, Of::displacement, Of::distance, Of::projection}) {
    std::vector<ScalarLane> alike;
    std::copy_if(all.begin(), all.end(), std::back_inserter(alike),
                 [&](const ScalarLane& lane) { return scalar_of(plan.mechanism, lane).of == of; });
    sort_by_records(plan, alike, [&](const ScalarLane& lane) {
      const Scalar scalar = scalar_of(plan.mechanism, lane);
      return std::pair(scalar.first, scalar.second);
    });
    ordered.insert(ordered.end(), alike.begin(), alike.end());
    while (ordered.size() % static_cast<std::size_t>(plan.lanes_of_forces) != 0) ordered.emplace_back();
  }
}

std::ptrdiff_t most_of_one_kind(const Plan& plan, const std::vector<ScalarLane>& scalars) {
  std::ptrdiff_t most = 0;
  using Of = ScalarBatch::Of;
  for (const Of of : {Of::angle, Of::displacement, Of::distance, Of::projection})
    most = std::max(most, std::count_if(scalars.begin(), scalars.end(), [&](const ScalarLane& lane) {
                      return scalar_of(plan.mechanism, lane).of == of;
                    }));
  return most;
}

// As few as hold the most of one kind: lanes without an element cost as much as others, and bodies that lie four wide
// are beside each other only for four lanes. What is measured once a step decides where iterates have nothing.
int lanes_for(const Plan& plan, const std::vector<ScalarLane>& all, const std::vector<ScalarLane>& at_end) {
  constexpr int kFew = 4;
  std::ptrdiff_t most = most_of_one_kind(plan, all);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) most = std::max(most, static_cast<std::ptrdiff_t>(plan.lanes_of<Kind>().size()));
  });
  if (most == 0) most = most_of_one_kind(plan, at_end);
  return most <= 1 ? 1 : most <= kFew ? std::min(plan.lanes, kFew) : plan.lanes;
}

void order_scalars(Plan& plan) {
  const auto own = [&plan](int joint) { return ScalarLane{joint, followed_along(plan.mechanism, joint), {-1, -1}}; };
  std::vector<ScalarLane> all, at_end;
  for (const int j : plan.measured_joints) all.push_back(own(j));
  for (const int j : plan.measured_at_end) at_end.push_back(own(j));
  for (const int k : plan.lanes_of<Spring>()) all.push_back({-1, -1, {kind_of<Spring>, k}});
  for (const int k : plan.lanes_of<Stop>())
    if (!plan.mechanism.all<Stop>()[k].is_along_freedom()) all.push_back({-1, -1, {kind_of<Stop>, k}});
  plan.lanes_of_forces = lanes_for(plan, all, at_end);
  plan.scalar_lanes.clear();
  add_in_batches(plan, all, plan.scalar_lanes);
  plan.scalar_batches_of_iterates = static_cast<int>(plan.scalar_lanes.size()) / plan.lanes_of_forces;
  add_in_batches(plan, at_end, plan.scalar_lanes);
}

template <class BatchOfBodies>
void find_patterns(std::vector<BatchOfBodies>& batches, int lanes) {
  for (BatchOfBodies& batch : batches)
    for (LanePlaces* const bodies : {&batch.first, &batch.second}) bodies->pattern = pattern_of(bodies->of_lane, lanes);
}

void place_scalars(Plan& plan) {
  order_scalars(plan);
  const int lanes = plan.lanes_of_forces, all = static_cast<int>(plan.scalar_lanes.size());
  plan.scalar_batches.assign(static_cast<std::size_t>(all / lanes), {});
  plan.scalar_constants = AlignedDoubles(static_cast<std::size_t>(kScalarConstants * all), 0.0);
  plan.stops_in_lanes.clear(), plan.springs_with_rows.clear();
  plan.lane_of_joint.assign(plan.mechanism.joints().size(), -1);
  for (int k = 0; k < all; ++k) {
    const int lane = k % lanes;
    const ScalarLane& here = plan.scalar_lanes[plan.scalar_lanes[k].is_used() ? k : k - lane];
    const Scalar scalar = scalar_of(plan.mechanism, here);
    ScalarBatch& batch = plan.scalar_batches[k / lanes];
    batch.of = scalar.of;
    batch.first.of_lane[lane] = record_of(plan.elimination, scalar.first);
    batch.second.of_lane[lane] = record_of(plan.elimination, scalar.second);
    write_scalar_constants(plan.mechanism, here, lanes,
                           plan.scalar_constants.data() + kScalarConstants * (k - lane) + lane);
    if (plan.scalar_lanes[k].joint >= 0) plan.lane_of_joint[here.joint] = k;
    if (!plan.scalar_lanes[k].is_between_points()) continue;
    if (plan.scalar_lanes[k].between_points.kind == kind_of<Stop>)
      plan.stops_in_lanes.push_back(k);
    else if (scalar.first != kGround && scalar.second != kGround)
      plan.springs_with_rows.push_back(k);
  }
  find_patterns(plan.scalar_batches, lanes);
}

template <class Kind>
void place_elements(Plan& plan) {
  const std::size_t lanes = static_cast<std::size_t>(plan.lanes_of_forces);
  ElementLanes& placed = plan.element_lanes[kind_of<Kind>];
  const auto bodies_of = [&plan](int k) {
    const std::vector<int> bodies = connectivity(plan.mechanism.all<Kind>()[k], plan.constants<Kind>()[k]).bodies;
    return std::pair(bodies.front(), bodies.back());
  };
  placed.element = plan.lanes_of<Kind>();
  sort_by_records(plan, placed.element, bodies_of);
  while (placed.element.size() % lanes != 0) placed.element.push_back(placed.element.front());
  placed.batches.assign(placed.element.size() / lanes, {});
  for (std::size_t k = 0; k < placed.element.size(); ++k) {
    const auto [first, second] = bodies_of(placed.element[k]);
    ElementBatch& batch = placed.batches[k / lanes];
    batch.first.of_lane[k % lanes] = record_of(plan.elimination, first);
    batch.second.of_lane[k % lanes] = record_of(plan.elimination, second);
  }
  find_patterns(placed.batches, plan.lanes_of_forces);
}

// ... one behind the other: of scalars, of elements of each kind, of what is applied one by one, and a number that adds
// nothing.
void place_found(Plan& plan) {
  FoundPlaces& found = plan.found;
  found = {};
  const auto take = [&found](std::size_t numbers) {
    const int at = found.size;
    found.size += static_cast<int>((numbers + kMostLanes - 1) / kMostLanes * kMostLanes);
    return at;
  };
  found.scalars = take(kScalarNumbers * plan.scalar_lanes.size());
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>)
      found.elements[kind_of<Kind>] =
          take(Stepped<Kind>::kLaneFound * plan.element_lanes[kind_of<Kind>].element.size());
  });
  found.one_by_one = take(kActionNumbers * plan.loaded_one_by_one.size());
  found.nothing = take(1);
}

}  // namespace

void place_forces_in_lanes(Plan& plan) {
  place_scalars(plan);
  place_laws(plan);
  for_each_kind([&]<class Kind>() {
    if constexpr (HasLanes<Kind>) place_elements<Kind>(plan);
  });
  place_found(plan);
}

}  // namespace rigstep::index3
