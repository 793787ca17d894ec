// The reference solvers in absolute coordinates against reference solutions, each other and closed forms.
#include <doctest/doctest.h>

#include <cmath>

#include "core/offline/absolute_system.h"
#include "core/offline/compare.h"
#include "core/offline/complement_methods.h"
#include "core/offline/natural_complement.h"
#include "core/offline/stabilised_index2.h"
#include "tests/support/mechanisms.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::offline;

namespace {

constexpr Complement kMethods[] = {Complement::zero_eigenvalue, Complement::schur,      Complement::putd_householder,
                                   Complement::putd_gauss,      Complement::svd,        Complement::qr,
                                   Complement::partitioning,    Complement::wang_huston};

struct Case {
  Mechanism mechanism;
  nlohmann::json reference;
  Scenario scenario;
};

// Instants of a reference solution up to `until` [s].
Case reference_case(const std::string& mechanism, const std::string& reference, double until) {
  Case c{test::mechanism(mechanism), test::reference(reference), {}};
  for (const auto& sample : c.reference["reference"])
    if (sample["t"].get<double>() <= until + 1e-9) c.scenario.instants.push_back(sample["t"]);
  return c;
}

// Largest distance of a mass centre from the reference [m].
double position_error(const Case& c, const Trajectory& run) {
  double error = 0.0;
  for (std::size_t k = 0; k < run.instants.size(); ++k) {
    const auto& bodies = c.reference["reference"][k]["bodies"];
    for (std::size_t i = 0; i < c.mechanism.bodies().size(); ++i)
      if (bodies.contains(c.mechanism.bodies()[i].name))
        error = std::max(error,
                         (run.instants[k].body[i].r_0 - test::vec3(bodies[c.mechanism.bodies()[i].name]["r"])).norm());
  }
  return error;
}

ComplementRun run(Case& c, Complement method, double tolerance, Stabilisation stabilisation = Stabilisation::none) {
  c.scenario.mechanism = &c.mechanism;
  ComplementSettings settings;
  settings.method = method;
  settings.stabilisation = stabilisation;
  return natural_complement(c.scenario, test::at_tolerance(tolerance), settings);
}

double largest_position_residual(const Trajectory& trajectory) {
  double largest = 0.0;
  for (const Instant& instant : trajectory.instants) largest = std::max(largest, instant.position_residual);
  return largest;
}

// A rotor of 2 kg whose mass centre is 0.5 m from its axle, without gravity.
MechanismBuilder rotor_on_axle() {
  MechanismBuilder builder("rotor");
  Body body;
  body.name = "rotor";
  body.mass = 2.0;
  body.inertia_b = Vec3(0.1, 0.2, 0.3).asDiagonal();
  body.position_0 = Vec3(0.5, 0.0, 0.0);
  builder.add_body(body);
  MechanismBuilder::JointAtStart joint;
  joint.name = "axle";
  joint.type = JointType::revolute;
  joint.first = "ground";
  joint.second = "rotor";
  joint.axis = Vec3::UnitZ();
  builder.add_joint(joint);
  return builder;
}

// Bricard's orthogonal six-bar: rods along the edges of a cube, hinges across both rods that they join. One freedom,
// though 30 rows hold 30 coordinates: at the poses of its motion, and nowhere near them, one row is redundant.
Mechanism orthogonal_six_bar() {
  const Vec3 corner[] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {0, 1, 1}, {0, 0, 1}};
  test::Description d;
  d.name = "orthogonal_six_bar";
  d.gravity = {0.5, -9.81, -1.0};
  for (int i = 0; i < 6; ++i) {
    const Vec3 in = corner[i] - corner[(i + 5) % 6], out = corner[(i + 1) % 6] - corner[i];
    const int last = i == 0 ? kGround : i - 1, next = i == 5 ? kGround : i;
    d.joints.push_back(test::make_joint("hinge" + std::to_string(i), JointType::revolute, test::body_name(last),
                                        test::body_name(next), corner[i], in.cross(out)));
    if (next != kGround) d.bodies.push_back(test::make_rod(test::body_name(i), corner[i], corner[i] + out));
  }
  return test::build(d);
}

// (2.5) in velocities (v_0, omega_0).
Equations equations_at(AbsoluteSystem& system, std::span<const BodyMotion> bodies) {
  const AbsoluteEquations at = system.at(0.0, bodies);
  Equations e;
  e.Phi_q = jacobian(at.rows, bodies.size());
  e.M = Eigen::MatrixXd::Zero(e.Phi_q.cols(), e.Phi_q.cols());
  e.Q.resize(e.Phi_q.cols());
  e.Gamma.resize(e.Phi_q.rows());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Eigen::Index row = 6 * static_cast<Eigen::Index>(i);
    const Body& body = system.mechanism().bodies()[i];
    e.M.block<3, 3>(row, row) = body.mass * Mat3::Identity();
    e.M.block<3, 3>(row + 3, row + 3) = inertia_0(body, bodies[i]);
    e.Q.segment<6>(row) = at.load[i];
  }
  for (std::size_t k = 0; k < at.rows.size(); ++k) e.Gamma[static_cast<Eigen::Index>(k)] = at.rows[k].gamma;
  return e;
}

}  // namespace

TEST_CASE("every complement follows the reference McPherson struts and the pipelayer, and the others") {
  for (Case c : {reference_case("mcpherson", "mcpherson_simplified", 2.0),
                 reference_case("mcpherson_redundant", "mcpherson_redundant", 2.0),
                 reference_case("pipelayer", "pipelayer", 2.0)}) {
    CAPTURE(c.mechanism.name());
    REQUIRE(c.scenario.instants.size() > 1);
    Trajectory first;
    for (const Complement method : kMethods) {
      CAPTURE(static_cast<int>(method));
      const Trajectory trajectory = run(c, method, 1e-10).trajectory;
      CHECK(position_error(c, trajectory) < 1e-8);
      if (first.instants.empty()) first = trajectory;
      CHECK(compare(c.mechanism, first.instants, trajectory.instants, {}).largest(Quantity::position) < 1e-8);
    }
  }
}

TEST_CASE(
    "complements give one motion on every shipped mechanism of up to 13 bodies, and it is the DAE reference solver's") {
  for (const char* name :
       {"andrews", "carousel", "chain_8", "double_pendulum", "driven_crank", "four_bar", "four_bar_hanging",
        "hdca_case1", "hdca_case2", "hdca_case3", "mcpherson", "mcpherson_redundant", "motor_with_friction",
        "pipelayer", "quarter_car", "rack_and_pinion", "screw_jack", "slider_crank", "stewart"}) {
    CAPTURE(name);
    Case c{test::mechanism(name), {}, {}};
    REQUIRE(complement_unsupported_reason(c.mechanism).empty());
    c.scenario.mechanism = &c.mechanism;
    c.scenario.instants = {0.0, c.mechanism.bodies().size() > 10 ? 1e-3 : 5e-3};
    const Trajectory dae = stabilised_index2(c.scenario, test::at_tolerance(1e-10));
    for (const Complement method : kMethods) {
      CAPTURE(static_cast<int>(method));
      CHECK(compare(c.mechanism, dae.instants, run(c, method, 1e-10).trajectory.instants, {})
                .largest(Quantity::position) < 1e-8);
    }
  }
}

TEST_CASE("of a row that is redundant in closed poses only QR takes what the SVD takes, just beside them as well") {
  const Mechanism m = orthogonal_six_bar();
  Scenario s;
  s.mechanism = &m;
  s.instants = {0.0};
  AbsoluteSystem system(s, "test");
  test::Random random(7);
  for (int k = 0; k < 20; ++k) {
    std::vector<BodyMotion> beside = system.start();
    Eigen::VectorXd delta(30);
    for (Eigen::Index i = 0; i < delta.size(); i += 3) delta.segment<3>(i) = random.vector(1e-8);
    displace(beside, delta);
    const Equations e = equations_at(system, beside);
    const Accelerations qr = accelerations(Complement::qr, e, {}), svd = accelerations(Complement::svd, e, {});
    CHECK(qr.rank == 29);
    CHECK(svd.rank == 29);
    CHECK((qr.qdd - svd.qdd).norm() < 1e-11 * svd.qdd.norm());
  }
}

TEST_CASE("a six-bar of revolutes that only its geometry lets move: every complement converges with the tolerance") {
  Case c{orthogonal_six_bar(), {}, {}};
  for (int k = 0; k <= 5; ++k) c.scenario.instants.push_back(0.1 * k);
  const Trajectory best = run(c, Complement::svd, 1e-12, Stabilisation::newton_raphson).trajectory;
  CHECK((best.instants.back().body[2].r_0 - best.instants.front().body[2].r_0).norm() > 0.1);
  for (const Complement method : kMethods) {
    CAPTURE(static_cast<int>(method));
    for (const double tolerance : {1e-8, 1e-10}) {
      const ComplementRun found = run(c, method, tolerance, Stabilisation::newton_raphson);
      CHECK(found.lowest_rank == 29);
      CHECK(compare(c.mechanism, best.instants, found.trajectory.instants, {}).largest(Quantity::position) <
            10.0 * tolerance);
      CHECK(compare(c.mechanism, best.instants, found.trajectory.instants, {}).largest(Quantity::velocity) <
            100.0 * tolerance);
    }
  }
}

TEST_CASE("without stabilisation constraints drift; Baumgarte holds the drift, Newton-Raphson undoes it") {
  Case c = reference_case("hdca_case1", "hdca_case1", 3.0);
  const double drift = largest_position_residual(run(c, Complement::qr, 1e-5).trajectory);
  const double held = largest_position_residual(run(c, Complement::qr, 1e-5, Stabilisation::baumgarte).trajectory);
  const ComplementRun corrected = run(c, Complement::qr, 1e-5, Stabilisation::newton_raphson);
  CHECK(drift > 1e-6);
  CHECK(held < 0.5 * drift);
  CHECK(corrected.corrections > 0);
  CHECK(largest_position_residual(corrected.trajectory) < 0.1 * drift);
}

TEST_CASE(
    "a body that turns through a singular pose of its Euler angles gets new ones; a partition that stops to be "
    "valid is chosen anew") {
  Case c = reference_case("double_pendulum", "double_pendulum", 4.0);
  const ComplementRun turned = run(c, Complement::partitioning, 1e-10);
  CHECK(turned.charts > 0);
  CHECK(turned.selections > 0);
  CHECK(position_error(c, turned.trajectory) < 1e-8);
}

TEST_CASE("four parallel links pass their singular pose on the branch of the reference") {
  Case c = reference_case("four_bar", "four_bar", 2.0);
  CHECK(position_error(c, run(c, Complement::qr, 1e-10).trajectory) < 1e-7);
}

TEST_CASE("the DAE reference solver follows references, with redundant constraints too") {
  const struct {
    const char *mechanism, *reference;
    double until, tolerance, error;
  } cases[] = {{"mcpherson", "mcpherson_simplified", 2.0, 1e-10, 1e-8},
               {"mcpherson_redundant", "mcpherson_redundant", 2.0, 1e-10, 1e-8},
               {"pipelayer", "pipelayer", 0.5, 1e-10, 1e-8},
               {"double_pendulum", "double_pendulum", 1.0, 1e-10, 1e-8},
               {"hdca_case1", "hdca_case1", 0.5, 1e-10, 1e-8}};
  for (const auto& one : cases) {
    CAPTURE(one.mechanism);
    Case c = reference_case(one.mechanism, one.reference, one.until);
    c.scenario.mechanism = &c.mechanism;
    CHECK(position_error(c, stabilised_index2(c.scenario, test::at_tolerance(one.tolerance))) < one.error);
  }
}

TEST_CASE("a filtered driver, held inputs and couplings: two reference solvers, one motion") {
  Case c{test::mechanism("stewart"), {}, {}};
  c.scenario.mechanism = &c.mechanism;
  c.scenario.instants = {0.0, 0.02, 0.05};
  std::vector<double> input(c.mechanism.input_channels().size(), 0.0);
  const std::vector<Jet> start = CoordinateFollower(c.mechanism).follow(start_motion(c.mechanism));
  for (const Driver& driver : c.mechanism.drivers())
    input[static_cast<std::size_t>(driver.first_channel)] = start[static_cast<std::size_t>(driver.coordinate)].value;
  c.scenario.inputs.push_back({0.0, input});
  for (const Driver& driver : c.mechanism.drivers()) input[static_cast<std::size_t>(driver.first_channel)] += 0.01;
  c.scenario.inputs.push_back({0.01, input});
  const Trajectory dae = stabilised_index2(c.scenario, test::at_tolerance(1e-9));
  const Trajectory complement = run(c, Complement::qr, 1e-9).trajectory;
  CHECK(compare(c.mechanism, dae.instants, complement.instants, {}).largest(Quantity::position) < 1e-7);
  CHECK((dae.instants.back().body.back().r_0 - dae.instants.front().body.back().r_0).norm() > 1e-3);
}

TEST_CASE("a reference solver says what it cannot do, what a start contradicts, and that a tolerance of zero is none") {
  Case c = reference_case("double_pendulum", "double_pendulum", 0.1);
  const auto both = [&](const std::string& words, double tolerance) {
    c.scenario.mechanism = &c.mechanism;
    const auto says = [&](const auto& solver) {
      try {
        solver();
      } catch (const std::exception& error) {
        CAPTURE(error.what());
        CHECK(std::string(error.what()).find(words) != std::string::npos);
        return;
      }
      FAIL("no error");
    };
    says([&] { natural_complement(c.scenario, test::at_tolerance(tolerance), {}); });
    says([&] { stabilised_index2(c.scenario, test::at_tolerance(tolerance)); });
  };
  both("tolerance", 0.0);
  c.scenario.start = start_motion(c.mechanism);
  c.scenario.start[1].r_0.x() += 0.1;
  both("joint \"joint2\"", 1e-8);
  c.scenario.start = start_motion(c.mechanism);
  c.scenario.start[1].v_0.y() += 0.1;
  both("velocity contradicts joint \"joint2\"", 1e-8);

  MechanismBuilder builder = rotor_on_axle();
  Driver driver;
  driver.name = "shaker";
  driver.from_input = Driver::FromInput::motion;
  builder.add_driver(driver, "axle", Freedom::angle);
  c.mechanism = builder.build();
  c.scenario.start.clear();
  both("driver \"shaker\" takes its motion from inputs", 1e-8);
  CHECK(complement_unsupported_reason(test::mechanism("chain_128")).find("128 bodies") != std::string::npos);
  CHECK(absolute_unsupported_reason(test::mechanism("chain_128")).empty());
}

TEST_CASE("of redundant joints some reactions are determined by the motion, others are not") {
  Case c{test::mechanism("mcpherson_redundant"), {}, {}};
  c.scenario.mechanism = &c.mechanism;
  const Determined determined = determined_constraints(c.scenario, start_motion(c.mechanism));
  int shared = 0;
  for (std::size_t j = 0; j < c.mechanism.joints().size(); ++j) {
    const Joint& joint = c.mechanism.joints()[j];
    if (!determined[j]) ++shared;
    if (!determined[j]) CHECK(joint.type == JointType::revolute);  // the two hinges of the arm
  }
  CHECK(shared == 2);
  CHECK(constraint_rank(c.scenario, start_motion(c.mechanism)) == 26);
}

// Its input turns it.
Mechanism rotor() {
  MechanismBuilder builder = rotor_on_axle();
  Input torque;
  torque.name = "torque";
  torque.kind = Input::Kind::joint_effort;
  builder.add_joint_input(torque, "axle", Freedom::angle);
  return builder.build();
}

TEST_CASE("every reference solver follows a torque that is held between jumps as the closed form does") {
  const Mechanism m = rotor();
  const double inertia = 0.3 + 2.0 * 0.5 * 0.5;
  Scenario s;
  s.mechanism = &m;
  s.inputs = {{0.0, {0.0}}, {0.1, {8.0}}, {0.2371, {-20.0}}, {0.2391, {3.0}}, {0.3, {0.0}}, {0.4, {-4.0}}};
  for (int k = 0; k <= 10; ++k) s.instants.push_back(0.05 * k);  // three of them where the torque jumps
  for (const Solver& solver : solvers()) {
    CAPTURE(solver.name);
    REQUIRE(solver.unsupported_reason(m).empty());
    const Trajectory run = solver.simulate(s, test::at_tolerance(1e-10));
    REQUIRE(run.instants.size() == s.instants.size());
    double angle = 0.0, rate = 0.0, torque = 0.0, t = 0.0;
    auto next = s.inputs.begin();
    for (const Instant& at : run.instants) {
      const auto go = [&](double until) {
        angle += rate * (until - t) + 0.5 * torque / inertia * (until - t) * (until - t);
        rate += torque / inertia * (until - t);
        t = until;
      };
      for (; next != s.inputs.end() && next->time < at.time; ++next) {
        go(next->time);
        torque = next->value[0];
      }
      go(at.time);
      const Vec3 arm(0.5 * std::cos(angle), 0.5 * std::sin(angle), 0.0), across(-arm.y(), arm.x(), 0.0);
      CAPTURE(t);
      CHECK((at.body[0].r_0 - arm).norm() < 1e-8);
      CHECK((at.body[0].v_0 - rate * across).norm() < 1e-7);
      // what held up to an instant acts there: 2 kg times the acceleration of the mass centre
      const Vec3 force = 2.0 * (torque / inertia * across - rate * rate * arm);
      CHECK((at.reaction[0].force_0 - force).norm() < 1e-6);
    }
    CHECK(angle > 0.01);
  }
}
