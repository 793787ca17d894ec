// One step against a dense Newton solution of the discretised equations (17) (18) of [001], written here from the paper
// in absolute coordinates: seven per body, constraints as equations, multipliers of the constraints and of the
// normalisation. Nothing of the stepper is used; the Jacobian is numeric.
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "core/index3/plan.h"
#include "core/offline/dense.h"
#include "tests/support/mechanisms.h"

namespace rigstep {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::Vector4d;
using Eigen::VectorXd;
using Matrix34 = Eigen::Matrix<double, 3, 4>;
using Vec7 = Eigen::Matrix<double, 7, 1>;

// w_b = 2 G(p) pd
Matrix34 G(const Vector4d& p) {
  Matrix34 g;
  g << -p[1], p[0], p[3], -p[2],  //
      -p[2], -p[3], p[0], p[1],   //
      -p[3], p[2], -p[1], p[0];
  return g;
}

Mat3 A(const Vector4d& p) { return Eigen::Quaterniond(p[0], p[1], p[2], p[3]).toRotationMatrix(); }

struct Side {
  Vec3 point;
  Mat3 axes;
};

// Constraints as the joint types are defined, in any equations that say the same.
void append_constraints(const Joint& joint, const Side& a, const Side& b, std::vector<double>& Phi) {
  const Vec3 d = b.point - a.point;
  const Vec3 x = a.axes.col(0), y = a.axes.col(1), z = a.axes.col(2);
  const Vec3 u = b.axes.col(0), w = b.axes.col(2);
  const auto coincide = [&] { Phi.insert(Phi.end(), {d[0], d[1], d[2]}); };
  const auto parallel = [&] { Phi.insert(Phi.end(), {w.dot(x), w.dot(y)}); };
  switch (joint.type) {
    case JointType::spherical:
    case JointType::point_on_point:
      return coincide();
    case JointType::revolute:
      return coincide(), parallel();
    case JointType::cylindrical:
      Phi.insert(Phi.end(), {d.dot(x), d.dot(y)});
      return parallel();
    case JointType::prismatic:
      Phi.insert(Phi.end(), {d.dot(x), d.dot(y), u.dot(y)});
      return parallel();
    case JointType::universal:
      coincide();
      Phi.push_back(w.dot(z));
      return;
    case JointType::fixed:
      Phi.push_back(u.dot(y));
      return coincide(), parallel();
    case JointType::point_on_line:
      Phi.insert(Phi.end(), {d.dot(x), d.dot(y)});
      return;
    case JointType::perpendicular_axes:
      Phi.push_back(w.dot(z));
      return;
    case JointType::parallel_axes:
      return parallel();
    case JointType::planar:
      Phi.push_back(d.dot(z));
      return parallel();
    case JointType::gimbal:
      return coincide();
    case JointType::screw: {
      Phi.insert(Phi.end(), {d.dot(x), d.dot(y)});
      // the thread as the sine of half the difference of the angles: no turns to count
      const double thread = 2.0 * M_PI / joint.lead * d.dot(z), angle = std::atan2(u.dot(y), u.dot(x));
      Phi.push_back(std::sin(0.5 * (std::remainder(angle - thread, 2.0 * M_PI))));
      return parallel();
    }
    case JointType::point_on_plane:
      Phi.push_back(d.dot(z));
      return;
    case JointType::distance:
      Phi.push_back(d.norm() - joint.length);
      return;
    case JointType::floating:
      return;
  }
}

class Discretised {
 public:
  Discretised(const Mechanism& m, const index3::State& last, double dt)
      : m_(m), dt_(dt), time_(dt * static_cast<double>(last.step)) {
    for (const index3::BodyState& b : last.body) {
      const Vector4d p = b.p, pd = 0.5 * G(p).transpose() * b.w_b;
      // pd = 1/2 G' w, so pdd = 1/2 G' alpha + 1/2 Gd' w
      const Vector4d pdd = 0.5 * G(p).transpose() * b.alpha_b + 0.5 * G(pd).transpose() * b.w_b;
      q_.push_back(stacked(b.r, p));
      qd_.push_back(stacked(b.v, pd));
      qdd_.push_back(stacked(b.a, pdd));
    }
    rows_ = static_cast<Index>(constraints(start()).size());
  }

  // q of the bodies, then their mu, then the joints' multipliers, both times dt^2 / 4
  VectorXd solve() const {
    VectorXd x = start();
    for (int k = 0; k < 20; ++k) {
      const VectorXd f = residual(x);
      MatrixXd D(x.size(), x.size());
      for (Index c = 0; c < x.size(); ++c) {
        constexpr double h = 1e-5;
        VectorXd up = x, down = x;
        up[c] += h;
        down[c] -= h;
        D.col(c) = (residual(up) - residual(down)) / (2.0 * h);
      }
      const VectorXd dx = offline::least_squares(D, -f, 0.0).x;
      x += dx;
      if (dx.head(7 * bodies()).norm() < 1e-14) break;
    }
    return x;
  }

  VectorXd residual(const VectorXd& x) const {
    VectorXd f = VectorXd::Zero(8 * bodies() + rows_);
    const std::vector<double> Phi = constraints(x);
    const MatrixXd Phi_q = constraint_jacobian(x);
    for (Index i = 0; i < bodies(); ++i) {
      const Vector4d p = x.segment<4>(7 * i + 3);
      f.segment<7>(7 * i) = 0.25 * dt_ * dt_ * inertia_minus_load(x, i);
      f.segment<4>(7 * i + 3) += p * x[7 * bodies() + i];  // Psi = 1/2 (p'p - 1)
      f[7 * bodies() + i] = 0.5 * (p.squaredNorm() - 1.0);
    }
    f.head(7 * bodies()) += Phi_q.transpose() * x.tail(rows_);
    for (Index k = 0; k < rows_; ++k) f[8 * bodies() + k] = Phi[static_cast<std::size_t>(k)];
    return f;
  }

  VectorXd start() const {
    VectorXd x = VectorXd::Zero(8 * bodies() + rows_);
    for (Index i = 0; i < bodies(); ++i) {
      const std::size_t k = static_cast<std::size_t>(i);
      x.segment<7>(7 * i) = q_[k] + dt_ * qd_[k] + 0.5 * dt_ * dt_ * qdd_[k];
      x.segment<4>(7 * i + 3).normalize();
    }
    return x;
  }

 private:
  static Vec7 stacked(const Vec3& r, const Vector4d& p) {
    Vec7 q;
    q << r, p;
    return q;
  }
  Index bodies() const { return static_cast<Index>(q_.size()); }
  Vec7 rate(const VectorXd& x, Index i) const {  // (15)
    const std::size_t k = static_cast<std::size_t>(i);
    return 2.0 / dt_ * (x.segment<7>(7 * i) - q_[k]) - qd_[k];
  }
  Vec7 rate2(const VectorXd& x, Index i) const {  // (16)
    const std::size_t k = static_cast<std::size_t>(i);
    return 4.0 / (dt_ * dt_) * (x.segment<7>(7 * i) - q_[k]) - 4.0 / dt_ * qd_[k] - qdd_[k];
  }

  Side side(const VectorXd& x, int body, const JointFrame& in) const {
    if (body == kGround) return {in.point_b, in.axes_b};
    const Mat3 turn = A(x.segment<4>(7 * body + 3));
    return {x.segment<3>(7 * body) + turn * in.point_b, turn * in.axes_b};
  }
  std::vector<double> constraints(const VectorXd& x) const {
    std::vector<double> Phi;
    for (const Joint& j : m_.joints())
      append_constraints(j, side(x, j.first, j.in_first), side(x, j.second, j.in_second), Phi);
    const VectorXd at_start = start_pose();
    for (const Coupling& c : m_.couplings())
      Phi.push_back(coordinate(x, c.first) - coordinate(at_start, c.first) +
                    c.ratio * (coordinate(x, c.second) - coordinate(at_start, c.second)));
    for (const Driver& d : m_.drivers()) {  // polynomials of second order
      const double t = time_ + dt_;
      Phi.push_back(coordinate(x, d.coordinate) - d.coefficient[0] - t * (d.coefficient[1] + t * d.coefficient[2]));
    }
    return Phi;
  }
  // of a revolute or prismatic joint, below half a turn and zero at the start of the description
  double coordinate(const VectorXd& x, int k) const {
    const Joint& j = m_.joints()[static_cast<std::size_t>(m_.coordinates()[static_cast<std::size_t>(k)].joint)];
    const Side a = side(x, j.first, j.in_first), b = side(x, j.second, j.in_second);
    if (j.type == JointType::prismatic) return (b.point - a.point).dot(a.axes.col(2));
    return std::atan2(b.axes.col(0).dot(a.axes.col(1)), b.axes.col(0).dot(a.axes.col(0)));
  }
  VectorXd start_pose() const {
    VectorXd x(7 * bodies());
    for (Index i = 0; i < bodies(); ++i) {
      const Body& b = m_.bodies()[static_cast<std::size_t>(i)];
      x.segment<7>(7 * i) = stacked(b.position_0, b.orientation);
    }
    return x;
  }
  MatrixXd constraint_jacobian(const VectorXd& x) const {
    MatrixXd J(rows_, 7 * bodies());
    for (Index c = 0; c < J.cols(); ++c) {
      constexpr double h = 1e-5;
      VectorXd up = x, down = x;
      up[c] += h;
      down[c] -= h;
      const std::vector<double> a = constraints(up), b = constraints(down);
      for (Index k = 0; k < rows_; ++k)
        J(k, c) = (a[static_cast<std::size_t>(k)] - b[static_cast<std::size_t>(k)]) / (2.0 * h);
    }
    return J;
  }

  // M qdd - Q of one body: gravity, gyroscopic terms, springs between points
  Vec7 inertia_minus_load(const VectorXd& x, Index i) const {
    const Body& b = m_.bodies()[static_cast<std::size_t>(i)];
    const Vec7 qd = rate(x, i), qdd = rate2(x, i);
    const Vector4d p = x.segment<4>(7 * i + 3), pd = qd.tail<4>(), pdd = qdd.tail<4>();
    Vec7 g;
    g.head<3>() = b.mass * (qdd.head<3>() - m_.gravity_0());
    g.tail<4>() =
        4.0 * G(p).transpose() * b.inertia_b * (G(p) * pdd) + 8.0 * G(pd).transpose() * b.inertia_b * (G(p) * pd);
    for (const Spring& s : m_.springs()) {
      if (s.first != i && s.second != i) continue;
      const bool second = s.second == i;
      const Vec3 d = point(x, s.second, s.second_point_b) - point(x, s.first, s.first_point_b);
      const Vec3 d_rate = velocity(x, s.second, s.second_point_b) - velocity(x, s.first, s.first_point_b);
      const double effort = -s.stiffness * (d.norm() - s.rest) - s.damping * d.normalized().dot(d_rate);
      const Vec3 force = (second ? effort : -effort) * d.normalized();
      const Vec3 torque_b = (second ? s.second_point_b : s.first_point_b).cross(A(p).transpose() * force);
      g.head<3>() -= force;
      g.tail<4>() -= 2.0 * G(p).transpose() * torque_b;
    }
    return g;
  }
  Vec3 point(const VectorXd& x, int body, const Vec3& at) const {
    return body == kGround ? at : Vec3(x.segment<3>(7 * body) + A(x.segment<4>(7 * body + 3)) * at);
  }
  Vec3 velocity(const VectorXd& x, int body, const Vec3& at) const {
    if (body == kGround) return Vec3::Zero();
    const Vec7 qd = rate(x, body);
    const Vector4d p = x.segment<4>(7 * body + 3);
    const Vec3 w_b = 2.0 * G(p) * qd.tail<4>();
    return qd.head<3>() + A(p) * w_b.cross(at);
  }

  const Mechanism& m_;
  double dt_, time_;
  std::vector<Vec7> q_, qd_, qdd_;
  Index rows_ = 0;
};

// largest difference of r [m] and p [-] between the stepper and the dense solution, over a few steps
double difference(const test::Description& d, std::int64_t dt_ns, int steps) {
  const Mechanism m = test::build(d);
  index3::Stepper stepper(m, {.dt_ns = dt_ns, .iterations = 10});
  double most = 0.0;
  for (int step = 0; step < steps; ++step) {
    const Discretised equations(m, stepper.state(), 1e-9 * static_cast<double>(dt_ns));
    const VectorXd x = equations.solve();
    REQUIRE(equations.residual(x).norm() < 1e-13);
    REQUIRE(stepper.step(Inputs{}).status == StepStatus::ok);
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      const index3::BodyState& b = stepper.state().body[i];
      const Index k = 7 * static_cast<Index>(i);
      most = std::max({most, (b.r - x.segment<3>(k)).norm(), (Vector4d(b.p) - x.segment<4>(k + 3)).norm()});
    }
  }
  return most;
}

// three bodies of general shape in motion, with joints of the given types
test::Description moving_chain(unsigned seed, JointType first, JointType second, JointType third) {
  test::Description d = test::random_bare_tree(seed, 3);
  d.gravity = {1.0, -9.81, 2.0};
  test::Random random(seed);
  d.joints.clear();
  const JointType types[] = {first, second, third};
  for (int i = 0; i < 3; ++i)
    d.joints.push_back(test::random_joint(random, "joint" + std::to_string(i), types[i], test::body_name(i - 1),
                                          test::body_name(i), d.bodies[i].position_0));
  return test::made_consistent(d);
}

}  // namespace

TEST_CASE("a step of the double pendulum is the Newton solution of the discretised equations") {
  CHECK(difference(test::double_pendulum(), 10'000'000, 20) < 1e-12);
  CHECK(difference(test::double_pendulum(), 1'000'000, 5) < 1e-12);
}

TEST_CASE("a step of a revolute chain is the Newton solution of the discretised equations") {
  CHECK(difference(test::chain(3, JointType::revolute), 10'000'000, 5) < 1e-12);
  for (unsigned seed = 1; seed <= 3; ++seed)
    CHECK(difference(moving_chain(seed, JointType::revolute, JointType::revolute, JointType::revolute), 5'000'000, 3) <
          1e-12);
}

TEST_CASE("a step with every type of joint is the Newton solution of the discretised equations") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    CHECK(difference(moving_chain(seed, JointType::prismatic, JointType::universal, JointType::cylindrical), 5'000'000,
                     3) < 1e-12);
    CHECK(difference(moving_chain(seed, JointType::fixed, JointType::parallel_axes, JointType::point_on_line),
                     5'000'000, 3) < 1e-12);
    CHECK(difference(moving_chain(seed, JointType::cylindrical, JointType::perpendicular_axes, JointType::spherical),
                     5'000'000, 3) < 1e-12);
    CHECK(difference(moving_chain(seed, JointType::planar, JointType::screw, JointType::gimbal), 5'000'000, 3) < 1e-12);
    CHECK(difference(moving_chain(seed, JointType::screw, JointType::distance, JointType::point_on_plane), 5'000'000,
                     3) < 1e-12);
  }
}

TEST_CASE("a step with point on point and floating joints is the Newton solution of the discretised equations") {
  for (unsigned seed = 1; seed <= 3; ++seed)
    CHECK(difference(moving_chain(seed, JointType::point_on_point, JointType::floating, JointType::universal),
                     5'000'000, 3) < 1e-12);
}

TEST_CASE("a step of a closed loop is the Newton solution of the discretised equations") {
  for (const JointType closing : {JointType::spherical, JointType::distance, JointType::point_on_line,
                                  JointType::universal, JointType::parallel_axes})
    for (unsigned seed = 1; seed <= 2; ++seed) {
      test::Description d = moving_chain(seed, JointType::universal, JointType::spherical, JointType::cylindrical);
      test::Random random(seed + 7);
      d.joints.push_back(test::random_joint(random, "closing", closing, "ground", "body2", d.bodies[2].position_0));
      CAPTURE(to_string(closing));
      CAPTURE(seed);
      CHECK(difference(test::made_consistent(d), 5'000'000, 3) < 1e-11);
    }
}

TEST_CASE("a step with a coupling and a driver is the Newton solution of the discretised equations") {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    test::Description d = moving_chain(seed, JointType::revolute, JointType::prismatic, JointType::revolute);
    for (auto& joint : d.joints) joint.coordinate_at_start = joint.second_coordinate_at_start = 0.0;
    d.couplings = {{"rack", {"joint1", Freedom::displacement}, {"joint2", Freedom::angle}, 0.4}};
    Driver driver;
    driver.name = "motor";
    driver.coefficient = {0.0, 0.5, 2.0};
    d.drivers = {{driver, {"joint0", Freedom::angle}}};
    CHECK(difference(test::made_consistent(d), 5'000'000, 5) < 1e-12);
  }
}

TEST_CASE("spring and damper forces are those of the end of the step") {
  test::Description d = moving_chain(4, JointType::universal, JointType::prismatic, JointType::revolute);
  test::Random random(4);
  d.springs.push_back({test::detail::random_spring(random, "a", Spring::Kind::between_points), "ground", "body2"});
  d.springs.push_back({test::detail::random_spring(random, "b", Spring::Kind::between_points), "body2", "body0"});
  CHECK(difference(d, 5'000'000, 5) < 1e-12);
}

TEST_CASE("three iterations are within the last increment of the Newton solution") {
  const Mechanism m = test::build(test::double_pendulum());
  index3::Stepper three(m, {.dt_ns = 10'000'000}), many(m, {.dt_ns = 10'000'000, .iterations = 12});
  const StepReport report = three.step(Inputs{});
  many.step(Inputs{});
  for (std::size_t i = 0; i < m.bodies().size(); ++i)
    CHECK((three.state().body[i].r - many.state().body[i].r).norm() < report.last_increment + 1e-15);
  CHECK(report.last_increment < 1e-6);
}

}  // namespace rigstep
