// What verify makes of runs of the stepper: doctored ones must not pass. The runs are a reference solver's motion with
// errors of second order, so that what is doctored is all that is wrong.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/mechanism/builder.h"
#include "core/offline/constraints.h"
#include "server/verify/report.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::server;
using offline::Instant;
using offline::Quantity;

namespace {

constexpr double kTolerance = 1e-9;
constexpr double kError = 1e-4;  // of the coarsest run, relative

using Doctor = std::function<void(Instant& at, double dt)>;  // dt: of the run, that of the coarsest is 1

struct Case {
  Mechanism mechanism;
  Instants truth;
  offline::Determined determined;
};

Case solved(Mechanism mechanism, double duration) {
  Case c{std::move(mechanism), {}, {}};
  offline::Scenario scenario;
  scenario.mechanism = &c.mechanism;
  for (int k = 0; k <= 10; ++k) scenario.instants.push_back(duration * k / 10);
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = kTolerance;
  c.truth = offline::find_solver("ida")->simulate(scenario, options).instants;
  c.determined = offline::determined_constraints(scenario, c.truth.front().body);
  return c;
}

Case solved(const char* name, double duration) { return solved(test::mechanism(name), duration); }

void scale(Instant& at, double factor) {
  for (offline::BodyMotion& b : at.body) {
    b.r_0 *= factor;
    b.v_0 *= factor;
    b.omega_0 *= factor;
  }
  for (Vec6& a : at.acceleration) a *= factor;
  for (offline::Reaction& r : at.reaction) r = {factor * r.force_0, factor * r.torque_0};
  for (double& e : at.effort) e *= factor;
}

StepperMotions runs(const Case& c, const Doctor& doctor) {
  StepperMotions motions;
  for (const double dt : {1.0, 0.5, 0.25}) {
    Instants& run = motions.runs.emplace_back(c.truth);
    for (Instant& at : run) {
      scale(at, 1.0 + kError * dt * dt);
      if (doctor) doctor(at, dt);
    }
  }
  motions.finest_dt = 1e-3;
  return motions;
}

Convergence convergence(const Case& c, const Doctor& doctor = nullptr) {
  return assess(c.mechanism, runs(c, doctor), c.determined, kTolerance);
}

VerifyReport verified(const Case& c, const Doctor& doctor = nullptr) {
  const Convergence found = convergence(c, doctor);
  VerifyReport report;
  report.steps.resize(found.error.size());
  report.take(c.mechanism, found);
  VerifyReport::SolverResult result;
  result.name = "truth";
  compare_solver(c.mechanism, found, c.truth, c.determined, result);
  report.results.push_back(result);
  return report;
}

// What is doctored differs at its item; the stepper itself converges.
void check_is_no(const Case& c, Quantity quantity, std::size_t item, const Doctor& doctor) {
  const VerifyReport report = verified(c, doctor);
  CAPTURE(report.text());
  CHECK(report.converges);
  CHECK(report.verdict() == Verdict::no);
  const Difference worst =
      differences(convergence(c, doctor), report.results[0].deviation)[static_cast<std::size_t>(quantity)];
  CHECK(worst.share > 1.0);
  CHECK(worst.item == item);
}

int joint_of(const Mechanism& m, std::string_view name) {
  for (std::size_t j = 0; j < m.joints().size(); ++j)
    if (m.joints()[j].name == name) return static_cast<int>(j);
  throw std::out_of_range(std::string(name));
}

}  // namespace

TEST_CASE("verify: a right motion with errors of second order passes, and each quantity shows its order") {
  for (const char* name : {"four_bar", "chain_8", "driven_crank", "mcpherson_redundant", "rack_and_pinion"}) {
    CAPTURE(name);
    const Case c = solved(name, 0.02);
    const VerifyReport report = verified(c);
    CAPTURE(report.text());
    CHECK(report.verdict() == Verdict::agrees);
    for (const VerifyReport::Quantity& q : report.quantities)
      if (q.convergence.order != 0.0) CHECK(q.convergence.order == doctest::Approx(2.0).epsilon(0.01));
    for (const Quantity q : {Quantity::acceleration, Quantity::body_force}) {
      const VerifyReport::Quantity& row = report.quantities[static_cast<std::size_t>(q)];
      if (row.signal > 0.0) CHECK(row.convergence.order != 0.0);
    }
  }
}

TEST_CASE("verify: wrong velocities, accelerations, reactions and efforts of right poses are a NO") {
  const Case c = solved("driven_crank", 0.02);
  check_is_no(c, Quantity::velocity, 1, [](Instant& at, double) { at.body[1].v_0 *= 1.02; });
  check_is_no(c, Quantity::angular_velocity, 1, [](Instant& at, double) { at.body[1].omega_0 *= 1.02; });
  check_is_no(c, Quantity::acceleration, 2, [](Instant& at, double) { at.acceleration[2].head<3>() *= 1.02; });
  check_is_no(c, Quantity::angular_acceleration, 1, [](Instant& at, double) { at.acceleration[1].tail<3>() *= 1.02; });
  check_is_no(c, Quantity::force, 1, [](Instant& at, double) { at.reaction[1].force_0 *= 1.02; });
  check_is_no(c, Quantity::torque, 0, [](Instant& at, double) { at.reaction[0].torque_0 += 0.02 * Vec3::UnitZ(); });
  check_is_no(c, Quantity::effort, 0, [](Instant& at, double) { at.effort[0] *= 1.02; });
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(verified(c, [=](Instant& at, double) { at.body[0].v_0.z() = nan; }).verdict() != Verdict::agrees);
}

TEST_CASE("verify: an error of 35 N in a reaction is a NO, and no refinement that moves as much allows it") {
  const Case c = solved("driven_crank", 0.02);
  const std::size_t j = 1;
  const auto off = [&](double increment) {
    return [=](Instant& at, double dt) { at.reaction[j].force_0.x() += 35.0 + increment * dt; };
  };
  CHECK(verified(c, off(0.0)).verdict() == Verdict::no);
  for (const double increment : {0.5, 20.0, 110.0}) {
    CAPTURE(increment);
    const Convergence found = convergence(c, off(increment));
    CHECK(found.allowed[Quantity::force][j] <= kShareOfSignal * found.signal[Quantity::force][j] * (1.0 + 1e-12));
    CHECK(verified(c, off(increment)).verdict() != Verdict::agrees);
  }
}

TEST_CASE("verify: an allowance is never more than a hundredth of what the body or joint itself has") {
  const Case c = solved("full_car", 0.004);
  const Convergence found = convergence(c, [](Instant& at, double dt) { scale(at, 1.0 + 0.2 * dt); });
  for (const Quantity q : {Quantity::body_force, Quantity::force})
    for (std::size_t i = 0; i < found.allowed[q].size(); ++i)
      if (found.signal[q][i] > 1.0) CHECK(found.allowed[q][i] <= kShareOfSignal * found.signal[q][i] * (1.0 + 1e-12));
}

TEST_CASE("verify: a heavy pendulum hides no wrong load of a light one beside it") {
  MechanismBuilder builder("two");
  builder.set_gravity({0.0, 0.0, -9.81});
  for (const auto& [name, mass] : {std::pair("light", 1.5), {"heavy", 1500.0}}) {
    Body body;
    body.name = name;
    body.mass = mass;
    body.inertia_b = 0.1 * mass * Mat3::Identity();
    body.position_0 = {1.0, 0.0, 0.0};
    builder.add_body(body);
    MechanismBuilder::JointAtStart joint;
    joint.name = name + std::string("_pin");
    joint.type = JointType::revolute;
    joint.first = "ground";
    joint.second = name;
    joint.axis = Vec3::UnitY();
    builder.add_joint(joint);
  }
  const Case c = solved(builder.build(), 0.1);
  CHECK(verified(c).verdict() == Verdict::agrees);
  check_is_no(c, Quantity::force, 0, [](Instant& at, double) { at.reaction[0].force_0.x() += 1.0; });
}

TEST_CASE("verify: order is asked of every quantity") {
  const Case c = solved("driven_crank", 0.02);
  const auto low = [&](Quantity q, const Doctor& doctor) {
    const Convergence found = convergence(c, doctor);
    CHECK(found.of(Quantity::position).order == doctest::Approx(2.0).epsilon(0.01));
    CHECK_FALSE(found.of(Quantity::position).low);
    CHECK(found.of(q).low);
    CHECK(found.of(q).order == doctest::Approx(1.0).epsilon(0.1));
    CHECK_FALSE(found.converges());
    CHECK(verified(c, doctor).verdict() == Verdict::incomplete);
  };
  low(Quantity::velocity, [](Instant& at, double dt) { at.body[1].v_0 *= 1.0 + 0.02 * dt; });
  low(Quantity::angular_acceleration, [](Instant& at, double dt) { at.acceleration[1].tail<3>() *= 1.0 + 0.02 * dt; });
  low(Quantity::body_force, [](Instant& at, double dt) { at.reaction[0].force_0 *= 1.0 + 0.02 * dt; });
}

TEST_CASE("verify: an order that rises as steps get shorter has not settled, one that stays has") {
  const Case c = solved("driven_crank", 0.02);
  const auto with_order = [&](double order) {
    return convergence(c, [order](Instant& at, double dt) { at.body[1].v_0 *= 1.0 + 0.02 * std::pow(dt, order); });
  };
  CHECK(has_settled(with_order(1.3), with_order(1.3)));
  CHECK(has_settled(with_order(1.3), with_order(1.0)));
  CHECK_FALSE(has_settled(with_order(1.3), with_order(1.5)));
  CHECK_FALSE(has_settled(with_order(1.3), with_order(1.9)));
}

TEST_CASE("verify: of redundant joints the unique part of the loads is compared, and nothing else") {
  const Case c = solved("mcpherson_redundant", 0.02);
  const auto Aa = static_cast<std::size_t>(joint_of(c.mechanism, "Aa")),
             Ab = static_cast<std::size_t>(joint_of(c.mechanism, "Ab"));
  REQUIRE_FALSE(c.determined[Aa]);
  REQUIRE_FALSE(c.determined[Ab]);
  const auto along = [&](double at_a, double at_b) {
    return [=](Instant& at, double) {
      at.reaction[Aa].force_0.x() += at_a;
      at.reaction[Ab].force_0.x() += at_b;
    };
  };
  CHECK(verified(c, along(50.0, -50.0)).verdict() == Verdict::agrees);  // the two share it as they like
  check_is_no(c, Quantity::body_force, static_cast<std::size_t>(c.mechanism.joints()[Aa].second), along(50.0, 0.0));
}

TEST_CASE("verify: loads of all constraints on the bodies are M a less the other loads") {
  for (const char* name : {"driven_crank", "rack_and_pinion", "mcpherson_redundant"}) {
    CAPTURE(name);
    const Case c = solved(name, 0.02);
    const Instant& at = c.truth.back();
    const std::vector<Vec6> loads = offline::constraint_loads(c.mechanism, at);
    const std::vector<offline::Jet> coordinates = offline::CoordinateFollower(c.mechanism).follow(at.body);
    const std::vector<double> input(c.mechanism.input_channels().size(), 0.0);
    const std::vector<Vec6> others = offline::wrenches(c.mechanism, {at.time, at.body, coordinates, input});
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const Body& body = c.mechanism.bodies()[i];
      const Mat3 inertia = offline::inertia_0(body, at.body[i]);
      const Vec3& omega = at.body[i].omega_0;
      Vec6 inertial;
      inertial << body.mass * at.acceleration[i].head<3>(),
          inertia * at.acceleration[i].tail<3>() + omega.cross(inertia * omega);
      CHECK((loads[i] - (inertial - others[i])).norm() < 1e-6 * (1.0 + inertial.norm() + others[i].norm()));
    }
  }
}
