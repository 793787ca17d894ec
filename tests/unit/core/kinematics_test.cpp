#include "core/index3/physics/kinematics.h"

#include <doctest/doctest.h>

#include "tests/support/random.h"

namespace rigstep::index3 {
namespace {

constexpr double kRotationRounding = 1e-14;

Eigen::Quaterniond quaternion(const EulerParameters& p) { return {p[0], p[1], p[2], p[3]}; }

template <class Check>
void for_random_orientations(const Check& check) {
  test::Random random(1);
  for (int k = 0; k < 200; ++k) check(random.orientation(), random);
}

}  // namespace

TEST_CASE("A of unit Euler parameters is a rotation, and the one of the same quaternion") {
  for_random_orientations([](const EulerParameters& p, test::Random&) {
    const Mat3 A = rotation_matrix(p);
    CHECK((A.transpose() * A - Mat3::Identity()).norm() < kRotationRounding);
    CHECK(A.determinant() == doctest::Approx(1.0).epsilon(kRotationRounding));
    CHECK((A - quaternion(p).toRotationMatrix()).norm() < kRotationRounding);
    CHECK(rotation_matrix(-p) == A);
  });
}

TEST_CASE("G(p) p vanishes exactly, so that the large history terms cancel") {
  for_random_orientations([](const EulerParameters& p, test::Random&) {
    CHECK(twice_G(p, p) == Vec3::Zero());
    CHECK(twice_G(p, 4e6 * p).norm() < 4e6 * 1e-15);
  });
}

TEST_CASE("the rate of p made from an angular velocity gives that angular velocity back and keeps p a unit") {
  for_random_orientations([](const EulerParameters& p, test::Random& random) {
    const Vec3 w_b = random.vector(5.0);
    const EulerParameters pd = half_G_transposed(p, w_b);
    CHECK((twice_G(p, pd) - w_b).norm() < 10.0 * kRotationRounding);
    CHECK(std::abs(p.dot(pd)) < kRotationRounding);
    CHECK(pd.norm() == doctest::Approx(0.5 * w_b.norm()).epsilon(kRotationRounding));
  });
}

TEST_CASE("A turns with the body: its rate is A times the skew matrix of w in the body frame") {
  for_random_orientations([](const EulerParameters& p, test::Random& random) {
    const Vec3 w_b = random.vector(2.0);
    const EulerParameters pd = half_G_transposed(p, w_b);
    const double t = 1e-5;
    const Mat3 rate = (rotation_matrix(p + t * pd) - rotation_matrix(p - t * pd)) / (2.0 * t);
    CHECK((rate - rotation_matrix(p) * skew(w_b)).norm() < 1e-9);
  });
}

TEST_CASE("skew is the cross product as a matrix") {
  test::Random random(2);
  const Vec3 x = random.vector(), y = random.vector();
  CHECK((skew(x) * y - x.cross(y)).norm() < 1e-16);
  CHECK(skew(x).transpose() == -skew(x));
}

TEST_CASE("turned is a rotation about the world vector theta by 2 atan(|theta| / 2), normalised") {
  for_random_orientations([](const EulerParameters& p, test::Random& random) {
    for (const double size : {1e-9, 1e-3, 0.3, 2.0}) {
      const Vec3 theta = size * random.direction();
      const EulerParameters q = turned(p, theta);
      const Mat3 exact = Eigen::AngleAxisd(2.0 * std::atan(0.5 * size), theta.normalized()) * rotation_matrix(p);
      CHECK(std::abs(q.norm() - 1.0) < 4e-16);
      CHECK((rotation_matrix(q) - exact).norm() < kRotationRounding);
    }
  });
}

TEST_CASE("turned agrees with the exponential rotation up to the third power of theta") {
  const EulerParameters p{1.0, 0.0, 0.0, 0.0};
  const Vec3 axis = Vec3(1.0, 2.0, -1.0).normalized();
  const auto error = [&](double size) {
    return (rotation_matrix(turned(p, size * axis)) - Eigen::AngleAxisd(size, axis).toRotationMatrix()).norm();
  };
  CHECK(error(0.02) / error(0.01) == doctest::Approx(8.0).epsilon(0.01));
}

TEST_CASE("a placement has the state's pose and its angular velocity in the world frame") {
  test::Random random(3);
  const BodyState body{random.vector(), random.orientation(), random.vector(),
                       random.vector(), random.vector(),      random.vector()};
  const Placement at = placement_of(body);
  CHECK(at.r == body.r);
  CHECK(at.v == body.v);
  CHECK((at.w - quaternion(body.p) * body.w_b).norm() < kRotationRounding);
}

}  // namespace rigstep::index3
