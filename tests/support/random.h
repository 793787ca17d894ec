// Random numbers that are the same on every machine: the library's engine is fixed, its distributions are not.
#pragma once

#include <Eigen/Geometry>
#include <random>

#include "core/mechanism/types.h"

namespace rigstep::test {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  double uniform(double low = -1.0, double high = 1.0) {
    return low + (high - low) * static_cast<double>(engine_()) / 4294967296.0;
  }
  int below(int count) { return static_cast<int>(engine_() % static_cast<unsigned>(count)); }
  Vec3 vector(double size = 1.0) { return size * Vec3{uniform(), uniform(), uniform()}; }
  Vec3 direction() {
    for (;;) {
      const Vec3 v = vector();
      if (v.norm() > 0.1 && v.norm() < 1.0) return v.normalized();
    }
  }
  Eigen::Quaterniond rotation() {
    for (;;) {
      const Eigen::Vector4d q{uniform(), uniform(), uniform(), uniform()};
      if (q.norm() > 0.1 && q.norm() < 1.0) return Eigen::Quaterniond(q[0], q[1], q[2], q[3]).normalized();
    }
  }
  EulerParameters orientation() {
    const Eigen::Quaterniond q = rotation();
    return {q.w(), q.x(), q.y(), q.z()};
  }
  // of eight equal points spread over `size`, so always that of a possible body
  Mat3 inertia(double mass, double size) {
    Mat3 J = Mat3::Zero();
    for (int k = 0; k < 8; ++k) {
      const Vec3 x = vector(size);
      J += mass / 8.0 * (x.squaredNorm() * Mat3::Identity() - x * x.transpose());
    }
    return J;
  }
  Mat6 semidefinite(double size) {
    Mat6 root;
    for (Eigen::Index k = 0; k < 36; ++k) root(k / 6, k % 6) = uniform();
    return size * root * root.transpose();
  }
  Eigen::VectorXd values(Eigen::Index count) {
    Eigen::VectorXd v(count);
    for (Eigen::Index k = 0; k < count; ++k) v[k] = uniform();
    return v;
  }

 private:
  std::mt19937 engine_;
};

}  // namespace rigstep::test
