// State and inputs determine the next state, to the last bit.
#include <doctest/doctest.h>

#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

std::vector<Mechanism> mechanisms() {
  std::vector<Mechanism> all;
  for (unsigned seed = 1; seed <= 4; ++seed) all.push_back(test::build(test::random_tree(seed, 8)));
  for (unsigned seed = 5; seed <= 8; ++seed) all.push_back(test::build(test::random_loops(seed, 6)));
  all.push_back(test::build(test::four_bar(0.8)));
  all.push_back(test::build(test::ladder(4)));
  return all;
}

}  // namespace

TEST_CASE("two steppers of one mechanism pass through the same bits") {
  for (const Mechanism& m : mechanisms()) {
    Stepper a(m, {}), b(m, {});
    REQUIRE(a.state().hash() == b.state().hash());
    for (std::uint64_t k = 0; k < 500; ++k) {
      const Inputs u = test::test_inputs(m, k);
      const StepReport from_a = a.step(u), from_b = b.step(u);
      REQUIRE_FALSE(failed(from_a.status));
      REQUIRE(from_a.last_increment == from_b.last_increment);
      REQUIRE(a.state().hash() == b.state().hash());
    }
  }
}

TEST_CASE("a stepper restored from a flat state goes on with the same bits, whatever it did before") {
  for (const Mechanism& m : mechanisms()) {
    Stepper a(m, {}), b(m, {});
    for (std::uint64_t k = 0; k < 250; ++k) a.step(test::test_inputs(m, k));
    for (std::uint64_t k = 0; k < 17; ++k) b.step(test::test_inputs(m, 3 * k));
    std::vector<double> flat(a.state().flat_size());
    a.state().flatten(flat);
    b.restore(flat, a.state().step);
    REQUIRE(a.state().hash() == b.state().hash());
    for (std::uint64_t k = 250; k < 500; ++k) {
      const Inputs u = test::test_inputs(m, k);
      a.step(u);
      b.step(u);
      REQUIRE(a.state().hash() == b.state().hash());
    }
  }
}

TEST_CASE("the hash sees every number of the state and the step index") {
  const Mechanism m = test::build(test::random_tree(2, 5));
  Stepper s(m, {});
  std::vector<double> flat(s.state().flat_size());
  s.state().flatten(flat);
  const std::uint64_t hash = s.state().hash();
  for (double& x : flat) {
    const double kept = x;
    x = std::nextafter(x, 10.0);
    s.restore(flat, 0);
    CHECK(s.state().hash() != hash);
    x = kept;
  }
  s.restore(flat, 1);
  CHECK(s.state().hash() != hash);
  s.restore(flat, 0);
  CHECK(s.state().hash() == hash);
}

}  // namespace rigstep::index3
