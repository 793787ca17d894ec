// Loads in the joints. Where constraints are redundant the motion leaves a part of them open; of all loads that do the
// same to the bodies, those of least norm are reported: the sum of the squares of the multipliers, which are forces [N]
// and torques about the joint points [N m], is the least. It weighs 1 N m like 1 N.
//
// Only constraints whose multipliers are not unique at the start or nearby are touched (a singular start has more of
// these, and may last, as a flat net does in its plane): they fall into groups that share no load among each
// other (a four-bar is one, each corner of a car another), and each group is solved on its own, by an L D L'
// factorisation of J'J of its bodies within a profile that is fixed at load time: a chain of loops costs in proportion
// to its length, a net of n x n bodies n^4.
//
// Construction is load time (two eigenvalue problems of the size of all rows); everything else belongs to the loop
// thread and takes a bounded time: refining stops when what another pass would add is no part of the load.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "core/index3/outputs/profile.h"
#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

// Where a body of a state is and how it moves; the ground rests.
Placement placement_in(const State& x, int body) noexcept;

// Load of joint j on its second body at a pose, world frame, for multipliers of its rows: force [N] and torque about
// its joint point on the second body [N m].
Vec6 load_on_second(const Plan& plan, const State& x, int j, const double* lambda) noexcept;

class Reactions {
 public:
  // start: a consistent state, where redundancy is counted; requested: (constraints) whose loads are asked for.
  Reactions(const Plan& plan, const State& start, const std::vector<bool>& requested);

  bool redistributes() const { return !groups_.empty(); }

  // Takes the loads of a state. w: its constraints, as evaluate_pose leaves them; not read unless redistributes().
  void read(const State& x, const Workspace& w) noexcept;

  // Load of joint j on its second body in the state that was read.
  Vec6 of_joint(const State& x, int j) const noexcept;
  // Generalised force of a driver along its freedom; positive increases the coordinate [N] or [N m].
  double of_driver(int driver) const noexcept;
  // ... of a coupling along its first coordinate.
  double of_coupling(int coupling) const noexcept;

  std::size_t bytes() const noexcept;

 private:
  // The rows of a constraint, for one of its bodies.
  struct Block {
    int first;  // its first row, of the group
    int rows;
    int side;     // which of the constraint's bodies
    int at;       // first of the body's six places in J'J
    int first_J;  // of its rows
  };

  struct Group {
    std::vector<int> rows;
    std::vector<int> bodies;    // in the order in which they are eliminated
    std::vector<Block> blocks;  // constraint by constraint
    std::vector<Vec6> J;        // rows of all blocks; rotations measured by the path of the body's farthest joint point
    Profile K;                  // J'J, then its factor
    Eigen::VectorXd motion, open;
  };

  Group make_group(const std::vector<int>& constraints) const;
  void take_blocks(Group& group, const Workspace& w) const noexcept;
  void redistribute(Group& group, const Workspace& w) noexcept;

  const Plan* plan_;
  std::vector<double> arm_;  // (bodies)
  std::vector<Group> groups_;
  std::vector<double> lambda_;  // (rows) of the state that was read
};

}  // namespace rigstep::index3
