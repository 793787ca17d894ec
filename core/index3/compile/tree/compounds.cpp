#include "core/index3/compile/tree/compounds.h"

#include <algorithm>
#include <utility>

namespace rigstep::index3 {

void Compounds::make_leaf(int body) {
  Compound c;
  c.body = body;
  std::vector<int> kind;
  for (const int constraint : graph.held_by[body]) {
    const int missing =
        static_cast<int>(graph.distinct_bodies(constraint).size()) - 1 + (graph.deferred[constraint] ? 1 : 0);
    if (missing == 0)
      c.eliminated.push_back(constraint);
    else
      c.pending.push_back({constraint, missing});
    const RowFormat& format = graph.constraints[constraint].format;
    kind.insert(kind.end(), {missing, format.rows, format.cosines, format.lines, static_cast<int>(format.coordinate),
                             graph.constraints[constraint].is_primal ? 1 : 0});
  }
  add(std::move(c), kind);
}

void Compounds::add(Compound c, const std::vector<int>& kind) {
  c.kind = kinds_.emplace(kind, static_cast<int>(kinds_.size())).first->second;
  all.push_back(std::move(c));
}

std::vector<int> Compounds::kind_of_merge(int a, int b) const {
  std::vector<int> kind{-1, all[a].kind, all[b].kind};
  const auto &left = all[a].pending, &right = all[b].pending;
  for (std::size_t l = 0; l < left.size(); ++l)
    for (std::size_t r = 0; r < right.size(); ++r)
      if (left[l].constraint == right[r].constraint)
        kind.insert(kind.end(), {static_cast<int>(l), static_cast<int>(r), left[l].missing, right[r].missing});
  return kind;
}

Compounds::Union Compounds::united(int a, int b) const {
  Union u;
  const auto &left = all[a].pending, &right = all[b].pending;
  auto l = left.begin();
  auto r = right.begin();
  while (l != left.end() || r != right.end()) {
    if (r == right.end() || (l != left.end() && l->constraint < r->constraint)) {
      u.open.push_back(*l++);
    } else if (l == left.end() || r->constraint < l->constraint) {
      u.open.push_back(*r++);
    } else {
      const int sides =
          static_cast<int>(graph.distinct_bodies(l->constraint).size()) + (graph.deferred[l->constraint] ? 1 : 0);
      const int missing = l->missing + r->missing - sides;
      if (missing == 0)
        u.closed.push_back(l->constraint);
      else
        u.open.push_back({l->constraint, missing});
      ++l, ++r;
    }
  }
  return u;
}

int Compounds::merge(int a, int b) {
  const std::vector<int> kind = kind_of_merge(a, b);
  Union u = united(a, b);
  Compound c;
  c.left = a;
  c.right = b;
  c.eliminated = std::move(u.closed);
  c.pending = std::move(u.open);
  c.depth = std::max(all[a].depth, all[b].depth) + 1;
  all[a].merged = all[b].merged = true;
  add(std::move(c), kind);
  return static_cast<int>(all.size()) - 1;
}

int Compounds::close_path_end(int compound) {
  Compound& half = all[compound];
  std::vector<OpenConstraint> open;
  for (const OpenConstraint& each : half.pending) {
    const int c = each.constraint;
    const bool is_end =
        graph.deferred[c] && !graph.constraints[c].eliminated_last && graph.distinct_bodies(c).size() == 1;
    is_end ? half.eliminated.push_back(c) : open.push_back(each);
  }
  half.pending = std::move(open);
  return compound;
}

void Compounds::close_deferred() {
  for (Compound& c : all)
    if (!c.merged)
      for (const OpenConstraint& open : std::exchange(c.pending, {})) c.eliminated.push_back(open.constraint);
}

std::map<int, std::vector<int>> Compounds::owners() const {
  std::map<int, std::vector<int>> result;
  for (int c = 0; c < static_cast<int>(all.size()); ++c)
    if (!all[c].merged)
      for (const OpenConstraint& open : all[c].pending) result[open.constraint].push_back(c);
  return result;
}

int Compounds::open_rows(const std::vector<OpenConstraint>& open) const {
  int rows = 0;
  for (const OpenConstraint& each : open) rows += graph.constraints[each.constraint].format.rows;
  return rows;
}

void Compounds::take_over(Compounds other) {
  all = std::move(other.all);
  kinds_ = std::move(other.kinds_);
}

double Compounds::operations(const Compound& c) const {
  const double e = rows_of(graph.constraints, c.eliminated), size = e + open_rows(c.pending);
  return e * size * size;
}

double Compounds::operations() const {
  double sum = 0.0;
  for (const Compound& c : all) sum += operations(c);
  return sum;
}

double Compounds::operations_in_lanes(int lanes) const {
  std::map<int, int> count;
  double sum = 0.0;
  for (const Compound& c : all)
    if (count[c.kind]++ % lanes == 0) sum += operations(c);
  return sum;
}

}  // namespace rigstep::index3
