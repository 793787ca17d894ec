// The Hamiltonian and the acceleration form of the divide-and-conquer algorithm in relative coordinates, against
// references that share no code with them, against laws of mechanics, and against each other.
#include <doctest/doctest.h>

#include <cstring>

#include "core/offline/compare.h"
#include "core/offline/featherstone_dca.h"
#include "core/offline/hamiltonian_dca.h"
#include "core/offline/joint_motion.h"
#include "core/offline/natural_complement.h"
#include "core/offline/stabilised_index2.h"
#include "tests/support/joint_cases.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;
using offline::BodyMotion;
using offline::Options;
using offline::Scenario;
using offline::Trajectory;

namespace {

using Simulate = Trajectory (*)(const Scenario&, const Options&);
struct Form {
  const char* name;
  Simulate simulate;
};
constexpr Form kForms[] = {{"hamiltonian_dca", offline::hamiltonian_dca},
                           {"featherstone_dca", offline::featherstone_dca}};

std::vector<double> every(double dt, double end) {
  std::vector<double> t;
  for (int k = 0; k * dt <= end * (1.0 + 1e-12); ++k) t.push_back(k * dt);
  return t;
}

Scenario scenario(const Mechanism& mechanism, std::vector<double> instants) {
  Scenario s;
  s.mechanism = &mechanism;
  s.instants = std::move(instants);
  return s;
}

double distance(const BodyMotion& body, const nlohmann::json& wanted) { return (body.r_0 - vec3(wanted["r"])).norm(); }

// Largest distance of a mass centre from the reference over its instants in [from, until], and of a joint force
// relative to the largest one.
struct Agreement {
  double position = 0.0, force = 0.0;
  Trajectory run;
};

Agreement agreement(Simulate simulate, const std::string& name, const std::string& reference_name, double until,
                    const Options& options) {
  const Mechanism m = mechanism(name);
  const nlohmann::json ref = reference(reference_name);
  std::vector<nlohmann::json> wanted;
  Scenario s = scenario(m, {});
  for (const auto& sample : ref["reference"])
    if (sample["t"].get<double>() <= until * (1.0 + 1e-12)) {
      wanted.push_back(sample);
      s.instants.push_back(sample["t"].get<double>());
    }
  Agreement a{0.0, 0.0, simulate(s, options)};
  double scale = 1e-12;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const auto& instant = a.run.instants[k];
    for (std::size_t i = 0; i < m.bodies().size(); ++i)
      if (wanted[k].contains("bodies") && wanted[k]["bodies"].contains(m.bodies()[i].name))
        a.position = std::max(a.position, distance(instant.body[i], wanted[k]["bodies"][m.bodies()[i].name]));
    if (wanted[k].contains("last_body"))
      a.position = std::max(a.position, distance(instant.body.back(), wanted[k]["last_body"]));
    for (std::size_t j = 0; j < m.joints().size(); ++j) {
      const std::string& joint = m.joints()[j].name;
      if (!wanted[k].contains("joints") || !wanted[k]["joints"].contains(joint)) continue;
      const Vec3 force = vec3(wanted[k]["joints"][joint]["force"]);
      scale = std::max(scale, force.norm());
      a.force = std::max(a.force, (instant.reaction[j].force_0 - force).norm());
    }
  }
  a.force /= scale;
  return a;
}

Vec3 angular_momentum(const Mechanism& m, const std::vector<BodyMotion>& bodies) {
  Vec3 sum = Vec3::Zero();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    const Mat3 A = offline::rotation(bodies[i].p);
    sum += m.bodies()[i].mass * bodies[i].r_0.cross(bodies[i].v_0) +
           A * m.bodies()[i].inertia_b * A.transpose() * bodies[i].omega_0;
  }
  return sum;
}

Vec3 linear_momentum(const Mechanism& m, const std::vector<BodyMotion>& bodies) {
  Vec3 sum = Vec3::Zero();
  for (std::size_t i = 0; i < bodies.size(); ++i) sum += m.bodies()[i].mass * bodies[i].v_0;
  return sum;
}

// A body with four others on it, each by another kind of joint, one of them turned round; no ground.
Description branched(bool loop) {
  Description d;
  const Mat3 inertia = Vec3(0.3, 0.5, 0.7).asDiagonal();
  d.bodies = {make_body("hub", {0, 0, 0}, 2.0, inertia),   make_body("ball", {1, 0, 0}, 1.0, inertia),
              make_body("slide", {0, 1, 0}, 1.5, inertia), make_body("cross", {0, 0, 1}, 0.8, inertia),
              make_body("tube", {-1, 0, 0}, 1.2, inertia), make_body("hinge", {-1, -1, 0}, 0.5, inertia)};
  d.joints = {make_joint("j1", JointType::spherical, "ball", "hub", {0.5, 0, 0}),
              make_joint("j2", JointType::prismatic, "hub", "slide", {0, 0.5, 0}, Vec3::UnitY()),
              make_joint("j3", JointType::universal, "cross", "hub", {0, 0, 0.5}, Vec3::UnitX(), Vec3::UnitY()),
              make_joint("j4", JointType::cylindrical, "hub", "tube", {-0.5, 0, 0}, Vec3::UnitX()),
              make_joint("j5", JointType::revolute, "tube", "hinge", {-1, -0.5, 0}, Vec3::UnitZ())};
  if (loop) d.joints.push_back(make_joint("j6", JointType::spherical, "hinge", "hub", {-0.5, -1, 0}));
  return d;
}

// Velocities that the tree of `branched` allows: it turns as one body, and its slide moves.
std::vector<BodyMotion> moving(const Mechanism& m) {
  std::vector<BodyMotion> start = offline::start_motion(m);
  const Vec3 omega(0.7, -0.4, 1.1);
  for (BodyMotion& body : start) {
    body.omega_0 = omega;
    body.v_0 = Vec3(0.1, 0.2, -0.3) + omega.cross(body.r_0);
  }
  start[1].omega_0 += Vec3(2.0, 0.0, 1.0);  // of the ball, about its joint
  start[1].v_0 += Vec3(2.0, 0.0, 1.0).cross(Vec3(0.5, 0.0, 0.0));
  start[2].v_0 += Vec3(0.0, 0.6, 0.0);
  return start;
}

// Rods that hang from pins in a row, joined by rods at their lower ends: one freedom, and every window another
// four-bar.
Description uneven_row(int windows) {
  Description d;
  d.name = "uneven_row";
  d.gravity = {0.0, -9.81, 0.0};
  const auto name = [](const char* part, int i) { return part + std::to_string(i); };
  const auto rod = [](const std::string& called, const Vec3& from, const Vec3& to) {
    return make_body(called, 0.5 * (from + to), 1.0, Vec3(0.08, 0.09, 0.1).asDiagonal());
  };
  Vec3 last = Vec3::Zero();
  for (int i = 0; i <= windows; ++i) {
    const Vec3 pin = 1.2 * i * Vec3::UnitX();
    const double lean = 0.6 + 0.03 * i, length = 1.0 + 0.1 * (i % 3);
    const Vec3 end = pin + length * Vec3{std::sin(lean), -std::cos(lean), 0.0};
    d.bodies.push_back(rod(name("hanger", i), pin, end));
    d.joints.push_back(make_joint(name("pin", i), JointType::revolute, "ground", name("hanger", i), pin));
    if (i > 0) {
      d.bodies.push_back(rod(name("tie", i), last, end));
      d.joints.push_back(make_joint(name("left", i), JointType::revolute, name("hanger", i - 1), name("tie", i), last));
      d.joints.push_back(make_joint(name("right", i), JointType::revolute, name("tie", i), name("hanger", i), end));
    }
    last = end;
  }
  return d;
}

}  // namespace

TEST_CASE("both forms agree with the references to 1e-8 m at tolerance 1e-10") {
  struct Case {
    const char *name, *reference;
    double until;
  };
  const Case cases[] = {{"double_pendulum", "double_pendulum", 10.0},
                        {"hdca_case1", "hdca_case1", 10.0},
                        {"hdca_case3", "hdca_case3", 4.0},
                        {"four_bar", "four_bar", 0.9},
                        {"four_bar_hanging", "four_bar_hanging", 0.5},
                        {"chain_8", "chain_n8", 4.0},
                        {"pipelayer", "pipelayer", 3.0}};
  for (const Form& form : kForms)
    for (const Case& c : cases) {
      CAPTURE(form.name);
      CAPTURE(c.name);
      const Agreement a = agreement(form.simulate, c.name, c.reference, c.until, at_tolerance(1e-10));
      CHECK(a.position > 0.0);  // something was compared
      CHECK(a.position < 1e-8);
      CHECK(a.force < 1e-7);
    }
}

TEST_CASE("at the singular pose of the four-bar both forms keep to the branch of the reference, less exactly") {
  for (const Form& form : kForms) {
    CAPTURE(form.name);
    const Agreement a = agreement(form.simulate, "four_bar", "four_bar", 1.5, at_tolerance(1e-10));
    CHECK(a.position < 1e-6);
  }
}

TEST_CASE("the Hamiltonian form holds the velocities of a loop to rounding, the acceleration form lets them drift") {
  const Mechanism m = mechanism("hdca_case1");
  const Scenario s = scenario(m, every(0.1, 5.0));
  const auto worst = [&](Simulate simulate, double offline::Instant::*residual) {
    double value = 0.0;
    for (const auto& instant : simulate(s, at_tolerance(1e-6)).instants) value = std::max(value, instant.*residual);
    return value;
  };
  CHECK(worst(offline::hamiltonian_dca, &offline::Instant::velocity_residual) < 1e-12);
  CHECK(worst(offline::featherstone_dca, &offline::Instant::velocity_residual) > 1e-8);
  CHECK(worst(offline::hamiltonian_dca, &offline::Instant::position_residual) <
        0.5 * worst(offline::featherstone_dca, &offline::Instant::position_residual));
  CHECK(worst(offline::hamiltonian_dca, &offline::Instant::acceleration_residual) < 1e-10);
}

TEST_CASE("rows of four-bars on the ground run for seconds and agree with index 2 and with natural complements") {
  for (const int windows : {1, 2, 3, 4, 8})
    for (const Description& d : {n_four_bar(windows, -0.6, 0.5), uneven_row(windows)}) {
      CAPTURE(d.name);
      CAPTURE(windows);
      const Mechanism m = build(d);
      const Scenario s = scenario(m, every(0.1, windows < 8 ? 3.0 : 2.0));
      const Options options = at_tolerance(1e-9);
      offline::ComplementSettings complement;
      complement.method = offline::Complement::wang_huston;
      const Trajectory index2 = offline::stabilised_index2(s, options);
      const Trajectory projected =
          windows < 4 ? offline::natural_complement(s, options, complement).trajectory : Trajectory{};
      for (const Form& form : kForms) {
        CAPTURE(form.name);
        const Trajectory run = form.simulate(s, options);
        REQUIRE(run.instants.size() == s.instants.size());
        CHECK(offline::compare(m, run.instants, index2.instants, {}).largest(offline::Quantity::position) < 1e-6);
        CHECK(offline::compare(m, run.instants, index2.instants, {}).largest(offline::Quantity::velocity) < 5e-6);
        CHECK(offline::compare(m, run.instants, projected.instants, {}).largest(offline::Quantity::position) < 2e-8);
        CHECK(offline::compare(m, run.instants, projected.instants, {}).largest(offline::Quantity::velocity) < 1e-7);
        CHECK((run.instants[10].body[0].r_0 - run.instants.front().body[0].r_0).norm() > 0.1);
        for (const auto& instant : run.instants) {
          CHECK(std::abs(instant.energy - run.instants.front().energy) < 1e-6);
          CHECK(instant.position_residual < 1e-8);
        }
      }
    }
}

TEST_CASE("impulses of cut joints may be put back to zero: the motion goes on as before") {
  const Mechanism m = mechanism("hdca_case1");
  Scenario s = scenario(m, every(0.5, 4.0));
  const Trajectory plain = offline::hamiltonian_dca(s, at_tolerance(1e-11));
  s.inputs = {{1.0, {0.0}}, {2.5, {0.0}}};  // no load, but a break
  const Trajectory rebased = offline::hamiltonian_dca(s, at_tolerance(1e-11));
  REQUIRE(rebased.instants.size() == plain.instants.size());
  double apart = 0.0;
  for (std::size_t k = 0; k < plain.instants.size(); ++k)
    for (std::size_t i = 0; i < m.bodies().size(); ++i)
      apart = std::max(apart, (plain.instants[k].body[i].r_0 - rebased.instants[k].body[i].r_0).norm());
  CHECK(apart < 1e-9);
  CHECK(rebased.right_hand_sides != plain.right_hand_sides);
}

TEST_CASE("a mechanism that floats freely keeps its momenta and its energy, branched or with a loop") {
  for (const bool loop : {false, true})
    for (const Form& form : kForms) {
      CAPTURE(form.name);
      CAPTURE(loop);
      const Mechanism m = build(branched(loop));
      Scenario s = scenario(m, every(0.25, 2.0));
      s.start = moving(m);
      const Trajectory run = form.simulate(s, at_tolerance(1e-10));
      const auto& first = run.instants.front();
      for (const auto& instant : run.instants) {
        CHECK((linear_momentum(m, instant.body) - linear_momentum(m, first.body)).norm() < 1e-8);
        CHECK((angular_momentum(m, instant.body) - angular_momentum(m, first.body)).norm() < 1e-8);
        CHECK(std::abs(instant.energy - first.energy) < 1e-8);
        CHECK(instant.position_residual < 1e-8);
      }
      CHECK((run.instants.back().body[1].r_0 - first.body[1].r_0).norm() > 0.1);
    }
}

TEST_CASE("every kind of joint may carry a body or close a loop: both forms agree") {
  for (const JointType type : kAllJointTypes)
    for (const bool turned_round : {false, true}) {
      CAPTURE(to_string(type));
      CAPTURE(turned_round);
      Description d;
      d.gravity = {0.0, 0.0, -9.81};
      const Mat3 inertia = Vec3(0.3, 0.5, 0.7).asDiagonal();
      d.bodies = {make_body("A", {0.5, 0, 0}, 1.0, inertia), make_body("B", {1.0, 0.4, 0.5}, 1.5, inertia)};
      d.joints = joints_with(type, turned_round);
      for (const bool closed : {false, true}) {
        CAPTURE(closed);
        // the tested joint leaves more free than the other one, so it is the one that is cut
        if (closed)
          d.joints.push_back(make_joint("tie", JointType::revolute, "A", "B", {1.0, 0.1, 0.0}, Vec3::UnitY()));
        const Mechanism m = build(d);
        const Scenario s = scenario(m, {0.0, 0.2, 0.4});
        const Trajectory a = offline::hamiltonian_dca(s, at_tolerance(1e-10));
        const Trajectory b = offline::featherstone_dca(s, at_tolerance(1e-10));
        for (std::size_t k = 0; k < a.instants.size(); ++k) {
          for (std::size_t i = 0; i < m.bodies().size(); ++i)
            CHECK((a.instants[k].body[i].r_0 - b.instants[k].body[i].r_0).norm() < 1e-8);
          CHECK(std::abs(a.instants[k].energy - a.instants[0].energy) < 1e-7);
          CHECK(a.instants[k].position_residual < 1e-8);
          CHECK(a.instants[k].acceleration_residual < 1e-8);
        }
      }
    }
}

TEST_CASE("constraint forces are what the bodies' momenta change by") {
  const Mechanism m = mechanism("hdca_case1");
  const double dt = 1e-4;
  const Trajectory run = offline::hamiltonian_dca(scenario(m, {0.0, 0.7 - dt, 0.7, 0.7 + dt}), at_tolerance(1e-12));
  const auto &before = run.instants[1], &now = run.instants[2], &after = run.instants[3];
  for (std::size_t i = 0; i < m.bodies().size(); ++i) {
    Vec3 force = m.bodies()[i].mass * m.gravity_0();
    for (std::size_t j = 0; j < m.joints().size(); ++j) {
      if (m.joints()[j].second == static_cast<int>(i)) force += now.reaction[j].force_0;
      if (m.joints()[j].first == static_cast<int>(i)) force -= now.reaction[j].force_0;
    }
    const Vec3 change = m.bodies()[i].mass * (after.body[i].v_0 - before.body[i].v_0) / (2.0 * dt);
    CHECK((change - force).norm() < 1e-5);
    CHECK(force.norm() > 1e-2);
  }
}

// the sign of a zero counts, too
// NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
bool same_bits(const Vec3& a, const Vec3& b) { return std::memcmp(a.data(), b.data(), 3 * sizeof(double)) == 0; }

TEST_CASE("the same bits for any number of threads") {
  for (const char* name : {"hdca_case3", "full_car"}) {
    CAPTURE(name);
    const Mechanism m = mechanism(name);
    const Scenario s = scenario(m, {0.0, 0.001});
    for (const Form& form : kForms) {
      Trajectory one;
      for (const int threads : {1, 2, 4}) {
        Options options = at_tolerance(1e-3);
        options.threads = threads;
        const Trajectory run = form.simulate(s, options);
        if (threads == 1) one = run;
        CHECK(run.right_hand_sides == one.right_hand_sides);
        for (std::size_t i = 0; i < m.bodies().size(); ++i)
          CHECK(same_bits(run.instants[1].body[i].v_0, one.instants[1].body[i].v_0));
        for (std::size_t j = 0; j < m.joints().size(); ++j) {
          CHECK(same_bits(run.instants[1].reaction[j].force_0, one.instants[1].reaction[j].force_0));
          CHECK(same_bits(run.instants[1].reaction[j].torque_0, one.instants[1].reaction[j].torque_0));
        }
      }
    }
  }
}

TEST_CASE("what the algorithm cannot do is said, and what is wrong with a start") {
  for (const Form& form : kForms) {
    CAPTURE(form.name);
    const auto complaint_of = [&form](const Scenario& s, const Options& options) -> std::string {
      try {
        form.simulate(s, options);
      } catch (const std::exception& error) {
        return error.what();
      }
      return {};
    };
    const Mechanism geared = mechanism("rack_and_pinion"), driven = mechanism("driven_crank");
    CHECK(complaint_of(scenario(geared, {0.0, 0.1}), {}).find("couples joint coordinates") != std::string::npos);
    CHECK(complaint_of(scenario(driven, {0.0, 0.1}), {}).find("prescribes joint coordinates") != std::string::npos);
    const Mechanism m = mechanism("hdca_case1");
    Scenario s = scenario(m, {0.0, 0.1});
    CHECK(complaint_of(s, at_tolerance(0.0)).find("tolerance: must be positive") != std::string::npos);
    s.start = offline::start_motion(m);
    s.start[3].r_0.x() += 0.01;
    CHECK(complaint_of(s, {}).find("contradicts joint \"j") != std::string::npos);
  }
}

TEST_CASE("the list of solvers names both forms and what stands in their way") {
  int found = 0;
  for (const offline::Solver& solver : offline::solvers())
    for (const Form& form : kForms)
      if (solver.name == form.name) {
        ++found;
        CHECK((solver.simulate == form.simulate));
        CHECK(solver.unsupported_reason(mechanism("full_car")).empty());
        CHECK_FALSE(solver.unsupported_reason(mechanism("stewart")).empty());
      }
  CHECK(found == 2);
}
