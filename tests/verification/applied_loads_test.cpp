// The applied loads, which all reference solvers take from core/offline/forces.cpp, against a second evaluation that
// shares no code with it.
#include <doctest/doctest.h>

#include "core/offline/forces.h"
#include "tests/support/applied_loads.h"
#include "tests/support/force_cases.h"
#include "tests/support/mechanisms.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

// The start with every body moved, turned and in motion: elements do not care whether joints are closed.
std::vector<offline::BodyMotion> disturbed(const Mechanism& m, double size, unsigned seed) {
  Random random(seed);
  std::vector<offline::BodyMotion> at = offline::start_motion(m);
  for (offline::BodyMotion& body : at) {
    body.r_0 += random.vector(size);
    for (int k = 0; k < 4; ++k) body.p[k] += random.uniform(-0.01, 0.01);
    body.p.normalize();
    body.v_0 += random.vector();
    body.omega_0 += random.vector();
  }
  return at;
}

// Both evaluations at poses near the start, under inputs, at several times.
void compare(const Mechanism& m, double size) {
  double largest = 0.0, apart = 0.0;  // weights apart
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const double t = 0.07 * (seed - 1);
    const std::vector<offline::BodyMotion> at = disturbed(m, size, seed);
    const std::vector<double> inputs(m.input_channels().size(), (seed % 2 == 0 ? 0.02 : -0.02) * seed);
    const std::vector<offline::Jet> coordinates = offline::CoordinateFollower(m).follow(at);
    const std::vector<Vec6> ours = offline::wrenches(m, {t, at, coordinates, inputs});
    const std::vector<Vec6> other = AppliedLoads(m, inputs).wrenches(t, at);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const Vec3 weight = m.bodies()[i].mass * m.gravity_0();
      largest = std::max({largest, (ours[i].head<3>() - weight).norm(), ours[i].tail<3>().norm()});
      apart = std::max(apart, (ours[i] - other[i]).norm());
    }
  }
  MESSAGE(m.name() << ": " << apart << " of " << largest << " N or N m");
  CHECK(largest > 0.1);
  CHECK(apart < 1e-6 * largest);
}

}  // namespace

TEST_CASE("applied loads: wrenches are those of virtual power, of every kind of element, load and input") {
  struct Case {
    std::string name;
    double size;  // of the displacements [m]: carts reach their stops by some, tyres the road by small ones
  };
  for (const Case& of : {Case{"quarter_car", 0.01},
                         {"motor_with_friction", 0.01},
                         {"full_car", 0.01},
                         {"cart_with_stops", 3.0},
                         {"hoist", 0.1},
                         {"mcpherson", 0.01},
                         {"pipelayer", 0.01}})
    compare(mechanism(of.name), of.size);
  compare(every_force_element(), 0.01);
}
