#include "core/mechanism/time_function.h"

#include <algorithm>

#include "core/mechanism/checks.h"

namespace rigstep {

using Term = TimeFunction::Term;

std::vector<double> TimeFunction::jumps() const {
  std::vector<double> times;
  for (const Term& term : terms)
    if (term.kind == Term::Kind::table) times.insert(times.end(), {term.time.front(), term.time.back()});
  std::sort(times.begin(), times.end());
  return times;
}

TimeFunction harmonic(double constant, double amplitude, double angular_frequency, double phase) {
  Term term;
  term.kind = Term::Kind::harmonic;
  term.constant = constant;
  term.amplitude = amplitude;
  term.angular_frequency = angular_frequency;
  term.phase = phase;
  return {{term}};
}

TimeFunction polynomial(std::vector<double> coefficient) {
  Term term;
  term.coefficient = std::move(coefficient);
  return {{term}};
}

TimeFunction table(std::vector<double> time, std::vector<double> value) {
  Term term;
  term.kind = Term::Kind::table;
  term.time = std::move(time);
  term.value = std::move(value);
  return {{term}};
}

TimeFunction operator+(TimeFunction one, const TimeFunction& other) {
  one.terms.insert(one.terms.end(), other.terms.begin(), other.terms.end());
  return one;
}

namespace checks {

namespace {

void check_table(const Term& term) {
  if (term.time.size() < 2)
    throw MechanismError("time", "has " + std::to_string(term.time.size()) + " points", "give two or more");
  if (term.value.size() != term.time.size())
    throw MechanismError(
        "value",
        "has " + std::to_string(term.value.size()) + " numbers for " + std::to_string(term.time.size()) + " times",
        "give one for each time");
  for (std::size_t k = 0; k < term.time.size(); ++k) {
    require_finite(term.time[k], "time");
    require_finite(term.value[k], "value");
    if (k > 0 && !(term.time[k] > term.time[k - 1]))
      throw MechanismError("time", number(term.time[k]) + " s comes after " + number(term.time[k - 1]) + " s",
                           "times must ascend");
  }
}

}  // namespace

void check_time_function(const TimeFunction& function) {
  for (const Term& term : function.terms) switch (term.kind) {
      case Term::Kind::harmonic:
        require_finite(term.constant, "constant");
        require_finite(term.amplitude, "amplitude");
        require_finite(term.angular_frequency, "angular_frequency");
        require_finite(term.phase, "phase");
        break;
      case Term::Kind::polynomial:
        if (term.coefficient.empty())
          throw MechanismError("coefficient", "is missing", "give at least the constant one");
        for (const double c : term.coefficient) require_finite(c, "coefficient");
        break;
      case Term::Kind::table:
        check_table(term);
        break;
    }
}

}  // namespace checks

}  // namespace rigstep
