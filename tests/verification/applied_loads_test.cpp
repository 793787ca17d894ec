// The applied loads, which all reference solvers take from core/offline/forces.cpp, against a second evaluation that
// shares no code with it.
#include <doctest/doctest.h>

#include "core/offline/forces.h"
#include "tests/support/applied_loads.h"
#include "tests/support/mechanisms.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::test;

namespace {

// The start with every body moved, turned and in motion: elements do not care whether joints are closed.
std::vector<offline::BodyMotion> disturbed(const Mechanism& m, unsigned seed) {
  Random random(seed);
  std::vector<offline::BodyMotion> at = offline::start_motion(m);
  for (offline::BodyMotion& body : at) {
    body.r_0 += random.vector(0.01);
    for (int k = 0; k < 4; ++k) body.p[k] += random.uniform(-0.01, 0.01);
    body.p.normalize();
    body.v_0 += random.vector();
    body.omega_0 += random.vector();
  }
  return at;
}

}  // namespace

TEST_CASE("applied loads: wrenches are those of virtual power, of every kind of element") {
  for (const char* name : {"quarter_car", "motor_with_friction", "full_car", "cart_with_stops", "hoist", "pipelayer"}) {
    CAPTURE(name);
    const Mechanism m = mechanism(name);
    double largest = 0.0, apart = 0.0;
    for (unsigned seed = 1; seed <= 5; ++seed) {
      const std::vector<offline::BodyMotion> at = disturbed(m, seed);
      const std::vector<double> inputs(m.input_channels().size(), 0.02 * seed);
      const std::vector<offline::Jet> coordinates = offline::CoordinateFollower(m).follow(at);
      const std::vector<Vec6> ours = offline::wrenches(m, {0.0, at, coordinates, inputs});
      const std::vector<Vec6> other = AppliedLoads(m, inputs).wrenches(0.0, at);
      for (std::size_t i = 0; i < ours.size(); ++i) {
        largest = std::max(largest, ours[i].lpNorm<Eigen::Infinity>());
        apart = std::max(apart, (ours[i] - other[i]).lpNorm<Eigen::Infinity>());
      }
    }
    MESSAGE(name << ": " << apart << " of " << largest << " N or N m");
    CHECK(apart < 1e-6 * largest);
  }
}
