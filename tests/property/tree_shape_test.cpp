// The order in which compounds are merged is a matter of speed alone.
#include <doctest/doctest.h>

#include "core/index3/plan.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

// largest difference of poses and velocities after `steps`, relative to the largest coordinate
double difference(const Mechanism& m, int steps) {
  Stepper a(m, {.order = MergeOrder::fewest_operations}), b(m, {.order = MergeOrder::fewest_levels});
  double most = 0.0, scale = 1.0;
  for (int k = 0; k < steps; ++k) {
    const Inputs u = test::test_inputs(m, static_cast<std::uint64_t>(k));
    REQUIRE(a.step(u).status == StepStatus::ok);
    REQUIRE(b.step(u).status == StepStatus::ok);
  }
  for (std::size_t i = 0; i < m.bodies().size(); ++i) {
    const BodyState &x = a.state().body[i], &y = b.state().body[i];
    scale = std::max({scale, x.r.norm(), x.v.norm()});
    most = std::max({most, (x.r - y.r).norm(), (x.p - y.p).norm(), (x.v - y.v).norm(), (x.w_b - y.w_b).norm()});
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
  CHECK(difference(test::build(test::chain(40, JointType::revolute)), 1) < 1e-10);
  CHECK(difference(test::build(test::ladder(6)), 1) < 1e-10);
}

TEST_CASE("any order of merging gives the same run of 100 steps") {
  CHECK(difference(test::build(test::random_tree(3, 12)), 100) < 1e-10);
  CHECK(difference(test::build(test::random_loops(4, 7)), 100) < 1e-10);
  CHECK(difference(test::build(test::ladder(6)), 100) < 1e-10);
}

TEST_CASE("the two orders are really different") {
  const Mechanism m = test::build(test::chain(64, JointType::spherical));
  const Plan a(m, {.order = MergeOrder::fewest_operations}), b(m, {.order = MergeOrder::fewest_levels});
  CHECK(b.elimination.levels == 7);  // log2(64) merges above a leaf
  CHECK(a.elimination.levels > b.elimination.levels);
  CHECK(a.elimination.multiply_adds < b.elimination.multiply_adds);
}

}  // namespace rigstep::index3
