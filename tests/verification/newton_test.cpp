// One step against a dense Newton solution of the discretised equations (17) (18) of [001], written here from the paper
// in absolute coordinates: seven per body, constraints as equations, multipliers of the constraints and of the
// normalisation. Nothing of the stepper is used: loads and prescribed motions are those of the reference solvers, the
// Jacobian is numeric.
//
// Tolerance of all comparisons, in m and in Euler parameters: dt^2/4 times the equations of motion holds q itself,
// rounded to 4e-16 where bodies stand within 4 m; the worst ratio of inertias along these chains passes 1e2 of that on,
// some ten roundings add up: 1e-12. Loads do not add to it: (dt^2/4) K and (dt/2) C stand on both sides. Both Newtons
// go on until they have converged beyond that, which is checked.
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include "core/index3/stepper_access.h"
#include "core/offline/dense.h"
#include "core/offline/drives.h"
#include "core/offline/forces.h"
#include "tests/support/force_cases.h"

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

// What acts over the step.
struct Acting {
  Inputs inputs;
  std::vector<double> driven;            // (drivers) values at the end of the step
  offline::CoordinateFollower follower;  // at its beginning
};

std::vector<offline::BodyMotion> motions(const index3::State& state) {
  std::vector<offline::BodyMotion> all;
  for (const index3::BodyState& b : state.body) all.push_back({b.r, b.p, b.v, A(b.p) * b.w_b});
  return all;
}

class Discretised {
 public:
  Discretised(const Mechanism& m, const index3::State& last, double dt, const Acting& acting)
      : m_(m), dt_(dt), time_(dt * static_cast<double>(last.step)), acting_(acting) {
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
    for (int k = 0; k < 60; ++k) {
      const VectorXd f = residual(x);
      MatrixXd D(x.size(), x.size());
      for (Index c = 0; c < x.size(); ++c) {
        const double h = 1e-4 * dt_;  // rates change by 2e-4 m/s, which is little to friction
        VectorXd up = x, down = x;
        up[c] += h;
        down[c] -= h;
        D.col(c) = (residual(up) - residual(down)) / (2.0 * h);
      }
      VectorXd dx = offline::least_squares(D, -f, 0.0).x;
      // whole steps go to and fro across the knee of friction and slip
      while (f.norm() > 1e-9 && residual(x + dx).norm() > f.norm() && dx.norm() > 1e-12) dx *= 0.5;
      x += dx;
      if (dx.head(7 * bodies()).norm() < 1e-14) break;
    }
    return x;
  }

  VectorXd residual(const VectorXd& x) const {
    VectorXd f = VectorXd::Zero(8 * bodies() + rows_);
    const std::vector<double> Phi = constraints(x);
    const MatrixXd Phi_q = constraint_jacobian(x);
    const std::vector<Vec6> load = loads(x);
    for (Index i = 0; i < bodies(); ++i) {
      const Vector4d p = x.segment<4>(7 * i + 3);
      f.segment<7>(7 * i) = 0.25 * dt_ * dt_ * inertia_minus_load(x, i, load[static_cast<std::size_t>(i)]);
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
    for (std::size_t k = 0; k < m_.drivers().size(); ++k)
      Phi.push_back(coordinate(x, m_.drivers()[k].coordinate) - acting_.driven[k]);
    return Phi;
  }
  // of a revolute or prismatic joint, below half a turn from the start
  double coordinate(const VectorXd& x, int k) const {
    const JointCoordinate& c = m_.coordinates()[static_cast<std::size_t>(k)];
    const Joint& j = m_.joints()[static_cast<std::size_t>(c.joint)];
    const Side a = side(x, j.first, j.in_first), b = side(x, j.second, j.in_second);
    if (j.type == JointType::prismatic) return (b.point - a.point).dot(a.axes.col(2)) + c.offset;
    return std::atan2(b.axes.col(0).dot(a.axes.col(1)), b.axes.col(0).dot(a.axes.col(0))) + c.offset;
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
      const double h = 1e-5;
      VectorXd up = x, down = x;
      up[c] += h;
      down[c] -= h;
      const std::vector<double> a = constraints(up), b = constraints(down);
      for (Index k = 0; k < rows_; ++k)
        J(k, c) = (a[static_cast<std::size_t>(k)] - b[static_cast<std::size_t>(k)]) / (2.0 * h);
    }
    return J;
  }

  // of all bodies about their mass centres, world frame, at the end of the step
  std::vector<Vec6> loads(const VectorXd& x) const {
    std::vector<offline::BodyMotion> bodies;
    for (Index i = 0; i < this->bodies(); ++i) {
      const Vec7 qd = rate(x, i);
      const Vector4d p = x.segment<4>(7 * i + 3);
      bodies.push_back({x.segment<3>(7 * i), p, qd.head<3>(), A(p) * (2.0 * G(p) * qd.tail<4>())});
    }
    offline::CoordinateFollower follower = acting_.follower;
    const std::vector<offline::Jet> coordinates = follower.follow(bodies);
    return offline::wrenches(m_, {time_ + dt_, bodies, coordinates, acting_.inputs.value});
  }
  // M qdd - Q of one body, gyroscopic terms included
  Vec7 inertia_minus_load(const VectorXd& x, Index i, const Vec6& load) const {
    const Body& b = m_.bodies()[static_cast<std::size_t>(i)];
    const Vec7 qd = rate(x, i), qdd = rate2(x, i);
    const Vector4d p = x.segment<4>(7 * i + 3), pd = qd.tail<4>(), pdd = qdd.tail<4>();
    Vec7 g;
    g.head<3>() = b.mass * qdd.head<3>() - load.head<3>();
    g.tail<4>() =
        4.0 * G(p).transpose() * b.inertia_b * (G(p) * pdd) + 8.0 * G(pd).transpose() * b.inertia_b * (G(p) * pd);
    g.tail<4>() -= 2.0 * G(p).transpose() * (A(p).transpose() * load.tail<3>());
    return g;
  }

  const Mechanism& m_;
  double dt_, time_;
  const Acting& acting_;
  std::vector<Vec7> q_, qd_, qdd_;
  Index rows_ = 0;
};

using InputsOfStep = std::function<Inputs(std::uint64_t step)>;

Inputs no_inputs(std::uint64_t) { return {}; }

// Largest difference of r [m] and p [-] between the stepper and the dense solution, over a few steps, each from the
// stepper's own last state.
double difference(const Mechanism& m, std::int64_t dt_ns, int steps, const InputsOfStep& inputs_of = no_inputs,
                  int iterations = 10) {
  const double dt = 1e-9 * static_cast<double>(dt_ns);
  index3::Stepper stepper(m, {.dt_ns = dt_ns, .iterations = iterations});
  Acting acting{{}, std::vector<double>(m.drivers().size()), offline::CoordinateFollower(m)};
  std::vector<double> start;
  for (const offline::Jet& x : acting.follower.follow(motions(stepper.state()))) start.push_back(x.value);
  offline::Drives drives(m, start, 0.0);
  double most = 0.0;
  for (int step = 0; step < steps; ++step) {
    acting.inputs = inputs_of(static_cast<std::uint64_t>(step + 1));
    drives.hold(dt * step, acting.inputs.value);
    const std::vector<offline::Prescribed> prescribed = drives.at(dt * (step + 1));
    for (std::size_t k = 0; k < m.drivers().size(); ++k)
      acting.driven[k] = m.drivers()[k].from_input == Driver::FromInput::motion
                             ? acting.inputs.value[static_cast<std::size_t>(m.drivers()[k].first_channel)]
                             : prescribed[k].value;
    const Discretised equations(m, stepper.state(), dt, acting);
    const VectorXd x = equations.solve();
    REQUIRE(equations.residual(x).norm() < 1e-12);  // their terms are of the order of 100: 1e-14 of it is rounding
    const StepReport report = stepper.step(acting.inputs);
    REQUIRE(report.status == StepStatus::ok);
    REQUIRE(report.last_increment < 1e-12);
    for (std::size_t i = 0; i < m.bodies().size(); ++i) {
      const index3::BodyState& b = stepper.state().body[i];
      const Index k = 7 * static_cast<Index>(i);
      most = std::max({most, (b.r - x.segment<3>(k)).norm(), (Vector4d(b.p) - x.segment<4>(k + 3)).norm()});
    }
    acting.follower.follow(motions(stepper.state()));
  }
  return most;
}

double difference(const test::Description& d, std::int64_t dt_ns, int steps,
                  const InputsOfStep& inputs_of = no_inputs) {
  return difference(test::build(d), dt_ns, steps, inputs_of);
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

Driver follows(TimeFunction function) {
  Driver driver;
  driver.function = std::move(function);
  return driver;
}

// The driver on the first joint, whose coordinate has the value `at_start`; the rest is free.
double driven_difference(Driver driver, JointType type, double at_start, const InputsOfStep& inputs_of = no_inputs) {
  test::Description d = moving_chain(5, type, JointType::universal, JointType::revolute);
  d.joints[0].coordinate_at_start = at_start;
  driver.name = "motor";
  d.drivers = {{driver, {"joint0", freedoms(type)[0]}}};
  return difference(test::made_consistent(d), 5'000'000, 10, inputs_of);
}

// A chain with joints that slide and turn, and what `add` puts on it: joint0 cylindrical on the ground, joint1
// prismatic, joint2 revolute.
Mechanism loaded_chain(unsigned seed, const std::function<void(MechanismBuilder&)>& add) {
  return test::build(moving_chain(seed, JointType::cylindrical, JointType::prismatic, JointType::revolute), add);
}

Inputs waves(std::uint64_t step) {
  Inputs u;
  u.count = 4;
  for (int k = 0; k < u.count; ++k)
    u.value[static_cast<std::size_t>(k)] = std::sin(0.1 * static_cast<double>(step) + k);
  return u;
}

void add_signals(MechanismBuilder& b, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    Input input;
    input.name = name;
    b.add_signal_input(input);
  }
}

Mat6 positive_definite(test::Random& random, double size) {
  Eigen::Matrix<double, 6, 6> L;
  for (int i = 0; i < 36; ++i) L(i / 6, i % 6) = random.uniform();
  return size * (L * L.transpose());
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
    driver.function = polynomial({0.0, 0.5, 2.0});
    d.drivers = {{driver, {"joint0", Freedom::angle}}};
    CHECK(difference(test::made_consistent(d), 5'000'000, 5) < 1e-12);
  }
}

TEST_CASE("a step with a driver of any kind is the Newton solution of the discretised equations") {
  for (const JointType type : {JointType::revolute, JointType::prismatic}) {
    CAPTURE(to_string(type));
    const TimeFunction wave = harmonic(0.1, 0.3, 6.0, 0.7), cubic = polynomial({-0.2, 0.5, 2.0, -30.0});
    // starts, bends and ends between steps
    const TimeFunction points = table({0.002, 0.012, 0.02, 0.043}, {0.3, 0.302, 0.308, 0.304});
    CHECK(driven_difference(follows(wave), type, 0.1 + 0.3 * std::sin(0.7)) < 1e-12);
    CHECK(driven_difference(follows(cubic), type, -0.2) < 1e-12);
    CHECK(driven_difference(follows(points), type, 0.3) < 1e-12);
    CHECK(driven_difference(follows(wave + cubic + points), type, 0.2 + 0.3 * std::sin(0.7)) < 1e-12);
    Driver input;
    input.from_input = Driver::FromInput::motion;
    CHECK(driven_difference(input, type, 0.2, [](std::uint64_t step) {
            const double angle = 20.0 * 5e-3 * static_cast<double>(step);
            return test::inputs_of({0.3 - 0.1 * std::cos(angle), 2.0 * std::sin(angle), 40.0 * std::cos(angle)});
          }) < 1e-12);
    Driver filtered;
    filtered.from_input = Driver::FromInput::filtered;
    filtered.time_constant = 0.008;
    const auto steps = [](std::uint64_t step) { return test::inputs_of({step < 6 ? 0.25 : 0.15}); };
    CHECK(driven_difference(filtered, type, 0.2, steps) < 1e-12);
    filtered.function = harmonic(0.1, 0.3, 6.0, 0.7) + points;
    CHECK(driven_difference(filtered, type, 0.2, steps) < 1e-12);
  }
}

TEST_CASE("spring and damper forces are those of the end of the step, linear ones and tables") {
  using Kind = Spring::Kind;
  for (const bool tables : {false, true}) {
    CAPTURE(tables);
    const Mechanism m = loaded_chain(4, [tables](MechanismBuilder& b) {
      test::Random random(4);
      const auto spring = [&](const char* name, Kind kind) {
        Spring s = random_spring(random, name, kind);
        s.preload = random.uniform();
        if (tables) {
          s.stiffness_table = {{-0.4, 0.0, 0.3, 1.0}, {-20.0, 0.0, 30.0, 40.0}};
          s.damping_table = {{-0.5, 0.0, 0.5}, {-1.0, 0.0, 3.0}};
        }
        return s;
      };
      b.add_spring(spring("a", Kind::between_points), "ground", "body2");
      b.add_spring(spring("b", Kind::between_points), "body2", "body0");
      b.add_spring(spring("c", Kind::along_direction), "body0", "body1");
      b.add_joint_spring(spring("d", Kind::in_joint), "joint0", Freedom::displacement);
      b.add_joint_spring(spring("e", Kind::in_joint), "joint2", Freedom::angle);
    });
    CHECK(difference(m, 5'000'000, 10) < 1e-12);
  }
}

TEST_CASE("loads and inputs are those of the end of the step") {
  const Mechanism m = loaded_chain(6, [](MechanismBuilder& b) {
    test::Random random(6);
    for (const Frame frame : {Frame::world, Frame::body}) {
      const std::string suffix = frame == Frame::body ? "_body" : "_world";
      AppliedLoad load;
      load.name = "load" + suffix;
      load.frame = frame;
      load.force = random.vector(5.0);
      load.torque = random.vector(2.0);
      load.point_b = random.vector(0.3);
      load.constant = 0.4;
      load.amplitude = 2.0;
      load.angular_frequency = 30.0;
      load.phase = 0.3;
      b.add_load(load, frame == Frame::body ? "body0" : "body2");
      Input force;
      force.name = "force" + suffix;
      force.frame = frame;
      force.direction = random.direction();
      force.point_b = random.vector(0.3);
      b.add_body_input(force, "body1");
    }
    Input torque;
    torque.name = "torque";
    torque.kind = Input::Kind::body_torque;
    torque.frame = Frame::body;
    torque.direction = random.direction();
    b.add_body_input(torque, "body2");
    Input effort;
    effort.name = "effort";
    b.add_joint_input(effort, "joint1", Freedom::displacement);
  });
  CHECK(difference(m, 5'000'000, 10, waves) < 1e-12);
}

TEST_CASE("a step with bushings is the Newton solution, soft and deflected, stiff and undeflected") {
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const Mechanism soft = loaded_chain(seed, [seed](MechanismBuilder& b) {
      test::Random random(seed);
      const auto side = [&random] {
        const Vec3 axis = (Vec3::UnitZ() + random.vector(0.3)).normalized();
        return MechanismBuilder::SideInBody{random.vector(0.3), axis, axis.cross(random.direction()).normalized()};
      };
      const auto mount = [&random](const char* name) {
        Bushing made;
        made.name = name;
        made.stiffness = positive_definite(random, 20.0);
        made.damping = positive_definite(random, 0.5);
        return made;
      };
      const auto first = side(), second = side(), third = side(), fourth = side();
      b.add_bushing(mount("between"), "body0", "body2", first, second);
      b.add_bushing(mount("on_ground"), "body2", "ground", third, fourth);
    });
    CAPTURE(seed);
    CHECK(difference(soft, 5'000'000, 10) < 1e-12);
    const Mechanism stiff = loaded_chain(seed, [seed](MechanismBuilder& b) {
      test::Random random(seed);
      Bushing mount;
      mount.name = "mount";
      mount.stiffness = positive_definite(random, 1e5);
      mount.damping = positive_definite(random, 1e2);
      MechanismBuilder::SideInBody at;
      at.point = random.vector(0.3);
      b.add_bushing(mount, "body0", "body2", at);
    });
    CHECK(difference(stiff, 1'000'000, 10, no_inputs, 30) < 1e-12);
  }
}

TEST_CASE("a step with joint friction is the Newton solution, on the ground and between moving bodies") {
  const Mechanism m = loaded_chain(8, [](MechanismBuilder& b) {
    b.add_friction({.name = "a", .coulomb = 2.0, .viscous = 0.3, .regularisation_speed = 0.05}, "joint0",
                   Freedom::angle);
    b.add_friction({.name = "b", .coulomb = 3.0, .regularisation_speed = 0.1}, "joint1", Freedom::displacement);
    b.add_friction({.name = "c", .coulomb = 0.5, .viscous = 0.1, .regularisation_speed = 0.02}, "joint2",
                   Freedom::angle);
  });
  CHECK(difference(m, 5'000'000, 10, no_inputs, 30) < 1e-12);
}

TEST_CASE("a step with motors is the Newton solution: servo, at the limit, on the line down to the no-load speed") {
  const Mechanism m = loaded_chain(9, [](MechanismBuilder& b) {
    add_signals(b, {"effort", "position", "rate"});
    Motor servo;
    servo.name = "servo";
    servo.position_gain = 60.0;
    servo.rate_gain = 2.0;
    b.add_motor(servo, "joint0", Freedom::angle, {"effort", "position", "rate"});
    servo.name = "servo_within_its_limit";
    servo.effort_limit = 500.0;
    b.add_motor(servo, "joint0", Freedom::displacement, {"effort", "position", "rate"});
    Motor limited;
    limited.name = "limited";
    limited.constant = -9.0;
    limited.effort_limit = 4.0;
    b.add_motor(limited, "joint1", Freedom::displacement, {});
    Motor falling;
    falling.name = "falling";
    falling.constant = 20.0;
    falling.effort_limit = 6.0;
    falling.no_load_speed = 3.0;
    b.add_motor(falling, "joint2", Freedom::angle, {});
    for (const char* motor : {"limited", "falling"}) test::show_element(b, motor);
  });
  CHECK(difference(m, 5'000'000, 10, waves) < 1e-12);
  index3::Stepper stepper(m, {.dt_ns = 5'000'000});
  REQUIRE(stepper.step(waves(1)).status == StepStatus::ok);
  const auto& motor = index3::workspace_of(stepper).reading<Motor>();
  CHECK(motor[2].effort == -4.0);
  CHECK(motor[3].effort < 6.0);
  CHECK(motor[3].effort == doctest::Approx(6.0 * (1.0 - motor[3].rate / 3.0)).epsilon(1e-12));
}

TEST_CASE("a step with aerodynamic drag is the Newton solution") {
  const Mechanism m = loaded_chain(10, [](MechanismBuilder& b) {
    b.add_drag({.name = "a", .point_b = {0.3, -0.2, 0.5}, .drag_area = 2.0, .wind_0 = {4.0, -6.0, 1.0}}, "body2");
    b.add_drag({.name = "b", .density = 900.0, .drag_area = 0.02}, "body1");
  });
  CHECK(difference(m, 5'000'000, 10) < 1e-12);
}

TEST_CASE("a step with a tyre is the Newton solution: cambered, slipping both ways, on a moving road") {
  test::Random random(11);
  Body wheel = test::make_body("wheel", {1.0, 2.0, 0.3}, 20.0, Vec3(0.5, 1.0, 0.5).asDiagonal());
  wheel.orientation = random.orientation();
  wheel.velocity_0 = {8.0, 1.0, -0.1};
  wheel.angular_velocity_0 = {0.3, 40.0, 0.5};
  Tyre tyre;
  tyre.name = "tyre";
  tyre.axis_b = A(Vector4d(wheel.orientation)).transpose() * Vec3(0.1, 1.0, 0.15);
  tyre.centre_b = {0.02, 0.01, -0.03};
  tyre.radius = 0.3;
  tyre.stiffness = 2e5;
  tyre.damping = 500.0;
  tyre.longitudinal = {.B = 8.0, .C = 1.5, .E = 0.3, .friction = 1.1};
  tyre.lateral = {.B = 6.0, .C = 1.3, .E = -0.5, .friction = 0.8};
  tyre.road_point_0 = wheel.position_0 - 0.25 * Vec3::UnitZ();
  tyre.road_normal_0 = {0.05, -0.1, 1.0};
  MechanismBuilder b("wheel");
  b.set_gravity({0.0, 0.0, -9.81});
  b.add_body(wheel);
  add_signals(b, {"height", "height_rate"});
  b.add_tyre(tyre, "wheel", "height", "height_rate");
  const Mechanism m = b.build();
  const auto road = [](std::uint64_t step) {
    const double phase = 0.1 * static_cast<double>(step);
    return test::inputs_of({0.01 * std::sin(phase), 1.0 * std::cos(phase)});
  };
  CHECK(difference(m, 1'000'000, 10, road, 30) < 1e-12);
  index3::Stepper stepper(m, {.dt_ns = 1'000'000});
  REQUIRE(stepper.step(road(1)).status == StepStatus::ok);
  const index3::TyreReading& reading = index3::workspace_of(stepper).reading<Tyre>()[0];
  CHECK(reading.deflection > 0.003);  // past the ramp of the damping
  CHECK(reading.slip > 0.1);
  CHECK(std::abs(reading.tan_alpha) > 0.05);
}

// Friction and slip come to rest within the first steps of 1 ms, across a knee that takes many iterations. Within 1 m
// of the origin and without a chain to pass them on, ten roundings are 1e-15.
TEST_CASE("a step with every force element at once is the Newton solution") {
  CHECK(difference(test::every_force_element(), 100'000, 10, test::every_input, 30) < 1e-14);
  CHECK(difference(test::every_force_element(), 1'000'000, 10, test::every_input, 50) < 1e-12);
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
