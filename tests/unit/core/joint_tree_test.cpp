#include "core/offline/joint_tree.h"

#include <doctest/doctest.h>

#include "core/offline/joint_motion.h"
#include "tests/support/joint_cases.h"
#include "tests/support/random.h"

namespace rigstep::offline {
namespace {

using test::Description;
using test::make_body;

// Two bodies: a universal joint on the ground, and the joint in question, whichever way round.
Mechanism with_joint(JointType type, bool turned_round) {
  Description d;
  d.bodies = {make_body("A", {0.5, 0, 0}), make_body("B", {1.0, 0.4, 0.5})};
  d.joints = test::joints_with(type, turned_round);
  return test::build(d);
}

bool are_orthonormal(const Eigen::MatrixXd& columns) {
  const Eigen::MatrixXd products = columns.transpose() * columns;
  return (products - Eigen::MatrixXd::Identity(columns.cols(), columns.cols())).norm() < 1e-14;
}

template <class Check>
void for_all_joints(const Check& check) {
  for (const JointType type : test::kAllJointTypes)
    for (const bool turned_round : {false, true}) {
      CAPTURE(to_string(type));
      CAPTURE(turned_round);
      check(with_joint(type, turned_round));
    }
}

std::vector<double> random_vector(std::size_t size, test::Random& random, double scale) {
  std::vector<double> v;
  while (v.size() < size) v.push_back(random.vector(scale).x());
  return v;
}

// Motions of the bodies by differences of their poses.
std::vector<Vec6> motions(const JointTree& tree, const std::vector<double>& q, const std::vector<double>& qd) {
  const double h = 1e-6;
  std::vector<Pose> ahead(2), behind(2);
  std::vector<double> shifted = q;
  for (std::size_t i = 0; i < q.size(); ++i) shifted[i] = q[i] + h * qd[i];
  tree.place(shifted, ahead);
  for (std::size_t i = 0; i < q.size(); ++i) shifted[i] = q[i] - h * qd[i];
  tree.place(shifted, behind);
  std::vector<Vec6> motion(2);
  for (int i = 0; i < 2; ++i) {
    const Mat3 turn = (ahead[i].A - behind[i].A) * 0.5 * (ahead[i].A + behind[i].A).transpose() / (2.0 * h);
    motion[i] << (ahead[i].r_0 - behind[i].r_0) / (2.0 * h), turn(2, 1), turn(0, 2), turn(1, 0);
  }
  return motion;
}

}  // namespace

TEST_CASE("H and D together are an orthonormal basis, and a rod leaves five freedoms") {
  for_all_joints([](const Mechanism& m) {
    const JointTree tree(m);
    std::vector<Pose> pose(2);
    test::Random random(3);
    std::vector<double> q = random_vector(static_cast<std::size_t>(tree.coordinates()), random, 1.0);
    tree.place(q, pose);
    for (const Link& link : tree.links()) {
      const std::span<const Pose> poses(pose);
      const Subspaces at = subspaces(link, of_body(poses, link.first, Pose{}), of_body(poses, link.second, Pose{}));
      CHECK(at.D.cols() == link.constraints);
      CHECK(are_orthonormal(at.D));
      if (link.cut) continue;
      CHECK(at.H.cols() + at.D.cols() == 6);
      CHECK(are_orthonormal(at.H));
      CHECK((at.D.transpose() * at.H).norm() < 1e-14);
    }
  });
}

TEST_CASE("the start pose comes back from its relative coordinates") {
  for_all_joints([](const Mechanism& m) {
    const JointTree tree(m);
    std::vector<Pose> start;
    for (const BodyMotion& body : start_motion(m)) start.push_back({body.r_0, rotation(body.p)});
    std::vector<Pose> back(start.size());
    const std::vector<double> q = tree.coordinates_of(start);
    CHECK(q.size() == static_cast<std::size_t>(tree.coordinates()));
    tree.place(q, back);
    for (std::size_t i = 0; i < start.size(); ++i) {
      CHECK((back[i].r_0 - start[i].r_0).norm() < 1e-14);
      CHECK((back[i].A - start[i].A).norm() < 1e-14);
    }
  });
}

TEST_CASE("the relative velocity at a joint is H qd, and H, D and the point change as their rates say") {
  for_all_joints([](const Mechanism& m) {
    const JointTree tree(m);
    test::Random random(4);
    const std::vector<double> q = random_vector(static_cast<std::size_t>(tree.coordinates()), random, 1.0);
    const std::vector<double> rates = random_vector(static_cast<std::size_t>(tree.rates()), random, 1.0);
    std::vector<double> qd(q.size()), shifted(q.size());
    tree.differentiate(q, rates, qd);
    const std::vector<Vec6> motion = motions(tree, q, qd);
    const std::span<const Vec6> increment(motion);
    const double h = 1e-6;
    const Vec6 rest = Vec6::Zero();
    for (const Link& link : tree.links()) {
      std::vector<Pose> pose(2);
      const std::span<const Pose> poses(pose);
      const auto at = [&](double t) {
        for (std::size_t i = 0; i < q.size(); ++i) shifted[i] = q[i] + t * qd[i];
        tree.place(shifted, pose);
        return subspaces(link, of_body(poses, link.first, Pose{}), of_body(poses, link.second, Pose{}));
      };
      const Subspaces ahead = at(h), behind = at(-h), now = at(0.0);
      const SubspaceRates rate =
          subspace_rates(link, of_body(poses, link.first, Pose{}), of_body(increment, link.first, rest),
                         of_body(poses, link.second, Pose{}), of_body(increment, link.second, rest));
      CHECK((rate.H - (ahead.H - behind.H) / (2.0 * h)).norm() < 1e-7);
      CHECK((rate.D - (ahead.D - behind.D) / (2.0 * h)).norm() < 1e-7);
      CHECK((rate.point_0 - (ahead.point_0 - behind.point_0) / (2.0 * h)).norm() < 1e-7);
      if (link.cut) continue;
      Vec6 relative = Vec6::Zero();
      if (link.second != kGround) relative += motion_at(motion[link.second], pose[link.second].r_0, now.point_0);
      if (link.first != kGround) relative -= motion_at(motion[link.first], pose[link.first].r_0, now.point_0);
      CHECK((relative - now.H * Eigen::Map<const Eigen::VectorXd>(rates.data() + link.rate, link.rates)).norm() < 1e-7);
    }
  });
}

TEST_CASE("joints that leave least free carry the bodies, and a body that no joint holds floats") {
  const JointTree tree(with_joint(JointType::distance, false));
  REQUIRE(tree.links().size() == 3);
  CHECK(tree.tree_links() == 2);
  CHECK(tree.links()[1].joint == -1);
  CHECK(tree.links()[1].outer == 1);
  CHECK(tree.links()[1].constraints == 0);
  CHECK(tree.links()[2].cut);
  CHECK(tree.rates() == 2 + 6);
}

}  // namespace rigstep::offline
