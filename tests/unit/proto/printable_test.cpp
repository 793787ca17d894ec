#include "proto/printable.h"

#include <doctest/doctest.h>

#include <string>

using namespace rigstep::wire;

TEST_CASE("control characters are shown as a program would write them, and steer no terminal") {
  CHECK(printable_line("bench\x1b[2J\r\n\t") == "bench\\x1b[2J\\x0d\\x0a\\x09");
  CHECK(printable_line(std::string("a\0b\x7f", 4)) == "a\\x00b\\x7f");
  CHECK(printable_line("a\xC2\x9B"
                       "2J") == "a\\u009b2J");
  CHECK(printable_line("a\xC2\x85"
                       "b") == "a\\u0085b");
  CHECK(printable_line("a\xC2\xA0") == "a\xC2\xA0");  // the first beyond them
}

TEST_CASE("bytes that are no UTF-8 are shown one by one") {
  CHECK(printable_line("\x9b[2J") == "\\x9b[2J");                       // as terminals of eight bits take it
  CHECK(printable_line("\xC0\x9B") == "\\xc0\\x9b");                    // longer than needed
  CHECK(printable_line("\xE0\x80\x9B") == "\\xe0\\x80\\x9b");           // longer than needed
  CHECK(printable_line("\xED\xA0\x80") == "\\xed\\xa0\\x80");           // half of a pair
  CHECK(printable_line("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond the last character
  CHECK(printable_line("end\xE2\x80") == "end\\xe2\\x80");              // cut off
  CHECK(printable_line("\xFF") == "\\xff");
}

TEST_CASE("marks of direction and ends of lines are shown") {
  CHECK(printable_line("a\xE2\x80\xAE"
                       "b\xE2\x81\xA6"
                       "c\xE2\x80\x8F\xD8\x9C") == "a\\u202eb\\u2066c\\u200f\\u061c");
  CHECK(printable_line("a\xE2\x80\xA8"
                       "b\xE2\x80\xA9") == "a\\u2028b\\u2029");
}

TEST_CASE("what can be printed stays as it is, once and again") {
  const std::string name =
      "Pr\xC3\xBC"
      "fstand \xE6\xA9\x9F \xF0\x9F\x94\xA7 \\x1b";
  CHECK(printable_line(name) == name);
  CHECK(printable_line(printable_line("\x1b[31m")) == "\\x1b[31m");
  CHECK(printable_lines("one\ntwo\x1b\r\n") == "one\ntwo\\x1b\\x0d\n");
}

TEST_CASE("names from outside are cut, never inside a character or what stands for one") {
  CHECK(printable(std::string(63, 'x') + "\xC3\xBC") == std::string(63, 'x'));
  CHECK(printable(std::string(62, 'x') + "\x1b" + "y") == std::string(62, 'x'));
  CHECK(printable(std::string(1000, 'x')).size() == kMaxNameBytes);
  CHECK(printable(std::string(1000, '\x1b')).size() == kMaxNameBytes);
}
