// The references and the protocol of rigstep bench, and what rigstep tune makes of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>

#include "proto/load_rig.h"
#include "server/bench/accuracy.h"
#include "server/bench/error_costs.h"
#include "server/bench/mechanisms.h"
#include "server/bench/solvers.h"
#include "server/machine/timing.h"
#include "server/machine/tune.h"
#include "server/output/chart.h"
#include "server/output/quantile.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::server;
using rigstep::test::reference;
using rigstep::test::vec3;

TEST_CASE("bench: the chain's reference is the recorded one") {
  const ReferenceMotion motion = chain_motion(8, 2.0);
  REQUIRE(motion.bodies.size() == 2000);
  double largest = 0.0;
  const nlohmann::json recorded = reference("chain_n8");
  for (std::size_t k = 1; k <= 20; ++k) {  // every 0.1 s
    const auto& sample = recorded["reference"][k];
    REQUIRE(sample["t"].get<double>() == doctest::Approx(0.1 * static_cast<double>(k)));
    largest = std::max(largest, (motion.bodies[100 * k - 1][7] - vec3(sample["last_body"]["r"])).norm());
  }
  CHECK(largest < 1e-9);
}

TEST_CASE("bench: the four-bar's reference is the recorded one") {
  const ReferenceMotion motion = four_bar_motion(10.0);
  REQUIRE(motion.bodies.size() == 10000);
  double largest = 0.0;
  const nlohmann::json recorded = reference("four_bar");
  for (std::size_t k = 1; k <= 20; ++k)  // every 0.5 s
    for (std::size_t i = 0; i < 3; ++i) {
      const char* const name[] = {"A", "B", "C"};
      largest = std::max(
          largest, (motion.bodies[500 * k - 1][i] - vec3(recorded["reference"][k]["bodies"][name[i]]["r"])).norm());
    }
  CHECK(largest < 1e-9);
}

TEST_CASE("bench: what stands on springs instead of drivers, motors and tyres moves as its reference says") {
  for (const std::pair<const char*, std::size_t> which : {std::pair{"stewart", 6}, {"full_car", 9}}) {
    CAPTURE(which.first);
    const Mechanism as_described = test::mechanism(which.first), m = moved_by_gravity(as_described);
    CHECK(m.bodies().size() == as_described.bodies().size());
    CHECK(m.joints().size() == as_described.joints().size());
    CHECK(m.springs().size() == which.second);
    CHECK(m.drivers().empty());
    CHECK(m.tyres().empty());
    CHECK(m.input_channels().empty());
    const ReferenceMotion motion = solved_motion(m, 0.5, false);
    REQUIRE(motion.bodies.size() == 500);
    const TimedSolver stepper = timed_stepper(m, 2e-3, {.order_of_accuracy = 4});
    double largest = 0.0, farthest = 0.0;
    for (std::size_t instant = 99; instant < motion.bodies.size(); instant += 100) {
      for (int k = 0; k < 50; ++k) stepper.step();
      const std::vector<Vec3>& bodies = motion.bodies[instant];
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        largest = std::max(largest, (stepper.position_0(static_cast<int>(i)) - bodies[i]).norm());
        farthest = std::max(farthest, (bodies[i] - m.bodies()[i].position_0).norm());
      }
    }
    CHECK(farthest > 0.05);
    CHECK(largest < 1e-6);
  }
  CHECK(moved_by_gravity(test::mechanism("four_bar")).input_channels().size() == 1);  // as it is
}

TEST_CASE("bench: a reference is the same after it was written and read") {
  const ReferenceMotion motion = chain_motion(2, 0.5);
  const ReferenceMotion read = read_reference_motion(nlohmann::json::parse(to_json(motion).dump()));
  CHECK(read.interval == motion.interval);
  CHECK(read.bodies == motion.bodies);
}

TEST_CASE("bench: the chain built in code is that of config/mechanisms") {
  const Mechanism code = make_chain(8, JointType::spherical), file = test::mechanism("chain_8");
  REQUIRE(code.bodies().size() == file.bodies().size());
  for (std::size_t i = 0; i < code.bodies().size(); ++i) {
    CHECK(code.bodies()[i].mass == file.bodies()[i].mass);
    CHECK(code.bodies()[i].inertia_b == file.bodies()[i].inertia_b);
    CHECK(code.bodies()[i].position_0 == file.bodies()[i].position_0);
    CHECK(code.joints()[i].in_first.point_b == file.joints()[i].in_first.point_b);
    CHECK(code.joints()[i].in_second.point_b == file.joints()[i].in_second.point_b);
  }
}

TEST_CASE("bench: a quantile is the smallest value that a share of all does not exceed, and of none there is none") {
  std::vector<double> values{4.0, 1.0, 3.0, 2.0};
  for (const auto& [share, value] : std::initializer_list<std::pair<double, double>>{
           {0.0, 1.0}, {0.25, 1.0}, {0.26, 2.0}, {0.5, 2.0}, {0.75, 3.0}, {0.999, 4.0}, {1.0, 4.0}})
    CHECK(quantile(values, share) == value);
  values.push_back(5.0);
  CHECK(quantile(values, 0.5) == 3.0);
  values.clear();
  CHECK(std::isnan(quantile(values, 0.5)));
}

TEST_CASE("bench: every measured window begins at the saved state") {
  const Mechanism m = make_chain(3, JointType::revolute);
  for (const TimedSolver& solver :
       {timed_stepper(m, 1e-2), timed_literal(m, 1e-2, false), timed_literal(m, 1e-2, true)}) {
    CAPTURE(solver.name);
    for (int k = 0; k < 5; ++k) solver.step();
    solver.save();
    for (int k = 0; k < 5; ++k) solver.step();
    const Vec3 after = solver.position_0(2);
    solver.restore();
    for (int k = 0; k < 5; ++k) solver.step();
    CHECK(solver.position_0(2) == after);

    int steps = 0;
    TimedSolver counted = solver;
    counted.step = [&] { ++steps; };
    TimingProtocol protocol = quick_protocol();
    protocol.budget = 0.0;
    const StepTimes times = time_steps(counted, protocol);
    CHECK(times.samples == static_cast<std::size_t>(protocol.repeats * protocol.window));
    CHECK(steps == protocol.warm_up + protocol.repeats * protocol.window);
  }
}

TEST_CASE("bench: errors fall with the step, and the ladder ends where the tolerance is met") {
  AccuracyLadder ladder;
  ladder.smallest_error = 1e-3;
  ladder.largest_dt = 0.1;
  const std::vector<AccuracyPoint> points = climb_down(
      [](double dt) { return timed_stepper(make_chain(2, JointType::spherical), dt); }, chain_motion(2, 1.0), ladder);
  REQUIRE(points.size() > 4);
  for (std::size_t k = 1; k < points.size(); ++k) CHECK(points[k].error < points[k - 1].error);
  const auto first = std::find_if(points.begin(), points.end(), [](const AccuracyPoint& p) { return p.error < 1e-3; });
  REQUIRE(first != points.end());
  CHECK(points.back().dt <= 0.5 * first->dt);
  CHECK(points[points.size() - 2].dt > 0.5 * first->dt);
  CHECK(cheapest(points, 1e-3) == &*first);
}

TEST_CASE("bench: steps that a run is shorter than are left out") {
  for (const AccuracyPoint& p :
       climb_down([](double dt) { return timed_stepper(make_chain(2, JointType::spherical), dt); },
                  chain_motion(2, 0.25), {.smallest_error = 0.0, .smallest_dt = 1e-2})) {
    CHECK(p.dt <= 0.25);
    CHECK(p.steps == static_cast<int>(0.25 / p.dt + 1e-9));
    CHECK(p.error > 0.0);
  }
}

TEST_CASE("bench: no step counts by luck") {
  const auto point = [](double dt, double error, double ms, int iterations = 0, double time_constant = 0.0) {
    return AccuracyPoint{dt, error, 0.0, ms, time_constant, iterations};
  };
  const double inf = std::numeric_limits<double>::infinity();
  // 0.1 is near by luck, 0.08 is not; 0.02 has no smaller one behind it
  std::vector<AccuracyPoint> points{point(0.1, 1e-4, 1.0),  point(0.08, 2e-3, 1.2), point(0.06, 5e-4, 1.6),
                                    point(0.04, 2e-4, 2.5), point(0.03, 8e-5, 3.0), point(0.02, 2e-5, 5.0)};
  CHECK(cheapest(points, 1e-3) == &points[2]);
  CHECK(cheapest(points, 3e-4) == &points[3]);
  CHECK(cheapest(points, 1e-4) == nullptr);
  CHECK(cheapest(points, 1e-5) == nullptr);
  // each series by itself: neither another number of iterations nor another time constant speaks against a step
  points = {point(0.1, 5e-4, 1.0, 2),  point(0.05, 1e-4, 2.0, 2),     point(0.1, inf, 0.5, 1),
            point(0.05, 1e-1, 1.0, 1), point(0.1, 1e-4, 0.9, 2, 5.0), point(0.05, inf, 2.0, 2, 5.0)};
  CHECK(cheapest(points, 1e-3) == &points[0]);
}

TEST_CASE("bench: a chart names its lines and marks every point") {
  const std::string svg =
      to_svg({"a < b", "bodies", "us", true, true, {{"one", {{1, 2}, {10, 20}}}, {"two", {{5, 3}}}}});
  CHECK(svg.find("a &lt; b") != std::string::npos);
  CHECK(svg.find(">two</text>") != std::string::npos);
  std::size_t marks = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1)) ++marks;
  CHECK(marks == 3);
  CHECK(to_svg({"empty", "x", "y", true, true, {}}).find("</svg>") != std::string::npos);
}

namespace {

TuneReport tune_four_bar() {
  TuneRequest request;
  request.mechanism = std::string(RIGSTEP_SOURCE_DIR) + "/config/mechanisms/four_bar.textproto";
  request.deadline_us = 1e6;  // nobody is late, whatever the machine does
  request.error = 1e-2;
  request.dt_us = {5000, 20000, 50000};
  request.iterations = {1, 3};
  request.projection_passes = {2};
  request.threads = {1};
  request.samples = 100;
  return tune(request, [](double done) { CHECK((done >= 0.0 && done <= 1.0)); });
}

}  // namespace

TEST_CASE("tune: errors against its own reference are those against the exact motion") {
  const TuneReport report = tune_four_bar();
  REQUIRE(report.settings.size() == 12);
  const Mechanism m = test::mechanism("four_bar");
  const AccuracyLadder ladder{.largest_dt = 0.1, .smallest_error = 0.0, .smallest_dt = 5e-3};
  const auto exact =
      climb_down([&m](double dt) { return timed_stepper(m, dt); }, four_bar_motion(report.request.duration), ladder);
  CHECK(report.uncertainty > 0.0);
  int compared = 0;
  for (const AccuracyPoint& point : exact)
    for (const TuneSetting& setting : report.settings) {
      if (setting.order != 2 || setting.iterations != 3 || std::abs(1e6 * point.dt - setting.dt_us) > 1e-6) continue;
      CAPTURE(setting.dt_us);
      CHECK(std::abs(setting.error - point.error) <= report.uncertainty);
      CHECK(point.error > 2.0 * report.uncertainty);  // so that the line above says something
      ++compared;
    }
  CHECK(compared == 3);
}

TEST_CASE("tune: the front is what no other setting beats, and the verdict follows from the numbers") {
  TuneReport report = tune_four_bar();
  const auto& all = report.settings;
  for (const TuneSetting& one : all) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&one](const TuneSetting& other) {
      return other.problem.empty() && other.load() <= one.load() && other.error <= one.error &&
             (other.load() < one.load() || other.error < one.error);
    });
    CHECK(one.on_front == (one.problem.empty() && !beaten));
    CHECK((one.p50_us <= one.p999_us && one.p999_us <= one.max_us));
  }
  REQUIRE(report.chosen.has_value());
  const TuneSetting& chosen = all[*report.chosen];
  CHECK((report.in_time(chosen) && report.accurate(chosen)));
  for (const TuneSetting& other : all)
    if (report.in_time(other) && report.accurate(other)) CHECK(chosen.load() <= other.load());

  const config::RigConfig rig = config::parse_rig(report.rig_file("/bench/rigs"), "/bench/rigs/tuned.textproto");
  CHECK(rig.mechanism_path == std::filesystem::path(report.request.mechanism).lexically_normal());
  CHECK(rig.period_ns == 1000 * chosen.dt_us);
  CHECK(rig.iterations == chosen.iterations);
  CHECK(rig.projection_passes == chosen.projection_passes);
  CHECK(rig.threads == chosen.threads);

  report.request.deadline_us = 1e-9;
  CHECK(std::none_of(all.begin(), all.end(), [&report](const TuneSetting& s) { return report.in_time(s); }));
}

TEST_CASE("tune: demands and grids that make no sense are refused by name") {
  const auto complaint = [](const std::function<void(TuneRequest&)>& spoil) -> std::string {
    TuneRequest request;
    request.mechanism = std::string(RIGSTEP_SOURCE_DIR) + "/config/mechanisms/four_bar.textproto";
    request.deadline_us = 1000.0;
    request.error = 1e-3;
    spoil(request);
    try {
      tune(request, [](double) {});
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "no complaint";
  };
  CHECK(complaint([](TuneRequest& r) { r.deadline_us = 0.0; }).starts_with("--deadline: 0 us"));
  CHECK(complaint([](TuneRequest& r) { r.error = -1.0; }).starts_with("--error: -1 m"));
  CHECK(complaint([](TuneRequest& r) { r.dt_us = {50}; }).starts_with("--dt: 50 is not between"));
  CHECK(complaint([](TuneRequest& r) {
          r.dt_us = {700, 1100, 1300, 1700};
        }).starts_with("--dt: all steps meet every 1701700 us"));
  CHECK(complaint([](TuneRequest& r) { r.iterations = {}; }).starts_with("--iterations: is empty"));
  CHECK(complaint([](TuneRequest& r) { r.threads = {0}; }).starts_with("--threads: 0 is not"));
}
