// Text within SVG and HTML.
#pragma once

#include <string>

#include "proto/printable.h"

namespace rigstep::server {

// One line that steers nothing: no tag, no attribute's end, no control character.
inline std::string escape_markup(const std::string& text) {
  std::string out;
  for (const char c : wire::printable_line(text))
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

}  // namespace rigstep::server
