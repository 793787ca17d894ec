#include "core/index3/outputs/loop_closure.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "core/index3/outputs/diagnostics.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper.h"
#include "core/index3/stepper_access.h"
#include "core/mechanism/portable_math.h"
#include "core/offline/dense.h"
#include "tests/support/mechanisms.h"

namespace rigstep::index3 {
namespace {

double margin_at(const Plan& plan, const State& x) {
  Workspace w(plan);
  evaluate_pose(plan, x, w);
  return LoopClosure(plan, x).margin(w);
}

double margin_at_start(const Mechanism& m) {
  const Plan plan = make_plan(m, {});
  return margin_at(plan, start_pose(plan));
}

// The margin by dense matrices: closing rows, less their parts along the others.
double dense_margin(const Plan& plan, const State& x) {
  Workspace w(plan);
  evaluate_pose(plan, x, w);
  const LoopClosure closure(plan, x);
  const std::vector<double> arm = arms(plan);
  const auto closes = [&](int row) {
    return std::count(closure.closing_rows().begin(), closure.closing_rows().end(), row) > 0;
  };
  Eigen::MatrixXd tree(0, 6 * arm.size()), closing(0, 6 * arm.size());
  for (int row = 0; row < plan.rows(); ++row) {
    Eigen::MatrixXd& J = closes(row) ? closing : tree;
    J.conservativeResize(J.rows() + 1, Eigen::NoChange);
    J.bottomRows(1).setZero();
    for_each_block(plan, w, row, [&](int body, const Vec6& J_body) {
      J.bottomRows(1).middleCols<3>(6 * body) += J_body.head<3>().transpose();
      J.bottomRows(1).middleCols<3>(6 * body + 3) += J_body.tail<3>().transpose() / arm[body];
    });
  }
  closing.rowwise().normalize();
  if (tree.rows() > 0) closing -= offline::least_squares(tree.transpose(), closing.transpose()).x.transpose() * tree;
  const Eigen::VectorXd squares = offline::spectrum(closing * closing.transpose()).values;
  CHECK(closure.redundant() < closing.rows());
  return std::min(1.0, std::sqrt(squares[closure.redundant()]));
}

// A plate on six massless legs between two similar hexagons, turned by `twist` from the pose where it is a platform.
// At a quarter turn it is singular: all legs resist along one screw.
test::Description hexapod(double twist) {
  test::Description d;
  d.name = "hexapod";
  const auto corner = [](double radius, double angle, double z) {
    return Vec3{radius * std::cos(angle), radius * std::sin(angle), z};
  };
  Body plate = test::make_body("plate", {0.0, 0.0, 1.0}, 5.0, Vec3(0.3, 0.3, 0.5).asDiagonal());
  plate.orientation = EulerParameters{std::cos(0.5 * twist), 0.0, 0.0, std::sin(0.5 * twist)};
  d.bodies = {plate};
  for (int leg = 0; leg < 6; ++leg) {
    const int pair_index = leg / 2;
    const double pair = 2.0 * kPi / 3.0 * pair_index, side = leg % 2 == 0 ? -1.0 : 1.0;
    const Vec3 foot = corner(1.0, pair + side * 0.3, 0.0);
    const Vec3 head = corner(0.6, pair + side * (kPi / 3.0 - 0.3) + twist, 1.0);
    auto joint = test::make_joint("leg" + std::to_string(leg), JointType::distance, "ground", "plate", foot);
    joint.axis = Vec3::Zero();
    joint.second_axis = Vec3::Zero();
    joint.second_point = head;
    d.joints.push_back(joint);
  }
  return d;
}

}  // namespace

TEST_CASE("the margin of a mechanism without loops is one") {
  CHECK(margin_at_start(test::build(test::double_pendulum())) == 1.0);
  CHECK(margin_at_start(test::build(test::tree(9, 3, JointType::revolute))) == 1.0);
}

TEST_CASE("the margin is the singular value of dense matrices, with redundant rows, couplings and drivers too") {
  test::Description coupled = test::random_bare_tree(5, 6);
  test::add_random_couplings(5, coupled, 2);
  const std::pair<const char*, Mechanism> cases[] = {{"four_bar", test::build(test::four_bar(0.3))},
                                                     {"ladder", test::build(test::ladder(4))},
                                                     {"long ladder", test::build(test::ladder(32))},
                                                     {"hexapod", test::build(hexapod(0.4))},
                                                     {"coupled", test::build(coupled)},
                                                     {"loops 1", test::build(test::random_loops(1, 8))},
                                                     {"loops 2", test::build(test::random_loops(2, 8))}};
  for (const auto& each : cases) {
    const std::string name = each.first;
    CAPTURE(name);
    const Plan plan = make_plan(each.second, {});
    const double want = dense_margin(plan, start_pose(plan));
    MESSAGE(name << ": margin " << want);
    CHECK(want > 1e-4);
    CHECK(margin_at_start(each.second) == doctest::Approx(want).epsilon(1e-8));
  }
}

TEST_CASE("the margin of a net that hangs through is the singular value of dense matrices") {
  for (const JointType type : {JointType::spherical, JointType::revolute}) {
    test::Description net = test::net(8, type);
    net.gravity = {0.0, 0.0, -9.81};  // out of its plane, in which it is singular
    Stepper s(test::build(net), {});
    for (int k = 0; k < 100; ++k) REQUIRE(!failed(s.step(Inputs{}).status));
    const double want = dense_margin(plan_of(s), s.state());
    MESSAGE("net of " << to_string(type) << " joints: margin " << want);
    CHECK(want > 1e-5);
    CHECK(margin_at(plan_of(s), s.state()) == doctest::Approx(want).epsilon(1e-5));  // eigenvalues are its square
  }
}

TEST_CASE("a four-bar's margin falls to zero at its singular pose in proportion to the distance") {
  const auto at = [](double distance) { return margin_at_start(test::build(test::four_bar(-0.5 * kPi + distance))); };
  CHECK(at(1.0) > 0.3);
  double last = at(0.5);
  CHECK(last > 0.1);
  for (const double distance : {0.2, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6}) {
    const double margin = at(distance);
    CAPTURE(distance);
    MESSAGE("four-bar, " << distance << " rad from the singular pose: margin " << margin);
    CHECK(margin < last);
    CHECK(at(-distance) == doctest::Approx(margin).epsilon(0.3 * distance + 1e-3));
    if (distance < 0.05) CHECK(margin / distance == doctest::Approx(at(1e-2) / 1e-2).epsilon(0.03));
    last = margin;
  }
  CHECK(at(5e-4) < 1e-3);
  CHECK(at(0.0) < 1e-7);
}

TEST_CASE("the margin goes with the smallest singular value of all constraints, masses included") {
  const auto compare = [](const Mechanism& m) {
    const Plan plan = make_plan(m, {});
    return margin_at_start(m) / rank_at(plan, start_pose(plan)).margin;
  };
  for (const double distance : {0.5, 0.1, 1e-2, 1e-3, 1e-4}) {
    CAPTURE(distance);
    const double bar = compare(test::build(test::four_bar(-0.5 * kPi + distance)));
    const double plate = compare(test::build(hexapod(0.5 * kPi - distance)));
    MESSAGE("margin over smallest singular value, " << distance << " rad off: four-bar " << bar << ", hexapod "
                                                    << plate);
    CHECK(bar > 0.5);
    CHECK(bar < 5.0);
    CHECK(plate > 0.5);
    CHECK(plate < 5.0);
  }
}

TEST_CASE("a platform on six legs is singular a quarter turn from its middle") {
  // legs of fixed length hold the plate where it is, so its redundant rows are counted at another twist
  const Plan plan = make_plan(test::build(hexapod(0.4)), {});
  LoopClosure closure(plan, start_pose(plan));
  CHECK(closure.redundant() == 0);
  Workspace w(plan);
  const auto at = [&](double twist) {
    evaluate_pose(plan, start_pose(make_plan(test::build(hexapod(twist)), {})), w);
    return closure.margin(w);
  };
  CHECK(at(0.0) > 0.05);
  CHECK(at(0.5 * kPi) < 1e-7);
  const double near = at(0.5 * kPi - 1e-2), nearer = at(0.5 * kPi - 1e-3);
  CHECK(near < at(0.5 * kPi - 0.1));
  CHECK(near / nearer == doctest::Approx(10.0).epsilon(0.05));
}

TEST_CASE("masses, inertia and the unit of length do not change the margin") {
  test::Description d = test::four_bar(0.3);
  const double want = margin_at_start(test::build(d));
  for (Body& body : d.bodies) {
    body.mass = 7.0;
    body.inertia_b = Vec3(1e-9, 3.0, 3.0).asDiagonal();
  }
  CHECK(margin_at_start(test::build(d)) == doctest::Approx(want).epsilon(1e-9));
  for (Body& body : d.bodies) body.position_0 *= 1e-3;
  for (auto& joint : d.joints) joint.point *= 1e-3;
  CHECK(margin_at_start(test::build(d)) == doctest::Approx(want).epsilon(1e-9));
}

}  // namespace rigstep::index3
