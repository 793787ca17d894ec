#include "core/index3/compile/elimination.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/index3/compile/plan.h"
#include "core/index3/start/make_plan.h"
#include "tests/support/force_cases.h"
#include "tests/support/primal_body_cases.h"

namespace rigstep::index3 {
namespace {

constexpr MergeOrder kOrders[] = {MergeOrder::in_lanes, MergeOrder::fewest_operations, MergeOrder::fewest_levels};

// What one lane of an operation stands for.
struct Compound {
  std::set<int> bodies;
  std::vector<int> pending;  // constraints, in the order of their rows
};

// Goes through the tables as the kernels do, with names instead of numbers.
class Walk {
 public:
  explicit Walk(const Elimination& e) : e_(e) {
    for (int c = 0; c < static_cast<int>(e.constraint.size()); ++c) {
      const ConstraintPlace& place = e.constraint[c];
      for (std::size_t side = 0; side < place.handles.size(); ++side)
        for (const Place& at : place.handles[side]) {
          constraint_of_handle_[at.base] = c;
          side_of_handle_[at.base] = static_cast<int>(side);
        }
      if (e.constraints[c].is_padding) continue;  // without rows
      add_rows(c, place.rows);
      for (const RowsPlace& copy : place.copies) add_rows(c, copy.rows);
    }
    for (int i = 0; i < static_cast<int>(e.body.size()); ++i) {
      body_at_[e.body[i].position + e.body[i].lane] = i;
      for (const BodyPlace& copy : e.body_copies[i]) body_at_[copy.position + copy.lane] = i;
    }
    for (const Run& run : e.parts[0].runs) {
      for (int k = run.first; k < run.first + run.count; ++k) {
        ++operation_;
        operation(run.of, k);
        CHECK(run.shape == shape_of_operation(run.of, k));
      }
    }
  }

  // every compound that no other one took, but those of lanes that only repeat another
  std::vector<Compound> roots() const {
    std::vector<Compound> result;
    for (const auto& [matrix, compound] : compounds_)
      if (used_.count(matrix) == 0 && taken_.count({compound.bodies, compound.pending}) == 0)
        result.push_back(compound);
    return result;
  }

  // padding that were open in a compound, but no longer in the one that took it
  const std::set<int>& left_behind() const { return left_behind_; }

 private:
  void add_rows(int c, const Place& rows) {
    CHECK(constraint_of_rows_.emplace(rows.base, c).second);  // no place twice
  }
  int rows_of(const std::vector<int>& constraints) const {
    int rows = 0;
    for (const int c : constraints) rows += e_.constraints[c].format.rows;
    return rows;
  }
  // of the constraint that begins at that row, -1: none does
  int constraint_at(const Compound& compound, int row) const {
    for (const int c : compound.pending) {
      if (row == 0) return c;
      row -= e_.constraints[c].format.rows;
    }
    return -1;
  }

  void store(int matrix, int rows, int lane, int width, Compound compound) {
    CHECK(rows == rows_of(compound.pending));
    CHECK(matrix + width * rows * (rows + 1) / 2 <= static_cast<int>(e_.arena_doubles));
    // without rows there is no matrix: a key of its own
    const long key = rows == 0 ? -1 - ++empty_ : matrix + lane;
    if (used_.erase(key) == 1) compounds_.erase(key);  // taken, and replaced
    CHECK(compounds_.emplace(key, std::move(compound)).second);
    operation_of_[key] = operation_;
  }

  int shape_of_operation(Run::Of kind, int k) const {
    if (kind == Run::Of::constraints) return shape_of(e_.parts[0].constraints[k]);
    if (kind == Run::Of::leaves) return shape_of(e_.leaves[k], e_.handles.data());
    return kind == Run::Of::attachments ? shape_of(e_.attachments[k]) : shape_of(e_.fronts[k]);
  }

  void evaluate(const ConstraintBatch& batch) {
    for (int lane = 0; lane < batch.width; ++lane) evaluated_.insert(constraint_of_rows_.at(batch.row_position + lane));
  }

  void operation(Run::Of kind, int k) {
    if (kind == Run::Of::constraints) evaluate(e_.parts[0].constraints[k]);
    if (kind == Run::Of::leaves) e_.leaves[k].is_primal ? primal_body(e_.leaves[k]) : leaf(e_.leaves[k]);
    if (kind == Run::Of::attachments) attachment(e_.attachments[k]);
    if (kind == Run::Of::fronts) front(e_.fronts[k]);
  }

  // the displacement of a primal body, as a constraint
  int displacement_of(int primal_body) const {
    for (int c = 0; c < static_cast<int>(e_.constraints.size()); ++c)
      if (e_.constraints[c].is_primal && e_.constraints[c].bodies[0] == primal_body) return c;
    return -1;
  }

  void primal_body(const Leaf& l) {
    const int body = body_at_.at(l.record / kBodyFields), displacement = displacement_of(body);
    REQUIRE(displacement >= 0);
    CHECK(l.width == 1);
    std::set<int> seen;  // each of its constraints once, wherever their attachments lie
    for (int h = l.first_handle; h < l.first_handle + l.handles; ++h)
      CHECK(seen.insert(constraint_of_handle_.at(e_.handles[h].at)).second);
    CHECK(seen.size() + 1 == e_.constraints[displacement].bodies.size());
    store(l.matrix, l.rows, 0, 1, {{body}, {displacement}});
  }

  void attachment(const Attachment& g) {
    const Handle& handle = e_.handles[g.handle];
    for (int lane = 0; lane < g.width; ++lane) {
      const int c = constraint_of_handle_.at(handle.at + lane);
      CHECK(handle.format.rows == e_.constraints[c].format.rows);
      CHECK(handle.stride == g.width);
      const int side = side_of_handle_.at(handle.at + lane), body = e_.constraints[c].bodies[side];
      const int bodies = static_cast<int>(e_.body.size());
      REQUIRE(body >= bodies);
      const int displacement = displacement_of(e_.body_of_attachment[body - bodies]);
      store(g.matrix, handle.format.rows + 6, lane, g.width, {{body}, {c, displacement}});
    }
  }

  void leaf(const Leaf& l) {
    for (int lane = 0; lane < l.width; ++lane) {
      Compound compound;
      compound.bodies = {body_at_.at(l.record / kBodyFields + lane)};
      for (int h = l.first_handle; h < l.first_handle + l.handles; ++h) {
        const Handle& handle = e_.handles[h];
        CHECK(handle.row == rows_of(compound.pending));
        const int c = constraint_of_handle_.at(handle.at + lane);
        CHECK(handle.format.rows == e_.constraints[c].format.rows);
        const bool by_runs = !handle.format.general() && !e_.constraints[c].is_padding;
        CHECK((!by_runs || evaluated_.count(c) == 1));  // before its bodies
        CHECK(handle.format.cosines == e_.constraints[c].format.cosines);
        compound.pending.push_back(c);
      }
      store(l.matrix, l.rows, lane, l.width, std::move(compound));
    }
  }

  int matrix_of(const Front& f, const Child& child, int lane) const {
    if (child.scattered >= 0) return e_.scattered_children[child.scattered].matrix[lane].base;
    if (f.children == Operands::in_order) CHECK(child.stride == f.width);
    CHECK(child.matrix % f.width == 0);
    CHECK(child.stride % f.width == 0);
    return child.matrix + lane;
  }

  void front(const Front& f) {
    for (int lane = 0; lane < f.width; ++lane) {
      Compound below[2], compound;
      for (int side = 0; side < 2; ++side) {
        if (!f.child[side].present) continue;
        const int matrix = matrix_of(f, f.child[side], lane);
        REQUIRE(compounds_.count(matrix) == 1);  // children first
        below[side] = compounds_.at(matrix);
        CHECK(operation_of_.at(matrix) < operation_);
        used_.insert(matrix);
        taken_.emplace(below[side].bodies, below[side].pending);
        CHECK(rows_of(below[side].pending) == f.child[side].rows);
        compound.bodies.insert(below[side].bodies.begin(), below[side].bodies.end());
      }
      std::set<int> open;
      for (const Compound& each : below) open.insert(each.pending.begin(), each.pending.end());
      if (f.pivots > 0) {
        const int pivot = constraint_of_rows_.at(f.row_position + lane);
        CHECK(e_.constraints[pivot].format.rows == f.pivots);
        CHECK(e_.constraints[pivot].is_primal == f.is_primal);
        for (int side = 0; side < 2; ++side)
          if (f.child[side].present) CHECK(constraint_at(below[side], f.child[side].pivot) == pivot);
        for (const int body : e_.constraints[pivot].bodies)
          if (body != kGround) CHECK(compound.bodies.count(body) == 1);
        CHECK(open.erase(pivot) == 1);
      }
      for (int k = 0; k < f.pendings; ++k) {
        const Pending& p = e_.pending[f.first_pending + k];
        int c = -1;
        for (int side = 0; side < 2; ++side) {
          if (p.in_child[side] < 0) continue;
          const int found = constraint_at(below[side], p.in_child[side]);
          CHECK((c < 0 || c == found));
          c = found;
        }
        REQUIRE(c >= 0);
        CHECK(p.row == rows_of(compound.pending));
        CHECK(p.rows == e_.constraints[c].format.rows);
        for (int side = 0; side < 2; ++side) {
          const auto& there = below[side].pending;
          CHECK((std::find(there.begin(), there.end(), c) != there.end()) == (p.in_child[side] >= 0));
        }
        compound.pending.push_back(c);
      }
      const std::set<int> still(compound.pending.begin(), compound.pending.end());
      for (int side = 0; side < 2; ++side) {
        const Child& child = f.child[side];
        int left_behind = 0;
        for (const int c : below[side].pending)
          if (e_.constraints[c].is_padding && still.count(c) == 0) {
            left_behind_.insert(c);
            CHECK(constraint_at(below[side], child.padding) == c);
            left_behind += e_.constraints[c].format.rows;
          }
        CHECK(child.padding_rows == left_behind);
      }
      for (const int padding : left_behind_) open.erase(padding);
      CHECK(still == open);
      if (f.form == kChainLink && f.matrix == f.child[0].matrix) CHECK(f.children == Operands::in_order);
      store(f.matrix, f.rows, lane, f.width, std::move(compound));
    }
  }

  const Elimination& e_;
  std::map<int, int> constraint_of_handle_, side_of_handle_, constraint_of_rows_, body_at_;
  std::map<long, Compound> compounds_;  // by where their compliance lies
  std::map<long, int> operation_of_;
  int operation_ = -1;
  std::set<int> evaluated_;
  std::set<int> left_behind_;
  std::set<long> used_;
  std::set<std::pair<std::set<int>, std::vector<int>>> taken_;
  long empty_ = 0;
};

std::ptrdiff_t padding(const Elimination& e) {
  return std::count_if(e.constraints.begin(), e.constraints.end(), [](const Constraint& c) { return c.is_padding; });
}

// Everything that the projection passes rely on.
void check_elimination(const Mechanism& m, MergeOrder order, PrimalBodies primal_bodies, const char* instruction_set) {
  const Plan plan = make_plan(m, {.order = order, .primal_bodies = primal_bodies, .instruction_set = instruction_set});
  const Elimination& e = plan.elimination;
  CAPTURE(plan.kernels->lanes);
  CAPTURE(static_cast<int>(order));
  const Walk walk(e);
  std::set<int> bodies;
  for (const Compound& root : walk.roots()) {
    CHECK(root.pending.empty());
    bodies.insert(root.bodies.begin(), root.bodies.end());
  }
  CHECK(bodies.size() == m.bodies().size() + e.body_of_attachment.size());

  std::set<std::pair<int, int>> gone;  // every constraint is eliminated exactly once: in a lane of a batch of its own
  for (std::size_t c = 0; c < e.constraint.size(); ++c) {  // but padding, which are left behind
    const ConstraintPlace& place = e.constraint[c];
    REQUIRE((place.batch < 0) == e.constraints[c].is_padding);
    CHECK(walk.left_behind().count(static_cast<int>(c)) == (e.constraints[c].is_padding ? 1 : 0));
    if (place.batch >= 0) CHECK(gone.emplace(place.batch, place.rows.base).second);
  }
  CHECK(e.constraint.size() ==
        plan.eliminated.size() + plan.elements.size() + e.primal_bodies.size() + static_cast<std::size_t>(padding(e)));
  std::set<std::pair<int, int>> lanes;  // of batches of constraints, each eliminated by one front
  for (const Front& f : e.fronts)
    for (int lane = 0; lane < f.width && f.pivots > 0; ++lane)
      CHECK(lanes.emplace(f.constraint, f.row_position - e.batches[f.constraint].row_position + lane).second);
  std::size_t evaluated = 0;
  for (const ConstraintBatch& batch : e.batches) evaluated += static_cast<std::size_t>(batch.width);
  CHECK(lanes.size() == evaluated);
  std::multiset<std::pair<Run::Of, int>> operations;
  std::set<int> points;  // batches that are evaluated on the way
  for (std::size_t c = 0; c < e.constraint.size(); ++c)
    if (!e.constraints[c].format.general() && !e.constraints[c].is_padding) points.insert(e.constraint[c].batch);
  for (const Run& run : e.parts[0].runs)
    for (int k = run.first; k < run.first + run.count; ++k) operations.emplace(run.of, k);
  CHECK(operations.size() == e.leaves.size() + e.attachments.size() + e.fronts.size() + points.size());
  CHECK(std::set<std::pair<Run::Of, int>>(operations.begin(), operations.end()).size() == operations.size());
  CHECK(e.parts[0].constraints.size() == e.batches.size());
}

// what a handle's lane keeps; -1: its batch is none of those chosen
int kept_lane(const ChosenSide& side, const Place& handle) {
  for (int k = 0; k < side.handles; ++k)
    if (const int lane = handle.base - side.handle[k]; lane >= 0 && lane < handle.stride)
      return static_cast<int>(side.kept[k].of_lane[lane]);
  return -1;
}

// each lane of a point constraint writes the handle that the leaf of its body reads
void check_handles(const Elimination& e) {
  for (const ConstraintPlace& c : e.constraint) {
    if (c.batch < 0 || e.batches[c.batch].format.general()) continue;
    const ConstraintBatch& batch = e.batches[c.batch];
    const int lane = c.rows.base - batch.row_position;
    for (std::size_t side = 0; side < c.handles.size(); ++side) {
      const Side& s = batch.side[side];
      const std::vector<Place>& read = c.handles[side];
      if (batch.sides == Operands::chosen) {
        for (const Place& at : read) CHECK(kept_lane(e.chosen_sides[s.chosen], at) == batch.width + lane);
        continue;
      }
      const int at = s.scattered < 0 ? s.handle.base + lane : e.scattered_sides[s.scattered].handle[lane].base;
      const auto is_it = [at](const Place& place) { return place.base == at; };
      CHECK((read.empty() || std::any_of(read.begin(), read.end(), is_it)));
    }
  }
}

void check_all_orders(const Mechanism& m) {
  CAPTURE(m.name());
  for (const MergeOrder order : kOrders)
    for (const PrimalBodies primal_bodies : {PrimalBodies::dual, PrimalBodies::primal})
      for (const char* set : test::instruction_sets()) check_elimination(m, order, primal_bodies, set);
}
void check_all_orders(const test::Description& d) { check_all_orders(test::build(d)); }

test::Description with_joint(test::Description d, const std::string& first, const std::string& second, JointType type) {
  d.joints.push_back(test::make_joint("more" + std::to_string(d.joints.size()), type, first, second, Vec3::Zero()));
  return d;
}

}  // namespace

TEST_CASE("chains, branches and loops of any kind are eliminated constraint by constraint, once, children first") {
  check_all_orders(test::double_pendulum());
  for (const int n : {1, 7, 8, 9, 37, 64, 130, 256}) check_all_orders(test::chain(n, JointType::spherical));
  check_all_orders(test::tree(31, 2, JointType::revolute));
  check_all_orders(test::tree(25, 24, JointType::universal));
  check_all_orders(test::four_bar(0.5));
  check_all_orders(test::ladder(9));
  for (unsigned seed = 1; seed <= 20; ++seed) {
    check_all_orders(test::random_bare_tree(seed, 3 + static_cast<int>(seed)));
    check_all_orders(test::random_loops(seed, 3 + static_cast<int>(seed) / 2));
  }
}

TEST_CASE("a coupling stays pending until all its bodies are in one compound") {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    test::Description d = test::random_bare_tree(seed, 12);
    test::add_random_couplings(seed, d, 4);
    check_all_orders(d);
  }
  test::Description gears;  // only the coupling holds the four together
  for (int i = 0; i < 4; ++i) gears.bodies.push_back(test::make_body(test::body_name(i), {1.0 * i, 0.0, 0.0}));
  gears.joints = {test::make_joint("a", JointType::revolute, "body0", "body1", {0.5, 0.0, 0.0}),
                  test::make_joint("b", JointType::revolute, "body2", "body3", {2.5, 0.0, 0.0})};
  gears.couplings = {{"mesh", {"a", Freedom::angle}, {"b", Freedom::angle}, 2.0}};
  check_all_orders(gears);
  for (const MergeOrder order : kOrders)
    CHECK(make_plan(test::build(gears), {.order = order}).elimination.fronts.back().pivots == 1);
}

TEST_CASE("primal bodies are eliminated after what holds them, once, whatever else they are part of") {
  check_all_orders(test::star(20, 3));
  check_all_orders(test::star(5, 17));
  check_all_orders(test::carousel(13, 2));
  check_all_orders(test::tree(61, 6, JointType::revolute));  // primal bodies that hold one another
  check_all_orders(test::net(5, JointType::revolute));
  CHECK_FALSE(make_plan(test::build(test::star(20, 3)), {}).elimination.primal_bodies.empty());
}

TEST_CASE("nets keep fronts as wide as the net, however their bodies are numbered") {
  for (const int n : {8, 16}) {
    test::Description d = test::net(n, JointType::spherical);
    if (n == 8) check_all_orders(d);
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
  check_all_orders(m);
  const Plan plan = make_plan(m, {});
  CHECK(plan.elements.size() == 4);  // mount, strut, seal, drive; the others act on one body
}

TEST_CASE("several joints between the same two bodies, or on the ground, are eliminated one after the other") {
  test::Description d = test::double_pendulum();
  d = with_joint(d, "A", "B", JointType::perpendicular_axes);
  d = with_joint(d, "B", "A", JointType::parallel_axes);
  d = with_joint(d, "ground", "A", JointType::point_on_line);
  d = with_joint(d, "B", "ground", JointType::perpendicular_axes);
  check_all_orders(d);
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
  check_all_orders(d);
  const Plan plan = make_plan(test::build(d), {.order = MergeOrder::fewest_operations});
  CHECK(plan.elimination.leaves.size() == 5);
  CHECK(plan.elimination.fronts.size() == d.joints.size());
}

TEST_CASE("one free body has nothing to eliminate") {
  test::Description d;
  d.bodies = {test::make_body("free", Vec3::Zero())};
  check_all_orders(d);
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

TEST_CASE("one compound per body is merged level by level where levels count") {
  const auto levels = [](int n) {
    return make_plan(test::build(test::chain(n, JointType::revolute)), {.order = MergeOrder::fewest_levels})
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

TEST_CASE("narrow constraints are evaluated together, chosen from the lanes of their bodies") {
  for (const char* set : test::instruction_sets()) {
    const int lanes = kernels_for_this_processor(set).lanes;
    CAPTURE(lanes);
    const Plan loop = make_plan(test::build(test::four_bar(0.4)), {.instruction_set = set});
    REQUIRE(loop.elimination.batches.size() == 1);
    CHECK(loop.elimination.batches[0].width == 4);
    CHECK(loop.elimination.batches[0].sides == Operands::chosen);
    for (const JointType type : {JointType::spherical, JointType::revolute}) {
      const Elimination chain = make_plan(test::build(test::chain(64, type)), {.instruction_set = set}).elimination;
      CHECK(padding(chain) == 1);
      CHECK(std::all_of(chain.batches.begin(), chain.batches.end(),
                        [&](const ConstraintBatch& b) { return b.width == lanes; }));
    }
  }
}

TEST_CASE("only constraints of one part are evaluated together, not those between the parts") {
  int joined = 0;
  for (const JointType type : {JointType::spherical, JointType::revolute, JointType::fixed, JointType::universal})
    for (int n = 160; n <= 400; n += n / 10 + 1) {
      CAPTURE(n);
      const Elimination e = make_plan(test::build(test::chain(n, type)), {.threads = kMostThreads}).elimination;
      REQUIRE(e.parts.size() > 1);
      std::map<int, std::set<std::pair<int, bool>>> parts;  // of a batch: which part evaluates it, and when
      for (const Elimination::Unit& unit : e.units)
        if (unit.constraint >= 0) parts[unit.constraint].emplace(unit.part, unit.joins);
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
      const ConstraintBatch& c = e.batches[f.constraint];
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

TEST_CASE("constraints write the handles that their bodies read, whichever of its sides comes first") {
  for (int seed = 1; seed <= 600; ++seed) {
    CAPTURE(seed);
    check_handles(make_plan(test::build(test::random_chain(seed, 10 + seed % 60)), {}).elimination);
  }
}

TEST_CASE("no page belongs to two parts, and every body to one") {
  const Mechanism all[] = {test::build(test::chain(200, JointType::revolute)), test::build(test::random_tree(2, 250)),
                           test::build(test::ladder(60)), test::build(test::star(40, 12))};
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
        const Plan plan = make_plan(test::build(test::tree(n, branching, JointType::revolute)), {.threads = threads});
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
  const Plan plan = make_plan(test::build(test::chain(256, JointType::revolute)), {.threads = 2});
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
    CHECK(std::none_of(e.joins[part].runs.begin(), e.joins[part].runs.end(), is_leaf));
  }
}

TEST_CASE("the operations between the segments of a chain find their operands side by side, without gathering") {
  for (const char* set : test::instruction_sets())
    for (const int n : {8, 16, 32, 128, 256}) {
      CAPTURE(n);
      const Plan plan = make_plan(test::build(test::chain(n, JointType::revolute)), {.instruction_set = set});
      const Elimination& e = plan.elimination;
      for (const Front& f : e.fronts) {
        CHECK(f.children != Operands::scattered);
        // those that several fronts eliminate are gathered with intent
        if (e.batches[f.constraint].width == f.width) CHECK(e.batches[f.constraint].sides != Operands::scattered);
      }
    }
}

}  // namespace rigstep::index3
