#include "core/index3/outputs/reactions.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper_access.h"
#include "core/offline/dense.h"
#include "tests/support/mechanisms.h"
#include "tests/support/reference.h"

namespace rigstep::index3 {
namespace {

std::vector<bool> everything(const Plan& plan) {
  return std::vector<bool>(static_cast<std::size_t>(plan.mechanism.constraints()), true);
}

// Loads of all joints of a stepper's state, of least norm; groups are those of the start, as sensors make them.
std::vector<Vec6> loads(const Stepper& s) {
  Workspace w(plan_of(s));
  Reactions reactions(plan_of(s), initial_state(plan_of(s), w), everything(plan_of(s)));
  evaluate_pose(plan_of(s), s.state(), w);
  reactions.read(s.state(), w);
  std::vector<Vec6> result;
  for (std::size_t j = 0; j < s.mechanism().joints().size(); ++j)
    result.push_back(reactions.of_joint(s.state(), static_cast<int>(j)));
  return result;
}

// Multipliers of least norm that load the bodies like those of a state, by a pseudo-inverse of J'J.
Eigen::VectorXd least_norm(const Plan& plan, const State& x) {
  Workspace w(plan);
  evaluate_pose(plan, x, w);
  Eigen::MatrixXd J = Eigen::MatrixXd::Zero(plan.rows(), 6 * static_cast<Eigen::Index>(x.body.size()));
  Eigen::VectorXd lambda(plan.rows());
  for (int row = 0; row < plan.rows(); ++row) {
    for_each_block(plan, w, row, [&](int body, const Vec6& J_body) { J.block<1, 6>(row, 6 * body) = J_body; });
    lambda[row] = x.lambda[row] + x.kappa[row];
  }
  return J * offline::least_squares(J, lambda, 1e-5).x;
}

// A door of 2 kg on two hinges one above the other, half a metre from its mass centre.
test::Description door() {
  test::Description d;
  d.name = "door";
  d.gravity = {0.0, 0.0, -9.81};
  d.bodies = {test::make_body("door", {0.5, 0.0, 0.0}, 2.0)};
  d.joints = {test::make_joint("low", JointType::revolute, "ground", "door", {0.0, 0.0, -1.0}),
              test::make_joint("high", JointType::revolute, "ground", "door", {0.0, 0.0, 1.0})};
  return d;
}

// Two wheels whose crank pins, at angle phi, a side rod joins, and a belt from one to the other: redundant beside the
// rod. At dead centre (phi = 0) the rod's pins cannot load the belt, so that it seems to share nothing.
test::Description side_rod(double phi) {
  const Vec3 pin = 0.3 * Vec3{std::cos(phi), std::sin(phi), 0.0};
  const Vec3 spin = 5.0 * Vec3::UnitZ();
  test::Description d;
  d.name = "side_rod";
  d.gravity = {0.0, -9.81, 0.0};
  d.bodies = {test::make_body("front", Vec3::Zero(), 50.0, Vec3(1.0, 1.0, 2.0).asDiagonal()),
              test::make_body("rear", {2.0, 0.0, 0.0}, 50.0, Vec3(1.0, 1.0, 2.0).asDiagonal()),
              test::make_body("rod", Vec3::UnitX() + pin, 20.0, Vec3(0.1, 7.0, 7.0).asDiagonal())};
  d.bodies[0].angular_velocity_0 = d.bodies[1].angular_velocity_0 = spin;
  d.bodies[2].velocity_0 = spin.cross(pin);
  d.joints = {test::make_joint("axle0", JointType::revolute, "ground", "front", Vec3::Zero()),
              test::make_joint("axle1", JointType::revolute, "ground", "rear", {2.0, 0.0, 0.0}),
              test::make_joint("pin0", JointType::revolute, "front", "rod", pin),
              test::make_joint("pin1", JointType::revolute, "rear", "rod", 2.0 * Vec3::UnitX() + pin)};
  d.couplings = {{"belt", {"axle0", Freedom::angle}, {"axle1", Freedom::angle}, -1.0}};
  return d;
}

}  // namespace

TEST_CASE("two hinges of a door share its weight equally") {
  Stepper s(test::build(door()), {});
  for (const int steps : {0, 50}) {
    for (int k = 0; k < steps; ++k) s.step(Inputs{});
    const std::vector<Vec6> load = loads(s);
    CHECK(load[0][2] == doctest::Approx(9.81).epsilon(1e-9));
    CHECK(load[1][2] == doctest::Approx(9.81).epsilon(1e-9));
    // the weight's moment of 9.81 N m about y: a couple of forces on an arm of 2 m, and a torque in each hinge.
    // 2 f + 2 t = 9.81 with 2 f^2 + 2 t^2 least
    CHECK(load[0][0] == doctest::Approx(9.81 / 4.0).epsilon(1e-9));
    CHECK(load[1][0] == doctest::Approx(-9.81 / 4.0).epsilon(1e-9));
    CHECK(std::abs(load[0][4]) == doctest::Approx(9.81 / 4.0).epsilon(1e-9));
    CHECK(load[0][4] == doctest::Approx(load[1][4]).epsilon(1e-9));
  }
}

TEST_CASE("the reported multipliers are those of least norm among all that load the bodies alike") {
  const test::Description all[] = {test::ladder(5),
                                   test::four_bar(0.4),
                                   door(),
                                   test::random_loops(3, 9),
                                   side_rod(0.0),  // regular, but its symmetry hides the belt's part
                                   side_rod(0.3),
                                   test::n_four_bar(24, 1.2, 0.5),  // 49 bodies share loads
                                   test::net(8, JointType::spherical),
                                   test::net(8, JointType::revolute)};
  for (const test::Description& d : all) {
    CAPTURE(d.name);
    Stepper s(test::build(d), {});
    for (int k = 0; k < 20; ++k) s.step(test::test_inputs(s.mechanism(), static_cast<std::uint64_t>(k)));
    const Eigen::VectorXd want = least_norm(plan_of(s), s.state());
    const std::vector<Vec6> load = loads(s);
    for (std::size_t j = 0; j < load.size(); ++j) {
      const double* lambda = want.data() + plan_of(s).first_row[j];
      const Vec6 error = load[j] - load_on_second(plan_of(s), s.state(), static_cast<int>(j), lambda);
      CHECK(error.norm() < 1e-8 * (1.0 + want.cwiseAbs().maxCoeff()));
    }
  }
}

TEST_CASE("redundancy is told by group, and by what of each joint's load is open") {
  const auto rank = [](const test::Description& d) { return start_rank(test::build(d)).nearby; };
  using Open = std::array<bool, 6>;
  const Open out_of_plane{false, false, true, true, true, false};

  const Rank bar = rank(test::four_bar(0.4));
  REQUIRE(bar.groups.size() == 1);
  CHECK(bar.groups[0] == std::vector<int>{0, 1, 2, 3});
  for (const Open& open : bar.open_loads) CHECK(open == out_of_plane);

  // the ladder hangs on one revolute that no loop loads; of a long one rounding must not make its loops one
  for (const int loops : {3, 32}) {
    const Rank ladder = rank(test::ladder(loops));
    CHECK(ladder.redundant == 3 * loops);
    REQUIRE(ladder.groups.size() == loops);  // its loops share bodies, but no joint
    for (const std::vector<int>& group : ladder.groups) CHECK(group.size() == 4);
    CHECK(ladder.open_loads[0] == Open{});
    for (std::size_t j = 1; j < ladder.open_loads.size(); ++j) CHECK(ladder.open_loads[j] == out_of_plane);
  }

  // two doors on one post: each has its own distribution
  test::Description doors = door();
  doors.bodies.push_back(test::make_body("second", {-0.5, 0.0, 0.0}));
  doors.joints.push_back(test::make_joint("low2", JointType::revolute, "ground", "second", {0.0, 0.0, -1.0}));
  doors.joints.push_back(test::make_joint("high2", JointType::revolute, "ground", "second", {0.0, 0.0, 1.0}));
  const Rank two = rank(doors);
  REQUIRE(two.groups.size() == 2);
  CHECK(two.groups[0] == std::vector<int>{0, 1});
  CHECK(two.groups[1] == std::vector<int>{2, 3});
  for (const Open& open : two.open_loads) CHECK(open == Open{true, true, true, true, true, false});

  // a tree has nothing to share
  const Rank free = rank(test::random_bare_tree(3, 5));
  CHECK(free.groups.empty());
  for (const Open& open : free.open_loads) CHECK(open == Open{});
}

TEST_CASE("groups of the start and of a pose nearby that share a constraint are one") {
  StartRank rank;
  rank.start.redundancy_share.resize(8);
  rank.start.groups = {{1, 2}, {6, 7}};
  rank.nearby.groups = {{0, 1}, {2, 3}, {4, 5}};
  CHECK(open_groups(rank) == std::vector<std::vector<int>>{{6, 7}, {0, 1, 2, 3}, {4, 5}});
}

TEST_CASE("the strut on two hinges: their loads are open but for the torque about their axis, and nothing else is") {
  const Mechanism m = test::mechanism("mcpherson_redundant");
  const Rank rank = start_rank(m).nearby;
  CHECK(rank.redundant == 5);
  REQUIRE(rank.groups.size() == 1);
  CHECK(rank.groups[0] == std::vector<int>{0, 1});
  for (std::size_t j = 0; j < m.joints().size(); ++j) {
    const std::array<bool, 6> open{true, true, true, false, true, true};
    CHECK(rank.open_loads[j] == (j < 2 ? open : std::array<bool, 6>{}));
  }
}

TEST_CASE("reactions of redundant joints at the start are those of the references, torques included") {
  for (const std::string name : {"four_bar", "four_bar_hanging", "mcpherson_redundant", "hdca_case1"}) {
    CAPTURE(name);
    const Stepper s(test::mechanism(name), {});
    const nlohmann::json joints = test::reference(name)["reference"][0]["joints"];
    const std::vector<Vec6> load = loads(s);
    double scale = 0.0, error = 0.0;
    for (std::size_t j = 0; j < load.size(); ++j) {
      const auto& want = joints[s.mechanism().joints()[j].name];
      scale = std::max(scale, test::vec3(want["force"]).norm());
      error = std::max(error, (load[j].head<3>() - test::vec3(want["force"])).norm());
      if (want.contains("torque")) error = std::max(error, (load[j].tail<3>() - test::vec3(want["torque"])).norm());
    }
    MESSAGE(name << ": reactions at the start differ by " << error / scale << " of the largest");
    CHECK(scale > 1.0);
    CHECK(error < 1e-11 * scale);
  }
}

}  // namespace rigstep::index3
