// Tables of the constraints: where their lanes find the bodies that they hold, and where they write their handles.
#include <algorithm>

#include "core/index3/compile/layout/layout.h"

namespace rigstep::index3 {
namespace {

// What no leaf holds, but a constraint writes on the side of the ground or of another part's body.
int unused_handle(Layout& layout, const Batch& b) {
  layout.align_handles();
  const int at = static_cast<int>(layout.tables.handle_doubles);
  layout.tables.handle_doubles +=
      static_cast<std::size_t>(layout.tables.constraints[layout.node(b, 0).pivot].format.handle_size() * b.width());
  return at;
}

Operands fill_side(Layout& layout, const Batch& b, int s, Side& side) {
  const int part = layout.node(b, 0).part;
  const bool is_unused = std::any_of(b.nodes.begin(), b.nodes.end(), [&](int n) {
    const int body = layout.tables.constraints[layout.nodes[n].pivot].bodies[s];
    return body == kGround || layout.is_elsewhere(body, part);
  });
  const int unused = is_unused ? unused_handle(layout, b) : 0;
  std::vector<Lane> records, holds;
  ScatteredSide places;
  side.first_copy = static_cast<int>(layout.tables.copies.size());
  for (int lane = 0; lane < b.width(); ++lane) {
    const int constraint = layout.node(b, lane).pivot, body = layout.tables.constraints[constraint].bodies[s];
    if (body == kGround) {
      BodyPlace ground = *std::find_if(layout.tables.ground.begin(), layout.tables.ground.end(),
                                       [&](const BodyPlace& each) { return each.width == b.width(); });
      ground.lane = lane;
      places.record[lane] = ground.of(0);
      places.handle[lane] = {unused + lane, b.width()};
      records.push_back({kGround, lane});
      holds.push_back({kGround, lane});
      continue;
    }
    const Node &leaf = layout.leaf_node(layout.body_of(body), part),
               &hold = layout.leaf_node(body, part);  // of a primal body: its attachment
    const bool has_body = leaf.part == part, has_handle = hold.part == part;
    const auto& handles = layout.tables.constraint_place[constraint].handles[s];
    places.record[lane] = (has_body ? layout.place_of(leaf) : layout.ghost_of_body.at({body, part})).of(0);
    places.handle[lane] = has_handle ? handles[0] : Place{unused + lane, b.width()};
    records.push_back({has_body ? leaf.batch : Lane::kElsewhere, leaf.lane});
    holds.push_back({has_handle ? hold.batch : Lane::kElsewhere, hold.lane});
    for (std::size_t k = 1; has_handle && k < handles.size() && lane < lanes(b); ++k)
      layout.tables.copies.push_back({handles[0], handles[k]});
  }
  side.record = places.record[0];
  side.handle = places.handle[0];
  // neighbouring lanes of a leaf may be held by different handles of it
  bool is_one_handle = true;
  for (int lane = 1; lane < lanes(b); ++lane)
    is_one_handle = is_one_handle && places.handle[lane].base == places.handle[0].base + lane;
  side.is_uniform = b.width() > 1 && pattern_of(places.record, b.width()) == LanePlaces::Pattern::uniform;
  const Operands of_records = side.is_uniform ? Operands::beside : operands(layout, b, records);
  const Operands found = is_one_handle ? std::max(of_records, operands(layout, b, holds)) : Operands::scattered;
  if (found == Operands::in_order) {
    layout.tables.copies.resize(static_cast<std::size_t>(side.first_copy));  // its own unused lanes write them
    return found;
  }
  side.copies = static_cast<int>(layout.tables.copies.size()) - side.first_copy;
  if (found == Operands::scattered) {
    side.scattered = static_cast<int>(layout.tables.scattered_sides.size());
    layout.tables.scattered_sides.push_back(places);
  }
  return found;
}

// The second side takes from the first what both have in common. Primal bodies read whole handles, but are alone in
// their batch, so none shares.
void share_handle(Layout& layout, const ConstraintBatch& c, const Node& eliminating) {
  const int second = layout.tables.constraints[eliminating.pivot].bodies[1];
  if (second == kGround) return;
  const Leaf& leaf = layout.tables.leaves[layout.index[layout.leaf_node(second, eliminating.part).batch]];
  for (int h = leaf.first_handle; h < leaf.first_handle + leaf.handles; ++h)
    if (layout.tables.handles[h].at == c.side[1].handle.base) layout.tables.handles[h].shared = c.side[0].handle.base;
}

// The lane of two batches, one of which begins where `at` does; false: it lies elsewhere. Batches are aligned.
bool find_lane(const Place& at, int width, int (&base)[2], int& count, Lane& found) {
  found = {0, at.base % width};
  while (found.batch < count && base[found.batch] != at.base - found.lane) ++found.batch;
  if (at.stride != width || found.batch == 2) return false;
  base[found.batch] = at.base - found.lane;
  count = std::max(count, found.batch + 1);
  return true;
}

// of the body of a constraint's lane
Place record_of(const Layout& layout, const Side& side, int lane) {
  if (side.scattered >= 0) return layout.tables.scattered_sides[side.scattered].record[lane];
  return {side.record.base + (side.is_uniform ? 0 : lane), side.record.stride};
}

// false: its lanes lie in more than two batches, or in others than as wide ones
bool choose(const Layout& layout, const Batch& b, int s, const Side& side, ChosenSide& chosen) {
  const int W = b.width();
  for (LaneChoice& kept : chosen.kept)
    for (int lane = 0; lane < W; ++lane) kept.of_lane[lane] = lane;
  int records = 0;
  Lane found{};
  for (int lane = 0; lane < W; ++lane) {
    if (!find_lane(record_of(layout, side, lane), W, chosen.record, records, found)) return false;
    chosen.body.of_lane[lane] = found.batch * W + found.lane;
    const int constraint = layout.node(b, lane).pivot;
    if (layout.tables.constraints[constraint].bodies[s] == kGround || lane >= lanes(b)) continue;
    for (const Place& handle : layout.tables.constraint_place[constraint].handles[s]) {
      if (!find_lane(handle, W, chosen.handle, chosen.handles, found)) return false;
      chosen.kept[found.batch].of_lane[found.lane] = W + lane;
    }
  }
  if (records == 1) chosen.record[1] = chosen.record[0];
  return true;
}

// in place of scattered lanes, where it can be
void choose(Layout& layout, ConstraintBatch& c, const Batch& b) {
  ChosenSide chosen[2];
  if (!choose(layout, b, 0, c.side[0], chosen[0]) || !choose(layout, b, 1, c.side[1], chosen[1])) return;
  c.sides = Operands::chosen;
  layout.tables.copies.resize(static_cast<std::size_t>(c.side[0].first_copy));  // unused lanes of leaves choose too
  for (int s = 0; s < 2; ++s) {
    if (c.side[s].scattered >= 0) layout.tables.scattered_sides.pop_back();
    c.side[s].scattered = -1;
    c.side[s].copies = 0;
    c.side[s].chosen = static_cast<int>(layout.tables.chosen_sides.size());
    layout.tables.chosen_sides.push_back(chosen[s]);
  }
}

void fill_constraint(Layout& layout, ConstraintBatch& c, const Batch& b) {
  if (!c.format.in_lanes()) return;
  for (int s = 0; s < 2; ++s) c.sides = std::max(c.sides, fill_side(layout, b, s, c.side[s]));
  if (c.sides == Operands::in_order && c.width > 1 && !c.format.general()) share_handle(layout, c, layout.node(b, 0));
  if (c.sides == Operands::scattered && c.width >= 4) choose(layout, c, b);
}

}  // namespace

// those of primal bodies need the attachments of all parts
void fill_constraints(Layout& layout, int part) {
  for (const Constraint& c : layout.tables.constraints)
    if (c.is_primal) fill_primal_body(layout, c, layout.leaf_node(c.bodies[0], part));
  for (std::size_t k = 0; k < layout.tables.constraint_batches.size(); ++k)
    if (layout.node(layout.constraint_batch[k], 0).part == part)
      fill_constraint(layout, layout.tables.constraint_batches[k], layout.constraint_batch[k]);
  layout.end_part(layout.tables.handle_doubles);
}

}  // namespace rigstep::index3
