// The divide-and-conquer scheme that the Hamiltonian [000] and the acceleration form [17 of 000] share. Bodies receive
// loads w and respond with u = M^-1 (w + joint loads); joints with subspaces D load them by D s so that
//
//   D'(u_second - u_first) + bias = 0   at the joint point:
//
// momenta give velocities and constraint force impulses, forces give accelerations and constraint forces. Compound
// bodies keep the compliance X = D' xi D between their open joints only; the ground joins in last. Where a merge closes
// a loop, its matrix is inverted in the sense of least squares: redundant constraints share the load.
//
// A rod with next to no moment of inertia about its own axis has compliances that differ a billion times, and the
// rounding of the largest ones disturbs the others. So what a solution leaves of the bias is solved for again, and
// added: bodies respond by a factor of M^-1 that keeps the spin of such a rod apart from its other motions, so that
// this converges to rounding. Which rows are redundant is a matter of geometry: their compliance is compared with that
// of bodies that have their largest moment of inertia about every axis.
//
// The binary tree of compounds halves the spanning tree of the joints, and all compounds of one level are treated at
// once; each by one thread, so that the result has the same bits for any number of threads. One thread alone makes no
// call of the OpenMP run-time. Offline only.
#pragma once

#include <span>
#include <vector>

#include "core/mechanism/body_groups.h"
#include "core/offline/joint_tree.h"

namespace rigstep::offline {

using LinkVector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, 6, 1>;

class DivideAndConquer {
 public:
  // The tree must outlive it. Throws SolverError where its matrices would be too large.
  DivideAndConquer(const Mechanism& mechanism, const JointTree& tree, int threads);

  // Compliances of all compounds at a pose: (27), (34), (35). subspaces: (links).
  void assemble(std::span<const Pose> poses, std::span<const Subspaces> subspaces);

  // Loads about the mass centres (bodies), world frame, and biases (links) -> multipliers s (links) and responses about
  // the mass centres (bodies): (28), (36), (45), (29), (15).
  void solve(std::span<const Vec6> loads, std::span<const LinkVector> bias, std::span<LinkVector> s,
             std::span<Vec6> responses);

  // For each link of the tree the sum of the wrenches, all about one point, on the bodies that hang on it: (74)-(76).
  void accumulate(std::span<const Vec6> wrenches, std::span<Vec6> sums);

  int levels() const { return static_cast<int>(levels_.size()); }  // of compounds, bodies included

 private:
  struct Share {  // rows of a part's open joints in a compound
    int part = 0, from = 0, to = 0, rows = 0;
  };
  struct Compound {
    int body = -1;                  // a single body, or
    std::vector<int> parts;         // two compounds; the whole mechanism before it meets the ground
    std::vector<int> closed, open;  // links
    std::vector<int> hanging;       // links of the tree from here to bodies outside
    int carrier = -1;               // the link of the tree by which it hangs on its sibling or on the ground
    bool loop = false;              // it closes one: its closed rows may be redundant
    std::vector<Share> shares;
    int closed_rows = 0, open_rows = 0;
    double largest = 0.0;       // compliance of a row that went into it: what its rounding comes from
    double compliance = 0.0;    // least of a closed link, see compliance_of
    Eigen::MatrixXd F;          // compliances of the parts, closed rows first
    Eigen::MatrixXd root;       // of the closed rows, C = -root' root of (27); its inverse where no loop is closed
    Eigen::MatrixXd W;          // root F, to open rows
    Eigen::MatrixXd X;          // (34) (35) between open rows
    Eigen::VectorXd f, g, x;    // parts' biases; root f, so that (28) is root' g; (36)
    Vec6 total = Vec6::Zero();  // (58)

    Eigen::MatrixXd times_root(const Eigen::MatrixXd& rows) const;
    Eigen::VectorXd times_transposed_root(const Eigen::VectorXd& g) const;
  };
  struct Leaf {
    std::vector<int> links;
    std::vector<double> sign;    // +1 second body of the link, -1 first
    Mat6 root_b = Mat6::Zero();  // M^-1 = root root', body frame; the principal axes make its columns
    Mat6 root = Mat6::Zero();    // world frame
    using Columns6 = Eigen::Matrix<double, 6, Eigen::Dynamic>;
    Columns6 G;       // D about the mass centre, all links side by side
    Columns6 root_G;  // root' G

    Vec6 respond(const Vec6& load) const { return root * (root.transpose() * load); }
  };

  int divide(std::vector<int> bodies, int carrier);
  int add_compound(Compound compound, const std::vector<int>& bodies);
  void make_rows(Compound& compound);
  void require_moderate_size(const Compound& compound);
  void assemble_body(int body, const Pose& pose, std::span<const Subspaces> subspaces);
  void assemble_compound(Compound& compound);
  double compliance_of(const Link& link) const;
  void require_telling_eigenvalues() const;
  void pass(std::span<const Vec6> loads, std::span<const LinkVector> bias, std::span<LinkVector> s,
            std::span<Vec6> responses);
  void add_responses(std::span<const Vec6> responses, std::span<LinkVector> bias) const;
  void collect(Compound& compound, std::span<const Vec6> loads, std::span<const LinkVector> bias);
  void distribute(Compound& compound, std::span<const Vec6> loads, std::span<LinkVector> s, std::span<Vec6> responses);
  template <class Work>
  void on_the_team(const Work& work);
  template <class Visit>
  void share(std::size_t count, const Visit& visit) const;  // 0 .. count - 1; called by the whole team
  template <class Visit>
  void upwards(const Visit& visit);  // children before parents; called by the whole team
  template <class Visit>
  void downwards(const Visit& visit);

  const Mechanism* mechanism_;
  const JointTree* tree_;
  int threads_;
  std::vector<Compound> compounds_;
  std::vector<Leaf> leaves_;              // (bodies)
  double bytes_ = 0.0;                    // of the compounds' matrices
  BodyGroups connected_;                  // by the links that are closed
  std::vector<std::vector<int>> levels_;  // compounds by height
};

}  // namespace rigstep::offline
