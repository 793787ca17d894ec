#include "core/offline/divide_and_conquer.h"

#include <doctest/doctest.h>

#include "core/offline/constraints.h"
#include "core/offline/dense.h"
#include "tests/support/mechanisms.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace rigstep::offline {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Assembled {
  explicit Assembled(const Mechanism& m) : tree(m), compounds(m, tree, 1) {
    for (const BodyMotion& body : start_motion(m)) poses.push_back({body.r_0, rotation(body.p)});
    const std::span<const Pose> all(poses);
    for (const Link& link : tree.links())
      at.push_back(subspaces(link, of_body(all, link.first, Pose{}), of_body(all, link.second, Pose{})));
    compounds.assemble(poses, at);
  }
  JointTree tree;
  DivideAndConquer compounds;
  std::vector<Pose> poses;
  std::vector<Subspaces> at;
};

// M^-1 (w - J' (J M^-1 J')^+ J M^-1 w) with the rows of another reference solver.
VectorXd dense_response(const Mechanism& m, const VectorXd& w) {
  const std::vector<BodyMotion> start = start_motion(m);
  const std::vector<Jet> coordinates = CoordinateFollower(m).follow(start);
  const std::vector<ConstraintRow> rows = Constraints(m).rows({0.0, start, coordinates, {}}, {});
  MatrixXd J = MatrixXd::Zero(static_cast<Eigen::Index>(rows.size()), w.size());
  MatrixXd W = MatrixXd::Zero(w.size(), w.size());
  for (std::size_t k = 0; k < rows.size(); ++k)
    for (int i = 0; i < rows[k].parts; ++i)
      J.block<1, 6>(static_cast<Eigen::Index>(k), 6 * rows[k].part[i].body) = rows[k].part[i].J.transpose();
  for (std::size_t i = 0; i < start.size(); ++i) {
    const Eigen::Index at = 6 * static_cast<Eigen::Index>(i);
    W.block<3, 3>(at, at) = Mat3::Identity() / m.bodies()[i].mass;
    W.block<3, 3>(at + 3, at + 3) = inertia_0(m.bodies()[i], start[i]).inverse();
  }
  const MatrixXd K = J * W * J.transpose();
  return W * (w - J.transpose() * offline::least_squares(K, J * W * w).x);
}

}  // namespace

TEST_CASE("bodies respond to loads as the dense equations say: trees, coupled loops, redundant joints, no ground") {
  std::vector<Mechanism> mechanisms;
  for (const char* name : {"chain_8", "hdca_case3", "full_car", "mcpherson_redundant", "pipelayer"})
    mechanisms.push_back(test::mechanism(name));
  test::Description floating = test::double_pendulum();
  floating.joints.erase(floating.joints.begin());
  mechanisms.push_back(test::build(floating));
  mechanisms.push_back(test::build(test::n_four_bar(3, 1.0, 0.0)));  // the ground closes its loops
  test::Random random(5);
  for (const Mechanism& m : mechanisms) {
    CAPTURE(m.name());
    Assembled a(m);
    VectorXd w(6 * static_cast<Eigen::Index>(m.bodies().size()));
    std::vector<Vec6> loads(m.bodies().size()), responses(m.bodies().size());
    for (std::size_t i = 0; i < loads.size(); ++i) {
      loads[i] << random.vector(100.0), random.vector(100.0);
      w.segment<6>(6 * static_cast<Eigen::Index>(i)) = loads[i];
    }
    std::vector<LinkVector> bias, s(a.at.size());
    for (const Link& link : a.tree.links()) bias.push_back(LinkVector::Zero(link.constraints));
    a.compounds.solve(loads, bias, s, responses);
    const VectorXd wanted = dense_response(m, w);
    CHECK(wanted.norm() > 1e-3);
    for (std::size_t i = 0; i < loads.size(); ++i)
      CHECK((responses[i] - wanted.segment<6>(6 * static_cast<Eigen::Index>(i))).norm() < 1e-9 * wanted.norm());
  }
}

TEST_CASE("what hangs on a joint of a chain is the rest of the chain") {
  const Mechanism m = test::mechanism("chain_8");
  Assembled a(m);
  std::vector<Vec6> wrenches(8, Vec6::Ones()), sums(a.at.size());
  a.compounds.accumulate(wrenches, sums);
  for (int k = 0; k < 8; ++k) CHECK(sums[k] == (8.0 - k) * Vec6::Ones());
}

TEST_CASE("the tree of a chain has as many levels as its length has binary digits, and the ground") {
  const Mechanism chain_8 = test::mechanism("chain_8"), chain_128 = test::mechanism("chain_128");
  CHECK(Assembled(chain_8).compounds.levels() == 3 + 2);
  CHECK(Assembled(chain_128).compounds.levels() == 7 + 2);
}

}  // namespace rigstep::offline
