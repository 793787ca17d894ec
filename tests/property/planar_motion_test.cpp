// Mechanisms in a plane, whose idle rows are left out, against the same ones with all their rows.
#include <doctest/doctest.h>

#include <cmath>

#include "core/index3/compile/planar_motion.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/portable_math.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

using test::make_joint;

// x y z of a description to the axes that follow the normal, and the normal: a mechanism in the plane of x and y comes
// to lie normal to another world axis.
Vec3 moved(int normal, const Vec3& v) {
  Vec3 to;
  for (int k = 0; k < 3; ++k) to[(normal + 1 + k) % 3] = v[k];
  return to;
}
test::Description moved(int normal, test::Description d) {
  d.gravity = moved(normal, d.gravity);
  for (Body& body : d.bodies) {
    Mat3 P;
    for (int k = 0; k < 3; ++k) P.col(k) = moved(normal, Vec3::Unit(k));
    body.inertia_b = (P * body.inertia_b * P.transpose()).eval();
    body.position_0 = moved(normal, body.position_0), body.velocity_0 = moved(normal, body.velocity_0);
    body.angular_velocity_0 = moved(normal, body.angular_velocity_0);
    body.orientation.tail<3>() = moved(normal, body.orientation.tail<3>());
  }
  for (auto& joint : d.joints)
    for (Vec3* each : {&joint.point, &joint.axis, &joint.second_axis, &joint.normal, &joint.second_point})
      *each = moved(normal, *each);
  for (auto& [spring, first, second] : d.springs)
    for (Vec3* each : {&spring.first_point_b, &spring.second_point_b, &spring.direction_0})
      *each = moved(normal, *each);
  for (auto& [input, body] : d.body_inputs)
    input.direction = moved(normal, input.direction), input.point_b = moved(normal, input.point_b);
  return d;
}

Body link(const std::string& name, double x, double y, double angle) {
  Body body = test::make_body(name, {x, y, 0.0}, 0.7);
  body.inertia_b << 0.02, 0.005, 0.0, 0.005, 0.05, 0.0, 0.0, 0.0, 0.06;
  body.orientation = {std::cos(0.5 * angle), 0.0, 0.0, std::sin(0.5 * angle)};
  return body;
}

// A slider-crank that carries a pendulum and is held by springs; two geared pendulums; a driven one; a body on a table
// and a rod.
test::Description linkage() {
  test::Description d;
  d.name = "linkage";
  d.gravity = {1.0, -9.81, 0.0};
  d.bodies = {link("crank", 0.2, 0.15, 0.6), link("rod", 0.8, 0.15, -0.3), link("slider", 1.2, 0.0, 0.0),
              link("bob", 1.3, -0.4, 0.2),   link("left", -1.0, 0.5, 0.0), link("right", -2.0, 0.5, 0.4),
              link("arm", 3.0, 0.5, 0.1),    link("tip", 3.4, 0.5, 0.0),   link("ball", 5.0, -1.0, 0.3)};
  d.joints = {
      make_joint("pin", JointType::revolute, "ground", "crank", Vec3::Zero()),
      make_joint("knee", JointType::revolute, "crank", "rod", {0.4, 0.3, 0.0}),
      make_joint("wrist", JointType::revolute, "rod", "slider", {1.2, 0.0, 0.0}),
      make_joint("rail", JointType::prismatic, "ground", "slider", {1.2, 0.0, 0.0}, Vec3::UnitX(), Vec3::UnitY()),
      make_joint("hook", JointType::revolute, "slider", "bob", {1.2, 0.0, 0.0}),
      make_joint("first_axle", JointType::revolute, "ground", "left", {-1.0, 0.6, 0.0}),
      make_joint("second_axle", JointType::revolute, "ground", "right", {-2.0, 0.6, 0.0}),
      make_joint("shoulder", JointType::revolute, "ground", "arm", {2.8, 0.5, 0.0}),
      make_joint("elbow", JointType::revolute, "arm", "tip", {3.2, 0.5, 0.0}),
      make_joint("table", JointType::planar, "ground", "ball", {5.0, -1.0, 0.0}),
      make_joint("rod_of_ball", JointType::distance, "ground", "ball", {5.0, 0.0, 0.0})};
  d.joints.back().second_point = {5.1, -0.9, 0.0};
  Spring between, along;
  between.name = "between", between.stiffness = 60.0, between.damping = 0.5, between.rest = 0.3;
  between.second_point_b = {0.1, 0.05, 0.0};
  along.name = "along", along.kind = Spring::Kind::in_joint, along.stiffness = 2.0, along.damping = 0.05;
  d.springs = {{between, "crank", "bob"}};
  d.joint_springs = {{along, "hook", Freedom::angle}};
  Input push;
  push.name = "push", push.direction = {0.6, 0.8, 0.0}, push.point_b = {0.05, 0.1, 0.0};
  d.body_inputs = {{push, "ball"}};
  d.joint_inputs = {{"drive", "pin", Freedom::angle}};
  d.couplings = {{"mesh", {"first_axle", Freedom::angle}, {"second_axle", Freedom::angle}, 1.5}};
  Driver swing;
  swing.name = "swing", swing.function = harmonic(0.0, 0.4, 5.0);
  d.drivers = {{swing, {"shoulder", Freedom::angle}}};
  d.bodies[6].velocity_0 = {0.0, 0.4, 0.0}, d.bodies[6].angular_velocity_0 = {0.0, 0.0, 2.0};
  d.bodies[7].velocity_0 = {0.0, 0.8, 0.0};
  return d;
}

void add_more_forces(MechanismBuilder& builder, bool with_stops) {
  JointFriction friction;
  friction.name = "rubbing", friction.coulomb = 0.2, friction.viscous = 0.01;
  builder.add_friction(friction, "rail", Freedom::displacement);
  Motor motor;
  motor.name = "motor", motor.position_gain = 3.0, motor.rate_gain = 0.1;
  builder.add_motor(motor, "elbow", Freedom::angle, {});
  if (!with_stops) return;
  Stop stop;
  stop.name = "stop", stop.lower = 0.5, stop.upper = 1.4, stop.stiffness = 2e3, stop.damping = 0.1;
  builder.add_element(stop, std::string("crank"), std::string("ball"));
  stop.name = "end", stop.lower = -0.1, stop.upper = 0.1;
  builder.add_element(stop, std::string("hook"), Freedom::angle);
}

// The largest number of a state that leaves the planes normal to the axis.
double out_of_plane(const Mechanism& m, const State& x, int normal) {
  const int i = (normal + 1) % 3, k = (normal + 2) % 3;
  double most = 0.0;
  for (std::size_t b = 0; b < x.body.size(); ++b) {
    const BodyState& body = x.body[b];
    for (const double each :
         {body.r[normal] - m.bodies()[b].position_0[normal], x.r_low[b][normal], body.v[normal], body.a[normal],
          body.p[1 + i], body.p[1 + k], body.w_b[i], body.w_b[k], body.alpha_b[i], body.alpha_b[k]})
      most = std::max(most, std::abs(each));
  }
  return most;
}

// Of the loads of all joints, relative to the largest.
double difference_of_reactions(const Stepper& x, const Stepper& y) {
  double most = 0.0, largest = 0.0;
  for (int j = 0; j < static_cast<int>(x.mechanism().joints().size()); ++j) {
    most = std::max(most, (x.joint_reaction(j) - y.joint_reaction(j)).norm());
    largest = std::max(largest, x.joint_reaction(j).norm());
  }
  return most / largest;
}

double difference(const State& x, const State& y) {
  double most = 0.0;
  for (std::size_t b = 0; b < x.body.size(); ++b)
    most = std::max({most, (x.body[b].r - y.body[b].r).norm(), (x.body[b].p - y.body[b].p).norm(),
                     (x.body[b].v - y.body[b].v).norm(), (x.body[b].w_b - y.body[b].w_b).norm()});
  return most;
}

// The channels of one mechanism by name in another that has more, which are zero.
Inputs same_inputs(const Inputs& inputs, const Mechanism& of, const Mechanism& in) {
  Inputs u;
  u.count = static_cast<int>(in.input_channels().size());
  for (int k = 0; k < inputs.count; ++k) u.value[in.input_channel(of.input_channels()[k].name)] = inputs.value[k];
  return u;
}

int planar_bodies(const Stepper& stepper) {
  const std::vector<int>& normal = plan_of(stepper).planar.normal;
  return static_cast<int>(std::count_if(normal.begin(), normal.end(), [](int each) { return each >= 0; }));
}

}  // namespace

TEST_CASE("bodies in a plane never leave it, to the last bit, and move as with all rows") {
  for (const int normal : {0, 1, 2})
    for (const int order : {2, 4}) {
      CAPTURE(normal);
      CAPTURE(order);
      const test::Description d = moved(normal, linkage());
      const auto forces = [&](MechanismBuilder& builder) { add_more_forces(builder, order == 2); };
      Settings settings{.dt_ns = 2'000'000};
      settings.order_of_accuracy = order, settings.iterations = 6;
      Stepper planar(test::build(d, forces), settings),
          spatial(test::build(test::in_space(d, d.bodies.size()), forces), settings);
      REQUIRE(planar_bodies(planar) == 9);
      REQUIRE(planar_bodies(spatial) == 0);
      double most = 0.0, of_reactions = 0.0;
      for (std::uint64_t k = 0; k < 1000; ++k) {
        const Inputs inputs = test::test_inputs(planar.mechanism(), k);
        REQUIRE(planar.step(inputs).status == StepStatus::ok);
        REQUIRE(spatial.step(same_inputs(inputs, planar.mechanism(), spatial.mechanism())).status == StepStatus::ok);
        REQUIRE(out_of_plane(planar.mechanism(), planar.state(), normal) == 0.0);
        most = std::max(most, difference(planar.state(), spatial.state()));
        of_reactions = std::max(of_reactions, difference_of_reactions(planar, spatial));
      }
      MESSAGE("normal " << normal << ", order " << order << ": with all rows they differ by " << most
                        << ", reactions by " << of_reactions);
      CHECK(most < 1e-8);
      CHECK(of_reactions < 1e-6);
    }
}

}  // namespace rigstep::index3
