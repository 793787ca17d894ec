// Sine and arctangent with the same bits on every machine: the C library picks its variant by processor.
// Only basic operations and square roots, which IEEE 754 rounds correctly. Safe in the loop.
#pragma once

namespace rigstep {

inline constexpr double kPi = 3.14159265358979323846;

// Absolute error below 1e-15 for |x| < 1e5 rad.
double sine(double x) noexcept;

// Angle of the vector (x, y) in (-pi, pi] [rad]; 0 for the zero vector. Absolute error below 1e-15.
double arctangent(double y, double x) noexcept;

}  // namespace rigstep
