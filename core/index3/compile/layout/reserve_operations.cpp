// Places in memory of the operations: records of the bodies, compliances and factors.
#include <algorithm>

#include "core/index3/compile/layout/layout.h"

namespace rigstep::index3 {
namespace {

bool is_displacement_of(const Layout& layout, int constraint, int body) {
  return layout.tables.constraints[constraint].is_primal && layout.tables.constraints[constraint].bodies[0] == body;
}

void reserve_leaf(Layout& layout, int batch) {
  const Batch& b = layout.batches[batch];
  const Node& n = layout.node(b, 0);
  Leaf& leaf = layout.tables.leaves[layout.index[batch]];
  const int W = b.width(), rows = rows_of(layout.tables.constraints, n.pending);
  leaf.width = W;
  leaf.rows = rows;
  leaf.record = kBodyFields * layout.tables.positions;
  leaf.is_primal = !n.pending.empty() && is_displacement_of(layout, n.pending[0], n.body);
  layout.tables.positions += W;
  leaf.matrix = layout.arena(packed(rows) * W);
  leaf.vector = layout.arena(rows * W);
  if (layout.has_own_tangent[n.body]) {
    leaf.dense = static_cast<int>(layout.tables.dense_doubles);
    layout.tables.dense_doubles += static_cast<std::size_t>(packed(6) * W);
  }
  layout.tables.multiply_adds +=
      leaf.is_primal ? 0 : static_cast<long>(b.nodes.size()) * (36L * rows + 6L * packed(rows));
  for (int lane = 0; lane < W; ++lane) {
    const int body = layout.node(b, lane).body;
    const BodyPlace place{leaf.record / kBodyFields, W, lane};
    const bool repeats = lane >= lanes(b) || n.repeats;
    repeats ? layout.tables.body_copies[body].push_back(place) : void(layout.tables.body[body] = place);
    if (lane < lanes(b)) layout.tables.leaves_of_body[body].push_back(layout.index[batch]);
  }
}

void reserve_attachment(Layout& layout, int batch) {
  const Batch& b = layout.batches[batch];
  Attachment& attachment = layout.tables.attachments[layout.index[batch]];
  const int rows = rows_of(layout.tables.constraints, layout.node(b, 0).pending);
  attachment.width = b.width();
  attachment.matrix = layout.arena(packed(rows) * attachment.width);
  attachment.vector = layout.arena(rows * attachment.width);
}

void reserve_front(Layout& layout, int batch) {
  const Batch& b = layout.batches[batch];
  const Node& n = layout.node(b, 0);
  Front& f = layout.tables.fronts[layout.index[batch]];
  const int W = b.width(), rows = rows_of(layout.tables.constraints, n.pending);
  f.width = W;
  f.rows = rows;
  f.pivots = n.pivot < 0 ? 0 : layout.tables.constraints[n.pivot].format.rows;
  f.is_primal = n.pivot >= 0 && layout.tables.constraints[n.pivot].is_primal;
  f.factor = layout.arena((packed(f.pivots) + rows * f.pivots + f.pivots) * W);
  const int size = rows + f.pivots;
  layout.tables.largest_front = std::max(layout.tables.largest_front, size);
  for (int k = 0; k < f.pivots && !n.repeats; ++k)
    layout.tables.multiply_adds += static_cast<long>(b.nodes.size()) * packed(size - k);
}

void reserve(Layout& layout, int batch) {
  switch (layout.kind(batch)) {
    case Run::Of::leaves:
      return reserve_leaf(layout, batch);
    case Run::Of::attachments:
      return reserve_attachment(layout, batch);
    case Run::Of::fronts:
      return reserve_front(layout, batch);
    case Run::Of::constraints:
      return;  // no batches of the tree
  }
}

}  // namespace

void reserve_part(Layout& layout, int part) {
  for (const int width : kFallingWidths)  // the widest first, so that they are aligned
    for (const int batch : layout.order)
      if (layout.first_of(batch).part == part && layout.batches[batch].width() == width) reserve(layout, batch);
  layout.end_part(layout.tables.positions, kBodyFields);
  layout.end_part(layout.tables.arena_doubles), layout.end_part(layout.tables.dense_doubles);
}

}  // namespace rigstep::index3
