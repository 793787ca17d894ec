// What a part keeps of the bodies and compounds of others, and what is therefore passed on.
#include <algorithm>

#include "core/index3/compile/layout/layout.h"

namespace rigstep::index3 {

void pass_on(const Layout& layout, std::vector<Passed>& all, int from_part, Place from, int count, int part,
             Place ghost) {
  auto passed = std::find_if(all.begin(), all.end(), [&](const Passed& each) {
    return each.from.base == from.base && each.from.stride == from.stride;
  });
  if (passed == all.end()) {
    all.push_back({from_part, from, count, std::vector<Place>(static_cast<std::size_t>(layout.parts), Place{0, 0})});
    passed = all.end() - 1;
  }
  passed->ghost[part] = ghost;
}

namespace {

void place_ghost_of_body(Layout& layout, int body, int part) {
  if (!layout.ghost_of_body.emplace(std::pair(body, part), BodyPlace{layout.tables.positions, 1, 0}).second) return;
  const BodyPlace place = layout.ghost_of_body[{body, part}];
  pass_on(layout, layout.tables.passed.bodies, layout.leaf_node(body, part).part, layout.tables.body[body].of(0), 0,
          part, place.of(0));
  ++layout.tables.positions;
}

// of a batch of ghosts
void pass_on_batch(Layout& layout, int batch, const Compliance& ghost) {
  for (int lane = 0; lane < lanes(layout.batches[batch]); ++lane) {
    const Node &n = layout.node(layout.batches[batch], lane), &original = layout.nodes[n.ghost_of];
    const Compliance c = layout.compliance_of(original.batch);
    const int rows = rows_of(layout.tables.constraints, {n.pending.begin(), n.pending.begin() + n.passed});
    const auto pass = [&](std::vector<Passed>& all, int from, int to, int count) {
      pass_on(layout, all, original.part, {from + original.lane, c.width}, count, n.part, {to + lane, ghost.width});
    };
    pass(layout.tables.passed.compliances, c.matrix, ghost.matrix, packed(rows));
    pass(layout.tables.passed.right_hand_sides, c.vector, ghost.vector, rows);
  }
}

}  // namespace

void place_ghosts(Layout& layout) {
  for (int part = 0; part < layout.parts; ++part) {
    for (const Batch& b : layout.constraint_batch) {
      if (layout.node(b, 0).part != part || !layout.node(b, 0).is_top) continue;
      for (const int n : b.nodes)
        if (const Constraint& c = layout.tables.constraints[layout.nodes[n].pivot]; c.format.in_lanes())
          for (const int body : c.bodies)
            if (body != kGround && layout.is_elsewhere(layout.body_of(body), part))
              place_ghost_of_body(layout, body, part);
    }
    for (int batch = 0; batch < static_cast<int>(layout.batches.size()); ++batch) {
      if (!layout.is_ghost(batch) || layout.first_of(batch).part != part) continue;
      const int W = layout.batches[batch].width(),
                rows = rows_of(layout.tables.constraints, layout.first_of(batch).pending);
      layout.ghosts[batch] = {W, rows, layout.arena(packed(rows) * W), layout.arena(rows * W)};
    }
    layout.end_part(layout.tables.positions, kBodyFields), layout.end_part(layout.tables.arena_doubles);
  }
}

void pass_on_ghosts(Layout& layout) {
  for (const auto& [batch, ghost] : layout.ghosts) pass_on_batch(layout, batch, ghost);
}

}  // namespace rigstep::index3
