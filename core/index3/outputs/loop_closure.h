// Nearness to a singular pose: whether what closes the loops of a mechanism still holds as much as it does elsewhere.
//
// The joints of a spanning tree are independent at every pose. The rows of all other joints, of couplings and of
// drivers close its loops; each is seen as a direction of motion that the tree leaves possible. With m such rows, of
// which r are redundant at any pose nearby, the margin is the (r + 1)-th smallest singular value of the m directions:
// 0 where one row more becomes dependent, and near there in proportion to the distance; of the order of 1 elsewhere.
// Length one is a row's direction before the tree takes its share. Motions are measured by geometry alone, a body's
// rotation by the path of its farthest joint point, so that the margin is a pure number of the pose; it depends on
// which joints make the tree, but not where it vanishes. It says how near a pose is, not whether the motion leads
// there. A start that is singular and from where no motion leads counts as regular.
//
// Owned by the sensors; construction is load time, margin() belongs to the loop thread and takes a fixed time, for many
// closing rows in proportion to m^3 (`rigstep check` measures it).
#pragma once

#include <Eigen/Core>
#include <vector>

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

class LoopClosure {
 public:
  // start: a consistent state; the redundant rows are counted at a regular pose near it.
  LoopClosure(const Plan& plan, const State& start);

  const std::vector<int>& closing_rows() const { return row_; }
  int redundant() const { return redundant_; }  // of these, at a regular pose

  // w: placement and constraints of the pose, as evaluate_pose leaves them. 1 where there is no loop.
  double margin(const Workspace& w) noexcept;

  std::size_t bytes() const noexcept;

 private:
  struct Member {                // a body in the tree
    double arm = 0.0;            // that its rotation is measured by [m]
    int parent = kGround;        // kGround also where nothing holds it
    int first_row = 0;           // of the tree's joint to the parent
    int rows = 0;                // ... of which there are none where nothing holds it
    int side = 0;                // this body in that joint
    std::vector<int> closing;    // closing rows that act on it or on what hangs on it
    std::vector<int> in_parent;  // where these stand among the parent's
    Eigen::Matrix<double, 6, 6> inertia;
    Eigen::Matrix<double, 6, Eigen::Dynamic> load;  // (6 x closing) of unit multipliers; then the motions they cause
  };
  // Where a closing row acts.
  struct Entry {
    int closing, side, member, column;
  };

  void grow_tree();
  void place_closing_rows();
  void sum_products(const Workspace& w) noexcept;
  void eliminate(Member& member, const Workspace& w) noexcept;
  void tridiagonalise() noexcept;
  int eigenvalues_below(double value) const noexcept;

  const Plan* plan_;
  std::vector<Member> member_;  // (bodies)
  std::vector<int> order_;      // of the tree, from its leaves on
  std::vector<int> row_;        // closing rows
  std::vector<Entry> entry_;
  int redundant_ = 0;
  Eigen::VectorXd length2_;                 // (closing rows) squares of the rows' own lengths
  Eigen::MatrixXd gram_;                    // (closing rows squared) of their directions, lower half; then a scratch
  Eigen::VectorXd diagonal_, off_, v_, p_;  // of the tridiagonal form
};

}  // namespace rigstep::index3
