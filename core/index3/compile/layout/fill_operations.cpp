// Tables of leaves, attachments and fronts.
#include <algorithm>
#include <cmath>

#include "core/index3/compile/layout/layout.h"

namespace rigstep::index3 {
namespace {

int index_of(Layout& layout, const Signs& signs) {
  const auto known = std::find_if(layout.tables.signs.begin(), layout.tables.signs.end(), [&](const Signs& each) {
    return std::equal(std::begin(signs.of_lane), std::end(signs.of_lane), each.of_lane,
                      [](double a, double b) { return std::signbit(a) == std::signbit(b); });
  });
  const auto index = static_cast<int>(known - layout.tables.signs.begin());
  if (known == layout.tables.signs.end()) layout.tables.signs.push_back(signs);
  return index;
}

// of the k-th constraint that holds the bodies or attachments of a batch
void add_handle(Layout& layout, const Batch& b, std::size_t k, int row) {
  Handle h;
  h.format = layout.tables.constraints[layout.node(b, 0).pending[k]].format;
  h.row = row;
  h.at = h.shared = static_cast<int>(layout.tables.handle_doubles);
  h.stride = b.width();
  layout.tables.handle_doubles += static_cast<std::size_t>(h.format.handle_size() * h.stride);
  Signs signs;
  for (int lane = 0; lane < h.stride; ++lane) {
    const Node& each = layout.node(b, lane);
    const auto& sides = layout.tables.constraints[each.pending[k]].bodies;
    const auto side = std::find(sides.begin(), sides.end(), each.body) - sides.begin();
    signs.of_lane[lane] = h.format.general() || side == 0 ? 0.0 : -0.0;
    layout.tables.constraint_place[each.pending[k]].handles[side].push_back({h.at + lane, h.stride});
  }
  h.signs = index_of(layout, signs);
  layout.tables.handles.push_back(h);
}

void fill_attachment(Layout& layout, int index) {
  layout.tables.attachments[index].handle = static_cast<int>(layout.tables.handles.size());
  add_handle(layout, layout.batches[layout.attachment_batch[index]], 0, 0);
  layout.align_handles();
}

void fill_leaf(Layout& layout, int index) {
  Leaf& leaf = layout.tables.leaves[index];
  if (leaf.is_primal) return;
  const Batch& b = layout.batches[layout.leaf_batch[index]];
  leaf.first_handle = static_cast<int>(layout.tables.handles.size());
  int row = 0;
  const auto& pending = layout.node(b, 0).pending;
  for (std::size_t k = 0; k < pending.size(); ++k) {
    add_handle(layout, b, k, row);
    row += layout.tables.handles.back().format.rows;
  }
  leaf.handles = static_cast<int>(pending.size());
  const Handle* h = layout.tables.handles.data() + leaf.first_handle;
  leaf.has_two_equal_points = leaf.handles == 2 && !h->format.general() && h[0].format.rows == h[1].format.rows &&
                              h[0].format.cosines == h[1].format.cosines;
  layout.align_handles();
}

int row_in(const Layout& layout, const Node& n, int constraint) {
  int row = 0;
  for (const int c : n.pending) {
    if (c == constraint) return row;
    row += layout.tables.constraints[c].format.rows;
  }
  return -1;
}

unsigned char form_of(const Layout& layout, const Front& f) {
  const int N = f.pivots;
  if (N < 3 || f.is_primal) return kAnyFront;
  const auto is_side = [&](const Child& c, int pivot_when_open) {
    return !c.present || (c.rows == N && c.pivot == 0) || (c.rows == 2 * N && c.pivot == pivot_when_open);
  };
  const Child &left = f.child[0], &right = f.child[1];
  if (!is_side(left, N) || !is_side(right, 0)) return kAnyFront;
  unsigned char form = 0;
  if (left.present) form |= kLeft;
  if (right.present) form |= kRight;
  for (int k = f.first_pending; k < f.first_pending + f.pendings; ++k) {
    const Pending& p = layout.tables.pending[k];
    if (p.rows != N || (p.in_child[0] >= 0 && p.in_child[1] >= 0)) return kAnyFront;
    form |= p.in_child[0] >= 0 ? kLeftOpen : kRightOpen;
  }
  return form;
}

// Makes one block of those that follow each other in the front and in both of its children.
void join_neighbours(Layout& layout, Front& f) {
  std::vector<Pending>& pending = layout.tables.pending;
  std::vector<Pending> joined;
  for (int k = f.first_pending; k < f.first_pending + f.pendings; ++k) {
    const Pending& p = pending[k];
    const auto follows = [&](int side) {
      const int before = joined.back().in_child[side];
      return before < 0 ? p.in_child[side] < 0 : p.in_child[side] == before + joined.back().rows;
    };
    if (!joined.empty() && follows(0) && follows(1))
      joined.back().rows += p.rows;
    else
      joined.push_back(p);
  }
  pending.resize(f.first_pending);
  pending.insert(pending.end(), joined.begin(), joined.end());
  f.pendings = static_cast<int>(joined.size());
}

void fill_child(Layout& layout, const Batch& b, int side, Front& front, Child& child) {
  std::vector<Lane> at;
  ScatteredChild places;
  for (int lane = 0; lane < b.width(); ++lane) {
    const Node& below = layout.nodes[layout.node(b, lane).child[side]];
    const Compliance c = layout.compliance_of(below.batch);
    child.rows = c.rows;
    places.matrix[lane] = {c.matrix + below.lane, c.width};
    places.vector[lane] = {c.vector + below.lane, c.width};
    at.push_back({below.batch, below.lane});
  }
  child.present = true;
  child.matrix = places.matrix[0].base;
  child.vector = places.vector[0].base;
  child.stride = places.matrix[0].stride;
  const Node &above = layout.node(b, 0), &below = layout.nodes[above.child[side]];
  if (above.pivot >= 0) child.pivot = row_in(layout, below, above.pivot);
  for (const int c : below.pending) {
    if (!drops_padding(above, c)) continue;  // at most one
    child.padding = row_in(layout, below, c);
    child.padding_rows = layout.tables.constraints[c].format.rows;
  }
  const Operands found = operands(layout, b, at);
  front.children = std::max(front.children, found);
  if (found == Operands::in_order) return;
  if (found == Operands::scattered) {
    child.scattered = static_cast<int>(layout.tables.scattered_children.size());
    layout.tables.scattered_children.push_back(places);
  }
  child.first_copy = static_cast<int>(layout.tables.copies.size());
  for (int lane = 0; lane < lanes(b); ++lane) {
    if (at[lane].lane != 0) continue;
    const Compliance c = layout.compliance_of(at[lane].batch);
    for (int pad = lanes(layout.batches[at[lane].batch]); pad < c.width; ++pad)
      layout.tables.copies.push_back({{c.vector, c.width}, {c.vector + pad, c.width}});
  }
  child.copies = static_cast<int>(layout.tables.copies.size()) - child.first_copy;
}

void fill_front(Layout& layout, int index) {
  const Batch& b = layout.batches[layout.front_batch[index]];
  Front& f = layout.tables.fronts[index];
  const Node& first = layout.node(b, 0);
  // one compound alone stands on the side where its pivots are
  const bool alone = first.child[1] < 0;
  const bool right_alone = alone && first.pivot >= 0 &&
                           row_in(layout, layout.nodes[first.child[0]], first.pivot) == 0 &&
                           layout.nodes[first.child[0]].pending.size() > 1;
  f.first_pending = static_cast<int>(layout.tables.pending.size());
  f.pendings = static_cast<int>(first.pending.size());
  int row = 0;
  for (const int c : first.pending) {
    Pending p;
    p.row = row;
    p.rows = layout.tables.constraints[c].format.rows;
    for (int side = 0; side < 2; ++side)
      if (first.child[side] >= 0)
        p.in_child[right_alone ? 1 : side] = row_in(layout, layout.nodes[first.child[side]], c);
    row += p.rows;
    layout.tables.pending.push_back(p);
  }
  for (int side = 0; side < 2; ++side)
    if (first.child[side] >= 0) fill_child(layout, b, side, f, f.child[right_alone ? 1 : side]);
  int scratch = f.rows * f.pivots;
  if (f.children == Operands::scattered) scratch += packed(f.child[0].rows) + packed(f.child[1].rows);
  layout.tables.scratch_doubles = std::max(layout.tables.scratch_doubles, static_cast<std::size_t>(scratch * f.width));
  f.form = form_of(layout, f);
  if (f.form == kAnyFront) join_neighbours(layout, f);
  // what a chain link leaves replaces, number by number, what its left child had
  const bool in_place = f.form == kChainLink && f.children == Operands::in_order;
  f.matrix = in_place ? f.child[0].matrix : layout.arena(packed(f.rows) * f.width);
  f.vector = in_place ? f.child[0].vector : layout.arena(f.rows * f.width);
}

void fill(Layout& layout, int batch) {
  switch (layout.kind(batch)) {
    case Run::Of::leaves:
      return fill_leaf(layout, layout.index[batch]);
    case Run::Of::attachments:
      return fill_attachment(layout, layout.index[batch]);
    case Run::Of::fronts:
      return fill_front(layout, layout.index[batch]);
    case Run::Of::constraints:
      return;  // no batches of the tree
  }
}

}  // namespace

// how the lanes of a batch find what lies there, lane by lane
Operands operands(const Layout& layout, const Batch& own, const std::vector<Lane>& at) {
  const int first = at[0].batch, width = own.width();
  if (std::any_of(at.begin(), at.end(), [&](const Lane& each) { return each.batch != first; }))
    return Operands::scattered;
  if (first == kGround) return Operands::in_order;
  if (first == Lane::kElsewhere) return Operands::scattered;
  // unused lanes of ghosts hold nothing
  const bool is_filled = !layout.is_ghost(first) || lanes(own) == width;
  bool in_order = is_filled && layout.batches[first].nodes.size() == own.nodes.size();
  bool beside = lanes(own) == width && at[0].lane % width == 0;
  for (int lane = 0; lane < width; ++lane) {
    in_order = in_order && at[lane].lane == (lane < lanes(own) ? lane : 0);
    beside = beside && at[lane].lane == at[0].lane + lane;
  }
  return in_order ? Operands::in_order : beside ? Operands::beside : Operands::scattered;
}

// the handles of its attachments, once more in a row; of those in other parts the numbers that it needs
void fill_primal_body(Layout& layout, const Constraint& displacement, const Node& primal_body) {
  Leaf& leaf = layout.tables.leaves[layout.index[primal_body.batch]];
  leaf.first_handle = static_cast<int>(layout.tables.handles.size());
  leaf.handles = static_cast<int>(displacement.bodies.size()) - 1;
  for (std::size_t k = 1; k < displacement.bodies.size(); ++k) {
    const Node& attachment = layout.leaf_node(displacement.bodies[k], primal_body.part);
    Handle h = layout.tables.handles[layout.tables.attachments[layout.index[attachment.batch]].handle];
    h.at += attachment.lane;
    h.shared = h.at;
    h.signs = index_of(
        layout, {{layout.tables.signs[h.signs].of_lane[attachment.lane]}});  // a primal body is alone in its batch
    if (attachment.part != primal_body.part) {
      layout.align_handles();
      const Place ghost{static_cast<int>(layout.tables.handle_doubles), 1};
      const int count = h.format.load_size();
      layout.tables.handle_doubles += static_cast<std::size_t>(count);
      pass_on(layout, layout.tables.passed.handles, attachment.part, {h.at, h.stride}, count, primal_body.part, ghost);
      h.at = h.shared = ghost.base, h.stride = ghost.stride;
    }
    layout.tables.handles.push_back(h);
  }
  layout.align_handles();
}

void fill_part(Layout& layout, int part) {
  for (const int batch : layout.order)
    if (layout.first_of(batch).part == part) fill(layout, batch);
  layout.end_part(layout.tables.arena_doubles), layout.end_part(layout.tables.handle_doubles);
}

}  // namespace rigstep::index3
