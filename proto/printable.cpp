#include "proto/printable.h"

#include <cstdint>
#include <cstdio>

namespace rigstep::wire {
namespace {

constexpr auto kNoLimit = static_cast<std::size_t>(-1);

// One character of a text, or one byte that begins none.
struct Character {
  std::size_t size = 1;    // [bytes]
  std::uint32_t code = 0;  // of a character its number, else the byte
  bool is_utf8 = false;
};

// The shortest form of at most U+10FFFF that is no half of a pair: what UTF-8 may hold.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[k])); };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || size > text.size()) return {1, lead, false};
  std::uint32_t code = lead & (0x7Fu >> size);
  for (std::size_t k = 1; k < size; ++k) {
    if ((byte(k) & 0xC0u) != 0x80u) return {1, lead, false};
    code = code << 6 | (byte(k) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_utf8 = code >= kLeast[size] && code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
  return is_utf8 ? Character{size, code, true} : Character{1, lead, false};
}

bool steers(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) ||       // control characters
         code == 0x2028 || code == 0x2029 ||                    // ends of a line and of a paragraph
         code == 0x061C || code == 0x200E || code == 0x200F ||  // marks of direction
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string escaped(const Character& c) {
  char text[8];
  std::snprintf(text, sizeof text, c.is_utf8 && c.code >= 0x80 ? "\\u%04x" : "\\x%02x", c.code);
  return text;
}

std::string made_printable(std::string_view text, std::size_t max_bytes, bool keeps_lines) {
  std::string out;
  while (!text.empty()) {
    const Character c = first_character(text);
    const bool stays = c.is_utf8 && (!steers(c.code) || (keeps_lines && c.code == '\n'));
    const std::string piece = stays ? std::string(text.substr(0, c.size)) : escaped(c);
    if (piece.size() > max_bytes - out.size()) break;
    out += piece;
    text.remove_prefix(c.size);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) { return made_printable(text, max_bytes, false); }

std::string printable_line(std::string_view text) { return made_printable(text, kNoLimit, false); }

std::string printable_lines(std::string_view text) { return made_printable(text, kNoLimit, true); }

}  // namespace rigstep::wire
