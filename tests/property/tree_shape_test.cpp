// The order in which compounds are merged is a matter of speed alone.
#include <doctest/doctest.h>

#include "core/index3/compile/plan.h"
#include "core/index3/kernels/sweeps.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/stepper.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

// largest difference of poses and velocities between the merge orders after `steps`, relative to the largest coordinate
double difference(const Mechanism& m, int steps) {
  Stepper a(m, {.order = MergeOrder::fewest_operations});
  double most = 0.0, scale = 1.0;
  for (int k = 0; k < steps; ++k)
    REQUIRE(a.step(test::test_inputs(m, static_cast<std::uint64_t>(k))).status == StepStatus::ok);
  for (const MergeOrder order : {MergeOrder::fewest_levels, MergeOrder::in_lanes}) {
    Stepper b(m, {.order = order});
    for (int k = 0; k < steps; ++k)
      REQUIRE(b.step(test::test_inputs(m, static_cast<std::uint64_t>(k))).status == StepStatus::ok);
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      const BodyState &x = a.state().body[i], &y = b.state().body[i];
      scale = std::max({scale, x.r.norm(), x.v.norm()});
      most = std::max({most, (x.r - y.r).norm(), (x.p - y.p).norm(), (x.v - y.v).norm(), (x.w_b - y.w_b).norm()});
    }
  }
  return most / scale;
}

}  // namespace

TEST_CASE("any order of merging gives the same step") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    CHECK(difference(test::build(test::random_tree(seed, 12)), 1) < 1e-10);
    CHECK(difference(test::build(test::random_loops(seed, 7)), 1) < 1e-10);
  }
  for (int seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    CHECK(difference(test::build(test::random_chain(seed, 10 + seed)), 1) < 1e-10);
  }
  for (const int n : {8, 11, 16, 40, 43, 130, 256})  // segments with and without a rest, and several partitions
    CHECK(difference(test::build(test::in_space(test::chain(n, JointType::revolute))), 1) < 1e-10);
  CHECK(difference(test::build(test::ladder(6)), 1) < 1e-10);
  CHECK(difference(test::build(test::in_space(test::ladder(6))), 1) < 1e-10);
}

TEST_CASE("any order of merging gives the same run of 100 steps") {
  CHECK(difference(test::build(test::random_tree(3, 12)), 100) < 1e-10);
  CHECK(difference(test::build(test::random_loops(4, 7)), 100) < 1e-10);
  CHECK(difference(test::build(test::ladder(6)), 100) < 1e-10);
  CHECK(difference(test::build(test::in_space(test::ladder(6))), 100) < 1e-10);
}

TEST_CASE("any order of merging gives the same step with couplings over up to four bodies") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    test::Description d = test::random_bare_tree(seed, 14);
    test::add_random_couplings(seed, d, 3);
    CHECK(difference(test::build(test::made_consistent(d)), 1) < 1e-10);
  }
}

TEST_CASE("the orders are really different") {
  const Mechanism m = test::build(test::chain(64, JointType::spherical));
  const Plan a = make_plan(m, {.order = MergeOrder::fewest_operations});
  const Plan b = make_plan(m, {.order = MergeOrder::fewest_levels});
  const Plan c = make_plan(m, {.order = MergeOrder::in_lanes});
  CHECK(b.elimination.levels <= 8);  // a leaf, log2(64) merges, the ground
  CHECK(a.elimination.levels > b.elimination.levels);
  CHECK(a.elimination.multiply_adds < b.elimination.multiply_adds);
  CHECK(a.elimination.leaves.size() == 64);
  CHECK(static_cast<int>(c.elimination.leaves.size()) == 64 / c.kernels->lanes);
}

}  // namespace rigstep::index3
