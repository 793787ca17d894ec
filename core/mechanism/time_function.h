// A function of time as drivers and efforts follow it. Part of the description: checked by MechanismBuilder, immutable
// afterwards.
#pragma once

#include <string>
#include <vector>

namespace rigstep {

// The sum of its terms; no terms: zero.
struct TimeFunction {
  struct Term {
    enum class Kind {
      harmonic,    // constant + amplitude sin(angular_frequency t + phase)
      polynomial,  // coefficient[0] + coefficient[1] t + coefficient[2] t^2 + ...
      table,       // cubic spline through (time, value), clamped: it starts and ends with rate zero and stays at the
                   // first and last value outside
    };
    Kind kind = Kind::polynomial;
    double constant = 0.0;            // [unit of the function]
    double amplitude = 0.0;           // [unit]
    double angular_frequency = 0.0;   // [rad/s]
    double phase = 0.0;               // [rad]
    std::vector<double> coefficient;  // [unit/s^k], constant first
    std::vector<double> time;         // ascending [s]
    std::vector<double> value;        // [unit]
  };
  std::vector<Term> terms;

  // Where the second derivative jumps: the ends of tables, ascending [s].
  std::vector<double> jumps() const;
};

TimeFunction harmonic(double constant, double amplitude, double angular_frequency, double phase = 0.0);
TimeFunction polynomial(std::vector<double> coefficient);
TimeFunction table(std::vector<double> time, std::vector<double> value);
TimeFunction operator+(TimeFunction one, const TimeFunction& other);

struct ValueAndRate {
  double value = 0.0;  // [unit]
  double rate = 0.0;   // [unit/s]
};

// Where the function begins. The same bits on every machine. It must be checked.
ValueAndRate at_time_zero(const TimeFunction& function);

namespace checks {

// Throws MechanismError with the field in the schema's words.
void check_time_function(const TimeFunction& function);

}  // namespace checks

}  // namespace rigstep
