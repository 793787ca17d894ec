// A scenario in relative coordinates: what the Hamiltonian and the acceleration form of the divide-and-conquer
// algorithm share besides the algorithm itself. Owned by one run. Offline only.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/offline/absolute_system.h"
#include "core/offline/divide_and_conquer.h"
#include "core/offline/integrate.h"

namespace rigstep::offline {

class RelativeSystem {
 public:
  // Polishes the start to rounding. Throws SolverError for mechanisms that have no joint tree and for a start that
  // contradicts the joints; `solver` is named in the message.
  RelativeSystem(const Scenario& scenario, std::string solver, int threads);

  const JointTree& tree() const { return tree_; }
  std::size_t bodies() const { return poses_.size(); }
  const std::vector<double>& start_coordinates() const { return start_coordinates_; }
  const std::vector<Vec6>& start_motions() const { return start_motions_; }  // (bodies)

  // In this order at every evaluation; what each finds stays until it is called again.
  void place(std::span<const double> q);     // poses, subspaces, compliances
  void move(std::span<const Vec6> motions);  // (bodies) motions of the mass centres, rates of the subspaces
  void load(double t);                       // wrenches about the mass centres, without gyroscopic torques
  void accelerate();                         // accelerations and constraint forces

  DivideAndConquer& compounds() { return compounds_; }
  const std::vector<Pose>& poses() const { return poses_; }
  const std::vector<Vec6>& motions() const { return motions_; }
  const std::vector<Subspaces>& subspaces() const { return subspaces_; }  // (links)
  const std::vector<SubspaceRates>& subspace_rates() const { return rates_; }
  const std::vector<Vec6>& wrenches() const { return wrenches_; }
  const std::vector<Vec6>& accelerations() const { return accelerations_; }
  Mat6 mass(int body) const;                   // about its mass centre, world axes
  Vec6 relative_motion(int link) const;        // V_second - V_first at the joint point (23)
  Vec6 relative_acceleration(int link) const;  // its time derivative, from accelerate()

  struct Equations {
    std::function<void(double t, std::span<const double> y, std::span<double> yd)> f;  // must call place, move and load
    std::function<void(double t, std::span<double> y)> restart;  // at breaks, after f; may be empty
    std::vector<double> breaks;                                  // besides those of the inputs
  };
  Trajectory integrate(const Equations& equations, std::vector<double> y, const Options& options);

 private:
  Vec6 convective(int link) const;  // relative acceleration where the bodies have none
  void hold(double t);
  Instant instant(double t);

  const Scenario* scenario_;
  const Mechanism* mechanism_;
  std::string solver_;
  JointTree tree_;
  DivideAndConquer compounds_;
  CoordinateFollower follower_;
  Constraints constraints_;
  std::vector<double> input_;
  std::vector<double> start_coordinates_;
  std::vector<Vec6> start_motions_;

  std::vector<Pose> poses_;           // (bodies) by place
  std::vector<Subspaces> subspaces_;  // (links)
  std::vector<Vec6> motions_;         // (bodies) by move
  std::vector<SubspaceRates> rates_;  // (links)
  std::vector<BodyMotion> absolute_;  // (bodies) by load
  std::vector<Jet> coordinate_;       // (joint coordinates)
  std::vector<Vec6> wrenches_;        // (bodies)
  std::vector<Vec6> accelerations_;   // (bodies) by accelerate
  std::vector<LinkVector> lambda_;    // (links)
};

}  // namespace rigstep::offline
