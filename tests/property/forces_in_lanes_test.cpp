// What lanes find of force elements (core/index3/kernels/scalar_forces.h, tyres.h, bushings.h, actions.h) against the
// same of one joint and one force element (core/index3/physics), where joints are open and bodies move.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/forces_in_lanes.h"
#include "core/index3/step/iterate_forces.h"
#include "core/index3/step/lane_access.h"
#include "core/index3/stepper_access.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/placements.h"
#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

constexpr double kTime = 0.3;  // [s]
constexpr TangentFactors kFactors{0.5, 0.1};

Characteristic random_table(test::Random& random) {
  Characteristic table;
  double x = random.uniform(-2.0, 0.0);
  for (int k = 0, points = 2 + random.below(5); k < points; ++k, x += random.uniform(0.1, 1.0))
    table.x.push_back(x), table.y.push_back(random.uniform(-5.0, 5.0));
  return table;
}

void add_random_spring(test::Random& random, MechanismBuilder& b, const std::string& name, const std::string& joint,
                       Freedom freedom) {
  Spring spring = test::random_spring(random, name, Spring::Kind::in_joint);
  if (random.below(2) == 0) spring.stiffness_table = random_table(random);
  if (random.below(3) == 0) spring.damping_table = random_table(random);
  b.add_joint_spring(spring, joint, freedom);
}

void add_random_motor(test::Random& random, MechanismBuilder& b, const std::string& joint, Freedom freedom) {
  for (const char* what : {"torque_", "target_"}) {
    Input signal;
    signal.name = what + joint;
    b.add_signal_input(signal);
  }
  Motor motor;
  motor.name = "motor_" + joint;
  motor.constant = random.uniform(), motor.position_gain = random.uniform(0.0, 20.0);
  motor.rate_gain = random.uniform(0.0, 2.0);
  if (random.below(3) > 0) motor.effort_limit = random.uniform(0.5, 5.0);
  if (motor.effort_limit > 0.0 && random.below(2) > 0) motor.no_load_speed = random.uniform(0.5, 4.0);
  b.add_motor(motor, joint, freedom, {.effort = "torque_" + joint, .position = "target_" + joint, .rate = ""});
}

// Between points of bodies or the ground, some of them along a direction.
void add_random_point_springs(test::Random& random, const test::Description& d, MechanismBuilder& b, int count = 7) {
  for (int k = 0; k < count; ++k) {
    const bool has_direction = random.below(3) == 0;
    Spring spring = test::random_spring(random, "point_spring" + std::to_string(k),
                                        has_direction ? Spring::Kind::along_direction : Spring::Kind::between_points);
    if (random.below(2) == 0) spring.stiffness_table = random_table(random);
    const int first = random.below(5), second = 5 + random.below(5);
    b.add_spring(spring, first == 0 ? "ground" : d.bodies[static_cast<std::size_t>(first)].name,
                 d.bodies[static_cast<std::size_t>(second)].name);
  }
}

// Between points of bodies or the ground, and along the joints, some of which are stopped by nothing else.
void add_random_stops(test::Random& random, const test::Description& d, MechanismBuilder& b) {
  const auto stop = [&random](const std::string& name) {
    Stop made;
    made.name = name;
    made.lower = random.uniform(-0.5, 0.0), made.upper = random.uniform(0.0, 0.5);
    made.stiffness = 1e4, made.damping = random.uniform(0.0, 1.0);
    return made;
  };
  for (int k = 0; k < 4; ++k)
    b.add_element(stop("point_stop" + std::to_string(k)),
                  k == 0 ? std::string("ground") : d.bodies[static_cast<std::size_t>(k)].name,
                  d.bodies[static_cast<std::size_t>(5 + k)].name);
  for (const auto& joint : d.joints)
    for (const Freedom freedom : freedoms(joint.type)) {
      b.add_element(stop("stop_" + joint.name), joint.name, freedom);
      break;
    }
}

// Between bodies or from the ground, each frame turned against the other.
void add_random_bushings_and_drags(test::Random& random, const test::Description& d, MechanismBuilder& b) {
  const auto side = [&random] {
    const Vec3 axis = random.direction();
    return SideInBody{random.vector(0.3), axis, axis.cross(random.direction())};
  };
  for (int k = 0; k < 7; ++k) {
    Bushing bushing;
    bushing.name = "bushing" + std::to_string(k);
    bushing.stiffness = random.semidefinite(1e2), bushing.damping = random.semidefinite(1.0);
    const SideInBody first = side(), second = side();
    b.add_bushing(bushing, k == 0 ? std::string("ground") : d.bodies[static_cast<std::size_t>(k)].name,
                  d.bodies[static_cast<std::size_t>(8 + k)].name, first, second);
  }
  for (int k = 0; k < 5; ++k) {
    Drag drag;
    drag.name = "drag" + std::to_string(k);
    drag.drag_area = 0.5, drag.point_b = random.vector(0.3), drag.wind_0 = random.vector(2.0);
    b.add_drag(drag, d.bodies[static_cast<std::size_t>(2 * k)].name);
  }
}

// Some touch the road, some roll in the air; the last one lies below the road.
void add_random_tyres(test::Random& random, const test::Description& d, MechanismBuilder& b, int count = 6) {
  Input height;
  height.name = "height";
  b.add_signal_input(height);
  for (int k = 0; k < count; ++k) {
    const Body& wheel = d.bodies[static_cast<std::size_t>(k)];
    Tyre tyre;
    tyre.name = "tyre" + std::to_string(k);
    tyre.radius = random.uniform(0.3, 0.6), tyre.stiffness = 1e4, tyre.damping = 1e3;
    tyre.axis_b = random.direction(), tyre.centre_b = random.vector(0.1);
    tyre.longitudinal = {12.0, 1.6, -0.5, 1.1}, tyre.lateral = {9.0, 1.3, 0.4, 0.9};
    tyre.road_normal_0 = random.direction();
    tyre.road_point_0 = wheel.position_0 - random.uniform(0.2, 0.6) * tyre.road_normal_0;
    if (k == 5) {
      tyre.axis_b = rotation_matrix(wheel.orientation).transpose() * tyre.road_normal_0;
      tyre.road_point_0 = wheel.position_0 + 0.3 * tyre.road_normal_0;
    }
    b.add_tyre(tyre, wheel.name, k % 2 == 0 ? "height" : "", "");
  }
}

// Some of each kind along the joints, others with none.
void add_random_forces(test::Random& random, const test::Description& d, MechanismBuilder& b) {
  for (const auto& joint : d.joints) {
    if (joint.type != JointType::revolute && joint.type != JointType::prismatic) continue;
    const Freedom freedom = freedoms(joint.type)[0];
    for (int k = 0, springs = random.below(3); k < springs; ++k)
      add_random_spring(random, b, "spring" + std::to_string(k) + "_" + joint.name, joint.name, freedom);
    if (random.below(2) == 0)
      b.add_friction({.name = "friction_" + joint.name, .coulomb = 2.0, .viscous = 0.3, .regularisation_speed = 0.1},
                     joint.name, freedom);
    if (random.below(2) == 0) add_random_motor(random, b, joint.name, freedom);
    if (random.below(3) == 0) {
      AppliedEffort effort;
      effort.name = "effort_" + joint.name;
      effort.function = polynomial({1.0, random.uniform(), random.uniform()});
      b.add_effort(effort, joint.name, freedom);
    }
    if (random.below(3) == 0) {
      Input input;
      input.name = "input_" + joint.name;
      b.add_joint_input(input, joint.name, freedom);
    }
  }
}

// What acts along a joint's coordinate, one after the other.
ScalarEffort sum_along(const Plan& plan, const Inputs& inputs, int joint, const Workspace& w) {
  const Mechanism& m = plan.mechanism;
  ScalarEffort sum{0.0, 0.0, 0.0};
  const auto add = [&]<class Kind>() {
    for (std::size_t k = 0; k < m.all<Kind>().size(); ++k)
      if (m.coordinates()[static_cast<std::size_t>(m.all<Kind>()[k].coordinate)].joint == joint)
        sum = sum + w.evaluated<Kind>()[k].effort;
  };
  add.operator()<Spring>(), add.operator()<JointFriction>(), add.operator()<Motor>(), add.operator()<AppliedEffort>();
  for (const int k : plan.inputs_along_joints)
    if (m.inputs()[static_cast<std::size_t>(k)].joint == joint) sum.effort += inputs.value[static_cast<std::size_t>(k)];
  return sum;
}

// A random tree at a state with open joints, and what is found of its forces in lanes and one by one at the pose after
// a step without forces.
struct Compared {
  Plan plan;
  Workspace in_lanes, one_by_one;
  Inputs inputs;
  std::vector<double> last_coordinate;
};
template <class AddForces>
Compared compare(unsigned seed, const AddForces& add_forces) {
  test::Random random(seed);
  test::Description d = test::random_bare_tree(seed, 16);
  d.gravity = {1.0, -2.0, -9.81};
  const Mechanism m = test::build(d, [&](MechanismBuilder& b) { add_forces(random, d, b); });
  Plan plan = make_plan(m, test::step_of(1e-6));  // bodies hardly turn further in a step
  Workspace w(plan), v(plan);
  State x = test::disturbed(start_pose(plan), random);
  for (BodyState& body : x.body) body.a = body.alpha_b = Vec3::Zero();
  Inputs inputs;
  inputs.count = static_cast<int>(m.inputs().size());
  for (int k = 0; k < inputs.count; ++k) inputs.value[static_cast<std::size_t>(k)] = random.uniform(-0.1, 0.1);
  evaluate_state(plan, x, w);
  enter_lanes(plan, x, w);
  plan.kernels->predict(w.arrays);
  State next = x;
  leave_lanes(plan, w, Instant::next, next);
  for (std::size_t i = 0; i < x.body.size(); ++i) next.body[i].v = x.body[i].v, next.body[i].w_b = x.body[i].w_b;
  hold_forces_in_lanes(plan, inputs, kTime, x.coordinate, w);
  evaluate_in_lanes(plan, &kFactors, w);
  read_lanes(plan, w);
  evaluate_state(plan, next, v);
  evaluate_elements(plan, inputs, kTime, x.coordinate, v);
  return {std::move(plan), std::move(w), std::move(v), inputs, x.coordinate};
}

void check_close(double found, double expected) {
  CHECK(std::abs(found - expected) < 1e-6 * (1.0 + std::abs(expected)));
}
void check_close(const ScalarEffort& found, const ScalarEffort& expected) {
  check_close(found.effort, expected.effort);
  check_close(found.stiffness, expected.stiffness);
  check_close(found.damping, expected.damping);
}
void check_close(const Coordinate& found, const Coordinate& expected) {
  CHECK(std::abs(found.value - expected.value) < 1e-11 * (1.0 + std::abs(expected.value)));
  CHECK(std::abs(found.rate - expected.rate) < 1e-8);
  CHECK((found.first - expected.first).norm() + (found.second - expected.second).norm() <
        1e-11 * (1.0 + expected.first.norm()));
}

// of springs and stops between points
template <class Evaluated>
void check_arms(const Evaluated& found, const Evaluated& expected) {
  CHECK((found.arm_first - expected.arm_first).norm() + (found.arm_second - expected.arm_second).norm() < 1e-11);
}

TEST_CASE("lanes measure coordinates with rates and gradients, and what acts along them") {
  int measured = 0, laws = 0, tables = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const Compared c = compare(seed, add_random_forces);
    for (const ScalarLane& lane : c.plan.scalar_lanes) {
      if (lane.joint < 0 || lane.coordinate < 0) continue;
      check_close(measured_coordinate(c.plan, c.in_lanes, lane.joint),
                  c.one_by_one.coordinate[static_cast<std::size_t>(lane.coordinate)]);
      check_close(c.in_lanes.along_joint[static_cast<std::size_t>(lane.joint)],
                  sum_along(c.plan, c.inputs, lane.joint, c.one_by_one));
      ++measured;
    }
    laws += static_cast<int>(c.plan.laws.size());
    for (const LawBatch& law : c.plan.laws) tables += (law.table[0] >= 0) + (law.table[1] >= 0);
  }
  CHECK(measured > 50);
  CHECK(laws > 60);
  CHECK(tables > 20);
}

void check_springs_between_points(const Compared& c, std::size_t count) {
  CHECK(c.plan.lanes_of<Spring>().size() == count);
  for (std::size_t k = 0; k < count; ++k) {
    const EvaluatedSpring &a = c.in_lanes.evaluated<Spring>()[k], &b = c.one_by_one.evaluated<Spring>()[k];
    check_close(a.x, b.x);
    check_close(a.effort, b.effort);
    check_arms(a, b);
  }
}

TEST_CASE("lanes evaluate springs between points as one does") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Compared c =
        compare(seed, [](auto& random, const auto& d, auto& b) { add_random_point_springs(random, d, b); });
    check_springs_between_points(c, 7);
  }
}

TEST_CASE("lanes evaluate the scalars of stops as one does, and leave those of other freedoms to one by one") {
  int along_joints = 0, one_by_one = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Compared c = compare(seed, add_random_stops);
    const std::vector<int>& in_lanes = c.plan.lanes_of<Stop>();
    for (const int k : in_lanes) {
      const Stop& stop = c.plan.mechanism.all<Stop>()[static_cast<std::size_t>(k)];
      const EvaluatedStop& a = c.in_lanes.evaluated<Stop>()[static_cast<std::size_t>(k)];
      const EvaluatedStop& b = c.one_by_one.evaluated<Stop>()[static_cast<std::size_t>(k)];
      check_close(a.x, b.x);
      if (stop.is_along_freedom())
        ++along_joints;
      else
        check_arms(a, b);
    }
    one_by_one += static_cast<int>(c.plan.mechanism.all<Stop>().size() - in_lanes.size());
  }
  CHECK(along_joints > 20);
  CHECK(one_by_one > 20);
}

TEST_CASE("lanes evaluate bushings and drags as one does") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Compared c = compare(seed, add_random_bushings_and_drags);
    CHECK(c.plan.lanes_of<Bushing>().size() == 7);
    CHECK(c.plan.lanes_of<Drag>().size() == 5);
    for (std::size_t k = 0; k < 7; ++k) {
      const BushingDeflection &a = c.in_lanes.evaluated<Bushing>()[k], &b = c.one_by_one.evaluated<Bushing>()[k];
      CHECK((a.x - b.x).norm() < 1e-11);
      CHECK((a.rate - b.rate).norm() < 1e-8);
      CHECK((a.J_first - b.J_first).norm() + (a.J_second - b.J_second).norm() < 1e-11);
    }
    for (std::size_t k = 0; k < 5; ++k) {
      const DragPoint &a = c.in_lanes.evaluated<Drag>()[k], &b = c.one_by_one.evaluated<Drag>()[k];
      CHECK((a.arm - b.arm).norm() < 1e-12);
      CHECK((a.u - b.u).norm() < 1e-8);
    }
  }
}

void check_tyre(const Tyre& tyre, const TyreForces& a, const TyreForces& b) {
  check_close(a.contact.deflection, b.contact.deflection);
  check_close(a.normal, b.normal);
  check_close(a.slip.x, b.slip.x), check_close(a.slip.y, b.slip.y);
  check_close(a.slip.damping_x, b.slip.damping_x), check_close(a.slip.damping_y, b.slip.damping_y);
  check_close(a.slip.kappa, b.slip.kappa), check_close(a.slip.tan_alpha, b.slip.tan_alpha);
  CHECK(a.contact.touches == b.contact.touches);
  CHECK((tyre_wrench(a) - tyre_wrench(b)).norm() < 1e-6 * (1.0 + tyre_wrench(b).norm()));
  Mat6 of_lanes = Mat6::Zero(), of_one = Mat6::Zero();
  add_tyre_tangent(tyre, a, 0.5, 0.1, of_lanes);
  add_tyre_tangent(tyre, b, 0.5, 0.1, of_one);
  CHECK((of_lanes - of_one).norm() < 1e-6 * (1.0 + of_one.norm()));
}

TEST_CASE("lanes evaluate tyres as one does, in the air and lying, too") {
  int touching = 0, in_air = 0, lying = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const Compared c = compare(seed, [](auto& random, const auto& d, auto& b) { add_random_tyres(random, d, b); });
    CHECK(c.plan.lanes_of<Tyre>().size() == 6);
    CHECK(c.plan.lanes_of_forces == c.plan.lanes);
    for (std::size_t k = 0; k < 6; ++k) {
      const TyreForces& b = c.one_by_one.evaluated<Tyre>()[k];
      check_tyre(c.plan.mechanism.tyres()[k], c.in_lanes.evaluated<Tyre>()[k], b);
      b.contact.touches ? ++touching : b.contact.deflection > 0.0 ? ++lying : ++in_air;
    }
  }
  CHECK(touching > 30);
  CHECK(in_air > 30);
  CHECK(lying > 3);
}

// Loads and inputs that iterates apply one by one, beside all that lanes find.
void add_random_loads(test::Random& random, const test::Description& d, MechanismBuilder& b) {
  for (int k = 0; k < 3; ++k) {
    const std::string name = std::to_string(k), on = d.bodies[static_cast<std::size_t>(random.below(16))].name;
    AppliedLoad load;
    load.name = "load" + name;
    load.frame = k == 0 ? Frame::world : Frame::body;
    load.force = random.vector(2.0), load.torque = random.vector(2.0), load.point_b = random.vector(0.3);
    load.constant = 1.0;
    b.add_load(load, on);
    Input input;
    input.name = "push" + name;
    input.kind = k == 0 ? Input::Kind::body_torque : Input::Kind::body_force;
    input.direction = random.direction(), input.point_b = random.vector(0.3);
    b.add_body_input(input, on);
  }
}

void add_all_random_forces(test::Random& random, const test::Description& d, MechanismBuilder& b) {
  add_random_forces(random, d, b);
  add_random_point_springs(random, d, b);
  add_random_bushings_and_drags(random, d, b);
  add_random_tyres(random, d, b);
  add_random_loads(random, d, b);
}

ForceProblem problem_of(const Compared& c, const TangentFactors& factors) {
  return {c.plan, c.inputs, kTime, c.last_coordinate, factors};
}

void check_load(const Workspace& w, const BodyPlace& place, const Vec6& expected) {
  const Place at = place.of(kLoadField);
  for (int k = 0; k < 6; ++k)
    CHECK(std::abs(w.arrays.body[at.base + k * at.stride] - expected[k]) < 1e-6 * (1.0 + expected.norm()));
}
void check_own_block(const Compared& c, int body, const BodyPlace& place, const Mat6& expected) {
  const double* at = c.in_lanes.arrays.tangent + c.plan.elimination.leaf_at(body, place).dense + place.lane;
  for (int row = 0; row < 6; ++row)
    for (int column = 0; column <= row; ++column, at += place.width)
      CHECK(std::abs(*at - expected(row, column)) < 1e-6 * (1.0 + expected.norm()));
}

// Loads in Newton's equations of a step from the last instant to this one, which differ from those of an instant where
// elements act over a step.
std::vector<Vec6> loads_of_step(const Compared& c, Workspace& w) {
  w.starts = c.in_lanes.starts;
  follow_iterate(c.plan, w);
  apply_forces(c.plan, c.inputs, kTime, w);
  std::vector<Vec6> loads = w.Q;
  replace_loads_over_step(c.plan, w);
  for (const int i : c.plan.bodies_over_step) loads[static_cast<std::size_t>(i)] -= w.Q[static_cast<std::size_t>(i)];
  return loads;
}

// Returned: how many blocks it has seen.
int check_leaves(Compared c) {
  gather_poses(c.plan, c.in_lanes);
  take_inputs(c.plan, c.inputs, c.in_lanes), take_inputs(c.plan, c.inputs, c.one_by_one);
  const std::vector<Vec6> loads = loads_of_step(c, c.one_by_one);
  force_tangent(c.plan, kFactors, c.one_by_one);
  REQUIRE(load_iterate(problem_of(c, kFactors), Renewal::always, c.in_lanes));
  CHECK_FALSE(c.plan.loaded_one_by_one.empty());
  CHECK(c.plan.loaded_bodies.size() > 10);
  int blocks = 0;
  for (const int i : c.plan.loaded_bodies)
    c.plan.elimination.at_all_places(i, [&](const BodyPlace& place) {
      check_load(c.in_lanes, place, loads[static_cast<std::size_t>(i)]);
      if (!c.plan.has_own_tangent[static_cast<std::size_t>(i)]) return;
      check_own_block(c, i, place, c.one_by_one.tangent[static_cast<std::size_t>(i)]);
      ++blocks;
    });
  return blocks;
}

TEST_CASE("leaves sum all loads and own-body blocks of their bodies, as one does") {
  int blocks = 0, of_stops = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    blocks += check_leaves(compare(seed, add_all_random_forces));
    of_stops += check_leaves(compare(seed, [](auto& random, const auto& d, auto& b) {
      add_random_stops(random, d, b), add_all_random_forces(random, d, b);
    }));
  }
  CHECK(blocks > 200);
  CHECK(of_stops > 200);
}

TEST_CASE("the tangent of force elements counts as changed where own-body blocks or rows have") {
  const auto of_tyres = [](auto& random, const auto& d, auto& b) { add_random_tyres(random, d, b); };
  const auto of_bushings = [](auto& random, const auto& d, auto& b) { add_random_bushings_and_drags(random, d, b); };
  const auto check = [](Compared c) {
    const auto load = [&c](double factor, Renewal renewal) {
      const TangentFactors factors{factor * kFactors.stiffness, factor * kFactors.damping};
      return load_iterate(problem_of(c, factors), renewal, c.in_lanes);
    };
    CHECK(load(1.0, Renewal::always));
    CHECK_FALSE(load(1.0, Renewal::where_changed));
    CHECK_FALSE(load(1.0 + 1e-5, Renewal::where_changed));
    CHECK_FALSE(load(2.0, Renewal::none));
    return load(1.0 + 1e-3, Renewal::where_changed);
  };
  int on_road = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    on_road += check(compare(seed, of_tyres));  // where no wheel touches it, nothing changes
    CHECK(check(compare(seed, of_bushings)));
  }
  CHECK(on_road > 5);
}

TEST_CASE("up to four elements of a kind lie in four lanes, and one coordinate in one") {
  int single = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Compared few = compare(seed, [](auto& random, const auto& d, auto& b) {
      add_random_point_springs(random, d, b, 4), add_random_tyres(random, d, b, 3);
    });
    CHECK(few.plan.lanes_of_forces == std::min(4, few.plan.lanes));
    check_springs_between_points(few, 4);
    for (std::size_t k = 0; k < 3; ++k)
      check_tyre(few.plan.mechanism.tyres()[k], few.in_lanes.evaluated<Tyre>()[k], few.one_by_one.evaluated<Tyre>()[k]);

    const Compared one = compare(seed, [](auto& random, const auto& d, auto& b) {
      for (const auto& joint : d.joints) {
        if (joint.type != JointType::revolute && joint.type != JointType::prismatic) continue;
        return add_random_spring(random, b, "spring", joint.name, freedoms(joint.type)[0]);
      }
    });
    for (const int j : one.plan.measured_joints) {
      CHECK(one.plan.lanes_of_forces == 1);
      ++single;
      const int coordinate = one.plan.scalar_lanes[static_cast<std::size_t>(one.plan.lane_of_joint[j])].coordinate;
      check_close(measured_coordinate(one.plan, one.in_lanes, j),
                  one.one_by_one.coordinate[static_cast<std::size_t>(coordinate)]);
      check_close(one.in_lanes.along_joint[static_cast<std::size_t>(j)],
                  sum_along(one.plan, one.inputs, j, one.one_by_one));
    }
  }
  CHECK(single > 10);
}

TEST_CASE("coordinates along which nothing acts are measured in lanes at the end of a step, beyond full turns, too") {
  int measured = 0;
  double most = 0.0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const test::Description d = test::made_consistent(test::random_bare_tree(seed, 16));
    Stepper s(test::build(d,
                          [&d](MechanismBuilder& b) {
                            Output output;
                            output.kind = Output::Kind::joint_coordinate;
                            for (const auto& joint : d.joints) {
                              output.name = joint.name;
                              for (const Freedom freedom : freedoms(joint.type)) {
                                b.add_joint_output(output, joint.name, freedom);
                                break;
                              }
                            }
                          }),
              test::step_of(5e-3));
    const Plan& plan = plan_of(s);
    for (const int j : plan.measured_at_end) CHECK(plan.lane_of_joint[static_cast<std::size_t>(j)] >= 0);
    measured += static_cast<int>(plan.measured_at_end.size());
    Workspace v(plan);
    for (int k = 0; k < 1500; ++k) {
      const std::vector<double> before = s.state().coordinate;
      REQUIRE_FALSE(failed(s.step(Inputs{}).status));
      State x = s.state();
      const std::vector<double> found = std::exchange(x.coordinate, before);
      evaluate_state(plan, x, v);
      for (std::size_t i = 0; i < found.size(); ++i) {
        CHECK(std::abs(found[i] - v.coordinate[i].value) < 1e-11 * (1.0 + std::abs(found[i])));
        most = std::max(most, std::abs(found[i]));
      }
    }
  }
  CHECK(measured > 20);
  CHECK(most > 6.3);
}

}  // namespace
}  // namespace rigstep::index3
