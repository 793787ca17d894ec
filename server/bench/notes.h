// Remarks on rows, below the table; equal ones have the same number.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "proto/printable.h"
#include "server/output/terminal.h"

namespace rigstep::server {

class Notes {
 public:
  // " (1)", or nothing where there is no remark
  std::string mark(const std::string& text) {
    if (text.empty()) return {};
    const auto at = std::find(texts_.begin(), texts_.end(), text);
    const auto number = at - texts_.begin() + 1;
    if (at == texts_.end()) texts_.push_back(text);
    return fmt::format(" ({})", number);
  }
  void print() const {
    for (std::size_t k = 0; k < texts_.size(); ++k) print_text("({}) {}\n", k + 1, one_line(texts_[k]));
  }

 private:
  // What an engine has thrown may have several.
  static std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return wire::printable_line(text);
  }

  std::vector<std::string> texts_;
};

}  // namespace rigstep::server
