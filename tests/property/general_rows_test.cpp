// The rows that lanes evaluate against the same rows one by one (core/index3/physics/constraints.h), where joints are
// open and bodies move.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/applied_forces.h"
#include "core/index3/step/couplings.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/step/lane_access.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/placements.h"
#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

using Rows = AssemblySweep::Rows;

// A chain of joints of all types, in each of the first of which one freedom is driven.
test::Description driven_chain(unsigned seed) {
  test::Random random(seed);
  test::Description d = test::random_bare_tree(seed, 16);
  for (const auto& joint : d.joints) {
    const std::vector<Freedom> all = freedoms(joint.type);
    if (all.empty() || d.drivers.size() >= 8) continue;
    Driver driver;
    driver.name = "drive_" + joint.name;
    driver.function = polynomial({0.0});
    d.drivers.push_back(
        {driver, {joint.name, all[static_cast<std::size_t>(random.below(static_cast<int>(all.size())))]}});
  }
  return d;
}

// Constraints from first to end - 1. rows: of all constraints, one by one; in lanes: what has been written into an
// array
void check_rows(const Plan& plan, int first_constraint, int end, const std::vector<double>& rows, double factor,
                const double* in_lanes) {
  for (int constraint = first_constraint; constraint < end; ++constraint) {
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

// The same chain, in which coordinates of all kinds are coupled to each other.
test::Description coupled_chain(unsigned seed) {
  test::Description d = test::random_bare_tree(seed, 16);
  std::vector<std::pair<std::string, Freedom>> all;
  for (const auto& joint : d.joints)
    for (const Freedom freedom : freedoms(joint.type)) all.emplace_back(joint.name, freedom);
  for (std::size_t k = 1; k < all.size() && d.couplings.size() < 20; k += 2)
    d.couplings.push_back({"couple_" + std::to_string(k),
                           {all[k - 1].first, all[k - 1].second},
                           {all[k].first, all[k].second},
                           0.3 + 0.1 * static_cast<double>(k)});
  return d;
}

// A state with open joints and moving bodies, seen one by one and as the iterate in lanes.
struct OpenState {
  OpenState(const Plan& plan, unsigned seed) : w(plan), quadratic(static_cast<std::size_t>(plan.rows())) {
    test::Random random(seed);
    x = test::disturbed(start_pose(plan), random);
    evaluate_state(plan, x, w);
    evaluate_quadratic_terms(plan, w, quadratic);
    enter_lanes(plan, x, w);
    for (std::size_t k = 0; k < x.drive.size(); ++k) set_drive(plan, static_cast<int>(k), x.drive[k], w);
    plan.kernels->predict(w.arrays);
    iterate_from_last(plan, w);
  }
  Workspace w;
  State x;
  std::vector<double> quadratic;  // of all constraints, one by one
};

// How a coordinate's gradient turns with its first or second body.
Mat3 stiffness_by_differences(const Plan& plan, const Workspace& w, int coordinate_index, bool of_first) {
  const JointCoordinate& of = plan.mechanism.coordinates()[coordinate_index];
  const Joint& joint = plan.mechanism.joints()[of.joint];
  Placement first = placement(w, joint.first), second = placement(w, joint.second);
  Mat3& A = of_first ? first.A : second.A;
  return test::symmetric_turning(Mat3(A), [&](const Mat3& turned) {
    A = turned;
    const Coordinate x = coordinate(of.freedom, place_joint(joint, first, second), first, second);
    return Vec3((of_first ? x.first : x.second).tail<3>());
  });
}

// ... as lanes have found it.
Mat3 stiffness_in_lanes(const Plan& plan, const Workspace& w, int coordinate_index, bool of_first) {
  const Place& at = plan.found_coordinate[coordinate_index];
  const auto number = [&](int k) {
    return 0.5 * w.coordinates_found[static_cast<std::size_t>(
                     at.base + (kStiffnessOfCoordinate + (of_first ? 0 : 6) + k) * at.stride)];
  };
  Mat3 K;
  K << number(0), number(3), number(4), number(3), number(1), number(5), number(4), number(5), number(2);
  return K;
}

}  // namespace

TEST_CASE("lanes evaluate the coordinates of couplings, with all derivatives, where joints are open") {
  std::map<int, int> forms;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Plan plan = make_plan(test::build(coupled_chain(seed)), {});
    for (const CoordinateBatch& batch : plan.coordinate_batches) ++forms[batch.format.lines];
    OpenState open(plan, seed);
    Workspace& w = open.w;
    const std::vector<Coordinate> one_by_one = w.coordinate;
    plan.kernels->disassemble(w.arrays, {false, Multiplier::kappa, DisassemblySweep::Finish::quadratic_terms});
    const auto check = [&](const std::vector<double>& rows, double factor, const double* in_lanes) {
      check_rows(plan, plan.first_coupling(), plan.first_driver(), rows, factor, in_lanes);
    };
    measure_gaps_of_couplings(plan, 0.5, w);
    check(w.Phi, 0.5, w.arrays.Phi);
    find_quadratic_terms_of_couplings(plan, w);
    check(open.quadratic, 1.0, w.arrays.quadratic);
    measure_velocities_of_couplings(plan, w);
    check(velocities(plan, w), 1.0, w.arrays.quadratic);
    constrain_couplings(plan, w, true);
    for (const Coupling& coupling : plan.mechanism.couplings())
      for (const int k : {coupling.first, coupling.second}) {
        for (const bool of_first : {true, false}) {
          const Mat3 expected = stiffness_by_differences(plan, w, k, of_first);
          CHECK((stiffness_in_lanes(plan, w, k, of_first) - expected).norm() < 1e-8 * (1.0 + expected.norm()));
        }
        const Coordinate found = coupled_coordinate(plan, w, k, open.x.coordinate[k]);
        CHECK((found.first - one_by_one[k].first).norm() < 1e-12);
        CHECK((found.second - one_by_one[k].second).norm() < 1e-12);
      }
  }
  CHECK(forms[1] > 5);
  for (const int form : {RowFormat::kAngleInFirst, RowFormat::kAngleInSecond, RowFormat::kMiddleAngle})
    CHECK(forms[form] > 3);
}

TEST_CASE("lanes evaluate gaps, velocities and quadratic terms of all joints and of drivers") {
  int along_axes = 0, displacements = 0, angles = 0, sliding = 0, screws = 0;
  std::map<int, int> driven_angles;  // by form
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Plan plan = make_plan(test::build(driven_chain(seed)), {});
    for (std::size_t c = 0; c < plan.eliminated.size(); ++c) {
      const RowFormat& format = plan.constraints[c].format;
      REQUIRE(format.in_lanes());
      if (format.is_threaded(format.rows - 1))
        ++screws;
      else if (format.ends_with_coordinate())
        (format.general() ? displacements : angles) += 1;
      else if (format.is_angle())
        ++driven_angles[format.lines];
      else if (format.general())
        (plan.eliminated[c] >= plan.first_driver() ? along_axes : sliding) += 1;
    }
    OpenState open(plan, seed);
    Workspace& w = open.w;
    const Kernels& kernels = *plan.kernels;
    const auto check = [&](const std::vector<double>& rows, double factor, const double* in_lanes) {
      check_rows(plan, 0, plan.mechanism.constraints(), rows, factor, in_lanes);
    };
    kernels.assemble(w.arrays, projection_factor(Rows::all, ComplianceOf::projections));
    check(w.Phi, 1.0, w.arrays.Phi);
    kernels.assemble(w.arrays, rows_alone(Rows::half_gaps));
    check(w.Phi, 0.5, w.arrays.Phi);
    kernels.disassemble(w.arrays, {false, Multiplier::kappa, DisassemblySweep::Finish::quadratic_terms});
    check(open.quadratic, 1.0, w.arrays.quadratic);
    kernels.assemble(w.arrays, rows_alone(Rows::velocities));
    check(velocities(plan, w), 1.0, w.arrays.quadratic);
  }
  CHECK(along_axes > 5);
  CHECK(displacements > 5);
  CHECK(angles > 5);
  CHECK(sliding > 20);
  CHECK(screws > 5);
  for (const int form : {RowFormat::kAngleInFirst, RowFormat::kAngleInSecond, RowFormat::kMiddleAngle})
    CHECK(driven_angles[form] > 3);
}

}  // namespace rigstep::index3
