// The operations as a graph, and which of them the tables of each part hold.
#include <algorithm>
#include <utility>

#include "core/index3/compile/layout/layout.h"
#include "core/index3/compile/tree/partition.h"

namespace rigstep::index3 {
namespace {

Elimination::Unit make_unit(const Layout& layout, const std::vector<int>& unit_of, int batch) {
  Elimination::Unit unit;
  unit.part = layout.first_of(batch).part;
  unit.is_top = layout.first_of(batch).is_top;
  unit.of = layout.kind(batch);
  unit.index = layout.index[batch];
  if (unit.of == Run::Of::leaves) {
    unit.cost = cost_of_leaf(layout.tables.leaves[unit.index].rows);
  } else if (unit.of == Run::Of::attachments) {
    unit.cost = kCostOfAttachment;
  } else {
    const Front& f = layout.tables.fronts[unit.index];
    unit.constraint = f.constraint;
    unit.cost = cost_of_front(f.rows, f.pivots);
  }
  for (const int child : children_of(layout, batch))
    if (std::find(unit.below.begin(), unit.below.end(), unit_of[child]) == unit.below.end())
      unit.below.push_back(unit_of[child]);
  for (const int n : layout.batches[batch].nodes) {
    if (layout.nodes[n].pivot < 0) continue;
    for (const int body : layout.tables.constraints[layout.nodes[n].pivot].bodies) {
      if (body == kGround) continue;
      unit.holds.push_back(unit_of[layout.leaf_node(body, unit.part).batch]);
      if (layout.body_of(body) != body)
        unit.holds.push_back(unit_of[layout.leaf_node(layout.body_of(body), unit.part).batch]);
    }
  }
  return unit;
}

int shape_of(const Elimination& e, const Elimination::Unit& unit) {
  switch (unit.of) {
    case Run::Of::leaves:
      return shape_of(e.leaves[unit.index], e.handles.data());
    case Run::Of::attachments:
      return shape_of(e.attachments[unit.index]);
    case Run::Of::fronts:
      return shape_of(e.fronts[unit.index]);
    case Run::Of::constraints:
      break;  // no units of the tree
  }
  return 0;
}

// The tables of some units in order, those from `border` on by themselves.
std::pair<Part, Part> tables_of(const Elimination& e, const std::vector<int>& units, std::size_t border) {
  struct Held {
    int needed = 0;  // position of the first leaf or attachment that needs it
    int batch = 0;
  };
  const auto is_evaluated_alone = [&](const Held& h) { return !e.constraint_batches[h.batch].format.in_lanes(); };
  std::vector<int> position(e.units.size(), -1);
  std::vector<Held> held;
  std::vector<int> held_as(e.constraint_batches.size(), -1);
  for (std::size_t k = 0; k < units.size(); ++k) position[units[k]] = static_cast<int>(k);
  for (const int u : units) {
    const Elimination::Unit& unit = e.units[u];
    if (unit.constraint < 0) continue;
    int needed = static_cast<int>(units.size());
    for (const int held_unit : unit.holds)
      if (position[held_unit] >= 0) needed = std::min(needed, position[held_unit]);
    int& known = held_as[unit.constraint];
    if (known < 0) {
      known = static_cast<int>(held.size());
      held.push_back({needed, unit.constraint});
    }
    held[known].needed = std::min(held[known].needed, needed);
  }
  std::stable_sort(held.begin(), held.end(), [&](const Held& a, const Held& b) {
    return std::pair(is_evaluated_alone(a), a.needed) < std::pair(is_evaluated_alone(b), b.needed);
  });
  std::pair<Part, Part> tables;
  auto next = held.begin();
  const auto evaluate_before = [&](std::size_t end, Part& part) {  // the constraints of the leaves before that position
    bool begins = true;
    for (; next != held.end() && !is_evaluated_alone(*next) && next->needed < static_cast<int>(end);
         ++next, begins = false) {
      const ConstraintBatch& c = e.constraint_batches[next->batch];
      if (begins || part.runs.back().shape != shape_of(c))
        part.runs.push_back({Run::Of::constraints, static_cast<int>(part.constraints.size()), 0, shape_of(c)});
      part.constraints.push_back(c);
      ++part.runs.back().count;
    }
  };
  for (std::size_t k = 0; k < units.size();) {
    const Elimination::Unit& unit = e.units[units[k]];
    const std::size_t begin = k++, end = begin < border ? border : units.size();
    Part& part = begin < border ? tables.first : tables.second;
    const int shape = shape_of(e, unit);
    while (k < end && e.units[units[k]].of == unit.of && shape_of(e, e.units[units[k]]) == shape &&
           e.units[units[k]].index == unit.index + static_cast<int>(k - begin))
      ++k;
    if (unit.of != Run::Of::fronts) evaluate_before(k, part);
    part.runs.push_back({unit.of, unit.index, static_cast<int>(k - begin), shape});
  }
  evaluate_before(units.size() + 1, tables.first);
  for (; next != held.end(); ++next) tables.first.constraints.push_back(e.constraint_batches[next->batch]);
  return tables;
}

}  // namespace

void make_units(Layout& layout) {
  std::vector<int> unit_of(layout.batches.size());  // by batch
  for (std::size_t k = 0; k < layout.order.size(); ++k) unit_of[layout.order[k]] = static_cast<int>(k);
  for (const int batch : layout.order) layout.tables.units.push_back(make_unit(layout, unit_of, batch));
}

void make_parts(Elimination& tables, int parts) {
  for (const Elimination::Unit& unit : tables.units)
    if (unit.is_top && unit.constraint >= 0)
      for (const int held : unit.holds) tables.units[held].is_border = true;
  for (Elimination::Unit& unit : tables.units)
    for (const int below : unit.below) unit.is_border = unit.is_border || tables.units[below].is_border;
  for (int part = 0; part < parts; ++part) {
    std::vector<int> inner, border, top;
    for (int u = 0; u < static_cast<int>(tables.units.size()); ++u)
      if (const Elimination::Unit& unit = tables.units[u]; unit.part == part)
        (unit.is_top ? top : unit.is_border ? border : inner).push_back(u);
    const std::size_t first = inner.size();
    inner.insert(inner.end(), border.begin(), border.end());
    auto [own, at_border] = tables_of(tables, inner, first);
    tables.parts.push_back(std::move(own));
    tables.borders.push_back(std::move(at_border));
    tables.tops.push_back(tables_of(tables, top, top.size()).first);
  }
}

}  // namespace rigstep::index3
