#include "core/mechanism/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace rigstep {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (lower(from[i]) == lower(to[j]) ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, replaced}));
    }
  }
  return row.back();
}

std::vector<std::string> nearest_names(const std::vector<std::string>& names, std::string_view name, std::size_t most) {
  std::vector<std::pair<std::size_t, std::size_t>> order;  // distance, place
  for (std::size_t k = 0; k < names.size(); ++k) order.emplace_back(edit_distance(name, names[k]), k);
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), most));
  std::vector<std::string> nearest;
  for (const auto& [distance, k] : order) nearest.push_back(names[k]);
  return nearest;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "\"" : ", \"") + name + "\"";
  return list;
}

}  // namespace rigstep
