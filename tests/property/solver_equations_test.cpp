// What the absolute-coordinate reference solvers are made of: derivatives by finite differences, projections by their
// definition, and the equations of motion against those of the stepper, which share no code.
#include <doctest/doctest.h>

#include <cmath>

#include "core/offline/absolute_system.h"
#include "core/offline/complement_methods.h"
#include "core/offline/dense.h"
#include "tests/support/force_cases.h"

namespace rigstep::offline {
namespace {

// The motion after a time without accelerations.
std::vector<BodyMotion> drifted(std::vector<BodyMotion> bodies, double time) {
  Eigen::VectorXd delta(6 * static_cast<Eigen::Index>(bodies.size()));
  for (std::size_t i = 0; i < bodies.size(); ++i)
    delta.segment<6>(6 * static_cast<Eigen::Index>(i)) << time * bodies[i].v_0, time * bodies[i].omega_0;
  displace(bodies, delta);
  return bodies;
}

std::vector<ConstraintRow> rows_of(const Mechanism& m, const std::vector<BodyMotion>& bodies) {
  const std::vector<Jet> coordinates = CoordinateFollower(m).follow(bodies);
  const std::vector<double> inputs(m.input_channels().size(), 0.0);
  return Constraints(m).rows({0.0, bodies, coordinates, inputs}, std::vector<Prescribed>(m.drivers().size()));
}

TEST_CASE("rates and curvatures of all constraints are derivatives along the motion") {
  for (unsigned seed = 0; seed < 3; ++seed) {
    test::Description d = test::random_bare_tree(seed, 18);
    test::add_random_couplings(seed, d, 4);
    const Mechanism m = test::build(d);
    const std::vector<BodyMotion> now = start_motion(m);
    const double h = 1e-4;
    const auto before = rows_of(m, drifted(now, -h)), at = rows_of(m, now), after = rows_of(m, drifted(now, h));
    const std::vector<Vec6> v = velocities(now);
    REQUIRE(at.size() > 40);
    for (std::size_t k = 0; k < at.size(); ++k) {
      CAPTURE(m.constraint_name(at[k].constraint));
      const double rate = (after[k].Phi - before[k].Phi) / (2.0 * h);
      const double curvature = (after[k].Phi - 2.0 * at[k].Phi + before[k].Phi) / (h * h);
      CHECK(at[k].times(v) == doctest::Approx(rate).epsilon(1e-5).scale(1.0));
      CHECK(-at[k].gamma == doctest::Approx(curvature).epsilon(1e-4).scale(1.0));
    }
  }
}

void check_start_accelerations(const Mechanism& m) {
  const index3::Stepper stepper(m, {});
  Scenario scenario;
  scenario.mechanism = &m;
  scenario.instants = {0.0};
  for (const index3::BodyState& b : stepper.state().body)
    scenario.start.push_back({b.r, b.p, b.v, Eigen::Quaterniond(b.p[0], b.p[1], b.p[2], b.p[3]) * b.w_b});
  AbsoluteSystem solver(scenario, "reference solver");
  const std::vector<Vec6> a = solver.accelerations(0.0, solver.start());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(m.bodies()[i].name);
    const index3::BodyState& b = stepper.state().body[i];
    Vec6 want;
    want << b.a, Eigen::Quaterniond(b.p[0], b.p[1], b.p[2], b.p[3]) * b.alpha_b;
    CHECK((a[i] - want).norm() < 1e-6 * (1.0 + want.norm()));
  }
}

TEST_CASE("start accelerations are those of the stepper: trees, loops, all joints, all loads") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    CAPTURE(seed);
    check_start_accelerations(test::build(test::random_tree(seed, 17)));
    check_start_accelerations(test::build(test::random_loops(seed, 6)));
  }
  check_start_accelerations(test::every_force_element());
}

TEST_CASE("every projection spans the null space of the Jacobian, redundant rows or not") {
  test::Random random(7);
  for (const int redundant : {0, 3}) {
    const Eigen::Index n = 18, r = 11;
    Eigen::MatrixXd independent(r, n), mixing(r + redundant, r);
    for (Eigen::Index i = 0; i < r; ++i) independent.row(i) = random.values(n).transpose();
    for (Eigen::Index i = 0; i < mixing.rows(); ++i) mixing.row(i) = random.values(r).transpose();
    const Eigen::MatrixXd Phi_q = mixing * independent;
    const Selection chosen = select(Phi_q);
    CHECK(static_cast<Eigen::Index>(chosen.rows.size()) == r);
    CHECK(static_cast<Eigen::Index>(chosen.dependent.size()) == r);
    for (const Complement method : {Complement::zero_eigenvalue, Complement::schur, Complement::putd_householder,
                                    Complement::putd_gauss, Complement::svd, Complement::qr}) {
      CAPTURE(static_cast<int>(method));
      const Eigen::MatrixXd P = projection(method, Phi_q, chosen);
      REQUIRE(P.cols() == n - r);
      CHECK((Phi_q * P).cwiseAbs().maxCoeff() < 1e-10);
      CHECK(offline::least_squares(P, P).rank == n - r);
    }
  }
}

TEST_CASE("a filtered driver solves its differential equation, a table is a spline that starts and ends at rest") {
  MechanismBuilder builder("driven");
  builder.add_body(test::make_body("rotor", Vec3::Zero()));
  builder.add_joint(test::make_joint("axle", JointType::cylindrical, "ground", "rotor", Vec3::Zero(), Vec3::UnitZ()));
  Driver filtered;
  filtered.name = "filtered";
  filtered.from_input = Driver::FromInput::filtered;
  filtered.time_constant = 0.05;
  builder.add_driver(filtered, "axle", Freedom::angle);
  const std::vector<double> time{0.0, 0.1, 0.3, 0.4}, value{0.0, 0.2, -0.1, 0.3};
  Driver by_table;
  by_table.name = "table";
  by_table.function = table(time, value);
  builder.add_driver(by_table, "axle", Freedom::displacement);
  const Mechanism m = builder.build();
  Drives drives(m, std::vector<double>(m.coordinates().size(), 0.0), 0.0);
  const std::vector<double> input{1.0};
  drives.hold(0.0, input);
  const auto third = [&](double t) {
    return (drives.at(t + 1e-4)[0].acceleration - drives.at(t - 1e-4)[0].acceleration) / 2e-4;
  };
  for (const double t : {0.02, 0.1, 0.3}) {
    const Prescribed p = drives.at(t)[0];
    const double T = filtered.time_constant;
    CHECK(T * T * T * third(t) + 3.0 * T * T * p.acceleration + 3.0 * T * p.rate + p.value ==
          doctest::Approx(1.0).epsilon(1e-5));
  }
  CHECK(drives.at(0.0)[0].acceleration == doctest::Approx(0.0));
  CHECK(drives.at(2.0)[0].value == doctest::Approx(1.0));
  for (std::size_t k = 0; k < time.size(); ++k) CHECK(drives.at(time[k])[1].value == doctest::Approx(value[k]));
  CHECK(drives.at(0.0)[1].rate == doctest::Approx(0.0));
  CHECK(drives.at(0.4 - 1e-12)[1].rate == doctest::Approx(0.0));
  for (const double knot : {0.1, 0.3}) {
    CHECK(drives.at(knot - 1e-9)[1].rate == doctest::Approx(drives.at(knot + 1e-9)[1].rate).epsilon(1e-5));
    CHECK(drives.at(knot - 1e-9)[1].acceleration ==
          doctest::Approx(drives.at(knot + 1e-9)[1].acceleration).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace rigstep::offline
