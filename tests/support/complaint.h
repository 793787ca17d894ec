// What the loader says about a mechanism file that is good but for one place.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "proto/load_mechanism.h"

namespace rigstep::test {

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// Empty where it has nothing to complain about.
inline std::string complaint(const std::string& text) {
  try {
    config::parse_mechanism(text, "m.textproto");
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

// "file:line: field: problem: remedy"
inline void check_complaint(const std::string& text, int line, const std::string& field, const std::string& problem) {
  const std::string said = complaint(text);
  CAPTURE(said);
  const std::string start = "m.textproto:" + std::to_string(line) + ": " + field + ": ";
  CHECK(said.rfind(start, 0) == 0);
  CHECK(said.find(problem, std::min(start.size(), said.size())) != std::string::npos);
  CHECK(std::count(said.begin(), said.end(), ':') >= 4);  // a remedy follows
}

}  // namespace rigstep::test
