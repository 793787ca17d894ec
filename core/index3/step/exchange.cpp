#include "core/index3/step/exchange.h"

namespace rigstep::index3 {

Exchange::Exchange(const Elimination& e) : passed_(e.parts.size()), lines_(e.parts.size()) {
  const auto give = [this](const std::vector<Passed>& all, std::vector<Passed> PassedOn::*list) {
    for (const Passed& each : all) (passed_[each.part].*list).push_back(each);
  };
  give(e.passed.bodies, &PassedOn::bodies);
  give(e.passed.right_hand_sides, &PassedOn::right_hand_sides);
  give(e.passed.compliances, &PassedOn::compliances);
  give(e.passed.handles, &PassedOn::handles);
  if (passed_.size() == 1) return;
  for (std::size_t part = 0; part < passed_.size(); ++part) {
    int most = 0;
    for_numbers({}, static_cast<int>(part), ~0U, [&](double*, const Passed&, int, int count) { most += count; });
    const int lines = most / kNumbersOfLine + 1 + kLinesOfPage;
    for (std::vector<Line>& each : lines_[part]) each = std::vector<Line>(static_cast<std::size_t>(lines));
  }
}

std::size_t Exchange::bytes() const noexcept {
  std::size_t sum = 0;
  for (const Lines& lines : lines_)
    for (const std::vector<Line>& each : lines) sum += each.size() * sizeof(Line);
  return sum;
}

// f(array, passed, first, count) of all that a part passes on, in order
template <class F>
void Exchange::for_numbers(const StepArrays& a, int part, unsigned what, const F& f) const noexcept {
  const PassedOn& passed = passed_[part];
  for (const Passed& body : passed.bodies) {
    if (what & kPoses) f(a.body, body, a.next, 3), f(a.body, body, kRotationField, 9);
    if (what & kTwists) f(a.body, body, kTwistField, 6);
    if (what & kMotions) f(a.body, body, kMotionField, 6);
  }
  if (what & kRightHandSides) {
    for (const Passed& vector : passed.right_hand_sides) f(a.arena, vector, 0, vector.count);
    for (const Passed& handle : passed.handles) f(a.handles, handle, 0, handle.count);
  }
  if (what & kCompliances)
    for (const Passed& matrix : passed.compliances) f(a.arena, matrix, 0, matrix.count);
}

void Exchange::pass(const StepArrays& a, unsigned what) const noexcept {
  const int parts = static_cast<int>(passed_.size());
  for (int part = 0; part < parts; ++part)
    for_numbers(a, part, what, [&](double* array, const Passed& passed, int first, int count) {
      for (int other = 0; other < parts; ++other) {
        const Place &from = passed.from, &to = passed.ghost[other];
        if (to.stride > 0)
          for (int k = first; k < first + count; ++k)
            array[to.base + k * to.stride] = array[from.base + k * from.stride];
      }
    });
}

void Exchange::post(const StepArrays& a, int part, unsigned what, std::uint64_t stamp) noexcept {
  Line* line = lines_[part][stamp % 2].data();
  int at = 0;
  for_numbers(a, part, what, [&](const double* array, const Passed& passed, int first, int count) {
    const Place& from = passed.from;
    for (int k = first; k < first + count; ++k, ++at) {
      if (at == kNumbersOfLine) at = 0, (line++)->stamp.store(stamp, std::memory_order_release);
      line->number[at] = array[from.base + k * from.stride];
    }
  });
  line->stamp.store(stamp, std::memory_order_release);
}

bool Exchange::fetch(const StepArrays& a, int part, unsigned what, std::uint64_t stamp, Team& team,
                     int& spins) noexcept {
  bool in_time = true;
  for (int other = 0; other < static_cast<int>(passed_.size()); ++other) {
    if (other == part) continue;
    const Line* line = lines_[other][stamp % 2].data();
    const auto wait = [&] {
      return team.wait(part, spins, [&] { return line->stamp.load(std::memory_order_acquire) == stamp; });
    };
    int at = 0;
    in_time = in_time && wait();
    for_numbers(a, other, what, [&](double* array, const Passed& passed, int first, int count) {
      const Place& to = passed.ghost[part];
      for (int k = first; k < first + count && in_time; ++k, ++at) {
        if (at == kNumbersOfLine) at = 0, ++line, in_time = wait();
        if (to.stride > 0 && in_time) array[to.base + k * to.stride] = line->number[at];
      }
    });
  }
  return in_time;
}

}  // namespace rigstep::index3
