// Places of the constraints and their rows, and of the ground.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/index3/compile/layout/layout.h"

namespace rigstep::index3 {
namespace {

// Fronts whose constraints are evaluated together.
struct Together {
  std::vector<int> fronts;
  Batch constraints;
};

void add(const Layout& layout, int front, Together& together) {
  const std::vector<int>& more = layout.batches[layout.front_batch[front]].nodes;
  together.fronts.push_back(front);
  together.constraints.nodes.insert(together.constraints.nodes.end(), more.begin(), more.end());
}

// Whether the constraints of a front may lie beside others in so many lanes: where all lie in leaves as wide, so that
// they may choose from those, and four with axes anywhere; to gather points one by one does not pay.
bool may_join(const Layout& layout, int front, int width) {
  const Batch& b = layout.batches[layout.front_batch[front]];
  const Constraint& c = layout.tables.constraints[layout.node(b, 0).pivot];
  if (b.width() >= width || width > layout.most_lanes || lanes(b) < b.width()) return false;
  if (c.format.general() || layout.node(b, 0).is_top) return false;
  const auto lies_as_wide = [&](int body) {
    return body == kGround ||
           layout.batches[layout.leaf_node(layout.body_of(body), layout.node(b, 0).part).batch].width() == width;
  };
  return (width == 4 && c.format.cosines > 0) || std::all_of(b.nodes.begin(), b.nodes.end(), [&](int n) {
           const auto& bodies = layout.tables.constraints[layout.nodes[n].pivot].bodies;
           return std::all_of(bodies.begin(), bodies.end(), lies_as_wide);
         });
}

// Takes from the fronts, which come by falling width, those that together fill `width` lanes.
void join(const Layout& layout, std::vector<int>& fronts, int width, std::vector<Together>& all) {
  std::vector<bool> is_joined(layout.tables.fronts.size(), false);
  std::map<std::tuple<int, int, RowFormat::Coordinate>, Together> open;  // by part and format
  for (const int k : fronts) {
    if (!may_join(layout, k, width)) continue;
    const Node& first = layout.first_of(layout.front_batch[k]);
    const RowFormat& format = layout.tables.constraints[first.pivot].format;
    Together& joined = open[{first.part, format.cosines, format.coordinate}];
    add(layout, k, joined);
    if (lanes(joined.constraints) < width) continue;
    for (const int each : joined.fronts) is_joined[each] = true;
    all.push_back(std::exchange(joined, {}));
  }
  std::erase_if(fronts, [&](int k) { return is_joined[k]; });
}

void reserve_rows(Layout& layout, const Together& together) {
  const Batch& b = together.constraints;
  const int W = b.width(), rows = layout.tables.fronts[together.fronts[0]].pivots;
  ConstraintBatch batch;
  batch.format = layout.tables.constraints[layout.node(b, 0).pivot].format;
  batch.width = W;
  batch.row_position = layout.tables.rows;
  batch.position = layout.tables.constraint_positions;
  int first_lane = 0;
  for (const int k : together.fronts) {
    Front& f = layout.tables.fronts[k];
    f.constraint = static_cast<int>(layout.tables.constraint_batches.size());
    f.row_position = batch.row_position + first_lane;
    f.row_stride = W;
    for (int lane = 0; lane < lanes(layout.batches[layout.front_batch[k]]); ++lane)
      if (const Node& n = layout.node(layout.batches[layout.front_batch[k]], lane); !n.repeats)
        layout.tables.constraint_place[n.pivot].eliminated_by = {k, lane};
    first_lane += f.width;
  }
  for (int lane = 0; lane < W; ++lane) {
    ConstraintPlace& c = layout.tables.constraint_place[layout.node(b, lane).pivot];
    const RowsPlace at{static_cast<int>(layout.tables.constraint_batches.size()), {batch.row_position + lane, W}};
    const bool repeats = lane >= lanes(b) || layout.node(b, lane).repeats;
    repeats ? c.copies.push_back(at) : void(static_cast<RowsPlace&>(c) = at);
    if (!repeats) c.level = layout.node(b, lane).level;
  }
  layout.tables.rows += rows * W;
  layout.tables.constraint_positions += W;
  layout.tables.constraint_batches.push_back(batch);
  layout.constraint_batch.push_back(b);
}

}  // namespace

// Each front's constraints lie like its own lanes. But narrow ones of one format and part lie side by side where they
// fill a batch of eight or four: to gather their operands costs less than to evaluate a lane or two at a time.
void place_constraints(Layout& layout) {
  std::vector<int> narrow;
  for (const int width : kFallingWidths)
    for (int k = 0; k < static_cast<int>(layout.tables.fronts.size()); ++k)
      if (layout.tables.fronts[k].pivots > 0 && layout.batches[layout.front_batch[k]].width() == width)
        narrow.push_back(k);
  std::vector<Together> all;
  for (const int width : {8, 4}) join(layout, narrow, width, all);
  for (const int k : narrow) add(layout, k, all.emplace_back());
  std::stable_sort(all.begin(), all.end(),
                   [](const Together& a, const Together& b) { return a.constraints.width() > b.constraints.width(); });
  for (int part = 0; part < layout.parts; ++part) {
    for (const Together& each : all)
      if (layout.first_of(layout.front_batch[each.fronts[0]]).part == part) reserve_rows(layout, each);
    layout.end_part(layout.tables.rows), layout.end_part(layout.tables.constraint_positions, kConstraintFields);
  }
  layout.tables.rows = in_full_lanes(layout.tables.rows);  // arrays of rows may stand one behind the other
}

void place_ground(Layout& layout) {
  Elimination& tables = layout.tables;
  tables.positions = in_full_lanes(tables.positions);
  const auto reserve = [&](int width) {
    tables.ground.push_back({tables.positions, width, 0});
    tables.positions += width;
  };
  for (const int width : kFallingWidths)
    if (std::any_of(tables.constraint_batches.begin(), tables.constraint_batches.end(),
                    [&](const ConstraintBatch& b) { return b.width == width; }))
      reserve(width);
  if (tables.ground.empty()) reserve(1);  // for force elements
  layout.end_part(tables.positions, kBodyFields);
}

}  // namespace rigstep::index3
