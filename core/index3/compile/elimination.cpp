#include "core/index3/compile/elimination.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/index3/compile/batches.h"
#include "core/index3/compile/partition.h"

namespace rigstep::index3 {

namespace {

// rounded up, so that what follows is aligned for the widest batches
template <class Count>
Count in_full_lanes(Count count) {
  return (count + kMostLanes - 1) / kMostLanes * kMostLanes;
}

int shape_of(const Elimination& e, const Elimination::Unit& unit) {
  switch (unit.of) {
    case Run::Of::leaves:
      return shape_of(e.leaves[unit.index], e.handles.data());
    case Run::Of::attachments:
      return shape_of(e.attachments[unit.index]);
    default:
      return shape_of(e.fronts[unit.index]);
  }
}

// The tables of some units in order, those from `border` on by themselves.
std::pair<Part, Part> tables_of(const Elimination& e, const std::vector<int>& units, std::size_t border) {
  struct Held {
    int needed = 0;  // position of the first leaf or attachment that needs it
    int batch = 0;
  };
  const auto is_general = [&](const Held& h) { return e.batches[h.batch].format.general(); };  // not evaluated by runs
  std::vector<int> position(e.units.size(), -1);
  std::vector<Held> held;
  std::vector<int> held_as(e.batches.size(), -1);
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
    return std::pair(is_general(a), a.needed) < std::pair(is_general(b), b.needed);
  });
  std::pair<Part, Part> tables;
  auto next = held.begin();
  const auto evaluate_before = [&](std::size_t end, Part& part) {  // the constraints of the leaves before that position
    bool begins = true;
    for (; next != held.end() && !is_general(*next) && next->needed < static_cast<int>(end); ++next, begins = false) {
      const ConstraintBatch& c = e.batches[next->batch];
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
  for (; next != held.end(); ++next) tables.first.constraints.push_back(e.batches[next->batch]);
  return tables;
}

class Layout {
 public:
  Layout(const std::vector<Constraint>& constraints, const std::vector<bool>& dense, const Batches& laid,
         const std::vector<int>& body_of_attachment, int most_lanes)
      : most_lanes_(most_lanes),
        dense_(dense),
        nodes_(laid.nodes),
        batches_(laid.batches),
        index_(batches_.size(), -1),
        is_done_(batches_.size(), false) {
    e_.constraints = constraints;
    e_.body_of_attachment = body_of_attachment;
    e_.body.resize(dense.size());
    e_.body_copies.resize(dense.size());
    e_.leaves_of_body.resize(dense.size());
    leaf_nodes_.resize(dense.size() + body_of_attachment.size());
    for (int n = 0; n < static_cast<int>(nodes_.size()); ++n) {
      parts_ = std::max(parts_, nodes_[n].part + 1);
      if (nodes_[n].body >= 0) leaf_nodes_[nodes_[n].body].push_back(n);
    }
    e_.constraint.resize(constraints.size());
    for (std::size_t c = 0; c < constraints.size(); ++c) {
      e_.constraint[c].handles.resize(constraints[c].bodies.size());
      if (constraints[c].is_primal) e_.primal_bodies.push_back(constraints[c].bodies[0]);
    }
    for (const int root : laid.roots) visit(nodes_[root].batch);
    for (int part = 0; part < parts_; ++part) reserve_part(part);
    place_constraints();
    e_.rows = in_full_lanes(e_.rows);  // arrays of rows may stand one behind the other
    place_ground();
    place_ghosts();
    for (int part = 0; part < parts_; ++part) fill_part(part);
    for (int part = 0; part < parts_; ++part) fill_constraints(part);
    for (const auto& [batch, ghost] : ghosts_) pass_on(batch, ghost);
    for (const int batch : order_) add_unit(batch);
    make_parts();
    for (const Node& node : nodes_) e_.levels = std::max(e_.levels, node.level);
  }
  Elimination take() { return std::move(e_); }

 private:
  static constexpr int kFallingWidths[] = {8, 4, 2, 1};

  struct Compliance {
    int width, rows, matrix, vector;
  };

  Run::Of kind(int batch) const {
    const int body = first_of(batch).body;
    return body < 0 ? Run::Of::fronts : body_of(body) == body ? Run::Of::leaves : Run::Of::attachments;
  }
  const Node& first_of(int batch) const { return nodes_[batches_[batch].nodes[0]]; }
  bool is_ghost(int batch) const { return first_of(batch).ghost_of >= 0; }

  // the primal body in place of its attachment
  int body_of(int body) const {
    const int bodies = static_cast<int>(dense_.size());
    return body < bodies ? body : e_.body_of_attachment[body - bodies];
  }
  int level(int batch) const { return first_of(batch).level; }
  const Node& node(const Batch& b, int lane) const {
    return nodes_[b.nodes[lane < static_cast<int>(b.nodes.size()) ? lane : 0]];
  }

  void add_unit(int batch) {
    Elimination::Unit unit;
    unit.part = first_of(batch).part;
    unit.joins = first_of(batch).joins;
    unit.of = kind(batch);
    unit.index = index_[batch];
    if (unit.of == Run::Of::leaves) {
      unit.cost = cost_of_leaf(e_.leaves[unit.index].rows);
    } else if (unit.of == Run::Of::attachments) {
      unit.cost = kCostOfAttachment;
    } else {
      const Front& f = e_.fronts[unit.index];
      unit.constraint = f.constraint;
      unit.cost = cost_of_front(f.rows, f.pivots);
    }
    for (const int child : below(batch))
      if (std::find(unit.below.begin(), unit.below.end(), unit_of(child)) == unit.below.end())
        unit.below.push_back(unit_of(child));
    for (const int n : batches_[batch].nodes) {
      if (nodes_[n].pivot < 0) continue;
      for (const int body : e_.constraints[nodes_[n].pivot].bodies) {
        if (body == kGround) continue;
        unit.holds.push_back(unit_of(leaf_node(body, unit.part).batch));
        if (body_of(body) != body) unit.holds.push_back(unit_of(leaf_node(body_of(body), unit.part).batch));
      }
    }
    e_.units.push_back(std::move(unit));
  }

  void make_parts() {
    for (const Elimination::Unit& unit : e_.units)
      if (unit.joins && unit.constraint >= 0)
        for (const int held : unit.holds) e_.units[held].is_border = true;
    for (Elimination::Unit& unit : e_.units)
      for (const int below : unit.below) unit.is_border = unit.is_border || e_.units[below].is_border;
    for (int part = 0; part < parts_; ++part) {
      std::vector<int> inner, border, above;
      for (int u = 0; u < static_cast<int>(e_.units.size()); ++u)
        if (const Elimination::Unit& unit = e_.units[u]; unit.part == part)
          (unit.joins ? above : unit.is_border ? border : inner).push_back(u);
      const std::size_t first = inner.size();
      inner.insert(inner.end(), border.begin(), border.end());
      auto [own, at_border] = tables_of(e_, inner, first);
      e_.parts.push_back(std::move(own));
      e_.borders.push_back(std::move(at_border));
      e_.joins.push_back(tables_of(e_, above, above.size()).first);
    }
  }

  int unit_of(int batch) {
    if (unit_of_batch_.empty()) {
      unit_of_batch_.resize(batches_.size());
      for (std::size_t k = 0; k < order_.size(); ++k) unit_of_batch_[order_[k]] = static_cast<int>(k);
    }
    return unit_of_batch_[batch];
  }

  std::vector<int> below(int batch) const {
    std::vector<int> children;
    for (int side = 0; side < 2; ++side)
      for (const int n : batches_[batch].nodes)
        if (const int child = nodes_[n].child[side]; child >= 0 && nodes_[child].ghost_of < 0)
          children.push_back(nodes_[child].batch);
    return children;
  }

  // Small subtrees level by level, so that many operations of one shape follow each other that do not wait for one
  // another and yet what they leave is still in the cache: so many numbers of the bodies' compliances.
  static constexpr int kNumbersTogether = 2048;
  bool is_small(int batch) const {
    std::set<int> counted;
    int numbers = 0;
    count_numbers(batch, counted, numbers);
    return numbers <= kNumbersTogether;
  }

  // as far as need be
  void count_numbers(int batch, std::set<int>& counted, int& numbers) const {
    if (numbers > kNumbersTogether || !counted.insert(batch).second) return;
    const Node& first = first_of(batch);
    if (first.body >= 0) numbers += packed(rows_of(e_.constraints, first.pending)) * lanes(batches_[batch]);
    for (const int child : below(batch)) count_numbers(child, counted, numbers);
  }

  void visit(int batch) {
    if (is_done_[batch]) return;
    std::vector<int> group;
    if (is_small(batch)) {
      collect(batch, group);
      std::stable_sort(group.begin(), group.end(), [this](int a, int b) {
        return std::pair(level(a), signature(a)) < std::pair(level(b), signature(b));
      });
    } else {
      is_done_[batch] = true;
      for (const int child : below(batch)) visit(child);
      group.push_back(batch);
    }
    for (const int each : group) append(each);
  }

  void collect(int batch, std::vector<int>& group) {
    if (is_done_[batch]) return;
    is_done_[batch] = true;
    for (const int child : below(batch)) collect(child, group);
    group.push_back(batch);
  }

  // work and width, not the places of operands
  std::string signature(int batch) const { return std::to_string(batches_[batch].width()) + first_of(batch).signature; }

  void append(int batch) {
    const auto add = [&](auto& operations, std::vector<int>& batch_of) {
      index_[batch] = static_cast<int>(operations.size());
      operations.emplace_back();
      batch_of.push_back(batch);
    };
    switch (kind(batch)) {
      case Run::Of::leaves:
        add(e_.leaves, leaf_batch_);
        break;
      case Run::Of::attachments:
        add(e_.attachments, attachment_batch_);
        break;
      default:
        add(e_.fronts, front_batch_);
        break;
    }
    order_.push_back(batch);
  }

  static int packed(int rows) { return rows * (rows + 1) / 2; }

  int arena(int doubles) {
    const int at = static_cast<int>(e_.arena_doubles);
    e_.arena_doubles += in_full_lanes(static_cast<std::size_t>(doubles));
    return at;
  }

  // What belongs to different parts shares no page: a processor fetches beyond the cache lines that it is asked for,
  // but not beyond a page, and a thread whose lines another one's processor fetches must get them back to write them.
  template <class Count>
  void end_part(Count& count, int doubles_of_each = 1) const {
    if (parts_ > 1) count = in_full_lanes(count + static_cast<Count>(kPageDoubles / doubles_of_each + kMostLanes));
  }

  void reserve_part(int part) {
    for (const int width : kFallingWidths)  // the widest first, so that they are aligned
      for (const int batch : order_)
        if (first_of(batch).part == part && batches_[batch].width() == width) reserve(batch);
    end_part(e_.positions, kBodyFields);
    end_part(e_.arena_doubles), end_part(e_.dense_doubles);
  }

  void fill_part(int part) {
    for (const int batch : order_)
      if (first_of(batch).part == part) fill(batch);
    end_part(e_.arena_doubles), end_part(e_.handle_doubles);
  }

  // those of primal bodies need the attachments of all parts
  void fill_constraints(int part) {
    for (const Constraint& c : e_.constraints)
      if (c.is_primal) fill_primal_body(c, leaf_node(c.bodies[0], part));
    for (std::size_t k = 0; k < e_.batches.size(); ++k)
      if (node(constraint_batch_[k], 0).part == part) fill_constraint(e_.batches[k], constraint_batch_[k]);
    end_part(e_.handle_doubles);
  }

  void reserve(int batch) {
    switch (kind(batch)) {
      case Run::Of::leaves:
        return reserve_leaf(batch);
      case Run::Of::attachments:
        return reserve_attachment(batch);
      default:
        return reserve_front(batch);
    }
  }

  void reserve_leaf(int batch) {
    const Batch& b = batches_[batch];
    const Node& n = node(b, 0);
    Leaf& leaf = e_.leaves[index_[batch]];
    const int W = b.width(), rows = rows_of(e_.constraints, n.pending);
    leaf.width = W;
    leaf.rows = rows;
    leaf.record = kBodyFields * e_.positions;
    leaf.is_primal = !n.pending.empty() && is_displacement_of(n.pending[0], n.body);
    e_.positions += W;
    leaf.matrix = arena(packed(rows) * W);
    leaf.vector = arena(rows * W);
    if (dense_[n.body]) {
      leaf.dense = static_cast<int>(e_.dense_doubles);
      e_.dense_doubles += static_cast<std::size_t>(packed(6) * W);
    }
    e_.multiply_adds += leaf.is_primal ? 0 : static_cast<long>(b.nodes.size()) * (36L * rows + 6L * packed(rows));
    for (int lane = 0; lane < W; ++lane) {
      const int body = node(b, lane).body;
      const BodyPlace place{leaf.record / kBodyFields, W, lane};
      const bool repeats = lane >= lanes(b) || n.repeats;
      repeats ? e_.body_copies[body].push_back(place) : void(e_.body[body] = place);
      if (lane < lanes(b)) e_.leaves_of_body[body].push_back(index_[batch]);
    }
  }

  bool is_displacement_of(int constraint, int body) const {
    return e_.constraints[constraint].is_primal && e_.constraints[constraint].bodies[0] == body;
  }

  void reserve_attachment(int batch) {
    const Batch& b = batches_[batch];
    Attachment& attachment = e_.attachments[index_[batch]];
    const int rows = rows_of(e_.constraints, node(b, 0).pending);
    attachment.width = b.width();
    attachment.matrix = arena(packed(rows) * attachment.width);
    attachment.vector = arena(rows * attachment.width);
  }

  void reserve_front(int batch) {
    const Batch& b = batches_[batch];
    const Node& n = node(b, 0);
    Front& f = e_.fronts[index_[batch]];
    const int W = b.width(), rows = rows_of(e_.constraints, n.pending);
    f.width = W;
    f.rows = rows;
    f.pivots = n.pivot < 0 ? 0 : e_.constraints[n.pivot].format.rows;
    f.is_primal = n.pivot >= 0 && e_.constraints[n.pivot].is_primal;
    f.factor = arena((packed(f.pivots) + rows * f.pivots + f.pivots) * W);
    const int size = rows + f.pivots;
    e_.largest_front = std::max(e_.largest_front, size);
    for (int k = 0; k < f.pivots && !n.repeats; ++k)
      e_.multiply_adds += static_cast<long>(b.nodes.size()) * packed(size - k);
  }

  // Fronts whose constraints are evaluated together.
  struct Together {
    std::vector<int> fronts;
    Batch constraints;
  };

  // Each front's constraints lie like its own lanes. But narrow ones of one format and part lie side by side where they
  // fill a batch of eight or four: to gather their operands costs less than to evaluate a lane or two at a time.
  void place_constraints() {
    std::vector<int> narrow;
    for (const int width : kFallingWidths)
      for (int k = 0; k < static_cast<int>(e_.fronts.size()); ++k)
        if (e_.fronts[k].pivots > 0 && batches_[front_batch_[k]].width() == width) narrow.push_back(k);
    std::vector<Together> all;
    for (const int width : {8, 4}) join(narrow, width, all);
    for (const int k : narrow) add(k, all.emplace_back());
    std::stable_sort(all.begin(), all.end(), [](const Together& a, const Together& b) {
      return a.constraints.width() > b.constraints.width();
    });
    for (int part = 0; part < parts_; ++part) {
      for (const Together& each : all)
        if (first_of(front_batch_[each.fronts[0]]).part == part) reserve_rows(each);
      end_part(e_.rows), end_part(e_.constraint_positions, kConstraintFields);
    }
  }

  // Takes from the fronts, which come by falling width, those that together fill `width` lanes.
  void join(std::vector<int>& fronts, int width, std::vector<Together>& all) const {
    std::vector<bool> is_joined(e_.fronts.size(), false);
    std::map<std::pair<int, int>, Together> open;  // by part and number of cosines
    for (const int k : fronts) {
      if (!may_join(k, width)) continue;
      const Node& first = first_of(front_batch_[k]);
      Together& joined = open[{first.part, e_.constraints[first.pivot].format.cosines}];
      add(k, joined);
      if (lanes(joined.constraints) < width) continue;
      for (const int each : joined.fronts) is_joined[each] = true;
      all.push_back(std::exchange(joined, {}));
    }
    std::erase_if(fronts, [&](int k) { return is_joined[k]; });
  }

  // Whether the constraints of a front may lie beside others in so many lanes: where all lie in leaves as wide, so that
  // they may choose from those, and four with axes anywhere; to gather points one by one does not pay.
  bool may_join(int front, int width) const {
    const Batch& b = batches_[front_batch_[front]];
    const Constraint& c = e_.constraints[node(b, 0).pivot];
    if (b.width() >= width || width > most_lanes_ || lanes(b) < b.width()) return false;
    if (c.format.general() || node(b, 0).joins) return false;
    const auto lies_as_wide = [&](int body) {
      return body == kGround || batches_[leaf_node(body_of(body), node(b, 0).part).batch].width() == width;
    };
    return (width == 4 && c.format.cosines > 0) || std::all_of(b.nodes.begin(), b.nodes.end(), [&](int n) {
             const auto& bodies = e_.constraints[nodes_[n].pivot].bodies;
             return std::all_of(bodies.begin(), bodies.end(), lies_as_wide);
           });
  }

  void add(int front, Together& together) const {
    const std::vector<int>& more = batches_[front_batch_[front]].nodes;
    together.fronts.push_back(front);
    together.constraints.nodes.insert(together.constraints.nodes.end(), more.begin(), more.end());
  }

  void reserve_rows(const Together& together) {
    const Batch& b = together.constraints;
    const int W = b.width(), rows = e_.fronts[together.fronts[0]].pivots;
    ConstraintBatch batch;
    batch.format = e_.constraints[node(b, 0).pivot].format;
    batch.width = W;
    batch.row_position = e_.rows;
    batch.position = e_.constraint_positions;
    int first_lane = 0;
    for (const int k : together.fronts) {
      Front& f = e_.fronts[k];
      f.constraint = static_cast<int>(e_.batches.size());
      f.row_position = batch.row_position + first_lane;
      f.row_stride = W;
      for (int lane = 0; lane < lanes(batches_[front_batch_[k]]); ++lane)
        if (const Node& n = node(batches_[front_batch_[k]], lane); !n.repeats)
          e_.constraint[n.pivot].eliminated_by = {k, lane};
      first_lane += f.width;
    }
    for (int lane = 0; lane < W; ++lane) {
      ConstraintPlace& c = e_.constraint[node(b, lane).pivot];
      const RowsPlace at{static_cast<int>(e_.batches.size()), {batch.row_position + lane, W}};
      const bool repeats = lane >= lanes(b) || node(b, lane).repeats;
      repeats ? c.copies.push_back(at) : void(static_cast<RowsPlace&>(c) = at);
      if (!repeats) c.level = node(b, lane).level;
    }
    e_.rows += rows * W;
    e_.constraint_positions += W;
    e_.batches.push_back(batch);
    constraint_batch_.push_back(b);
  }

  static int lanes(const Batch& b) { return static_cast<int>(b.nodes.size()); }

  void place_ground() {
    e_.positions = in_full_lanes(e_.positions);
    for (const int width : kFallingWidths) {
      if (std::none_of(e_.batches.begin(), e_.batches.end(),
                       [&](const ConstraintBatch& b) { return b.width == width; }))
        continue;
      e_.ground.push_back({e_.positions, width, 0});
      e_.positions += width;
    }
    end_part(e_.positions, kBodyFields);
  }

  // ---- what a part keeps of the others' bodies and compounds

  bool is_elsewhere(int body, int part) { return leaf_node(body, part).part != part; }

  void place_ghosts() {
    for (int part = 0; part < parts_; ++part) {
      for (const Batch& b : constraint_batch_) {
        if (node(b, 0).part != part || !node(b, 0).joins) continue;
        for (const int n : b.nodes)
          if (const Constraint& c = e_.constraints[nodes_[n].pivot]; !c.format.general())
            for (const int body : c.bodies)
              if (body != kGround && is_elsewhere(body_of(body), part)) place_ghost_of_body(body, part);
      }
      for (int batch = 0; batch < static_cast<int>(batches_.size()); ++batch) {
        if (!is_ghost(batch) || first_of(batch).part != part) continue;
        const int W = batches_[batch].width(), rows = rows_of(e_.constraints, first_of(batch).pending);
        ghosts_[batch] = {W, rows, arena(packed(rows) * W), arena(rows * W)};
      }
      end_part(e_.positions, kBodyFields), end_part(e_.arena_doubles);
    }
  }

  void place_ghost_of_body(int body, int part) {
    if (!ghost_of_body_.emplace(std::pair(body, part), BodyPlace{e_.positions, 1, 0}).second) return;
    const BodyPlace place = ghost_of_body_[{body, part}];
    pass_on(e_.passed.bodies, leaf_node(body, part).part, e_.body[body].of(0), 0, part, place.of(0));
    ++e_.positions;
  }

  void pass_on(std::vector<Passed>& all, int from_part, Place from, int count, int part, Place ghost) const {
    auto passed = std::find_if(all.begin(), all.end(), [&](const Passed& each) {
      return each.from.base == from.base && each.from.stride == from.stride;
    });
    if (passed == all.end()) {
      all.push_back({from_part, from, count, std::vector<Place>(static_cast<std::size_t>(parts_), Place{0, 0})});
      passed = all.end() - 1;
    }
    passed->ghost[part] = ghost;
  }

  // of a batch of ghosts
  void pass_on(int batch, const Compliance& ghost) {
    for (int lane = 0; lane < lanes(batches_[batch]); ++lane) {
      const Node &n = node(batches_[batch], lane), &original = nodes_[n.ghost_of];
      const Compliance c = compliance_of(original.batch);
      const int rows = rows_of(e_.constraints, {n.pending.begin(), n.pending.begin() + n.passed});
      const auto pass = [&](std::vector<Passed>& all, int from, int to, int count) {
        pass_on(all, original.part, {from + original.lane, c.width}, count, n.part, {to + lane, ghost.width});
      };
      pass(e_.passed.compliances, c.matrix, ghost.matrix, packed(rows));
      pass(e_.passed.right_hand_sides, c.vector, ghost.vector, rows);
    }
  }

  void fill(int batch) {
    switch (kind(batch)) {
      case Run::Of::leaves:
        return fill_leaf(index_[batch]);
      case Run::Of::attachments:
        return fill_attachment(index_[batch]);
      default:
        return fill_front(index_[batch]);
    }
  }

  // of the k-th constraint that holds the bodies or attachments of a batch
  void add_handle(const Batch& b, std::size_t k, int row) {
    Handle h;
    h.format = e_.constraints[node(b, 0).pending[k]].format;
    h.row = row;
    h.at = h.shared = static_cast<int>(e_.handle_doubles);
    h.stride = b.width();
    e_.handle_doubles += static_cast<std::size_t>(h.format.handle_size() * h.stride);
    Signs signs;
    for (int lane = 0; lane < h.stride; ++lane) {
      const Node& each = node(b, lane);
      const auto& sides = e_.constraints[each.pending[k]].bodies;
      const auto side = std::find(sides.begin(), sides.end(), each.body) - sides.begin();
      signs.of_lane[lane] = h.format.general() || side == 0 ? 0.0 : -0.0;
      e_.constraint[each.pending[k]].handles[side].push_back({h.at + lane, h.stride});
    }
    h.signs = index_of(signs);
    e_.handles.push_back(h);
  }

  int index_of(const Signs& signs) {
    const auto known = std::find_if(e_.signs.begin(), e_.signs.end(), [&](const Signs& each) {
      return std::equal(std::begin(signs.of_lane), std::end(signs.of_lane), each.of_lane,
                        [](double a, double b) { return std::signbit(a) == std::signbit(b); });
    });
    const auto index = static_cast<int>(known - e_.signs.begin());
    if (known == e_.signs.end()) e_.signs.push_back(signs);
    return index;
  }

  void fill_attachment(int index) {
    e_.attachments[index].handle = static_cast<int>(e_.handles.size());
    add_handle(batches_[attachment_batch_[index]], 0, 0);
    align_handles();
  }

  // the handles of its attachments, once more in a row; of those in other parts the numbers that it needs
  void fill_primal_body(const Constraint& displacement, const Node& primal_body) {
    Leaf& leaf = e_.leaves[index_[primal_body.batch]];
    leaf.first_handle = static_cast<int>(e_.handles.size());
    leaf.handles = static_cast<int>(displacement.bodies.size()) - 1;
    for (std::size_t k = 1; k < displacement.bodies.size(); ++k) {
      const Node& attachment = leaf_node(displacement.bodies[k], primal_body.part);
      Handle h = e_.handles[e_.attachments[index_[attachment.batch]].handle];
      h.at += attachment.lane;
      h.shared = h.at;
      h.signs = index_of({{e_.signs[h.signs].of_lane[attachment.lane]}});  // a primal body is alone in its batch
      if (attachment.part != primal_body.part) {
        align_handles();
        const Place ghost{static_cast<int>(e_.handle_doubles), 1};
        const int count = h.format.load_size();
        e_.handle_doubles += static_cast<std::size_t>(count);
        pass_on(e_.passed.handles, attachment.part, {h.at, h.stride}, count, primal_body.part, ghost);
        h.at = h.shared = ghost.base, h.stride = ghost.stride;
      }
      e_.handles.push_back(h);
    }
    align_handles();
  }

  void fill_leaf(int index) {
    Leaf& leaf = e_.leaves[index];
    if (leaf.is_primal) return;
    const Batch& b = batches_[leaf_batch_[index]];
    leaf.first_handle = static_cast<int>(e_.handles.size());
    int row = 0;
    const auto& pending = node(b, 0).pending;
    for (std::size_t k = 0; k < pending.size(); ++k) {
      add_handle(b, k, row);
      row += e_.handles.back().format.rows;
    }
    leaf.handles = static_cast<int>(pending.size());
    const Handle* h = e_.handles.data() + leaf.first_handle;
    leaf.is_link = leaf.handles == 2 && !h->format.general() && h[0].format.rows == h[1].format.rows &&
                   h[0].format.cosines == h[1].format.cosines;
    align_handles();
  }

  void align_handles() { e_.handle_doubles = in_full_lanes(e_.handle_doubles); }

  Compliance compliance_of(int batch) const {
    if (is_ghost(batch)) return ghosts_.at(batch);
    if (kind(batch) == Run::Of::leaves) {
      const Leaf& l = e_.leaves[index_[batch]];
      return {l.width, l.rows, l.matrix, l.vector};
    }
    if (kind(batch) == Run::Of::attachments) {
      const Attachment& g = e_.attachments[index_[batch]];
      return {g.width, e_.handles[g.handle].format.rows + 6, g.matrix, g.vector};
    }
    const Front& f = e_.fronts[index_[batch]];
    return {f.width, f.rows, f.matrix, f.vector};
  }

  int row_in(const Node& n, int constraint) const {
    int row = 0;
    for (const int c : n.pending) {
      if (c == constraint) return row;
      row += e_.constraints[c].format.rows;
    }
    return -1;
  }

  void fill_front(int index) {
    const Batch& b = batches_[front_batch_[index]];
    Front& f = e_.fronts[index];
    const Node& first = node(b, 0);
    e_.scratch_doubles = std::max(e_.scratch_doubles, static_cast<std::size_t>(f.rows * f.pivots * f.width));
    // one compound alone stands on the side where its pivots are
    const bool alone = first.child[1] < 0;
    const bool right_alone = alone && first.pivot >= 0 && row_in(nodes_[first.child[0]], first.pivot) == 0 &&
                             nodes_[first.child[0]].pending.size() > 1;
    f.first_pending = static_cast<int>(e_.pending.size());
    f.pendings = static_cast<int>(first.pending.size());
    int row = 0;
    for (const int c : first.pending) {
      Pending p;
      p.row = row;
      p.rows = e_.constraints[c].format.rows;
      for (int side = 0; side < 2; ++side)
        if (first.child[side] >= 0) p.in_child[right_alone ? 1 : side] = row_in(nodes_[first.child[side]], c);
      row += p.rows;
      e_.pending.push_back(p);
    }
    for (int side = 0; side < 2; ++side)
      if (first.child[side] >= 0) fill_child(b, side, f, f.child[right_alone ? 1 : side]);
    f.form = form_of(f);
    // what a link leaves replaces, number by number, what its left child had
    const bool in_place = f.form == kChainLink && f.children == Operands::in_order;
    f.matrix = in_place ? f.child[0].matrix : arena(packed(f.rows) * f.width);
    f.vector = in_place ? f.child[0].vector : arena(f.rows * f.width);
  }

  unsigned char form_of(const Front& f) const {
    const int N = f.pivots;
    if (N < 3 || f.is_primal) return kGeneral;
    const auto is_side = [&](const Child& c, int pivot_when_open) {
      return !c.present || (c.rows == N && c.pivot == 0) || (c.rows == 2 * N && c.pivot == pivot_when_open);
    };
    const Child &left = f.child[0], &right = f.child[1];
    if (!is_side(left, N) || !is_side(right, 0)) return kGeneral;
    unsigned char form = 0;
    if (left.present) form |= kLeft;
    if (right.present) form |= kRight;
    for (int k = f.first_pending; k < f.first_pending + f.pendings; ++k) {
      const Pending& p = e_.pending[k];
      if (p.rows != N || (p.in_child[0] >= 0 && p.in_child[1] >= 0)) return kGeneral;
      form |= p.in_child[0] >= 0 ? kLeftOpen : kRightOpen;
    }
    return form;
  }

  static constexpr int kElsewhere = -2;

  // A lane of a batch; kGround: of the ground's own; kElsewhere: a ghost.
  struct Lane {
    int batch;
    int lane;
  };

  // how the lanes of a batch find what lies there, lane by lane
  Operands operands(const Batch& own, const std::vector<Lane>& at) const {
    const int first = at[0].batch, width = own.width();
    if (std::any_of(at.begin(), at.end(), [&](const Lane& each) { return each.batch != first; }))
      return Operands::scattered;
    if (first == kGround) return Operands::in_order;
    if (first == kElsewhere) return Operands::scattered;
    // lanes of ghosts that only fill up hold nothing
    const bool is_filled = !is_ghost(first) || lanes(own) == width;
    bool in_order = is_filled && batches_[first].nodes.size() == own.nodes.size();
    bool beside = lanes(own) == width && at[0].lane % width == 0;
    for (int lane = 0; lane < width; ++lane) {
      in_order = in_order && at[lane].lane == (lane < lanes(own) ? lane : 0);
      beside = beside && at[lane].lane == at[0].lane + lane;
    }
    return in_order ? Operands::in_order : beside ? Operands::beside : Operands::scattered;
  }

  void fill_child(const Batch& b, int side, Front& front, Child& child) {
    std::vector<Lane> at;
    ScatteredChild places;
    for (int lane = 0; lane < b.width(); ++lane) {
      const Node& below = nodes_[node(b, lane).child[side]];
      const Compliance c = compliance_of(below.batch);
      child.rows = c.rows;
      places.matrix[lane] = {c.matrix + below.lane, c.width};
      places.vector[lane] = {c.vector + below.lane, c.width};
      at.push_back({below.batch, below.lane});
    }
    child.present = true;
    child.matrix = places.matrix[0].base;
    child.vector = places.vector[0].base;
    child.stride = places.matrix[0].stride;
    const Node &above = node(b, 0), &below = nodes_[above.child[side]];
    if (above.pivot >= 0) child.pivot = row_in(below, above.pivot);
    for (const int c : below.pending) {
      if (!drops_padding(above, c)) continue;  // at most one
      child.padding = row_in(below, c);
      child.padding_rows = e_.constraints[c].format.rows;
    }
    const Operands found = operands(b, at);
    front.children = std::max(front.children, found);
    if (found == Operands::in_order) return;
    if (found == Operands::scattered) {
      child.scattered = static_cast<int>(e_.scattered_children.size());
      e_.scattered_children.push_back(places);
    }
    child.first_copy = static_cast<int>(e_.copies.size());
    for (int lane = 0; lane < lanes(b); ++lane) {
      if (at[lane].lane != 0) continue;
      const Compliance c = compliance_of(at[lane].batch);
      for (int pad = lanes(batches_[at[lane].batch]); pad < c.width; ++pad)
        e_.copies.push_back({{c.vector, c.width}, {c.vector + pad, c.width}});
    }
    child.copies = static_cast<int>(e_.copies.size()) - child.first_copy;
  }

  void fill_constraint(ConstraintBatch& c, const Batch& b) {
    if (c.format.general()) return;
    for (int s = 0; s < 2; ++s) c.sides = std::max(c.sides, fill_side(b, s, c.side[s]));
    if (c.sides == Operands::in_order && c.width > 1) share_handle(c, node(b, 0));
    if (c.sides == Operands::scattered && c.width >= 4) choose(c, b);
  }

  // The second side takes from the first what both have in common. PrimalBodies, which read whole handles, lie alone.
  void share_handle(const ConstraintBatch& c, const Node& eliminating) {
    const int second = e_.constraints[eliminating.pivot].bodies[1];
    if (second == kGround) return;
    const Leaf& leaf = e_.leaves[index_[leaf_node(second, eliminating.part).batch]];
    for (int h = leaf.first_handle; h < leaf.first_handle + leaf.handles; ++h)
      if (e_.handles[h].at == c.side[1].handle.base) e_.handles[h].shared = c.side[0].handle.base;
  }

  // in place of scattered lanes, where it can be
  void choose(ConstraintBatch& c, const Batch& b) {
    ChosenSide chosen[2];
    if (!choose(b, 0, c.side[0], chosen[0]) || !choose(b, 1, c.side[1], chosen[1])) return;
    c.sides = Operands::chosen;
    e_.copies.resize(static_cast<std::size_t>(c.side[0].first_copy));  // lanes of leaves that only fill up choose too
    for (int s = 0; s < 2; ++s) {
      if (c.side[s].scattered >= 0) e_.scattered_sides.pop_back();
      c.side[s].scattered = -1;
      c.side[s].copies = 0;
      c.side[s].chosen = static_cast<int>(e_.chosen_sides.size());
      e_.chosen_sides.push_back(chosen[s]);
    }
  }

  // The lane of two batches, one of which begins where `at` does; false: it lies elsewhere. Batches are aligned.
  static bool find_lane(const Place& at, int width, int (&base)[2], int& count, Lane& found) {
    found = {0, at.base % width};
    while (found.batch < count && base[found.batch] != at.base - found.lane) ++found.batch;
    if (at.stride != width || found.batch == 2) return false;
    base[found.batch] = at.base - found.lane;
    count = std::max(count, found.batch + 1);
    return true;
  }

  // false: its lanes lie in more than two batches, or in others than as wide ones
  bool choose(const Batch& b, int s, const Side& side, ChosenSide& chosen) const {
    const int W = b.width();
    for (LaneChoice& kept : chosen.kept)
      for (int lane = 0; lane < W; ++lane) kept.of_lane[lane] = lane;
    int records = 0;
    Lane found{};
    for (int lane = 0; lane < W; ++lane) {
      if (!find_lane(record_of(side, lane), W, chosen.record, records, found)) return false;
      chosen.body.of_lane[lane] = found.batch * W + found.lane;
      const int constraint = node(b, lane).pivot;
      if (e_.constraints[constraint].bodies[s] == kGround || lane >= lanes(b)) continue;
      for (const Place& handle : e_.constraint[constraint].handles[s]) {
        if (!find_lane(handle, W, chosen.handle, chosen.handles, found)) return false;
        chosen.kept[found.batch].of_lane[found.lane] = W + lane;
      }
    }
    if (records == 1) chosen.record[1] = chosen.record[0];
    return true;
  }

  // of the body of a constraint's lane
  Place record_of(const Side& side, int lane) const {
    if (side.scattered >= 0) return e_.scattered_sides[side.scattered].record[lane];
    return {side.record.base + lane, side.record.stride};
  }

  // What no leaf holds, but a constraint writes on the side of the ground or of another part's body.
  int unused_handle(const Batch& b) {
    align_handles();
    const int at = static_cast<int>(e_.handle_doubles);
    e_.handle_doubles += static_cast<std::size_t>(e_.constraints[node(b, 0).pivot].format.handle_size() * b.width());
    return at;
  }

  Operands fill_side(const Batch& b, int s, Side& side) {
    const int part = node(b, 0).part;
    const bool is_unused = std::any_of(b.nodes.begin(), b.nodes.end(), [&](int n) {
      const int body = e_.constraints[nodes_[n].pivot].bodies[s];
      return body == kGround || is_elsewhere(body, part);
    });
    const int unused = is_unused ? unused_handle(b) : 0;
    std::vector<Lane> records, holds;
    ScatteredSide places;
    side.first_copy = static_cast<int>(e_.copies.size());
    for (int lane = 0; lane < b.width(); ++lane) {
      const int constraint = node(b, lane).pivot, body = e_.constraints[constraint].bodies[s];
      if (body == kGround) {
        BodyPlace ground = *std::find_if(e_.ground.begin(), e_.ground.end(),
                                         [&](const BodyPlace& each) { return each.width == b.width(); });
        ground.lane = lane;
        places.record[lane] = ground.of(0);
        places.handle[lane] = {unused + lane, b.width()};
        records.push_back({kGround, lane});
        holds.push_back({kGround, lane});
        continue;
      }
      const Node &leaf = leaf_node(body_of(body), part),
                 &hold = leaf_node(body, part);  // of a primal body: its attachment
      const bool has_body = leaf.part == part, has_handle = hold.part == part;
      const auto& handles = e_.constraint[constraint].handles[s];
      places.record[lane] = (has_body ? place_of(leaf) : ghost_of_body_.at({body, part})).of(0);
      places.handle[lane] = has_handle ? handles[0] : Place{unused + lane, b.width()};
      records.push_back({has_body ? leaf.batch : kElsewhere, leaf.lane});
      holds.push_back({has_handle ? hold.batch : kElsewhere, hold.lane});
      for (std::size_t k = 1; has_handle && k < handles.size() && lane < lanes(b); ++k)
        e_.copies.push_back({handles[0], handles[k]});
    }
    side.record = places.record[0];
    side.handle = places.handle[0];
    // neighbouring lanes of a leaf may be held by different handles of it
    bool is_one_handle = true;
    for (int lane = 1; lane < lanes(b); ++lane)
      is_one_handle = is_one_handle && places.handle[lane].base == places.handle[0].base + lane;
    const Operands found = is_one_handle ? std::max(operands(b, records), operands(b, holds)) : Operands::scattered;
    if (found == Operands::in_order) {
      e_.copies.resize(static_cast<std::size_t>(side.first_copy));  // its own lanes that only fill up write them
      return found;
    }
    side.copies = static_cast<int>(e_.copies.size()) - side.first_copy;
    if (found == Operands::scattered) {
      side.scattered = static_cast<int>(e_.scattered_sides.size());
      e_.scattered_sides.push_back(places);
    }
    return found;
  }

  // or the attachment's; a part has primal bodies of its own
  const Node& leaf_node(int body, int part) const {
    const std::vector<int>& nodes = leaf_nodes_[body];
    const auto own = std::find_if(nodes.begin(), nodes.end(), [&](int n) { return nodes_[n].part == part; });
    return nodes_[own == nodes.end() ? nodes[0] : *own];
  }

  BodyPlace place_of(const Node& leaf) const {
    const Leaf& l = e_.leaves[index_[leaf.batch]];
    return {l.record / kBodyFields, l.width, leaf.lane};
  }

  int most_lanes_;
  const std::vector<bool>& dense_;
  const std::vector<Node>& nodes_;
  const std::vector<Batch>& batches_;
  std::vector<int> index_;  // of a batch among leaves or fronts
  std::vector<int> order_;
  std::vector<bool> is_done_;
  std::vector<int> leaf_batch_, attachment_batch_, front_batch_;
  std::vector<Batch> constraint_batch_;       // (batches of constraints) the fronts' nodes, side by side
  std::vector<std::vector<int>> leaf_nodes_;  // (bodies, attachments)
  std::vector<int> unit_of_batch_;
  std::map<int, Compliance> ghosts_;                        // of batches
  std::map<std::pair<int, int>, BodyPlace> ghost_of_body_;  // body, part
  int parts_ = 1;
  Elimination e_;
};

// In place of each primal body an attachment for everything that holds it, and its displacement as a constraint between
// them all. Returns the primal body of each attachment.
std::vector<int> put_attachments(std::vector<Constraint>& constraints, int bodies,
                                 const std::vector<int>& primal_bodies) {
  std::vector<int> body_of_attachment;
  const std::size_t given = constraints.size();
  for (const int primal_body : primal_bodies) {
    Constraint displacement{{6, RowFormat::kGeneral}, {primal_body}};
    displacement.is_primal = true;
    for (std::size_t c = 0; c < given; ++c)
      for (int& body : constraints[c].bodies) {
        if (body != primal_body) continue;
        body = bodies + static_cast<int>(body_of_attachment.size());
        body_of_attachment.push_back(primal_body);
        displacement.bodies.push_back(body);
      }
    constraints.push_back(std::move(displacement));
  }
  return body_of_attachment;
}

// What it costs that threads share a step, and that each hears of one more, in multiply-adds of a lane; and by how much
// sharing must shorten the step at least: to hear of each other takes longer on some machines than on others.
constexpr long kCostOfSharing = 4'000, kCostOfHearing = 2'000;
constexpr double kClearlyFaster = 0.9;

long time_of_step(const Elimination& e) {
  std::vector<long> part(e.parts.size(), 0);
  for (const Elimination::Unit& unit : e.units) part[unit.part] += unit.cost;
  const long others = static_cast<long>(part.size()) - 1;
  return *std::max_element(part.begin(), part.end()) + (others > 0 ? kCostOfSharing + kCostOfHearing * others : 0);
}

}  // namespace

Elimination compile(const std::vector<Constraint>& model, const std::vector<bool>& dense, MergeOrder order, int lanes,
                    const std::vector<int>& primal_bodies, int threads) {
  std::vector<Constraint> constraints = model;
  const int bodies = static_cast<int>(dense.size());
  const std::vector<int> body_of_attachment = put_attachments(constraints, bodies, primal_bodies);
  const CompoundTree tree = build_tree(constraints, bodies + static_cast<int>(body_of_attachment.size()), order);
  const int most_lanes = order == MergeOrder::in_lanes ? lanes : 1;
  const auto laid_out = [&](int parts) {
    const Batches laid = lay_side_by_side(tree, constraints, dense, most_lanes, parts);
    return Layout(constraints, dense, laid, body_of_attachment, most_lanes).take();
  };
  Elimination result = laid_out(1);
  double best = kClearlyFaster * static_cast<double>(time_of_step(result));
  const int most = std::min(threads, 1 + static_cast<int>((best - kCostOfSharing) / kCostOfHearing));
  for (int parts = 2; parts <= most; ++parts) {
    Elimination divided = laid_out(parts);
    if (const auto time = static_cast<double>(time_of_step(divided)); time < best) {
      best = time;
      result = std::move(divided);
    }
  }
  return result;
}

}  // namespace rigstep::index3
