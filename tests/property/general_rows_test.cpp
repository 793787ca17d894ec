// The rows that lanes evaluate against the same rows one by one (core/index3/physics/constraints.h), where joints are
// open and bodies move.
#include <doctest/doctest.h>

#include <cmath>

#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/lane_access.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

using Rows = AssemblySweep::Rows;

// A chain of joints of all types, the displacement of some of them driven, and the angle of revolutes.
test::Description driven_chain(unsigned seed) {
  test::Description d = test::random_bare_tree(seed, 16);
  for (const auto& joint : d.joints)
    for (const Freedom freedom : freedoms(joint.type))
      if ((is_length(freedom) || joint.type == JointType::revolute) && d.drivers.size() < 6) {
        Driver driver;
        driver.name = "drive_" + joint.name;
        driver.function = polynomial({0.0});
        d.drivers.push_back({driver, {joint.name, freedom}});
        break;
      }
  return d;
}

State disturbed(State x, test::Random& random) {
  for (BodyState& body : x.body) {
    body.r += random.uniform(0.0, 0.1) * random.direction();
    body.p = turned(body.p, random.uniform(0.0, 0.3) * random.direction());
    body.v = random.uniform(0.0, 2.0) * random.direction();
    body.w_b = random.uniform(0.0, 2.0) * random.direction();
  }
  for (Prescribed& drive : x.drive) drive = {random.uniform(), random.uniform(), random.uniform()};
  return x;
}

// rows: of all constraints, one by one; in lanes: what the kernels have written into an array
void check_rows(const Plan& plan, const std::vector<double>& rows, double factor, const double* in_lanes) {
  for (int constraint = 0; constraint < plan.mechanism.constraints(); ++constraint) {
    if (!plan.constraints[plan.eliminated_as[constraint]].format.in_lanes()) continue;
    const int first = plan.first_row[constraint];
    for (int row = first; row < plan.first_row[constraint + 1]; ++row) {
      const double expected = factor * rows[static_cast<std::size_t>(row)];
      CHECK(std::abs(row_value(plan, in_lanes, constraint, row - first) - expected) <
            1e-12 * (1.0 + std::abs(expected)));
    }
  }
}

std::vector<double> velocities(const Plan& plan, const Workspace& w) {
  std::vector<double> rates(static_cast<std::size_t>(plan.rows()));
  evaluate_velocity_terms(plan, w, rates);
  for (int row = 0; row < plan.rows(); ++row)
    for_each_block(plan, w, row, [&](int body, const Vec6& J) {
      rates[static_cast<std::size_t>(row)] +=
          J.head<3>().dot(w.placement[body].v) + J.tail<3>().dot(w.placement[body].w);
    });
  return rates;
}

}  // namespace

TEST_CASE("lanes evaluate gaps, velocities and quadratic terms of all joints and of drivers along axes and of angles") {
  int along_axes = 0, displacements = 0, angles = 0, sliding = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Plan plan = make_plan(test::build(driven_chain(seed)), {});
    for (std::size_t c = 0; c < plan.eliminated.size(); ++c) {
      const RowFormat& format = plan.constraints[c].format;
      if (!format.in_lanes()) continue;
      if (format.ends_with_coordinate())
        (format.general() ? displacements : angles) += 1;
      else if (format.general())
        (plan.eliminated[c] >= plan.first_driver() ? along_axes : sliding) += 1;
    }
    Workspace w(plan);
    test::Random random(seed);
    const State x = disturbed(start_pose(plan), random);
    evaluate_state(plan, x, w);
    std::vector<double> quadratic(static_cast<std::size_t>(plan.rows()));
    evaluate_quadratic_terms(plan, w, quadratic);
    enter_lanes(plan, x, w);
    for (std::size_t k = 0; k < x.drive.size(); ++k) set_drive(plan, static_cast<int>(k), x.drive[k], w);
    const Kernels& kernels = *plan.kernels;
    kernels.predict(w.arrays);
    iterate_from_last(plan, w);
    kernels.assemble(w.arrays, projection_factor(Rows::all, ComplianceOf::projections));
    check_rows(plan, w.Phi, 1.0, w.arrays.Phi);
    kernels.assemble(w.arrays, rows_alone(Rows::half_gaps));
    check_rows(plan, w.Phi, 0.5, w.arrays.Phi);
    kernels.disassemble(w.arrays, {false, Multiplier::kappa, DisassemblySweep::Finish::quadratic_terms});
    check_rows(plan, quadratic, 1.0, w.arrays.quadratic);
    kernels.assemble(w.arrays, rows_alone(Rows::velocities));
    check_rows(plan, velocities(plan, w), 1.0, w.arrays.quadratic);
  }
  CHECK(along_axes > 5);
  CHECK(displacements > 5);
  CHECK(angles > 5);
  CHECK(sliding > 20);
}

TEST_CASE("lanes measure the coordinates along which springs act, with rates and gradients") {
  int measured = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    test::Description d = test::random_bare_tree(seed, 16);
    for (const auto& joint : d.joints)
      if (joint.type == JointType::revolute || joint.type == JointType::prismatic) {
        Spring spring;
        spring.name = "spring_" + joint.name;
        spring.stiffness = 1.0;
        d.joint_springs.push_back({spring, joint.name, freedoms(joint.type)[0]});
      }
    const Plan plan = make_plan(test::build(d), test::step_of(1e-6));  // bodies hardly turn further in a step
    CHECK(plan.measured_joints.size() == d.joint_springs.size());
    Workspace w(plan);
    test::Random random(seed);
    State x = disturbed(start_pose(plan), random);
    for (BodyState& body : x.body) body.a = body.alpha_b = Vec3::Zero();
    evaluate_state(plan, x, w);
    enter_lanes(plan, x, w);
    plan.kernels->predict(w.arrays);
    State next = x;
    leave_lanes(plan, w, Instant::next, next);
    for (std::size_t i = 0; i < x.body.size(); ++i) next.body[i].v = x.body[i].v, next.body[i].w_b = x.body[i].w_b;
    measure_coordinates(plan, x.coordinate, w);
    const std::vector<Coordinate> in_lanes = w.own_coordinate, followed_in_lanes = w.coordinate;
    evaluate_state(plan, next, w);
    follow_coordinates(plan, x.coordinate, w);
    for (const int j : plan.measured_joints) {
      const Coordinate &a = in_lanes[static_cast<std::size_t>(j)], &b = w.own_coordinate[static_cast<std::size_t>(j)];
      CHECK(std::abs(a.value - b.value) < 1e-12 * (1.0 + std::abs(b.value)));
      CHECK(std::abs(a.rate - b.rate) < 1e-8);
      CHECK((a.first - b.first).norm() + (a.second - b.second).norm() < 1e-12 * (1.0 + b.first.norm()));
      ++measured;
    }
    for (std::size_t k = 0; k < w.coordinate.size(); ++k)
      CHECK(std::abs(followed_in_lanes[k].value - w.coordinate[k].value) < 1e-11);
  }
  CHECK(measured > 20);
}

}  // namespace rigstep::index3
