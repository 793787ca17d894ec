#include "server/studies/tree_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/mechanism/builder.h"
#include "proto/load_mechanism.h"
#include "server/bench/solvers.h"

namespace rigstep::server {

namespace {

using offline::TreeMatrix;
using offline::TreeState;

std::vector<offline::BodyMotion> at_start(const Mechanism& m) { return offline::start_motion(m); }

// Lowest time of some calls [us].
template <class Call>
double lowest_us(double budget_s, const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double lowest = 1e300;
  do {
    const auto before = Clock::now();
    call();
    lowest = std::min(lowest, std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < budget_s);
  return lowest;
}

long count_momentum_rates(const offline::TreeEquations& equations) {
  offline::TreeSystem<offline::Counted> system = offline::counted(equations.system());
  std::vector<offline::Six<offline::Counted>> A_rate, wrench;
  for (const auto& column : equations.A_rate()) A_rate.push_back(column.cast<offline::Counted>());
  for (const auto& load : equations.wrenches()) wrench.push_back(load.cast<offline::Counted>());
  std::vector<offline::Counted> rates(A_rate.size());
  const long before = offline::Counted::operations;
  offline::momentum_rates<offline::Counted>(system, A_rate, wrench, rates.data());
  return offline::Counted::operations - before;
}

TreeSample measure(std::size_t structure, int freedoms, int bodies, double budget_s) {
  TreeSample sample;
  sample.structure = structure, sample.freedoms = freedoms, sample.bodies = bodies;
  const TreeShape shape = kStructures[structure].shape(bodies, freedoms);
  const Mechanism m = tree_mechanism(shape);
  for (std::size_t k = 0; k < kMethodCount; ++k) {
    offline::TreeEquations equations(m, at_start(m), 0.0, {TreeState::momenta, kMethods[k].matrix});
    std::vector<double> rate(equations.start().size());
    TreeSample::Of& of = sample.method[k];
    of.evaluate_us = lowest_us(budget_s, [&] { equations.evaluate(0.0, equations.start(), rate); });
    offline::TreeSystem<double> system = equations.system();
    offline::TreeSolver<double> solver(kMethods[k].matrix);
    solver.solve(system);  // allocates
    of.solve_us = lowest_us(budget_s, [&] { solver.solve(system); });
    of.operations = count_operations(kMethods[k].matrix, system);
    of.table = table_1(kMethods[k].matrix, shape);
    if (k > 0) continue;
    sample.sweep_lu = count_operations(TreeMatrix::extended_lu, system).all();
    sample.momentum_rates = count_momentum_rates(equations);
  }
  TimingProtocol protocol = quick_protocol();
  protocol.budget = budget_s;
  sample.stepper_us = time_steps(timed_stepper(m, kStepperDt), protocol).lowest;
  return sample;
}

std::vector<int> tree_sizes(const StudyRequest& study) {
  return study.quick ? std::vector{2, 8, 32} : std::vector{2, 4, 8, 16, 32, 64, 128, 256};
}

}  // namespace

offline::TreeOperations count_operations(TreeMatrix matrix, const offline::TreeSystem<double>& system) {
  offline::TreeSystem<offline::Counted> counted = offline::counted(system);
  offline::TreeSolver<offline::Counted> solver(matrix);
  solver.solve(counted);
  return solver.operations();
}

double count_operations(TreeMatrix matrix, const TreeShape& shape) {
  const Mechanism m = tree_mechanism(shape);
  const offline::TreeEquations equations(m, at_start(m), 0.0, {});
  return static_cast<double>(count_operations(matrix, equations.system()).all());
}

std::size_t tree_sample_count(const StudyRequest& study) {
  return kStructureCount * kHinges * tree_sizes(study).size();
}

std::vector<TreeSample> measure_trees(const StudyRequest& study, const std::function<void()>& tell) {
  std::vector<TreeSample> samples;
  for (std::size_t s = 0; s < kStructureCount; ++s)
    for (int n = 1; n <= kHinges; ++n)
      for (const int bodies : tree_sizes(study)) {
        samples.push_back(measure(s, n, bodies, study.brief_times ? 0.002 : 0.05));
        tell();
      }
  return samples;
}

Pipelayer run_pipelayer(const StudyRequest& study, const std::function<void()>& tell) {
  const Mechanism m = config::load_mechanism(study.mechanism_file("pipelayer")).mechanism;
  const double duration = study.quick ? 0.1 : 2.0;
  Pipelayer result;
  offline::Scenario scenario{&m, {}, {}, {}};
  for (int k = 0; k <= 20; ++k) scenario.instants.push_back(duration * k / 20);
  for (const offline::Solver& solver : offline::solvers()) {
    if (!solver.name.starts_with("tree_")) continue;
    Pipelayer::Run run{std::string(solver.name), solver.simulate(scenario, {}), 0.0, 0.0};
    const auto& first = result.runs.empty() ? run.trajectory : result.runs.front().trajectory;
    for (std::size_t k = 0; k < run.trajectory.instants.size(); ++k) {
      const offline::Instant &at = run.trajectory.instants[k], &there = first.instants[k];
      for (std::size_t i = 0; i < at.body.size(); ++i)
        run.apart = std::max(run.apart, (at.body[i].r_0 - there.body[i].r_0).norm());
      run.energy_change = std::max(run.energy_change, std::abs(at.energy - run.trajectory.instants.front().energy));
    }
    result.runs.push_back(std::move(run));
    tell();
  }
  offline::TreeEquations equations(m, at_start(m), 0.0, {});
  for (const auto& body : equations.system().body) {
    result.shape.inner.push_back(body.inner);
    result.shape.freedoms.push_back(body.freedoms);
  }
  for (std::size_t k = 0; k < kMethodCount; ++k)
    result.counted[k] = count_operations(kMethods[k].matrix, equations.system()).all();
  TimingProtocol protocol = quick_protocol();
  result.stepper_us = time_steps(timed_stepper(m, 1e-3), protocol).lowest;
  return result;
}

Mechanism tree_mechanism(const TreeShape& shape) {
  constexpr JointType kTypes[] = {JointType::fixed,     JointType::revolute,      JointType::universal,
                                  JointType::spherical, JointType::point_on_line, JointType::point_on_plane};
  MechanismBuilder builder("tree");
  builder.set_gravity({0.0, 0.0, -9.81});
  std::vector<Vec3> centre;
  for (std::size_t i = 0; i < shape.inner.size(); ++i) {
    const double angle = 2.4 * static_cast<double>(i);
    const Vec3 arm = 0.5 * Vec3(std::cos(angle), std::sin(angle), 0.3).normalized();
    const Vec3 across(-std::sin(angle), std::cos(angle), 0.0);
    const int inner = shape.inner[i];
    const Vec3 from = inner < 0 ? Vec3(Vec3::Zero()) : centre[static_cast<std::size_t>(inner)];
    centre.push_back(from + 2.0 * arm);
    Body body;
    body.name = fmt::format("B{}", i);
    body.mass = 1.0;
    body.inertia_b = Vec3(0.1, 0.2, 0.15).asDiagonal();
    body.position_0 = centre.back();
    builder.add_body(body);
    MechanismBuilder::JointAtStart joint;
    joint.name = fmt::format("J{}", i);
    joint.type = kTypes[shape.freedoms[i]];
    joint.first = inner < 0 ? "ground" : fmt::format("B{}", inner);
    joint.second = body.name;
    joint.point = from + arm;
    if (shape.freedoms[i] != 3) joint.axis = across;
    if (shape.freedoms[i] == 2) joint.second_axis = across.cross(arm).normalized();
    builder.add_joint(joint);
  }
  return builder.build();
}

}  // namespace rigstep::server
