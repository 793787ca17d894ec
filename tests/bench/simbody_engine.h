// Simbody behind an interface of plain numbers: its headers do not compile as C++20, and those of the mechanism need
// that.
#pragma once

#include <Eigen/Core>
#include <memory>
#include <string>
#include <vector>

namespace rigstep::bench {

enum class SimbodyJoint { pin, ball, universal, slider, free };
enum class SimbodyScheme { semi_explicit_euler, runge_kutta_merson };

constexpr int kSimbodyGround = -1;

// A body that hangs on its parent; see TreeJoint in peer.h. A slider moves along z of its frames.
struct SimbodyLink {
  SimbodyJoint joint = SimbodyJoint::ball;
  int parent = kSimbodyGround, body = 0;
  Eigen::Vector3d point_in_parent, point_in_body;  // [m]
  Eigen::Matrix3d axes_in_parent, axes_in_body;
  bool is_driven = false;   // its coordinate stays at its start
  double mass = 0.0;        // [kg]
  Eigen::Matrix3d inertia;  // about the mass centre [kg m^2]
};

struct SimbodyLoop {
  int parent = kSimbodyGround, body = 0;
  Eigen::Vector3d point_in_parent, point_in_body;  // [m]
};

struct SimbodySpring {
  int first = kSimbodyGround, second = kSimbodyGround;
  Eigen::Vector3d first_point, second_point;                 // [m]
  double stiffness = 0.0, free_length = 0.0, damping = 0.0;  // [N/m] [m] [N s/m]
};

struct SimbodyModel {
  Eigen::Vector3d gravity;         // [m/s^2]
  std::vector<SimbodyLink> links;  // parents before children
  std::vector<SimbodyLoop> loops;
  std::vector<SimbodySpring> springs;
};

class SimbodyEngine {
 public:
  SimbodyEngine(const SimbodyModel& model, double dt, SimbodyScheme scheme);
  ~SimbodyEngine();
  void step();
  void save();
  void restore();
  // Of a point of a body, from its mass centre, in the world [m].
  Eigen::Vector3d point_0(int body, const Eigen::Vector3d& point_b);

 private:
  struct Simulation;
  std::unique_ptr<Simulation> simulation_;
};

std::string simbody_version();

}  // namespace rigstep::bench
