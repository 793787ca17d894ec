#include "core/index3/compile/elimination.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/index3/compile/plan.h"
#include "core/index3/kernels/sweeps.h"
#include "core/index3/start/make_plan.h"
#include "tests/support/force_cases.h"
#include "tests/support/primal_body_cases.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

constexpr MergeOrder kOrders[] = {MergeOrder::in_lanes, MergeOrder::fewest_operations, MergeOrder::fewest_levels};

std::ptrdiff_t padding(const Elimination& e) {
  return std::count_if(e.constraints.begin(), e.constraints.end(), [](const Constraint& c) { return c.is_padding; });
}

test::Description with_joint(test::Description d, const std::string& first, const std::string& second, JointType type) {
  d.joints.push_back(test::make_joint("more" + std::to_string(d.joints.size()), type, first, second, Vec3::Zero()));
  return d;
}

}  // namespace

TEST_CASE("a coupling stays pending until all its bodies are in one compound") {
  test::Description gears;  // only the coupling holds the four together
  for (int i = 0; i < 4; ++i) gears.bodies.push_back(test::make_body(test::body_name(i), {1.0 * i, 0.0, 0.0}));
  gears.joints = {test::make_joint("a", JointType::revolute, "body0", "body1", {0.5, 0.0, 0.0}),
                  test::make_joint("b", JointType::revolute, "body2", "body3", {2.5, 0.0, 0.0})};
  gears.couplings = {{"mesh", {"a", Freedom::angle}, {"b", Freedom::angle}, 2.0}};
  for (const MergeOrder order : kOrders)
    CHECK(make_plan(test::build(gears), {.order = order}).elimination.fronts.back().pivots == 1);
}

TEST_CASE("a star keeps its central body primal, where that saves operations") {
  CHECK_FALSE(make_plan(test::build(test::star(20, 3)), {}).elimination.primal_bodies.empty());
}

TEST_CASE("nets keep fronts as wide as the net, however their bodies are numbered") {
  for (const int n : {8, 16}) {
    test::Description d = test::net(n, JointType::spherical);
    const Elimination numbered = make_plan(test::build(d), {}).elimination;
    CHECK(numbered.largest_front <= 3 * (n + 3));
    CHECK(numbered.multiply_adds < 46 * n * n * n * n);  // pairwise merging takes 3 and 9 times as many
    test::Random random(7);
    for (std::size_t k = d.bodies.size(); k-- > 1;)
      std::swap(d.bodies[k], d.bodies[static_cast<std::size_t>(random.below(static_cast<int>(k) + 1))]);
    const Elimination shuffled = make_plan(test::build(d), {}).elimination;
    CHECK(shuffled.largest_front <= 6 * n);
    CHECK(shuffled.multiply_adds < 63 * n * n * n * n);
  }
}

TEST_CASE("force elements between two bodies are eliminated like joints") {
  const Mechanism m = test::every_force_element();
  const Plan plan = make_plan(m, {});
  CHECK(plan.elements.size() == 2);  // mount, strut; the others act on one body, or along the coordinate of a joint
}

TEST_CASE("several joints between the same two bodies, or on the ground, are eliminated one after the other") {
  test::Description d = test::double_pendulum();
  d = with_joint(d, "A", "B", JointType::perpendicular_axes);
  d = with_joint(d, "B", "A", JointType::parallel_axes);
  d = with_joint(d, "ground", "A", JointType::point_on_line);
  d = with_joint(d, "B", "ground", JointType::perpendicular_axes);
  for (const MergeOrder order : kOrders) {
    const Plan plan = make_plan(test::build(d), {.order = order});
    CHECK(plan.elimination.leaves.size() == 2);
    CHECK(plan.elimination.fronts.size() == d.joints.size());
  }
}

TEST_CASE("bodies without joints and separate mechanisms stand beside one another") {
  test::Description d = test::double_pendulum();
  d.bodies.push_back(test::make_body("free", Vec3::Zero()));
  d.bodies.push_back(test::make_body("C", {5.0, 0.0, 0.0}));
  d.bodies.push_back(test::make_body("D", {6.0, 0.0, 0.0}));
  d.joints.push_back(test::make_joint("cd", JointType::revolute, "C", "D", {5.5, 0.0, 0.0}));
  const Plan plan = make_plan(test::build(d), {.order = MergeOrder::fewest_operations});
  CHECK(plan.elimination.leaves.size() == 5);
  CHECK(plan.elimination.fronts.size() == d.joints.size());
}

TEST_CASE("one free body has nothing to eliminate") {
  test::Description d;
  d.bodies = {test::make_body("free", Vec3::Zero())};
  const Plan plan = make_plan(test::build(d), {});
  CHECK(plan.elimination.fronts.empty());
  CHECK(plan.elimination.arena_doubles == 0);
  CHECK_FALSE(plan.has_loops);
}

TEST_CASE("a joint too many for a tree is a loop, through the ground too") {
  CHECK_FALSE(make_plan(test::build(test::double_pendulum()), {}).has_loops);
  CHECK_FALSE(make_plan(test::build(test::random_bare_tree(4, 30)), {}).has_loops);
  CHECK(make_plan(test::build(test::four_bar(0.5)), {}).has_loops);
  CHECK(make_plan(test::build(with_joint(test::double_pendulum(), "B", "ground", JointType::point_on_line)), {})
            .has_loops);
}

TEST_CASE("couplings close loops only where they, or they and drivers, depend on each other") {
  const auto couple = [](test::Description& d, int first, int second, double ratio) {
    const auto angle = [](int joint) {
      return test::Description::JointFreedom{"joint" + std::to_string(joint), Freedom::angle};
    };
    d.couplings.push_back({"gear" + std::to_string(d.couplings.size()), angle(first), angle(second), ratio});
  };
  const auto has_loops = [](const test::Description& d) { return make_plan(test::build(d), {}).has_loops; };
  test::Description d = test::chain(4, JointType::revolute);
  couple(d, 0, 1, 2.0), couple(d, 1, 2, 3.0);
  CHECK_FALSE(has_loops(d));
  test::Description other = d;
  couple(other, 0, 2, 5.0);  // not what follows from the other two
  CHECK_FALSE(has_loops(other));
  test::Description third = d;
  couple(third, 0, 2, -6.0);  // x0 + 2 x1 and x1 + 3 x2 give x0 - 6 x2
  CHECK(has_loops(third));
  test::Description rounded = d;
  couple(rounded, 0, 2, -6.01);  // the same, but for rounding
  CHECK(has_loops(rounded));
  test::Description twice = test::chain(3, JointType::revolute);
  couple(twice, 0, 1, -3.0), couple(twice, 1, 0, -0.3333);
  CHECK(has_loops(twice));
  const auto drive = [](test::Description& of, int joint) {
    Driver driver;
    driver.name = "drive" + std::to_string(joint);
    driver.function = polynomial({0.0});
    of.drivers.push_back({driver, {"joint" + std::to_string(joint), Freedom::angle}});
  };
  test::Description driven = d;
  drive(driven, 0);
  CHECK_FALSE(has_loops(driven));
  drive(driven, 2);
  CHECK(has_loops(driven));
  test::Description universal = test::chain(2, JointType::universal);  // of angles that are not the only freedom
  universal.couplings = {{"gear", {"joint0", Freedom::first_angle}, {"joint1", Freedom::first_angle}, 1.0}};
  CHECK(has_loops(universal));
}

TEST_CASE("one compound per body is merged level by level where levels count") {
  const auto levels = [](int n) {
    return make_plan(test::build(test::in_space(test::chain(n, JointType::revolute))),
                     {.order = MergeOrder::fewest_levels})
        .elimination.levels;
  };
  CHECK(levels(1) == 2);  // the body and its joint with the ground
  CHECK(levels(2) == 3);
  CHECK(levels(16) == 6);
  CHECK(levels(256) == 10);
}

TEST_CASE("equal parts lie side by side: segments of a chain, branches of a tree") {
  for (const char* set : test::instruction_sets()) {
    const int lanes = kernels_for_this_processor(set).lanes;
    CAPTURE(lanes);
    const auto leaves = [set](const test::Description& d) {
      return static_cast<int>(make_plan(test::build(d), {.instruction_set = set}).elimination.leaves.size());
    };
    CHECK(leaves(test::chain(64, JointType::revolute)) == 64 / lanes);
    CHECK(leaves(test::chain(67, JointType::revolute)) < 64 / lanes + 3);
    CHECK(leaves(test::tree(25, 24, JointType::universal)) == 24 / lanes + 1);
  }
}

TEST_CASE("equal parts are merged alike, so that they lie side by side as far as they are equal") {
  const auto in_lanes = [](const Elimination& e, int width) {
    return std::count_if(e.fronts.begin(), e.fronts.end(), [&](const Front& f) { return f.width >= width; });
  };
  for (const char* set : test::instruction_sets()) {
    CAPTURE(kernels_for_this_processor(set).lanes);
    // seven constraints of each corner, whether its tie rod leads to the rack or to the chassis
    const Elimination car = make_plan(test::mechanism("full_car"), {.instruction_set = set}).elimination;
    CHECK(in_lanes(car, 4) == 7);
    CHECK(car.fronts.size() == 14);
    const Elimination windows =
        make_plan(test::build(test::in_space(test::n_four_bar(40, 1.0, 1.0))), {.instruction_set = set}).elimination;
    CHECK(in_lanes(windows, 4) >= 15);
    CHECK(windows.levels <= 9);
  }
}

TEST_CASE("narrow constraints are evaluated together, chosen from the lanes of their bodies") {
  for (const char* set : test::instruction_sets()) {
    const int lanes = kernels_for_this_processor(set).lanes;
    CAPTURE(lanes);
    const Plan loop = make_plan(test::build(test::in_space(test::four_bar(0.4))), {.instruction_set = set});
    REQUIRE(loop.elimination.constraint_batches.size() == 1);
    CHECK(loop.elimination.constraint_batches[0].width == 4);
    CHECK(loop.elimination.constraint_batches[0].sides == Operands::chosen);
    for (const JointType type : {JointType::spherical, JointType::revolute}) {
      const Elimination chain =
          make_plan(test::build(test::in_space(test::chain(64, type))), {.instruction_set = set}).elimination;
      CHECK(padding(chain) == 1);
      CHECK(std::all_of(chain.constraint_batches.begin(), chain.constraint_batches.end(),
                        [&](const ConstraintBatch& b) { return b.width == lanes; }));
    }
  }
}

TEST_CASE("only constraints of one part are evaluated together, not those between the parts") {
  int joined = 0;
  for (const JointType type : {JointType::spherical, JointType::revolute, JointType::fixed, JointType::universal})
    for (int n = 160; n <= 400; n += n / 10 + 1) {
      CAPTURE(n);
      const Elimination e =
          make_plan(test::build(test::in_space(test::chain(n, type))), {.threads = kMostThreads}).elimination;
      REQUIRE(e.parts.size() > 1);
      std::map<int, std::set<std::pair<int, bool>>> parts;  // of a batch: which part evaluates it, and when
      for (const Elimination::Unit& unit : e.units)
        if (unit.constraint >= 0) parts[unit.constraint].emplace(unit.part, unit.is_top);
      for (const auto& [batch, all] : parts) CHECK(all.size() == 1);
      joined += std::any_of(e.fronts.begin(), e.fronts.end(),
                            [](const Front& f) { return f.pivots > 0 && f.row_stride != f.width; });
    }
  CHECK(joined > 0);
}

namespace {

// The cache lines that a part writes, by array.
using Lines = std::set<std::pair<char, int>>;

void add_lines(char array, int begin, int doubles, Lines& lines) {
  for (int at = begin; at < begin + doubles; ++at) lines.emplace(array, at / 8);
}

Lines lines_of_part(const Elimination& e, int part) {
  Lines lines;
  const auto packed = [](int rows) { return rows * (rows + 1) / 2; };
  for (const Elimination::Unit& unit : e.units) {
    if (unit.part != part) continue;
    if (unit.of == Run::Of::leaves) {
      const Leaf& l = e.leaves[unit.index];
      add_lines('b', l.record, kBodyFields * l.width, lines);
      add_lines('a', l.matrix, packed(l.rows) * l.width, lines);
      add_lines('a', l.vector, l.rows * l.width, lines);
      for (int h = l.first_handle; h < l.first_handle + l.handles && !l.is_primal; ++h)
        add_lines('h', e.handles[h].at, e.handles[h].format.handle_size() * l.width, lines);
      if (l.dense >= 0) add_lines('d', l.dense, packed(6) * l.width, lines);
    } else if (unit.of == Run::Of::fronts) {
      const Front& f = e.fronts[unit.index];
      add_lines('a', f.matrix, packed(f.rows) * f.width, lines);
      add_lines('a', f.vector, f.rows * f.width, lines);
      add_lines('a', f.factor, (packed(f.pivots) + (1 + f.rows) * f.pivots) * f.width, lines);
      if (f.pivots == 0) continue;
      const ConstraintBatch& c = e.constraint_batches[f.constraint];
      add_lines('r', c.row_position, f.pivots * c.width, lines);
      add_lines('c', kConstraintFields * c.position, kConstraintFields * c.width, lines);
    }
  }
  for (const auto* passed : {&e.passed.compliances, &e.passed.right_hand_sides})
    for (const Passed& each : *passed)
      if (const Place& ghost = each.ghost[part]; ghost.stride > 0)
        for (int k = 0; k < each.count; ++k) add_lines('a', ghost.base + k * ghost.stride, 1, lines);
  for (const Passed& body : e.passed.bodies)
    if (const Place& ghost = body.ghost[part]; ghost.stride > 0) add_lines('b', ghost.base, kBodyFields, lines);
  return lines;
}

}  // namespace

TEST_CASE("no page belongs to two parts, and every body to one") {
  const Mechanism all[] = {test::build(test::in_space(test::chain(200, JointType::revolute))),
                           test::build(test::random_tree(2, 250)), test::build(test::in_space(test::ladder(60))),
                           test::build(test::star(40, 12))};
  for (const Mechanism& m : all)
    for (const int threads : {2, 3}) {
      CAPTURE(m.name());
      CAPTURE(threads);
      const Plan plan = make_plan(m, {.threads = threads});
      const Elimination& e = plan.elimination;
      REQUIRE(e.parts.size() > 1);
      std::map<std::pair<char, int>, int> owner;
      for (int part = 0; part < static_cast<int>(e.parts.size()); ++part)
        for (const auto& line : lines_of_part(e, part)) CHECK(owner.emplace(line, part).second);
      for (auto line = owner.begin(), next = std::next(line); next != owner.end(); ++line, ++next)
        CHECK((line->second == next->second || line->first.first != next->first.first ||
               next->first.second - line->first.second > kPageDoubles / 8));
      std::map<int, int> records;
      for (const Elimination::Unit& unit : e.units)
        if (unit.of == Run::Of::leaves) ++records[e.leaves[unit.index].record];
      for (const auto& [record, count] : records) CHECK(count == 1);
      for (std::size_t i = 0; i < e.body.size(); ++i) {
        const bool is_primal = std::count(e.primal_bodies.begin(), e.primal_bodies.end(), static_cast<int>(i)) > 0;
        CHECK(e.leaves_of_body[i].size() == (is_primal ? e.parts.size() : 1));
      }
    }
}

TEST_CASE("whatever a part takes from its children, it has computed itself or been told") {
  for (const int n : {128, 200, 300, 400})
    for (const int branching : {2, 3, 4, 7})
      for (int threads = 2; threads <= 6; ++threads) {
        CAPTURE(n);
        CAPTURE(branching);
        CAPTURE(threads);
        const Plan plan =
            make_plan(test::build(test::in_space(test::tree(n, branching, JointType::revolute))), {.threads = threads});
        const Elimination& e = plan.elimination;
        for (int part = 0; part < static_cast<int>(e.parts.size()); ++part) {
          std::set<int> known;  // where right-hand sides begin
          for (const Passed& each : e.passed.right_hand_sides)
            if (each.ghost[part].stride > 0) known.insert(each.ghost[part].base);
          for (const Elimination::Unit& unit : e.units) {
            if (unit.part != part || unit.of == Run::Of::attachments) continue;
            const bool is_leaf = unit.of == Run::Of::leaves;
            const int vector = is_leaf ? e.leaves[unit.index].vector : e.fronts[unit.index].vector;
            const int width = is_leaf ? e.leaves[unit.index].width : e.fronts[unit.index].width;
            if (!is_leaf)  // children stand before it
              for (const Child& c : e.fronts[unit.index].child)
                for (int lane = 0; lane < width && c.present; ++lane)
                  CHECK(known.count(c.scattered < 0 ? c.vector + lane
                                                    : e.scattered_children[c.scattered].vector[lane].base) == 1);
            for (int lane = 0; lane < width; ++lane) known.insert(vector + lane);
          }
        }
      }
}

TEST_CASE("two halves of a chain tell each other of a body and a compound at the cut, each closed at its other end") {
  const Plan plan = make_plan(test::build(test::in_space(test::chain(256, JointType::revolute))), {.threads = 2});
  const Elimination& e = plan.elimination;
  REQUIRE(e.parts.size() == 2);
  CHECK(e.passed.compliances.size() == 2);
  CHECK(e.passed.right_hand_sides.size() == 2);
  for (const Passed& open : e.passed.right_hand_sides) CHECK(open.count == 5);
  CHECK(e.passed.bodies.size() == 2);
  CHECK(e.passed.handles.empty());
  const auto is_leaf = [](const Run& run) { return run.of == Run::Of::leaves; };
  for (int part = 0; part < 2; ++part) {
    CHECK(std::any_of(e.borders[part].runs.begin(), e.borders[part].runs.end(), is_leaf));
    CHECK(std::none_of(e.tops[part].runs.begin(), e.tops[part].runs.end(), is_leaf));
  }
}

TEST_CASE("the operations between the segments of a chain find their operands side by side, without gathering") {
  for (const char* set : test::instruction_sets())
    for (const int n : {8, 16, 32, 128, 256}) {
      CAPTURE(n);
      const Plan plan =
          make_plan(test::build(test::in_space(test::chain(n, JointType::revolute))), {.instruction_set = set});
      const Elimination& e = plan.elimination;
      for (const Front& f : e.fronts) {
        CHECK(f.children != Operands::scattered);
        // those that several fronts eliminate are gathered with intent
        if (e.constraint_batches[f.constraint].width == f.width)
          CHECK(e.constraint_batches[f.constraint].sides != Operands::scattered);
      }
    }
}

}  // namespace rigstep::index3
