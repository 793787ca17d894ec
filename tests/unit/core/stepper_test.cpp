// What a step says about itself, and that a failed one leaves no trace.
#include "core/index3/stepper.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/stepper_access.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Inputs all_inputs(const Mechanism& m, double value) {
  Inputs u;
  u.count = static_cast<int>(m.input_channels().size());
  for (int k = 0; k < u.count; ++k) u.value[k] = value;
  return u;
}

// a chain of three links with one force on the body named
Mechanism pushed_chain(int body) {
  test::Description d = test::chain(3, JointType::revolute);
  test::Description::BodyInput push;
  push.input.name = "push";
  push.body = test::body_name(body);
  d.body_inputs = {push};
  return test::build(d);
}

}  // namespace

TEST_CASE("a step advances the state by one and reports small residuals") {
  const Mechanism m = test::build(test::random_loops(2, 6));
  Stepper s(m, {});
  for (std::uint64_t k = 1; k <= 100; ++k) {
    const StepReport report = s.step(test::test_inputs(m, k));
    REQUIRE(report.status == StepStatus::ok);
    CHECK(s.state().step == k);
    CHECK(report.body == -1);
    CHECK(report.joint == -1);
    CHECK(report.position_residual < 1e-13);
    CHECK(report.velocity_residual < 1e-9);
    CHECK(report.acceleration_residual < 1e-6);
  }
}

TEST_CASE("a step with an input that is not finite is not committed and names the body that it acts on") {
  for (const int body : {0, 1, 2})
    for (const double bad : {kNan, kInf, -kInf}) {
      const Mechanism m = pushed_chain(body);
      Stepper s(m, {});
      for (int k = 0; k < 10; ++k) REQUIRE(s.step(all_inputs(m, 1.0)).status == StepStatus::ok);
      const std::uint64_t hash = s.state().hash();
      const StepReport report = s.step(all_inputs(m, bad));
      CAPTURE(body);
      CAPTURE(bad);
      CHECK(report.status == StepStatus::not_finite);
      CHECK(report.body == body);
      CHECK(s.state().hash() == hash);
      CHECK(s.state().step == 10);
    }
}

TEST_CASE("a force beyond all measure fails the step and leaves the state as it was") {
  for (const double force : {1e170, -1e200, 1e300}) {
    const Mechanism m = pushed_chain(1);
    Stepper s(m, {});
    const std::uint64_t hash = s.state().hash();
    const StepReport report = s.step(all_inputs(m, force));
    CAPTURE(force);
    CHECK(failed(report.status));
    CHECK((report.body >= 0 || report.joint >= 0));
    CHECK(s.state().hash() == hash);
  }
}

TEST_CASE("after a failed step the next good one is the one that would have come without it") {
  for (const test::Description& d : {test::random_tree(1, 8), test::random_loops(2, 6), test::four_bar(0.5)})
    for (const double bad : {kNan, 1e300}) {
      test::Description driven = d;
      if (driven.body_inputs.empty()) driven.body_inputs = {{Input{.name = "push"}, "A"}};
      const Mechanism m = test::build(driven);
      Stepper a(m, {}), b(m, {});
      for (std::uint64_t k = 0; k < 60; ++k) {
        const Inputs u = test::test_inputs(m, k);
        if (k % 7 == 3) REQUIRE(failed(a.step(all_inputs(m, bad)).status));
        REQUIRE(a.step(u).status == StepStatus::ok);
        REQUIRE(b.step(u).status == StepStatus::ok);
        REQUIRE(a.state().hash() == b.state().hash());
      }
      for (std::size_t j = 0; j < m.joints().size(); ++j)
        CHECK(a.joint_reaction(static_cast<int>(j)) == b.joint_reaction(static_cast<int>(j)));
    }
}

namespace {

// A chain whose two joints follow inputs: position, velocity and acceleration; and position alone, through its filter.
test::Description steered_description() {
  test::Description d = test::chain(3, JointType::revolute);
  Driver followed, filtered;
  followed.name = "followed";
  followed.from_input = Driver::FromInput::motion;
  filtered.name = "filtered";
  filtered.from_input = Driver::FromInput::filtered;
  filtered.time_constant = 0.05;
  d.drivers = {{followed, {"joint0", Freedom::angle}}, {filtered, {"joint2", Freedom::angle}}};
  return d;
}

Mechanism steered_chain() { return test::build(steered_description()); }

// The same beside a free body: a force that leaves its motion finite makes its energy infinite. Outputs: the pose of
// the last link, then the energy.
Mechanism steered_chain_and_stone() {
  test::Description d = steered_description();
  d.bodies.push_back(test::make_body("stone", {0.0, 5.0, 0.0}));
  d.body_inputs = {{Input{.name = "push"}, "stone"}};
  return test::build(d, [](MechanismBuilder& builder) {
    Output pose;
    pose.name = "pose";
    pose.kind = Output::Kind::body_pose;
    builder.add_body_output(pose, test::body_name(2));
    Output energy;
    energy.name = "energy";
    energy.kind = Output::Kind::energy;
    builder.add_output(energy);
  });
}

bool is_finite(const State& x) {
  std::vector<double> flat(x.flat_size());
  x.flatten(flat);
  return std::all_of(flat.begin(), flat.end(), [](double value) { return std::isfinite(value); });
}

// Good steps with a bad value on one channel between them: it fails and leaves no trace, or a limit bounds it (a motor
// at its effort limit, a tyre without a road).
void check_bad_value(const Mechanism& m, int channel, double bad) {
  Stepper a(m, {}), b(m, {});
  const Inputs good = all_inputs(m, 0.0);
  for (int k = 0; k < 5; ++k) REQUIRE_FALSE(failed(a.step(good).status));
  for (int k = 0; k < 5; ++k) b.step(good);
  Inputs u = good;
  u.value[static_cast<std::size_t>(channel)] = bad;
  const StepReport report = a.step(u);
  CAPTURE(m.input_channels()[static_cast<std::size_t>(channel)].name);
  CAPTURE(bad);
  CHECK(is_finite(a.state()));
  if (std::isnan(bad)) CHECK(report.status == StepStatus::not_finite);
  if (!failed(report.status)) return;
  CHECK((report.body >= 0 || report.joint >= 0));
  for (int k = 0; k < 5; ++k) {
    REQUIRE(a.state().hash() == b.state().hash());
    CHECK_FALSE(failed(a.step(good).status));
    b.step(good);
  }
}

}  // namespace

TEST_CASE("a value that is not finite or absurd, on any kind of channel, never enters the state") {
  for (const Mechanism& m : {test::every_force_element(), steered_chain(), test::build(test::random_tree(3, 16)),
                             test::build(test::random_loops(3, 6))})
    for (int channel = 0; channel < static_cast<int>(m.input_channels().size()); ++channel)
      for (const double bad : {kNan, kInf, -kInf, 1e300, -1e300}) check_bad_value(m, channel, bad);
}

TEST_CASE("a step with an output that is not finite is not committed, names the channel and leaves no trace") {
  const Mechanism m = steered_chain_and_stone();
  constexpr int kPush = 0, kKinetic = 7;  // channels
  REQUIRE(m.input_channels()[kPush].name == "push");
  REQUIRE(m.output_channels()[kKinetic].name == "energy.kinetic");
  Stepper a(m, {}), b(m, {});
  Outputs of_a, of_b;
  for (std::uint64_t k = 0; k < 40; ++k) {
    Inputs u = all_inputs(m, 0.0);
    u.value[kPush] = static_cast<double>(k);
    u.value[static_cast<std::size_t>(u.count - 1)] = 0.1;  // of the filtered driver, which moves there slowly
    if (k % 5 == 2) {
      Inputs violent = u;
      violent.value[kPush] = 1e160;
      const Outputs before = of_a;
      const StepReport report = a.step(violent, of_a);
      REQUIRE(report.status == StepStatus::output_not_finite);
      CHECK(report.output == kKinetic);
      CHECK(report.body == -1);
      CHECK(of_a.value == before.value);
      CHECK(a.state().hash() == b.state().hash());
    }
    REQUIRE(a.step(u, of_a).status == StepStatus::ok);
    REQUIRE(b.step(u, of_b).status == StepStatus::ok);
    REQUIRE(a.state().hash() == b.state().hash());
    REQUIRE(of_a.value == of_b.value);
    REQUIRE(first_not_finite(of_a) == -1);
  }
}

TEST_CASE("one iteration from a violent start is reported as not converged, but committed") {
  test::Description d = test::double_pendulum();
  d.bodies[1].angular_velocity_0 = {0.0, 60.0, 0.0};
  d.bodies[1].position_0 = {1.5, 0.0, 0.0};
  d.bodies[0].angular_velocity_0 = {0.0, 0.0, 40.0};
  const Mechanism m = test::build(test::made_consistent(d));
  Stepper one(m, {.dt_ns = 20'000'000, .iterations = 1}), many(m, {.dt_ns = 20'000'000, .iterations = 20});
  const StepReport rough = one.step(Inputs{});
  CHECK(rough.status == StepStatus::not_converged);
  CHECK(rough.last_increment > 1e-4);
  CHECK(one.state().step == 1);
  CHECK(many.step(Inputs{}).status == StepStatus::ok);
}

TEST_CASE("the increment shrinks with every iteration") {
  const Mechanism m = test::build(test::random_tree(5, 8));
  double last = kInf;
  for (int iterations = 1; iterations <= 4; ++iterations) {
    Stepper s(m, {.iterations = iterations});
    const double increment = s.step(Inputs{}).last_increment;
    CHECK(increment < 0.1 * last);
    last = std::max(increment, 1e-14);  // rounding
  }
}

TEST_CASE("the tolerance alone decides what is called converged") {
  const Mechanism m = test::build(test::double_pendulum());
  Stepper strict(m, {.increment_tolerance = 0.0}), lenient(m, {.increment_tolerance = 1.0});
  CHECK(strict.step(Inputs{}).status == StepStatus::not_converged);
  CHECK(lenient.step(Inputs{}).status == StepStatus::ok);
  CHECK(strict.state().hash() == lenient.state().hash());
}

TEST_CASE("a moved stepper goes on where it was") {
  const Mechanism m = test::build(test::random_tree(2, 6));
  Stepper a(m, {}), b(m, {});
  a.step(Inputs{});
  b.step(Inputs{});
  Stepper c(std::move(a));
  c.step(Inputs{});
  b.step(Inputs{});
  CHECK(c.state().hash() == b.state().hash());
}

TEST_CASE("a free body without joints falls as Galileo says") {
  test::Description d;
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("stone", Vec3::Zero(), 2.0)};
  d.bodies[0].velocity_0 = {1.0, 0.0, 5.0};
  Stepper s(test::build(d), {});
  for (int k = 0; k < 1000; ++k) REQUIRE(s.step(Inputs{}).status == StepStatus::ok);
  CHECK((s.state().body[0].r - Vec3(1.0, 0.0, 5.0 - 0.5 * 9.81)).norm() < 1e-10);
  CHECK((s.state().body[0].v - Vec3(1.0, 0.0, 5.0 - 9.81)).norm() < 1e-10);
}

TEST_CASE("a force that tears the joints open fails the step: a diverged result is not committed") {
  for (const double force : {1e7, 1e20}) {
    const Mechanism m = pushed_chain(1);
    Stepper s(m, {});
    for (int k = 0; k < 10; ++k) REQUIRE(s.step(all_inputs(m, 1.0)).status == StepStatus::ok);
    const std::uint64_t hash = s.state().hash();
    const StepReport report = s.step(all_inputs(m, force));
    CAPTURE(force);
    CHECK(report.status == StepStatus::diverged);
    CHECK(report.body + report.joint > -2);  // one of them is named
    CHECK(s.state().hash() == hash);
    CHECK(s.step(all_inputs(m, 1.0)).status == StepStatus::ok);
  }
}

// the k-th of a front
double& inverse_pivot(Workspace& w, const Front& front, int k, int lane) {
  return w.arrays.arena[front.factor + k * (k + 3) / 2 * front.width + lane];  // on L's packed diagonal
}

// The first factor that fails is one of the iterations, whose place that of the projections has taken.
TEST_CASE("a step that cannot be made names the joint whose tangent is not positive") {
  test::Description rods = test::chain(2, JointType::universal);  // too thin for their steps when they swing in space
  for (Body& rod : rods.bodies) {
    rod.inertia_b = Vec3(1e-9, 1.0 / 12.0, 1.0 / 12.0).asDiagonal();
    rod.velocity_0 = {0.0, 0.0, 1.0};
    rod.angular_velocity_0 = {0.5, 0.0, 0.3};
  }
  Stepper s(test::build(test::made_consistent(rods)), {.dt_ns = test::kMs});
  StepReport report;
  for (int k = 0; k < 2000 && !failed(report.status); ++k) report = s.step(Inputs{});
  REQUIRE(report.status == StepStatus::singular);
  CHECK(report.joint >= 0);
}

TEST_CASE(
    "what cannot be eliminated is named: joints, the bodies of primal bodies and of force elements, but no padding") {
  for (const char* name : {"carousel", "full_car", "quarter_car", "chain_128"}) {
    CAPTURE(name);
    const Plan plan = make_plan(test::mechanism(name), {});
    Workspace w(plan);
    const Elimination& e = plan.elimination;
    const auto set_inverse_pivots = [&](const Front& front, int lane, double sign) {
      for (int k = 0; k < front.pivots; ++k) inverse_pivot(w, front, k, lane) = front.is_primal ? -sign : sign;
    };
    for (const Front& front : e.fronts)
      for (int lane = 0; lane < front.width; ++lane) set_inverse_pivots(front, lane, 1.0);
    CHECK(what_is_singular(plan, w).is_none());
    for (int c = 0; c < static_cast<int>(e.constraints.size()); ++c) {
      if (e.constraints[c].is_padding) continue;
      const auto [front, lane] = e.constraint_place[c].eliminated_by;
      set_inverse_pivots(e.fronts[front], lane, -1.0);
      const Singular found = what_is_singular(plan, w);
      set_inverse_pivots(e.fronts[front], lane, 1.0);
      if (c < plan.first_element()) {
        CHECK(found.joint == plan.eliminated[c]);
        CHECK(found.body == -1);
      } else {
        CHECK(found.joint == -1);
        const std::vector<int>& bodies =
            e.constraints[c].is_primal ? e.constraints[c].bodies : plan.elements[c - plan.first_element()].bodies;
        CHECK(std::find(bodies.begin(), bodies.end(), found.body) != bodies.end());
      }
    }
  }
}

TEST_CASE("a joint that cannot be eliminated is named, whatever lane it is in") {
  const Plan plan = make_plan(test::build(test::chain(16, JointType::revolute)), {});
  Workspace w(plan);
  const Elimination& e = plan.elimination;
  int named_beyond_the_first_lane = 0;
  for (const Front& front : e.fronts)
    for (int k = 0; k < front.pivots; ++k)
      for (int lane = 0; lane < front.width; ++lane) inverse_pivot(w, front, k, lane) = 1.0;
  CHECK(what_is_singular(plan, w).is_none());
  for (const Front& front : e.fronts) {
    for (int joint = 0; joint < 16; ++joint) {
      const ConstraintPlace& at = e.constraint_place[plan.eliminated_as[joint]];
      const int lane = at.rows.base - front.row_position;
      if (at.batch != front.constraint || lane < 0 || lane >= front.width) continue;
      inverse_pivot(w, front, 1, lane) = -1.0;
      CHECK(what_is_singular(plan, w).joint == joint);
      inverse_pivot(w, front, 1, lane) = 1.0;
      named_beyond_the_first_lane += lane > 0;
    }
  }
  CHECK(named_beyond_the_first_lane > 0);
}

TEST_CASE(
    "an effort about an axis of the ground does what a motor there does, also after a restore and a failed step") {
  test::Description bar = test::four_bar(0.4);
  const std::string crank = bar.joints[0].name;
  REQUIRE(bar.joints[0].first == "ground");
  const Mechanism with_motor = test::build(bar, [&crank](MechanismBuilder& b) {
    Input signal;
    signal.name = "effort";
    b.add_signal_input(signal);
    Motor motor;
    motor.name = "motor";
    b.add_motor(motor, crank, Freedom::angle, {"effort", "", ""});
  });
  bar.joint_inputs = {{"effort", crank, Freedom::angle}};
  const Mechanism with_input = test::build(bar);
  const Settings settings{.iterations = 6};
  Stepper direct(with_input, settings), restored(with_input, settings), motor(with_motor, settings);
  CHECK_FALSE(plan_of(direct).depends_on_pose());
  CHECK(plan_of(motor).depends_on_pose());
  std::vector<double> flat(direct.state().flat_size());
  for (int k = 0; k < 100; ++k) {
    const Inputs inputs = all_inputs(with_input, 5.0 * std::sin(0.1 * k));
    if (k == 40) {
      direct.state().flatten(flat);
      restored.restore(flat, direct.state().step);
    }
    if (k == 60) REQUIRE(failed(restored.step(all_inputs(with_input, kNan)).status));
    for (Stepper* s : {&direct, &restored, &motor}) REQUIRE(s->step(inputs).status == StepStatus::ok);
    REQUIRE(direct.state().hash() == restored.state().hash());
  }
  for (std::size_t i = 0; i < direct.state().body.size(); ++i)
    CHECK((direct.state().body[i].r - motor.state().body[i].r).norm() < 1e-10);
}

TEST_CASE("joint reactions are the same after a failed step and after a restore as before") {
  const Mechanism m = pushed_chain(1);
  Stepper s(m, {});
  for (int k = 0; k < 10; ++k) REQUIRE(s.step(all_inputs(m, 1.0)).status == StepStatus::ok);
  const Vec6 before = s.joint_reaction(1);
  REQUIRE(failed(s.step(all_inputs(m, kNan)).status));
  CHECK((s.joint_reaction(1) - before).norm() == 0.0);

  std::vector<double> flat(s.state().flat_size());
  s.state().flatten(flat);
  Stepper other(m, {});
  other.restore(flat, s.state().step);
  CHECK((other.joint_reaction(1) - before).norm() == 0.0);
}

TEST_CASE("a step whose residuals are above what its mechanism can reach is used, and says not_converged") {
  Stepper good(test::build(test::four_bar(0.6)), {});
  Stepper soft(test::build(test::four_bar(0.6)), {.relative_compliance = 0.3, .projection_passes = 1});
  int flagged = 0;
  for (int k = 0; k < 1000; ++k) {
    const StepReport report = good.step(Inputs{});
    CHECK(report.status == StepStatus::ok);
    CHECK(report.position_residual < 1e-3 * good.residual_limits().position);
    CHECK(report.velocity_residual < 1e-3 * good.residual_limits().velocity);
    CHECK(report.acceleration_residual < 1e-3 * good.residual_limits().acceleration);
    const StepReport of_soft = soft.step(Inputs{});
    CHECK(!failed(of_soft.status));
    if (of_soft.status == StepStatus::not_converged) ++flagged;
    CHECK((of_soft.status == StepStatus::ok) == soft.residual_limits().hold(of_soft));
  }
  CHECK(flagged > 500);
}

TEST_CASE("a flat state without the low parts of positions, as earlier recordings hold it, is gone on from") {
  Stepper direct(test::build(test::four_bar(0.6)), {}), restored(test::build(test::four_bar(0.6)), {});
  for (int k = 0; k < 100; ++k) direct.step(Inputs{});
  std::vector<double> flat(direct.state().flat_size());
  direct.state().flatten(flat);
  flat.resize(direct.state().flat_size_without_low());
  restored.restore(flat, direct.state().step);
  for (int k = 0; k < 100; ++k) {
    direct.step(Inputs{});
    restored.step(Inputs{});
  }
  for (std::size_t i = 0; i < direct.state().body.size(); ++i)
    CHECK((direct.state().body[i].r - restored.state().body[i].r).norm() < 1e-13);
}

}  // namespace rigstep::index3
