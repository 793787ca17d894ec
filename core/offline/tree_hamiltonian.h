// Reference solvers for open trees: the Hamiltonian, Newton-Euler and Lagrange equations of a tree of bodies in the
// three matrix structures of [003] (tree_methods.h), on the kinematics of its section 2 (tree_kinematics.h).
//
//   extended   q-dot, v, mu from (22), p-dot from (23): EMH           u-dot, w, R from (33): Newton-Euler
//   tangent    q-dot from (30), p-dot from (23): DAH                  u-dot from (35): Lagrange, second kind
//   orthogonal lambda and q-dot from (37), p-dot from (23): HZU       lambda and u-dot from (36): Lagrange, first kind
//
// Offline only.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/offline/joint_motion.h"
#include "core/offline/solver.h"
#include "core/offline/tree_kinematics.h"

namespace rigstep::offline {

enum class TreeState { momenta, rates };  // what is integrated beside the coordinates

struct TreeMethod {
  TreeState state = TreeState::momenta;
  TreeMatrix matrix = TreeMatrix::extended_ltdl;
};

// The equations of motion in normal form. State: coordinates, then momenta p or rates.
class TreeEquations {
 public:
  // bodies: (bodies) at `time`, consistent with the joints. Throws SolverError where tree_unsupported_reason has
  // something to say.
  TreeEquations(const Mechanism& mechanism, std::span<const BodyMotion> bodies, double time, TreeMethod method);

  const std::vector<double>& start() const { return start_; }
  // From t on inputs have these values; t ascends from call to call.
  void hold(double t, std::span<const double> inputs);
  std::vector<double> jumps() const { return drives_.jumps(); }  // of prescribed accelerations [s]

  void evaluate(double t, std::span<const double> y, std::span<double> yd);
  // Where evaluate was last: (bodies) of the mechanism.
  const std::vector<BodyMotion>& bodies() const { return bodies_; }
  const CoordinateFollower& follower() const { return follower_; }  // of the joint coordinates there
  // Accelerations of the mass centres there, world frame (bodies), by (33), (35) or (36).
  std::vector<Vec6> accelerations();

  // What the last evaluation solved, for counting and for comparison.
  const TreeSystem<double>& system() const { return system_; }
  const std::vector<Six<double>>& A_rate() const { return kinematics_.A_rate(); }
  const std::vector<Six<double>>& wrenches() const { return wrench_; }  // (N) about the origins, body axes
  const TreeKinematics& kinematics() const { return kinematics_; }

 private:
  void take_start();
  void find_momenta(std::span<double> p) const;
  void describe_bodies();
  void load(double t);
  void set_accelerations(TreeSystem<double>& system) const;

  const Mechanism* mechanism_;
  TreeMethod method_;
  TreeKinematics kinematics_;
  TreeSystem<double> system_;
  TreeSolver<double> solver_;
  CoordinateFollower follower_;
  std::vector<BodyMotion> bodies_;
  Drives drives_;
  std::vector<double> input_;
  std::vector<Jet> coordinate_;  // (joint coordinates)
  std::vector<double> start_;
  std::vector<Six<double>> wrench_, summed_;  // (N)
};

// Throws SolverError, and std::invalid_argument for tolerances that are not positive.
Trajectory simulate_tree(const Scenario& scenario, const Options& options, TreeMethod method, std::string_view solver);

}  // namespace rigstep::offline
