#include "server/studies/hamiltonian_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"
#include "proto/load_mechanism.h"
#include "server/studies/instruction_count.h"

namespace rigstep::server {

namespace {

constexpr double kDuration = 10.0;  // of the paper's simulations [s]

using offline::Integrator;
using offline::Trajectory;

Trajectory simulate(int form, const Mechanism& mechanism, std::vector<double> instants, Integrator integrator,
                    double tolerance) {
  offline::Scenario scenario;
  scenario.mechanism = &mechanism;
  scenario.instants = std::move(instants);
  offline::Options options;
  options.integrator = integrator;
  options.relative_tolerance = options.absolute_tolerance = tolerance;
  return form == 0 ? offline::hamiltonian_dca(scenario, options) : offline::featherstone_dca(scenario, options);
}

// Point K: where the joint of that name is; in case 3 the centre of C.
PaperCase load_case(const StudyRequest& study, int number) {
  PaperCase c;
  c.number = number;
  c.mechanism = config::load_mechanism(study.mechanism_file(fmt::format("hdca_case{}", number))).mechanism;
  const auto find = [](const auto& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.name == name; });
  };
  if (number == 3) {
    c.K_body = static_cast<int>(find(c.mechanism.bodies(), "C") - c.mechanism.bodies().begin());
  } else {
    const Joint& joint = *find(c.mechanism.joints(), number == 1 ? "j3" : "j5");
    c.K_body = joint.first;
    c.K_point = joint.in_first.point_b;
  }
  return c;
}

// Evaluations of both forms take turns, so that what else the machine does hits both.
void time_evaluations(const StudyRequest& study, PaperCase& c) {
  using Clock = std::chrono::steady_clock;
  offline::Scenario scenario;
  scenario.mechanism = &c.mechanism;
  scenario.instants = {0.0};
  const std::function<void()> evaluate[2] = {offline::hamiltonian_dca_evaluation(scenario),
                                             offline::featherstone_dca_evaluation(scenario)};
  std::vector<double> us[2];
  for (int k = 0; k < (study.brief_times ? 100 : 4000); ++k)
    for (int form = 0; form < 2; ++form) {
      const auto begin = Clock::now();
      evaluate[form]();
      us[form].push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count());
    }
  for (int form = 0; form < 2; ++form) {
    std::sort(us[form].begin(), us[form].end());
    c.evaluation_us[form] = us[form][us[form].size() / 2];
    if (!study.quick) c.instructions[form] = count_instructions(evaluate[form]);
  }
}

}  // namespace

double tolerance(int index) { return std::pow(10.0, -3 - index); }

std::vector<int> tolerances(const StudyRequest& study) {
  return study.quick ? std::vector{0, 3} : std::vector{0, 1, 2, 3, 4, 5, 6};
}

long count_evaluations(int form, const Mechanism& mechanism, double tolerance) {
  return simulate(form, mechanism, {0.0, kDuration}, Integrator::ode45, tolerance).right_hand_sides;
}

PaperCase run_case(const StudyRequest& study, int number, const std::function<void()>& tell) {
  const double duration = study.quick ? 1.0 : kDuration;
  std::vector<double> instants;
  for (int k = 0; k <= 200; ++k) instants.push_back(duration * k / 200);
  PaperCase c = load_case(study, number);
  for (const int t : tolerances(study)) {
    for (int form = 0; form < 2; ++form)
      c.accuracy[t][form] = simulate(form, c.mechanism, instants, Integrator::ode45, tolerance(t));
    tell();
  }
  for (int i = 0; i < kIntegrators; ++i)
    for (const int t : tolerances(study)) {
      for (int form = 0; form < 2; ++form)
        c.run[i][t][form] = simulate(form, c.mechanism, {0.0, duration}, kIntegratorNames[i].integrator, tolerance(t));
      tell();
    }
  time_evaluations(study, c);
  return c;
}

std::array<double, 2> height_of_K(const PaperCase& c, const offline::Instant& at) {
  const offline::BodyMotion& body = at.body[c.K_body];
  const Eigen::Quaterniond turn(body.p[0], body.p[1], body.p[2], body.p[3]);
  const Vec3 arm = turn * c.K_point;
  return {body.r_0.y() + arm.y(), body.v_0.y() + body.omega_0.cross(arm).y()};
}

double energy_error(const Trajectory& run, std::size_t k) { return run.instants[k].energy - run.instants[0].energy; }

double largest(const Trajectory& run, double offline::Instant::*residual) {
  double value = 0.0;
  for (const auto& at : run.instants) value = std::max(value, at.*residual);
  return value;
}

double largest_energy_error(const Trajectory& run) {
  double value = 0.0;
  for (std::size_t k = 0; k < run.instants.size(); ++k) value = std::max(value, std::abs(energy_error(run, k)));
  return value;
}

double growth(const Trajectory& run, double offline::Instant::*residual) {
  const std::size_t n = run.instants.size(), early = n / 5;
  double first = 0.0, all = 0.0;
  for (std::size_t k = 0; k < n; ++k) {
    all = std::max(all, run.instants[k].*residual);
    if (k == early) first = all;
  }
  return std::log(all / first) / std::log(run.instants.back().time / run.instants[early].time);
}

double count_ratio(const Pair& run) {
  return static_cast<double>(run[1].right_hand_sides) / static_cast<double>(run[0].right_hand_sides);
}

}  // namespace rigstep::server
