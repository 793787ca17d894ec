#include "core/mechanism/numbers.h"

#include <Eigen/Eigenvalues>
#include <cmath>

#include "core/mechanism/checks.h"

namespace rigstep {

namespace {

using checks::number;
using checks::require_finite;

template <int kComponent>
double* gravity_component(Vec3& gravity_0, int) {
  return &gravity_0[kComponent];
}
int leads(const Joint& joint) { return joint.type == JointType::screw ? 1 : 0; }
int lengths(const Joint& joint) { return joint.type == JointType::distance ? 1 : 0; }
int filters(const Driver& driver) { return driver.from_input == Driver::FromInput::filtered ? 1 : 0; }

}  // namespace

std::span<const Number<Vec3>> numbers(const Vec3&) {
  static constexpr Number<Vec3> kNumbers[] = {
      {"x", unit_of("m/s^2"), Changes::tunable, gravity_component<0>},
      {"y", unit_of("m/s^2"), Changes::tunable, gravity_component<1>},
      {"z", unit_of("m/s^2"), Changes::tunable, gravity_component<2>},
  };
  return kNumbers;
}

std::span<const Number<Body>> numbers(const Body&) {
  static constexpr Number<Body> kNumbers[] = {
      {"mass", unit_of("kg"), Changes::tunable, member<Body, &Body::mass>},
      {"inertia.xx", unit_of("kg m^2"), Changes::tunable, diagonal<Body, &Body::inertia_b, 0>},
      {"inertia.yy", unit_of("kg m^2"), Changes::tunable, diagonal<Body, &Body::inertia_b, 1>},
      {"inertia.zz", unit_of("kg m^2"), Changes::tunable, diagonal<Body, &Body::inertia_b, 2>},
      {"position.x", unit_of("m"), Changes::fixed, component<Body, &Body::position_0, 0>},
      {"position.y", unit_of("m"), Changes::fixed, component<Body, &Body::position_0, 1>},
      {"position.z", unit_of("m"), Changes::fixed, component<Body, &Body::position_0, 2>},
      {"velocity.x", unit_of("m/s"), Changes::fixed, component<Body, &Body::velocity_0, 0>},
      {"velocity.y", unit_of("m/s"), Changes::fixed, component<Body, &Body::velocity_0, 1>},
      {"velocity.z", unit_of("m/s"), Changes::fixed, component<Body, &Body::velocity_0, 2>},
      {"angular_velocity.x", unit_of("rad/s"), Changes::fixed, component<Body, &Body::angular_velocity_0, 0>},
      {"angular_velocity.y", unit_of("rad/s"), Changes::fixed, component<Body, &Body::angular_velocity_0, 1>},
      {"angular_velocity.z", unit_of("rad/s"), Changes::fixed, component<Body, &Body::angular_velocity_0, 2>},
  };
  return kNumbers;
}

std::span<const Number<Joint>> numbers(const Joint&) {
  static constexpr Number<Joint> kNumbers[] = {
      {"in_first.point.x", unit_of("m"), Changes::fixed,
       nested_component<Joint, &Joint::in_first, &JointFrame::point_b, 0>},
      {"in_first.point.y", unit_of("m"), Changes::fixed,
       nested_component<Joint, &Joint::in_first, &JointFrame::point_b, 1>},
      {"in_first.point.z", unit_of("m"), Changes::fixed,
       nested_component<Joint, &Joint::in_first, &JointFrame::point_b, 2>},
      {"in_second.point.x", unit_of("m"), Changes::fixed,
       nested_component<Joint, &Joint::in_second, &JointFrame::point_b, 0>},
      {"in_second.point.y", unit_of("m"), Changes::fixed,
       nested_component<Joint, &Joint::in_second, &JointFrame::point_b, 1>},
      {"in_second.point.z", unit_of("m"), Changes::fixed,
       nested_component<Joint, &Joint::in_second, &JointFrame::point_b, 2>},
      {"lead", unit_of("m"), Changes::fixed_but_not_zero, member<Joint, &Joint::lead>, leads},
      {"length", unit_of("m"), Changes::fixed, member<Joint, &Joint::length>, lengths},
  };
  return kNumbers;
}

std::span<const Number<Coupling>> numbers(const Coupling&) {
  static constexpr Number<Coupling> kNumbers[] = {
      {"ratio", unit_of("-"), Changes::fixed_but_not_zero, member<Coupling, &Coupling::ratio>},
  };
  return kNumbers;
}

std::span<const Number<AppliedLoad>> numbers(const AppliedLoad&) {
  static constexpr Number<AppliedLoad> kNumbers[] = {
      {"force.x", unit_of("N"), Changes::tunable, component<AppliedLoad, &AppliedLoad::force, 0>},
      {"force.y", unit_of("N"), Changes::tunable, component<AppliedLoad, &AppliedLoad::force, 1>},
      {"force.z", unit_of("N"), Changes::tunable, component<AppliedLoad, &AppliedLoad::force, 2>},
      {"torque.x", unit_of("N m"), Changes::tunable, component<AppliedLoad, &AppliedLoad::torque, 0>},
      {"torque.y", unit_of("N m"), Changes::tunable, component<AppliedLoad, &AppliedLoad::torque, 1>},
      {"torque.z", unit_of("N m"), Changes::tunable, component<AppliedLoad, &AppliedLoad::torque, 2>},
      {"constant", unit_of("-"), Changes::tunable, member<AppliedLoad, &AppliedLoad::constant>},
      {"amplitude", unit_of("-"), Changes::tunable, member<AppliedLoad, &AppliedLoad::amplitude>},
      {"angular_frequency", unit_of("rad/s"), Changes::tunable, member<AppliedLoad, &AppliedLoad::angular_frequency>},
      {"phase", unit_of("rad"), Changes::tunable, member<AppliedLoad, &AppliedLoad::phase>},
      {"point.x", unit_of("m"), Changes::fixed, component<AppliedLoad, &AppliedLoad::point_b, 0>},
      {"point.y", unit_of("m"), Changes::fixed, component<AppliedLoad, &AppliedLoad::point_b, 1>},
      {"point.z", unit_of("m"), Changes::fixed, component<AppliedLoad, &AppliedLoad::point_b, 2>},
  };
  return kNumbers;
}

std::span<const Number<Driver>> numbers(const Driver&) {
  static constexpr Number<Driver> kNumbers[] = {
      {"harmonic[].constant", kLengthOrAngle, Changes::tunable,
       of_harmonic<Driver, &Driver::function, &TimeFunction::Term::constant>, harmonics<Driver, &Driver::function>},
      {"harmonic[].amplitude", kLengthOrAngle, Changes::tunable,
       of_harmonic<Driver, &Driver::function, &TimeFunction::Term::amplitude>, harmonics<Driver, &Driver::function>},
      {"harmonic[].angular_frequency", unit_of("rad/s"), Changes::tunable,
       of_harmonic<Driver, &Driver::function, &TimeFunction::Term::angular_frequency>,
       harmonics<Driver, &Driver::function>},
      {"harmonic[].phase", unit_of("rad"), Changes::tunable,
       of_harmonic<Driver, &Driver::function, &TimeFunction::Term::phase>, harmonics<Driver, &Driver::function>},
      {"polynomial.coefficient[]", kLengthOrAngle, Changes::tunable, of_polynomial<Driver, &Driver::function>,
       coefficients<Driver, &Driver::function>},
      {"input.position_only.time_constant", unit_of("s"), Changes::tunable, member<Driver, &Driver::time_constant>,
       filters},
  };
  return kNumbers;
}

void check_numbers(const Vec3& gravity_0) { require_finite(gravity_0, "gravity"); }

void check_numbers(const Body& body) {
  if (!(body.mass > 0.0) || !std::isfinite(body.mass))
    throw MechanismError("mass", "is " + number(body.mass) + " kg", "give a finite mass above zero");
  require_finite(body.inertia_b, "inertia");
  require_finite(body.position_0, "position");
  require_finite(body.velocity_0, "velocity");
  require_finite(body.angular_velocity_0, "angular_velocity");
  const Vec3 moments = Eigen::SelfAdjointEigenSolver<Mat3>(body.inertia_b).eigenvalues();
  if (!(moments[0] > 0.0))
    throw MechanismError("inertia", "has the principal moment " + number(moments[0]) + " kg m^2",
                         "every principal moment must be above zero; give a thin rod a small one about its axis");
  if (moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-6))
    throw MechanismError("inertia",
                         "no body has principal moments " + number(moments[0]) + ", " + number(moments[1]) + " and " +
                             number(moments[2]) + " kg m^2",
                         "the largest is at most the sum of the others; check the axes and the signs of xy, xz, yz");
}

void check_numbers(const Joint& joint) {
  require_finite(joint.in_first.point_b, "in_first.point");
  require_finite(joint.in_second.point_b, "in_second.point");
  if (joint.type == JointType::screw && (joint.lead == 0.0 || !std::isfinite(joint.lead)))
    throw MechanismError("lead", "is " + number(joint.lead) + " m",
                         "give the displacement per turn, positive for a right-handed thread");
  if (joint.type == JointType::distance && (!(joint.length > 0.0) || !std::isfinite(joint.length)))
    throw MechanismError("length", "is " + number(joint.length) + " m", "the two points must be apart");
}

void check_numbers(const Coupling& coupling) {
  if (coupling.ratio == 0.0 || !std::isfinite(coupling.ratio))
    throw MechanismError("ratio", "is " + number(coupling.ratio), "give a finite number that is not zero");
}

void check_numbers(const AppliedLoad& load) {
  require_finite(load.force, "force");
  require_finite(load.torque, "torque");
  require_finite(load.point_b, "point");
  require_finite(load.constant, "constant");
  require_finite(load.amplitude, "amplitude");
  require_finite(load.angular_frequency, "angular_frequency");
  require_finite(load.phase, "phase");
}

void check_numbers(const Driver& driver) {
  checks::check_time_function(driver.function);
  if (driver.from_input == Driver::FromInput::filtered &&
      (!(driver.time_constant > 0.0) || !std::isfinite(driver.time_constant)))
    throw MechanismError("time_constant", "is " + number(driver.time_constant) + " s", "give a finite time above zero");
}

}  // namespace rigstep
