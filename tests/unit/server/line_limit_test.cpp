#include "server/output/line_limit.h"

#include <doctest/doctest.h>

using rigstep::server::LineLimit;
using namespace std::chrono_literals;

TEST_CASE("a flood of lines is cut to so many a second, and what is left out is counted once its second is over") {
  const LineLimit::Instant start = LineLimit::Instant{} + 1h;
  LineLimit limit(10);
  int written = 0;
  for (int k = 0; k < 500; ++k) written += limit.take(start + k * 1ms) ? 1 : 0;
  CHECK(written == 10);
  CHECK(limit.take_left_out(start + 999ms) == 0);
  CHECK(limit.take_left_out(start + 1000ms) == 490);
  CHECK(limit.take_left_out(start + 1001ms) == 0);
  CHECK(limit.take(start + 1001ms));
}

TEST_CASE("lines that come slowly are all written") {
  LineLimit limit(2);
  for (int k = 0; k < 20; ++k) CHECK(limit.take(LineLimit::Instant{} + 1h + k * 600ms));
  CHECK(limit.take_left_out(LineLimit::Instant{} + 2h) == 0);
}
