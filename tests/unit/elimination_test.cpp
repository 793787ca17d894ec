#include "core/index3/elimination.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/index3/plan.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

std::vector<int> rows(const Elimination& e, const Front& f, int from, int to) {
  return {e.row.begin() + f.first_row + from, e.row.begin() + f.first_row + to};
}
std::vector<int> eliminated(const Elimination& e, const Front& f) { return rows(e, f, 0, f.eliminated); }
std::vector<int> pending(const Elimination& e, const Front& f) { return rows(e, f, f.eliminated, f.size()); }

std::vector<int> sorted(std::vector<int> v) {
  std::sort(v.begin(), v.end());
  return v;
}

std::vector<int> rows_on_body(const Plan& plan, int body) {
  std::vector<int> rows;
  for (int row = 0; row < plan.all_rows(); ++row) {
    const Connection& joint = plan.connection[plan.connection_of_row[row]];
    if (joint.first == body || joint.second == body) rows.push_back(row);
  }
  return rows;
}

void check_leaf(const Plan& plan, const Front& f) {
  const Elimination& e = plan.elimination;
  std::vector<int> all = eliminated(e, f);
  for (const int row : all) {
    const Connection& joint = plan.connection[plan.connection_of_row[row]];
    CHECK((joint.first == kGround || joint.second == kGround));
  }
  const std::vector<int> open = pending(e, f);
  all.insert(all.end(), open.begin(), open.end());
  CHECK(sorted(all) == rows_on_body(plan, f.body));
}

void check_places(const Elimination& e, const Front& f, int child, int first_place) {
  const std::vector<int> open = pending(e, e.fronts[child]);
  for (std::size_t k = 0; k < open.size(); ++k)
    CHECK(e.row[f.first_row + e.place[first_place + static_cast<int>(k)]] == open[k]);
}

void check_merge(const Elimination& e, int index) {
  const Front& f = e.fronts[index];
  REQUIRE(f.left >= 0);
  REQUIRE(f.right >= 0);
  CHECK(f.left < index);
  CHECK(f.right < index);
  const std::vector<int> a = sorted(pending(e, e.fronts[f.left])), b = sorted(pending(e, e.fronts[f.right]));
  std::vector<int> shared, rest;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(shared));
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
  CHECK(sorted(eliminated(e, f)) == shared);
  CHECK(sorted(pending(e, f)) == rest);
  CHECK(!shared.empty());
  check_places(e, f, f.left, f.left_place);
  check_places(e, f, f.right, f.right_place);
}

// Everything that the sweeps rely on.
void check_elimination(const Mechanism& m, MergeOrder order) {
  const Plan plan(m, {.order = order});
  const Elimination& e = plan.elimination;
  std::multiset<int> bodies, gone, used;
  std::size_t matrix = 0, vector = 0;
  for (int k = 0; k < static_cast<int>(e.fronts.size()); ++k) {
    const Front& f = e.fronts[k];
    if (f.body >= 0) {
      bodies.insert(f.body);
      check_leaf(plan, f);
    } else {
      check_merge(e, k);
      used.insert({f.left, f.right});
    }
    for (const int row : eliminated(e, f)) gone.insert(row);
    CHECK(f.matrix == matrix);  // the arena is filled without gaps
    CHECK(f.vector == vector);
    matrix += static_cast<std::size_t>(f.size() * f.size());
    vector += static_cast<std::size_t>(f.size());
    CHECK(f.size() <= e.largest_front);
  }
  CHECK(matrix == e.matrix_doubles);
  CHECK(vector == e.vector_doubles);
  std::multiset<int> every_body, every_row;
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i) every_body.insert(i);
  for (int row = 0; row < plan.all_rows(); ++row) every_row.insert(row);
  CHECK(bodies == every_body);
  CHECK(gone == every_row);  // each row exactly once
  for (int k = 0; k < static_cast<int>(e.fronts.size()); ++k) {
    CHECK(used.count(k) <= 1);
    if (used.count(k) == 0) CHECK(e.fronts[k].pending == 0);  // a root
  }
}

void check_both_orders(const test::Description& d) {
  const Mechanism m = test::build(d);
  CAPTURE(d.name);
  check_elimination(m, MergeOrder::fewest_operations);
  check_elimination(m, MergeOrder::fewest_levels);
}

test::Description with_joint(test::Description d, const std::string& first, const std::string& second, JointType type) {
  d.joints.push_back(test::make_joint("more" + std::to_string(d.joints.size()), type, first, second, Vec3::Zero()));
  return d;
}

}  // namespace

TEST_CASE("chains, branches and loops of any kind are eliminated row by row, exactly once, children first") {
  check_both_orders(test::double_pendulum());
  check_both_orders(test::chain(1, JointType::revolute));
  check_both_orders(test::chain(37, JointType::spherical));
  check_both_orders(test::tree(31, 2, JointType::revolute));
  check_both_orders(test::tree(25, 24, JointType::universal));
  check_both_orders(test::four_bar(0.5));
  check_both_orders(test::ladder(9));
  for (unsigned seed = 1; seed <= 20; ++seed) {
    check_both_orders(test::random_bare_tree(seed, 3 + static_cast<int>(seed)));
    check_both_orders(test::random_loops(seed, 3 + static_cast<int>(seed) / 2));
  }
}

TEST_CASE("several joints between the same two bodies, or on the ground, are eliminated together") {
  test::Description d = test::double_pendulum();
  d = with_joint(d, "A", "B", JointType::perpendicular_axes);
  d = with_joint(d, "B", "A", JointType::parallel_axes);
  d = with_joint(d, "ground", "A", JointType::point_on_line);
  d = with_joint(d, "B", "ground", JointType::perpendicular_axes);
  check_both_orders(d);
  const Plan plan(test::build(d), {});
  const Front& root = plan.elimination.fronts.back();
  CHECK(root.eliminated == 3 + 1 + 2);  // all between A and B
  CHECK(plan.elimination.fronts.size() == 3);
}

TEST_CASE("bodies without joints and separate mechanisms stand beside one another") {
  test::Description d = test::double_pendulum();
  d.bodies.push_back(test::make_body("free", Vec3::Zero()));
  d.bodies.push_back(test::make_body("C", {5.0, 0.0, 0.0}));
  d.bodies.push_back(test::make_body("D", {6.0, 0.0, 0.0}));
  d.joints.push_back(test::make_joint("cd", JointType::revolute, "C", "D", {5.5, 0.0, 0.0}));
  check_both_orders(d);
  const Plan plan(test::build(d), {});
  CHECK(plan.elimination.fronts.size() == 5 + 2);
}

TEST_CASE("one free body has nothing to eliminate") {
  test::Description d;
  d.bodies = {test::make_body("free", Vec3::Zero())};
  check_both_orders(d);
  const Plan plan(test::build(d), {});
  CHECK(plan.elimination.matrix_doubles == 0);
  CHECK_FALSE(plan.has_loops);
}

TEST_CASE("a joint too many for a tree is a loop, through the ground too") {
  CHECK_FALSE(Plan(test::build(test::double_pendulum()), {}).has_loops);
  CHECK_FALSE(Plan(test::build(test::random_bare_tree(4, 30)), {}).has_loops);
  CHECK(Plan(test::build(test::four_bar(0.5)), {}).has_loops);
  CHECK(Plan(test::build(with_joint(test::double_pendulum(), "B", "ground", JointType::point_on_line)), {}).has_loops);
}

TEST_CASE("one compound per body is merged level by level where levels count") {
  const auto levels = [](int n) {
    return Plan(test::build(test::chain(n, JointType::revolute)), {.order = MergeOrder::fewest_levels})
        .elimination.levels;
  };
  CHECK(levels(1) == 1);
  CHECK(levels(2) == 2);
  CHECK(levels(16) == 5);
  CHECK(levels(256) == 9);
}

}  // namespace rigstep::index3
