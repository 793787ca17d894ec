// The order of operations: children before parents, and small subtrees level by level.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/index3/compile/layout/layout.h"

namespace rigstep::index3 {

std::vector<int> children_of(const Layout& layout, int batch) {
  std::vector<int> children;
  for (int side = 0; side < 2; ++side)
    for (const int n : layout.batches[batch].nodes)
      if (const int child = layout.nodes[n].child[side]; child >= 0 && layout.nodes[child].ghost_of < 0)
        children.push_back(layout.nodes[child].batch);
  return children;
}

namespace {

// Small subtrees level by level, so that many operations of one shape follow each other that do not wait for one
// another and yet what they leave is still in the cache: so many numbers of the bodies' compliances,
// 16 KB. Chosen; results do not depend on it.
constexpr int kNumbersTogether = 2048;

// Of the compliances below a batch, as far as need be.
void count_numbers(const Layout& layout, int batch, std::set<int>& counted, int& numbers) {
  if (numbers > kNumbersTogether || !counted.insert(batch).second) return;
  const Node& first = layout.first_of(batch);
  if (first.body >= 0)
    numbers += packed(rows_of(layout.tables.constraints, first.pending)) * lanes(layout.batches[batch]);
  for (const int child : children_of(layout, batch)) count_numbers(layout, child, counted, numbers);
}

bool is_small(const Layout& layout, int batch) {
  std::set<int> counted;
  int numbers = 0;
  count_numbers(layout, batch, counted, numbers);
  return numbers <= kNumbersTogether;
}

// Level, then work and width, not the places of operands.
std::pair<int, std::string> rank(const Layout& layout, int batch) {
  const Node& first = layout.first_of(batch);
  return {first.level, std::to_string(layout.batches[batch].width()) + first.signature};
}

void collect(const Layout& layout, int batch, std::vector<bool>& is_done, std::vector<int>& group) {
  if (is_done[batch]) return;
  is_done[batch] = true;
  for (const int child : children_of(layout, batch)) collect(layout, child, is_done, group);
  group.push_back(batch);
}

void visit(const Layout& layout, int batch, std::vector<bool>& is_done, std::vector<int>& order) {
  if (is_done[batch]) return;
  if (!is_small(layout, batch)) {
    is_done[batch] = true;
    for (const int child : children_of(layout, batch)) visit(layout, child, is_done, order);
    order.push_back(batch);
    return;
  }
  std::vector<int> group;
  collect(layout, batch, is_done, group);
  std::stable_sort(group.begin(), group.end(), [&](int a, int b) { return rank(layout, a) < rank(layout, b); });
  order.insert(order.end(), group.begin(), group.end());
}

}  // namespace

std::vector<int> order_of_operations(const Layout& layout, const std::vector<int>& roots) {
  std::vector<bool> is_done(layout.batches.size(), false);
  std::vector<int> order;
  for (const int root : roots) visit(layout, layout.nodes[root].batch, is_done, order);
  return order;
}

void number_operations(Layout& layout, std::vector<int> order) {
  layout.order = std::move(order);
  layout.index.assign(layout.batches.size(), -1);
  for (const int batch : layout.order) {
    const auto add = [&](auto& operations, std::vector<int>& batch_of) {
      layout.index[batch] = static_cast<int>(operations.size());
      operations.emplace_back();
      batch_of.push_back(batch);
    };
    switch (layout.kind(batch)) {
      case Run::Of::leaves:
        add(layout.tables.leaves, layout.leaf_batch);
        break;
      case Run::Of::attachments:
        add(layout.tables.attachments, layout.attachment_batch);
        break;
      case Run::Of::fronts:
        add(layout.tables.fronts, layout.front_batch);
        break;
      case Run::Of::constraints:
        break;  // no batches of the tree
    }
  }
}

}  // namespace rigstep::index3
