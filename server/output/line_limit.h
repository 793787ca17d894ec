// Lines of a log that strangers can cause: so many a second are written, the others counted, so that nobody fills a
// disk or hides what matters. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

namespace rigstep::server {

class LineLimit {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  explicit LineLimit(int lines_a_second) : most_(lines_a_second) {}

  // Whether one more line may be written; counts it if not.
  bool take(Instant now) {
    if (now >= begin_ + std::chrono::seconds(1)) {
      begin_ = now;
      written_ = 0;
    }
    if (written_ < most_) return ++written_, true;
    ++left_out_;
    return false;
  }

  // How many lines were left out, once their second is over; 0 before.
  std::uint64_t take_left_out(Instant now) {
    return now < begin_ + std::chrono::seconds(1) ? 0 : std::exchange(left_out_, 0);
  }

 private:
  int most_;
  int written_ = 0;
  std::uint64_t left_out_ = 0;
  Instant begin_ = {};
};

}  // namespace rigstep::server
