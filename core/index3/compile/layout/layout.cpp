#include "core/index3/compile/layout/layout.h"

#include <algorithm>

namespace rigstep::index3 {

Layout::Layout(const std::vector<Constraint>& constraints, const std::vector<bool>& bodies_with_own_tangent,
               const Batches& laid, const std::vector<int>& body_of_attachment, int most_lanes_of_batch)
    : most_lanes(most_lanes_of_batch),
      has_own_tangent(bodies_with_own_tangent),
      nodes(laid.nodes),
      batches(laid.batches) {
  tables.constraints = constraints;
  tables.body_of_attachment = body_of_attachment;
  tables.body.resize(has_own_tangent.size());
  tables.body_copies.resize(has_own_tangent.size());
  tables.leaves_of_body.resize(has_own_tangent.size());
  leaf_nodes.resize(has_own_tangent.size() + body_of_attachment.size());
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
    parts = std::max(parts, nodes[n].part + 1);
    tables.levels = std::max(tables.levels, nodes[n].level);
    if (nodes[n].body >= 0) leaf_nodes[nodes[n].body].push_back(n);
  }
  tables.constraint_place.resize(constraints.size());
  for (std::size_t c = 0; c < constraints.size(); ++c) {
    tables.constraint_place[c].handles.resize(constraints[c].bodies.size());
    if (constraints[c].is_primal) tables.primal_bodies.push_back(constraints[c].bodies[0]);
  }
}

Run::Of Layout::kind(int batch) const {
  const int body = first_of(batch).body;
  return body < 0 ? Run::Of::fronts : body_of(body) == body ? Run::Of::leaves : Run::Of::attachments;
}

int Layout::body_of(int body) const {
  const int bodies = static_cast<int>(has_own_tangent.size());
  return body < bodies ? body : tables.body_of_attachment[body - bodies];
}

const Node& Layout::leaf_node(int body, int part) const {
  const std::vector<int>& leaves = leaf_nodes[body];
  const auto own = std::find_if(leaves.begin(), leaves.end(), [&](int n) { return nodes[n].part == part; });
  return nodes[own == leaves.end() ? leaves[0] : *own];
}

BodyPlace Layout::place_of(const Node& leaf) const {
  const Leaf& l = tables.leaves[index[leaf.batch]];
  return {l.record / kBodyFields, l.width, leaf.lane};
}

Compliance Layout::compliance_of(int batch) const {
  if (is_ghost(batch)) return ghosts.at(batch);
  if (kind(batch) == Run::Of::leaves) {
    const Leaf& l = tables.leaves[index[batch]];
    return {l.width, l.rows, l.matrix, l.vector};
  }
  if (kind(batch) == Run::Of::attachments) {
    const Attachment& g = tables.attachments[index[batch]];
    return {g.width, tables.handles[g.handle].format.rows + 6, g.matrix, g.vector};
  }
  const Front& f = tables.fronts[index[batch]];
  return {f.width, f.rows, f.matrix, f.vector};
}

int Layout::arena(int doubles) {
  const int at = static_cast<int>(tables.arena_doubles);
  tables.arena_doubles += in_full_lanes(static_cast<std::size_t>(doubles));
  return at;
}

void Layout::align_handles() { tables.handle_doubles = in_full_lanes(tables.handle_doubles); }

}  // namespace rigstep::index3
