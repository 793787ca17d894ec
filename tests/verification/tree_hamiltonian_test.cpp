// The tree methods of [003] against dense algebra, references, each other and the costs that the paper gives them.
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>

#include "core/offline/absolute_system.h"
#include "core/offline/compare.h"
#include "core/offline/dense.h"
#include "core/offline/stabilised_index2.h"
#include "core/offline/tree_hamiltonian.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::offline;

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr TreeMatrix kMatrices[] = {TreeMatrix::extended_lu, TreeMatrix::extended_lu_products,
                                    TreeMatrix::extended_ltdl, TreeMatrix::tangent, TreeMatrix::orthogonal};

// Hinges of all kinds, seen from either side, some of them driven; a few bodies float.
Mechanism random_hinges(unsigned seed, int n) {
  test::Description d = test::random_bare_tree(seed, n);
  test::Random random(seed + 500);
  d.gravity = 9.81 * random.direction();
  for (std::size_t k = 0; k < d.joints.size(); ++k) {
    auto& joint = d.joints[k];
    if (joint.type == JointType::distance) joint.type = JointType::revolute;
    if (k % 2 == 1) std::swap(joint.first, joint.second);
    const std::vector<Freedom> open = freedoms(joint.type);
    if (open.empty() || k % 3 != 0) continue;
    Driver driver;
    driver.name = "driver" + std::to_string(k);
    const double constant = joint.type == JointType::floating ? 0.0 : joint.coordinate_at_start;
    const double amplitude = random.uniform(0.1, 0.5);
    driver.function = harmonic(constant, amplitude, random.uniform(1.0, 4.0));
    d.drivers.push_back({driver, {joint.name, open.front()}});
  }
  test::add_random_springs(random, d);
  return test::build(test::made_consistent(d));
}

VectorXd stacked(const std::vector<Six<double>>& values) {
  VectorXd all(6 * static_cast<Eigen::Index>(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) all.segment<6>(6 * static_cast<Eigen::Index>(i)) = values[i];
  return all;
}

double relative_error(const VectorXd& ours, const VectorXd& theirs) {
  return (ours - theirs).lpNorm<Eigen::Infinity>() / theirs.lpNorm<Eigen::Infinity>();
}

Mat3 tilde(const Vec3& a) {
  Mat3 matrix;
  matrix << 0.0, -a.z(), a.y(), a.z(), 0.0, -a.x(), -a.y(), a.x(), 0.0;
  return matrix;
}

Mat6 omega(const Six<double>& v) {
  Mat6 Omega = Mat6::Zero();
  Omega.topLeftCorner<3, 3>() = Omega.bottomRightCorner<3, 3>() = tilde(v.tail<3>());
  Omega.bottomLeftCorner<3, 3>() = tilde(v.head<3>());
  return Omega;
}

// The matrices of (12) and (22) for the whole tree.
struct Dense {
  MatrixXd S, A, A_rate, M, Omega;

  explicit Dense(const TreeEquations& equations) {
    const TreeSystem<double>& s = equations.system();
    const Eigen::Index n = 6 * static_cast<Eigen::Index>(s.body.size()), rates = static_cast<Eigen::Index>(s.p.size());
    S = MatrixXd::Identity(n, n);
    A = A_rate = MatrixXd::Zero(n, rates);
    M = Omega = MatrixXd::Zero(n, n);
    for (std::size_t i = 0; i < s.body.size(); ++i) {
      const TreeBody<double>& b = s.body[i];
      const Eigen::Index at = 6 * static_cast<Eigen::Index>(i);
      if (b.inner >= 0) {
        S.block<3, 3>(at, 6 * b.inner) = S.block<3, 3>(at + 3, 6 * b.inner + 3) = -b.G;
        S.block<3, 3>(at, 6 * b.inner + 3) = b.G * tilde(b.rho);
      }
      for (int c = 0; c < b.freedoms; ++c) {
        A.block<6, 1>(at, b.rate + c) = b.A[static_cast<std::size_t>(c)];
        A_rate.block<6, 1>(at, b.rate + c) = equations.A_rate()[static_cast<std::size_t>(b.rate + c)];
      }
      M.block<3, 3>(at, at) = b.mass * Mat3::Identity();
      M.block<3, 3>(at, at + 3) = -tilde(b.moment);
      M.block<3, 3>(at + 3, at) = tilde(b.moment);
      M.block<3, 3>(at + 3, at + 3) = b.inertia;
      Omega.block<6, 6>(at, at) = omega(s.v[i]);
    }
  }

  // (v, mu, u) of (22) by dense elimination
  VectorXd solve(const VectorXd& load, const VectorXd& bias, const VectorXd& p) const {
    const Eigen::Index n = S.rows(), rates = A.cols();
    MatrixXd extended = MatrixXd::Zero(2 * n + rates, 2 * n + rates);  // (32)
    extended.topLeftCorner(n, n) = M;
    extended.block(0, n, n, n) = -S.transpose();
    extended.block(n, 0, n, n) = -S;
    extended.block(n, 2 * n, n, rates) = A;
    extended.block(2 * n, n, rates, n) = A.transpose();
    VectorXd right(2 * n + rates);
    right << load, -bias, p;
    return least_squares(extended, right, 0.0).x;
  }
};

// Accelerations of all bodies from M a + J'lambda = load, J a = gamma in absolute coordinates.
std::vector<Vec6> absolute_accelerations(AbsoluteSystem& system, std::span<const BodyMotion> bodies) {
  const AbsoluteEquations now = system.at(0.0, bodies);
  const Eigen::Index n = 6 * static_cast<Eigen::Index>(bodies.size()),
                     rows = static_cast<Eigen::Index>(now.rows.size());
  MatrixXd matrix = MatrixXd::Zero(n + rows, n + rows);
  VectorXd right(n + rows);
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Eigen::Index at = 6 * static_cast<Eigen::Index>(i);
    matrix.block<3, 3>(at, at) = system.mechanism().bodies()[i].mass * Mat3::Identity();
    matrix.block<3, 3>(at + 3, at + 3) = inertia_0(system.mechanism().bodies()[i], bodies[i]);
    right.segment<6>(at) = now.load[i];
  }
  const MatrixXd J = jacobian(now.rows, bodies.size());
  matrix.topRightCorner(n, rows) = J.transpose();
  matrix.bottomLeftCorner(rows, n) = J;
  for (Eigen::Index k = 0; k < rows; ++k) right[n + k] = now.rows[static_cast<std::size_t>(k)].gamma;
  const VectorXd solution = least_squares(matrix, right, 0.0).x;
  std::vector<Vec6> accelerations(bodies.size());
  for (std::size_t i = 0; i < bodies.size(); ++i)
    accelerations[i] = solution.segment<6>(6 * static_cast<Eigen::Index>(i));
  return accelerations;
}

struct Start {
  explicit Start(const Mechanism& m) : scenario{&m, {}, {0.0}, {}}, absolute(scenario, "test") {}
  Scenario scenario;
  AbsoluteSystem absolute;
};

}  // namespace

TEST_CASE(
    "every tree method has the rates and accelerations of dense algebra on random trees with hinges of all kinds") {
  for (unsigned seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    const Mechanism m = random_hinges(seed, 16);
    Start start(m);
    const VectorXd accelerations = stacked(absolute_accelerations(start.absolute, start.absolute.start()));
    for (const TreeMatrix matrix : kMatrices) {
      CAPTURE(static_cast<int>(matrix));
      TreeEquations momenta(m, start.absolute.start(), 0.0, {TreeState::momenta, matrix});
      std::vector<double> yd(momenta.start().size());
      momenta.evaluate(0.0, momenta.start(), yd);
      const TreeSystem<double>& s = momenta.system();
      const Dense dense(momenta);
      const Eigen::Index n = dense.S.rows(), rates = dense.A.cols();
      const VectorXd p = Eigen::Map<const VectorXd>(s.p.data(), rates), v = stacked(s.v), mu = stacked(s.mu);
      const VectorXd solution = dense.solve(VectorXd::Zero(n), stacked(s.bias), p);
      CHECK(relative_error(v, solution.head(n)) < 1e-11);
      CHECK(relative_error(mu, solution.segment(n, n)) < 1e-11);
      CHECK(relative_error(Eigen::Map<const VectorXd>(s.u.data(), rates), solution.tail(rates)) < 1e-11);
      for (std::size_t i = 0; i < m.bodies().size(); ++i)  // the momenta were those of the start
        CHECK((momenta.bodies()[i].v_0 - start.absolute.start()[i].v_0).norm() < 1e-11);
      CHECK(relative_error(stacked(momenta.accelerations()), accelerations) < 1e-11);

      TreeEquations moving(m, start.absolute.start(), 0.0, {TreeState::rates, matrix});
      moving.evaluate(0.0, moving.start(), yd);
      CHECK(relative_error(stacked(moving.accelerations()), accelerations) < 1e-11);
      CHECK(relative_error(Eigen::Map<const VectorXd>(moving.start().data() + moving.start().size() - rates, rates),
                           solution.tail(rates)) < 1e-11);
    }
  }
}

TEST_CASE("momenta change as the motion of dense algebra makes them change") {
  for (unsigned seed = 10; seed < 14; ++seed) {
    CAPTURE(seed);
    const Mechanism m = random_hinges(seed, 12);
    Start start(m);
    const std::vector<Vec6> accelerations = absolute_accelerations(start.absolute, start.absolute.start());
    for (const TreeMatrix matrix : kMatrices) {
      TreeEquations equations(m, start.absolute.start(), 0.0, {TreeState::momenta, matrix});
      std::vector<double> yd(equations.start().size());
      equations.evaluate(0.0, equations.start(), yd);
      const Dense dense(equations);
      const TreeSystem<double>& s = equations.system();
      VectorXd rate(dense.S.rows());  // of v in the axes of the bodies
      for (std::size_t i = 0; i < s.body.size(); ++i) {
        const TreeHinge& hinge = equations.kinematics().hinges()[i];
        const Mat3& axes_0 = equations.kinematics().poses()[i].axes_0;
        const Vec6& a = accelerations[static_cast<std::size_t>(hinge.body)];
        const Vec3 w = s.v[i].tail<3>(), centre = axes_0.transpose() * a.head<3>(),
                   turn = axes_0.transpose() * a.tail<3>();
        const Vec3 c = hinge.mass_centre;
        rate.segment<6>(6 * static_cast<Eigen::Index>(i))
            << centre - turn.cross(c) - w.cross(w.cross(c)) - w.cross(Vec3(s.v[i].head<3>())),
            turn;
      }
      const MatrixXd S_rate = dense.Omega.transpose() * dense.S - dense.S * dense.Omega.transpose();  // (17)
      const VectorXd mu = stacked(s.mu);                                                              // S'mu = M v
      const VectorXd mu_rate = least_squares(dense.S.transpose(), dense.M * rate - S_rate.transpose() * mu, 0.0).x;
      const VectorXd p_rate = dense.A_rate.transpose() * mu + dense.A.transpose() * mu_rate;
      CHECK(relative_error(Eigen::Map<const VectorXd>(yd.data() + yd.size() - s.p.size(), p_rate.size()), p_rate) <
            1e-11);
    }
  }
}

namespace {

struct TreeCase {
  Mechanism mechanism;
  nlohmann::json reference;
  Scenario scenario;
};

// Instants of a reference solution up to `until` [s].
void load(TreeCase& c, const std::string& mechanism, const std::string& reference, double until) {
  c.mechanism = test::mechanism(mechanism);
  c.reference = test::reference(reference);
  c.scenario.mechanism = &c.mechanism;
  for (const auto& sample : c.reference["reference"])
    if (sample["t"].get<double>() <= until + 1e-9) c.scenario.instants.push_back(sample["t"]);
}

// Of every mass centre; long chains tell that of their last body only [m].
double tree_error(const TreeCase& c, const Trajectory& run) {
  double error = 0.0;
  for (std::size_t k = 0; k < run.instants.size(); ++k) {
    const std::vector<BodyMotion>& bodies = run.instants[k].body;
    const auto& sample = c.reference["reference"][k];
    const auto compare_with = [&](const BodyMotion& body, const nlohmann::json& want) {
      error = std::max(error, (body.r_0 - test::vec3(want["r"])).norm());
    };
    if (!sample.contains("bodies")) compare_with(bodies.back(), sample["last_body"]);
    for (std::size_t i = 0; i < bodies.size() && sample.contains("bodies"); ++i)
      compare_with(bodies[i], sample["bodies"].at(c.mechanism.bodies()[i].name));
  }
  return error;
}

std::vector<Solver> tree_solvers() {
  std::vector<Solver> found;
  for (const Solver& solver : solvers())
    if (solver.name.starts_with("tree_")) found.push_back(solver);
  REQUIRE(found.size() == 8);
  return found;
}

std::string complaint_of(const Solver& solver, const Scenario& scenario, const Options& options) {
  try {
    solver.simulate(scenario, options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("every tree method follows the references to 1e-8 m at tolerance 1e-10") {
  const struct {
    const char *mechanism, *reference;
    double until;
  } cases[] = {
      {"pipelayer", "pipelayer", 1.0}, {"double_pendulum", "double_pendulum", 2.0}, {"chain_8", "chain_n8", 1.0}};
  for (const auto& one : cases) {
    CAPTURE(one.mechanism);
    TreeCase c;
    load(c, one.mechanism, one.reference, one.until);
    REQUIRE(c.scenario.instants.size() > 2);
    for (const Solver& solver : tree_solvers()) {
      CAPTURE(solver.name);
      CHECK(tree_error(c, solver.simulate(c.scenario, test::at_tolerance(1e-10))) < 1e-8);
    }
  }
}

TEST_CASE(
    "tree methods agree with each other and with another reference solver, with driven hinges and floating bodies") {
  const Mechanism random = random_hinges(3, 7);
  REQUIRE(random.drivers().size() > 1);
  std::vector<Mechanism> mechanisms{random};
  for (const char* name : {"motor_with_friction", "chain_8"}) mechanisms.push_back(test::mechanism(name));
  for (const Mechanism& m : mechanisms) {
    CAPTURE(m.name());
    const Scenario scenario{&m, {}, {0.0, 0.1, 0.25}, {}};
    const Trajectory other = stabilised_index2(scenario, test::at_tolerance(1e-9));
    std::vector<Instant> first;
    for (const Solver& solver : tree_solvers()) {
      CAPTURE(solver.name);
      REQUIRE(solver.unsupported_reason(m) == "");
      const std::vector<Instant> run = solver.simulate(scenario, test::at_tolerance(1e-10)).instants;
      if (first.empty()) first = run;
      const offline::Values from_other = compare(m, other.instants, run, {});
      CHECK(from_other.largest(Quantity::position) < 1e-7);
      CHECK(from_other.largest(Quantity::velocity) < 1e-6);
      const Determined all(static_cast<std::size_t>(m.constraints()), true);
      const offline::Values apart = compare(m, first, run, all);
      CHECK(apart.largest(Quantity::position) < 1e-8);
      CHECK(apart.largest(Quantity::force) < 1e-5);
      CHECK(apart.largest(Quantity::effort) < 1e-5);
    }
  }
}

TEST_CASE("what the tree methods cannot do is said, and what is wrong with a start") {
  MechanismBuilder builder("rod");
  builder.add_body(test::make_body("bob", {0.0, -1.0, 0.0}));
  MechanismBuilder::JointAtStart rod = test::make_joint("rod", JointType::distance, "ground", "bob", Vec3::Zero());
  rod.second_point = {0.0, -1.0, 0.0};
  builder.add_joint(rod);
  const Mechanism hanging = builder.build(), loop = test::mechanism("four_bar"), m = test::mechanism("double_pendulum"),
                  geared = test::mechanism("rack_and_pinion");
  for (const Solver& solver : tree_solvers()) {
    CAPTURE(solver.name);
    const auto complaint = [&](const Mechanism& which) {
      const std::string words = complaint_of(solver, {&which, {}, {0.0, 0.1}, {}}, {});
      CHECK(words.find(solver.unsupported_reason(which)) != std::string::npos);
      CHECK(words.starts_with(std::string(solver.name) + ": cannot simulate"));
      return solver.unsupported_reason(which);
    };
    CHECK(complaint(loop).find("closes a loop") != std::string::npos);
    CHECK(complaint(geared).find("couples joint coordinates") != std::string::npos);
    CHECK(complaint(hanging).find("\"rod\" is a rod without mass") != std::string::npos);
    Scenario scenario{&m, start_motion(m), {0.0, 0.1}, {}};
    CHECK(complaint_of(solver, scenario, test::at_tolerance(0.0)).find("tolerance: must be positive") !=
          std::string::npos);
    scenario.start[1].v_0.y() += 0.1;
    CHECK(complaint_of(solver, scenario, {}).find("velocity contradicts joint \"joint2\"") != std::string::npos);
  }
}
