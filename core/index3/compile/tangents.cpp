#include "core/index3/compile/tangents.h"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>

#include "core/index3/compile/tuned.h"
#include "core/index3/physics/constraints.h"
#include "core/index3/physics/elements/list.h"
#include "core/index3/physics/kinematics.h"

namespace rigstep::index3 {

namespace {

// From these on one tangent does not serve all iterations. The numbers are chosen. How near three iterations come
// depends on them; the tests named here, of scales_test, hold that they come near enough.
constexpr double kSlender = 1e3;  // ratio of a body's principal moments of inertia: "rods of 1e-9 kg m^2 ..."
constexpr double kUneven = 1e3;   // ratio of the masses of joined bodies: "a tip of a million times ..."
constexpr double kEven = 10.0;    // ... up to which kNear holds; above it kNear is divided by the ratio / kEven
constexpr double kFast = 0.25;    // angle that a body turns in a step [rad]: "rotors, tops and tumbling ..."
constexpr double kQuick = 0.025;  // step times the rate at which gravity swings a body: "chains of uniform ..."
constexpr double kNear = 1e-5;    // move that leaves a loop's tangent as good as new [largest arm, rad]: below the root
                                  // of its compliance by so much that rows which depend on each other stay so. The
                                  // four-bar at 10 ms comes as near to its solution as with new ones, at 1e-4 not
constexpr double kNearInTree = 1e-4;  // the same without loops, drivers and couplings, whose rows depend on no others
constexpr double kNearProjections =
    1e-8;                          // that leaves it as good as new for the projections, which have no third pass
constexpr double kNearest = 1e-9;  // the same where a light body follows heavy ones, or a parameter may make it light
constexpr double kSettled = 1e-7;  // what another iteration may change of a rate [largest arm a second, rad/s]
constexpr std::int64_t kLong = 10'000'000;  // step [ns]: "steps of 0.1 to 50 ms ..."

bool is_slender(const Body& body) {
  const Vec3 moments = Eigen::SelfAdjointEigenSolver<Mat3>(body.inertia_b, Eigen::EigenvaluesOnly).eigenvalues();
  return moments[2] > kSlender * moments[0];
}

// A joint that holds points of its bodies and lets these turn.
bool is_pivot(const Joint& joint) {
  const auto rows = rows_of(joint.type);
  const auto cosines =
      std::count_if(rows.begin(), rows.end(), [](const Row& r) { return r.form == Row::Form::cosine; });
  return cosines < static_cast<std::ptrdiff_t>(rows.size()) && cosines < 3;
}

// Rate [1/s] at which gravity swings a body about its pivot's point; the mass adds nothing to its inertia, since at the
// end of a chain that point gives way.
double swing_rate(const Mechanism& m, int body, const JointFrame& frame) {
  if (body == kGround) return 0.0;
  const Body& b = m.bodies()[body];
  const Mat3 turns = b.inertia_b.inverse() * skew(frame.point_b);  // by a force at the point
  return std::sqrt(b.mass * m.gravity_0().norm() * std::sqrt(0.5) * turns.norm());
}

// Largest ratio of the masses of two joined bodies.
double mass_ratio(const Mechanism& m) {
  double largest = 1.0;
  for (const Joint& joint : m.joints()) {
    if (joint.first == kGround || joint.second == kGround) continue;
    const double first = m.bodies()[joint.first].mass, second = m.bodies()[joint.second].mass;
    largest = std::max({largest, first / second, second / first});
  }
  return largest;
}

// Force elements that are stiffer or softer at the end of a step than at its begin: what comes to rest, or to a stop.
bool any_slope_changes(const Mechanism& m) {
  bool any = false;
  for_each_kind([&]<class Kind>() {
    for (const Kind& element : m.all<Kind>()) any = any || slopes_change(element);
  });
  return any;
}

bool has_force_elements(const Mechanism& m) {
  bool any = false;
  for_each_kind([&]<class Kind>() { any = any || !m.all<Kind>().empty(); });
  return any;
}

}  // namespace

Tangents tangents_of(const Mechanism& m, const Settings& settings, bool has_loops) {
  const auto each = [&](const char* why) { return Tangents{settings.iterations, -1.0, false, -1.0, why}; };
  if (std::any_of(m.bodies().begin(), m.bodies().end(), is_slender)) return each("a body is slender");
  const double dt = 1e-9 * static_cast<double>(settings.dt_ns);
  if (std::any_of(m.bodies().begin(), m.bodies().end(),
                  [dt](const Body& body) { return body.angular_velocity_0.norm() * dt > kFast; }))
    return each("a body turns by more than a quarter of a radian a step at the start");
  const bool is_long = settings.dt_ns > kLong;
  const auto while_near = [&](double near, double near_projections, const char* why) {
    return Tangents{settings.iterations,
                    near,
                    any_slope_changes(m),
                    has_force_elements(m) || is_long ? -1.0 : std::min(near, near_projections),
                    why,
                    kSettled * dt};
  };
  if (std::any_of(m.parameters().begin(), m.parameters().end(), moves_weights))
    return while_near(kNearest, kNearest, "a parameter changes masses or gravity");
  const double ratio = mass_ratio(m), near = kNear / std::max(1.0, ratio / kEven);
  if (ratio >= kUneven) return while_near(near, kNearest, "masses of joined bodies differ a thousandfold");
  if (any_slope_changes(m)) return while_near(near, kNearProjections, "the stiffness of a force element changes");
  if (has_loops) return while_near(near, kNearProjections, "closed loops");
  if (!m.drivers().empty()) return while_near(near, kNearProjections, "drivers");
  if (!m.couplings().empty()) return while_near(near, kNearProjections, "couplings");
  if (std::any_of(m.joints().begin(), m.joints().end(), [&m, dt](const Joint& joint) {
        return is_pivot(joint) && (swing_rate(m, joint.first, joint.in_first) * dt > kQuick ||
                                   swing_rate(m, joint.second, joint.in_second) * dt > kQuick);
      }))
    return while_near(kNearInTree, -1.0, "gravity swings a body quickly for the step");
  if (is_long) return while_near(kNearInTree, -1.0, "the step is above 10 ms");
  return {1, -1.0, false, -1.0, "the predictor is near enough"};
}

}  // namespace rigstep::index3
