#include "core/offline/integrate.h"

#include <doctest/doctest.h>

#include <cmath>

namespace rigstep::offline {
namespace {

using State = std::span<const double>;

constexpr Integrator kAll[] = {Integrator::dormand_prince, Integrator::ode45, Integrator::ode23, Integrator::ode113};

Options with(Integrator integrator, double tolerance) {
  Options options;
  options.integrator = integrator;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  return options;
}

// Harmonic oscillator: y = (cos t, -sin t).
Problem oscillator() {
  Problem problem;
  problem.size = 2;
  problem.f = [](double, State y, std::span<double> yd) {
    yd[0] = y[1];
    yd[1] = -y[0];
  };
  return problem;
}

std::vector<double> every(double dt, double end) {
  std::vector<double> t;
  for (int k = 0; k * dt <= end * (1.0 + 1e-12); ++k) t.push_back(k * dt);
  return t;
}

struct Run {
  double error = 0.0;
  Effort effort;
};

Run run_oscillator(const Options& options, double dt) {
  Run run;
  run.effort = integrate(oscillator(), {1.0, 0.0}, every(dt, 10.0), options, [&](double t, State y) {
    run.error = std::max({run.error, std::abs(y[0] - std::cos(t)), std::abs(y[1] + std::sin(t))});
  });
  return run;
}

}  // namespace

TEST_CASE("the error of every integrator, dense output included, falls with the tolerance") {
  for (const Integrator integrator : kAll) {
    const double growth = integrator == Integrator::ode113 ? 300.0 : 20.0;  // of local errors over 10 s
    double last = 1.0;
    for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10}) {
      const double error = run_oscillator(with(integrator, tolerance), 0.013).error;
      CAPTURE(tolerance);
      CHECK(error < growth * tolerance);
      CHECK(error < last);
      last = error;
    }
  }
}

TEST_CASE("the cost of the pairs grows as their order says: tolerance^(-1/5) and tolerance^(-1/3)") {
  const auto order = [](Integrator integrator) {
    const long coarse = run_oscillator(with(integrator, 1e-6), 10.0).effort.steps;
    const long fine = run_oscillator(with(integrator, 1e-9), 10.0).effort.steps;
    return 3.0 / std::log10(static_cast<double>(fine) / static_cast<double>(coarse));
  };
  CHECK(order(Integrator::dormand_prince) == doctest::Approx(5.0).epsilon(0.15));
  CHECK(order(Integrator::ode45) == doctest::Approx(5.0).epsilon(0.15));
  CHECK(order(Integrator::ode23) == doctest::Approx(3.0).epsilon(0.15));
  CHECK(run_oscillator(with(Integrator::ode113, 1e-9), 10.0).effort.right_hand_sides <
        run_oscillator(with(Integrator::dormand_prince, 1e-9), 10.0).effort.right_hand_sides);
}

TEST_CASE("a jump at a break is met exactly, and the values up to it come from before the jump") {
  for (const Integrator integrator : kAll) {
    double slope = 1.0;
    Problem problem;
    problem.size = 1;
    problem.f = [&](double, State, std::span<double> yd) { yd[0] = slope; };
    problem.breaks = {-1.0, 0.3, 0.75, 9.0};
    problem.at_break = [&](double t, std::span<double> y) {
      slope = t < 0.5 ? -2.0 : 0.0;
      if (t > 0.5) y[0] = 7.0;
    };
    std::vector<double> values;
    integrate(problem, {0.0}, std::vector{0.0, 0.3, 0.5, 0.75, 1.0}, with(integrator, 1e-9),
              [&](double, State y) { values.push_back(y[0]); });
    REQUIRE(values.size() == 5);
    const double wanted[] = {0.0, 0.3, -0.1, -0.6, 7.0};
    for (std::size_t k = 0; k < values.size(); ++k) CHECK(values[k] == doctest::Approx(wanted[k]).epsilon(1e-12));
  }
}

TEST_CASE("a state without numbers is delivered at every instant, inputs jump between them") {
  for (const Integrator integrator : kAll) {
    double input = 1.0;
    Problem problem;
    problem.f = [](double, State, std::span<double>) { FAIL("there is nothing to integrate"); };
    problem.breaks = {0.3, 0.6};
    problem.at_break = [&](double t, std::span<double>) { input = 10.0 * t; };
    std::vector<double> seen;
    Options options = with(integrator, 1e-9);
    const auto run = [&] {
      seen.clear();
      integrate(problem, {}, std::vector{0.0, 0.3, 0.5, 1.0}, options, [&](double, State y) {
        CHECK(y.empty());
        seen.push_back(input);
      });
    };
    run();
    CHECK(seen == std::vector{1.0, 1.0, 3.0, 6.0});
    options.progress = [](double t) { return t < 0.5; };
    run();
    CHECK(seen.size() == 3);
  }
}

TEST_CASE("what the right-hand side throws ends the run and reaches the caller") {
  for (const Integrator integrator : kAll) {
    Problem problem = oscillator();
    problem.f = [](double t, State, std::span<double>) {
      if (t > 0.5) throw std::domain_error("beyond");
    };
    CHECK_THROWS_AS(integrate(problem, {1.0, 0.0}, every(1.0, 2.0), with(integrator, 1e-6), [](double, State) {}),
                    std::domain_error);
  }
}

TEST_CASE("a motion that ends in a pole is given up with the time, not followed for ever") {
  for (const Integrator integrator : kAll) {
    Problem problem;
    problem.size = 1;
    problem.f = [](double, State y, std::span<double> yd) { yd[0] = y[0] * y[0]; };  // y = 1 / (1 - t)
    std::string said;
    try {
      integrate(problem, {1.0}, std::vector{0.0, 2.0}, with(integrator, 1e-6), [](double, State) {});
    } catch (const SolverError& error) {
      said = error.what();
    }
    CAPTURE(said);
    const std::string start = "the integrator gave up at ";
    REQUIRE(said.rfind(start, 0) == 0);
    CHECK(std::stod(said.substr(start.size())) == doctest::Approx(1.0).epsilon(1e-3));
  }
}

TEST_CASE("progress is told after every step and may end the run, or break it off") {
  Options options = with(Integrator::dormand_prince, 1e-6);
  long told = 0;
  options.progress = [&](double) { return ++told > 0; };
  CHECK(run_oscillator(options, 10.0).effort.steps == told);
  options.progress = [](double t) { return t < 1.0; };
  CHECK(run_oscillator(options, 10.0).effort.steps < told / 2);
  options.progress = [](double) -> bool { throw std::runtime_error("stopped"); };
  CHECK_THROWS_WITH(run_oscillator(options, 10.0), "stopped");
}

TEST_CASE("tolerances that are not positive and instants that do not ascend are refused") {
  const auto nothing = [](double, State) {};
  for (const double bad : {0.0, -1.0, std::nan("")})
    CHECK_THROWS_AS(run_oscillator(with(Integrator::ode113, bad), 1.0), std::invalid_argument);
  CHECK_THROWS_AS(integrate(oscillator(), {1.0, 0.0}, {}, {}, nothing), std::invalid_argument);
  CHECK_THROWS_AS(integrate(oscillator(), {1.0, 0.0}, std::vector{0.0, 1.0, 1.0}, {}, nothing), std::invalid_argument);
}

TEST_CASE("a single instant is delivered as it is given") {
  int count = 0;
  integrate(oscillator(), {1.0, 0.0}, std::vector{0.0}, {}, [&](double, State y) { count += y[0] == 1.0; });
  CHECK(count == 1);
}

}  // namespace rigstep::offline
