#include "core/index3/compile/size_limits.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/start/make_plan.h"
#include "core/offline/divide_and_conquer.h"
#include "core/offline/natural_complement.h"
#include "tests/support/mechanisms.h"
#include "tests/support/primal_body_cases.h"

namespace rigstep::index3 {
namespace {

// n bodies, each joined to all others halfway between them, the first one also to the ground.
Mechanism all_to_all(int n, JointType type) {
  test::Description d;
  for (int i = 0; i < n; ++i) {
    const Vec3 at{std::cos(2.4 * i) * (1.0 + 0.1 * i), std::sin(2.4 * i), 0.3 * i};
    d.bodies.push_back(test::make_body(test::body_name(i), at, 1.0, 0.1 * Mat3::Identity()));
  }
  d.joints.push_back(test::make_joint("foot", type, "ground", "body0", Vec3::Zero()));
  for (int i = 0; i < n; ++i)
    for (int k = i + 1; k < n; ++k)
      d.joints.push_back(test::make_joint(test::body_name(i) + "_" + test::body_name(k), type, test::body_name(i),
                                          test::body_name(k), 0.5 * (d.bodies[i].position_0 + d.bodies[k].position_0)));
  return test::build(d);
}

// Empty where nothing is refused.
std::string refusal(const std::function<void()>& load) {
  try {
    load();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string refusal(const Mechanism& m) {
  return refusal([&m] { make_plan(m, {}); });
}

}  // namespace

TEST_CASE(
    "bodies joined all to all load up to a size, and beyond are refused with the figure before they take memory") {
  for (const JointType type : {JointType::spherical, JointType::revolute}) {
    CHECK(refusal(all_to_all(12, type)).empty());
    const std::string of_26 = refusal(all_to_all(26, type));
    CAPTURE(of_26);
    CHECK(of_26.find(type == JointType::spherical ? "76 million multiply-adds" : "349 million multiply-adds") !=
          std::string::npos);
    CHECK(of_26.find("at most 50 million and 2148 million are possible") != std::string::npos);
    const std::string of_60 = refusal(all_to_all(60, type));
    CAPTURE(of_60);
    CHECK(of_60.find("tie bodies to 59 and more others each") != std::string::npos);
    CHECK(of_60.find("leave out joints") != std::string::npos);
  }
  CHECK_FALSE(refusal(all_to_all(150, JointType::point_on_plane)).empty());
}

TEST_CASE("the least work of a factorisation is never more than that of the elimination") {
  for (const Mechanism& m : {all_to_all(6, JointType::revolute), all_to_all(16, JointType::spherical),
                             all_to_all(16, JointType::point_on_plane), test::build(test::ladder(8)),
                             test::build(test::net(6, JointType::revolute)), test::build(test::star(40, 3))}) {
    const Plan plan = make_plan(m, {});
    const LeastWork least = least_work(plan.constraints, static_cast<int>(m.bodies().size()));
    CHECK(least.multiply_adds <= static_cast<double>(plan.elimination.multiply_adds));
    CHECK(least.least_neighbours >= 1);
  }
  const Mechanism dense = all_to_all(16, JointType::spherical);
  CHECK(least_work(make_plan(dense, {}).constraints, 16).least_neighbours == 15);
}

TEST_CASE("large nets, chains and stars are not too large") {
  for (const Mechanism& m : {test::build(test::net(16, JointType::revolute)), test::build(test::star(200, 2)),
                             test::build(test::chain(3000, JointType::revolute))})
    CHECK(refusal(m).empty());
}

TEST_CASE("which rows are redundant is looked for up to a number of rows, of loops only") {
  const Mechanism ladder = test::build(test::ladder(210)), chain = test::build(test::chain(1000, JointType::revolute));
  const std::string of_ladder = refusal([&] { start_rank(ladder); });
  CAPTURE(of_ladder);
  CHECK(of_ladder.find("have 4205 constraint rows") != std::string::npos);
  CHECK(refusal(ladder).empty());  // it can be stepped
  CHECK(refusal([&] { start_rank(chain); }).empty());
}

TEST_CASE("reference solvers with dense matrices refuse bodies joined all to all, with the figure") {
  const Mechanism m = all_to_all(26, JointType::spherical);
  CHECK(offline::complement_unsupported_reason(m).find("978 constraint rows") != std::string::npos);
  CHECK(offline::complement_unsupported_reason(all_to_all(12, JointType::spherical)).empty());
  const auto divided = [](int n) {
    const Mechanism of_n = all_to_all(n, JointType::revolute);
    const offline::JointTree tree(of_n);
    return refusal([&] { offline::DivideAndConquer(of_n, tree, 1); });
  };
  CHECK(divided(12).empty());
  CHECK(divided(60).find("in dense matrices") != std::string::npos);
}

}  // namespace rigstep::index3
