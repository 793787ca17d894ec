#include "core/index3/physics/drivers.h"

namespace rigstep::index3 {

namespace {

// the same bits on every machine, for x >= 0; a series at x / 2^k, squared k times
double exponential_of_minus(double x) {
  if (x > 700.0) return 0.0;
  int halvings = 0;
  for (; x > 0.25; ++halvings) x *= 0.5;
  double sum = 1.0;
  for (int n = 16; n >= 1; --n) sum = 1.0 - x / n * sum;
  for (; halvings > 0; --halvings) sum *= sum;
  return sum;
}

// In z = value - input the held input is zero and (T p + 1)^3 z = 0: z = exp(-t/T) (A + B t + C t^2).
Mat3 filter_over(double time_constant, double dt) {
  const double a = 1.0 / time_constant, decay = exponential_of_minus(a * dt);
  Mat3 step;
  for (int column = 0; column < 3; ++column) {
    const Vec3 z = Vec3::Unit(column);
    const double A = z[0], B = z[1] + a * z[0], C = 0.5 * (z[2] + 2.0 * a * z[1] + a * a * z[0]);
    const double p = A + (B + C * dt) * dt, p_rate = B + 2.0 * C * dt;
    step.col(column) = decay * Vec3(p, p_rate - a * p, 2.0 * C - 2.0 * a * p_rate + a * a * p);
  }
  return step;
}

}  // namespace

DriverPlan prepare(const Driver& driver, double dt) {
  DriverPlan plan{prepare(driver.function), dt, Mat3::Identity()};
  renew(driver, plan);
  return plan;
}

void renew(const Driver& driver, DriverPlan& plan) noexcept {
  if (driver.from_input == Driver::FromInput::filtered) plan.filter = filter_over(driver.time_constant, plan.dt);
}

Prescribed prescribed(const Driver& driver, const DriverPlan& plan, double t) noexcept {
  return evaluate(driver.function, plan.curvatures, t);
}

Prescribed prescribed_at_start(const Driver& driver, const DriverPlan& plan, double coordinate) noexcept {
  Prescribed start = prescribed(driver, plan, 0.0);
  if (driver.from_input != Driver::FromInput::nothing) start.value = coordinate;
  return start;
}

Prescribed prescribed_next(const Driver& driver, const DriverPlan& plan, const Prescribed& last, const Inputs& inputs,
                           double t) noexcept {
  using FromInput = Driver::FromInput;
  if (driver.from_input == FromInput::nothing) return prescribed(driver, plan, t);
  const bool is_sum = !driver.function.terms.empty();
  const double* channel = inputs.value.data() + driver.first_channel;
  Prescribed next{channel[0], channel[1], channel[2]};
  if (driver.from_input == FromInput::filtered) {
    const Prescribed from = is_sum ? last - prescribed(driver, plan, t - plan.dt) : last;
    const Vec3 z = plan.filter * Vec3(from.value - channel[0], from.rate, from.acceleration);
    next = {z[0] + channel[0], z[1], z[2]};
  }
  return is_sum ? next + prescribed(driver, plan, t) : next;
}

}  // namespace rigstep::index3
