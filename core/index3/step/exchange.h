// What the parts of a step pass on to each other. Each writes into lines of its own and reads those of all others;
// every line carries the stamp of its exchange, so that to find it there and to have its numbers is one and the same.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/index3/compile/elimination.h"
#include "core/index3/step/team.h"

namespace rigstep::index3 {

// Any of them together.
enum Passing : unsigned {
  kNothing = 0,  // only a barrier
  kPoses = 1,    // of the iterate
  kTwists = 2,
  kMotions = 4,
  kRightHandSides = 8,  // of compounds, and the loads that constraints put on primal bodies
  kCompliances = 16,    // of compounds
};

class Exchange {
 public:
  explicit Exchange(const Elimination& elimination);

  std::size_t bytes() const noexcept;

  // From all parts to all others, by one thread.
  void pass(const StepArrays& a, unsigned what) const noexcept;

  // By the thread that works on a part, beside those of the others. stamp: of this exchange, one more than that of the
  // one before.
  void post(const StepArrays& a, int part, unsigned what, std::uint64_t stamp) noexcept;
  // What others have posted of it; false: given up waiting. spins: of this step so far.
  bool fetch(const StepArrays& a, int part, unsigned what, std::uint64_t stamp, Team& team, int& spins) noexcept;

 private:
  static constexpr int kNumbersOfLine = 7;
  static constexpr int kLinesOfPage =
      64;  // between those of different parts: Layout::end_part in compile/layout/layout.h says why
  struct alignas(64) Line {
    double number[kNumbersOfLine];
    std::atomic<std::uint64_t> stamp{0};
  };
  // Two, in turn: nobody writes the exchange after next before everybody has read this one.
  using Lines = std::array<std::vector<Line>, 2>;

  template <class F>
  void for_numbers(const StepArrays& a, int part, unsigned what, const F& f) const noexcept;

  std::vector<PassedOn> passed_;  // (parts) by each
  std::vector<Lines> lines_;      // (parts)
};

}  // namespace rigstep::index3
