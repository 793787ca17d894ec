// Force elements of a mechanism file.
#include <string>
#include <utility>

#include "proto/load_parts.h"

namespace rigstep::config {

void require_body_frame(wire::FrameOfReference frame, bool turns, const char* field) {
  if (turns && frame != wire::BODY)
    throw MechanismError(std::string("at_start.") + field, "does not turn with the body",
                         std::string("write `frame: BODY`, or give ") + field + " outside at_start");
}

void add(const wire::Load& in, const wire::Mechanism&, MechanismBuilder& builder) {
  AppliedLoad load;
  load.name = in.name();
  load.frame = frame(in.frame());
  const wire::LoadAtStart& at = in.at_start();
  const InBody carrier{builder, in.body()};
  require_body_frame(in.frame(), at.has_force(), "force");
  require_body_frame(in.frame(), at.has_torque(), "torque");
  load.force = here_or_at_start(in.has_force(), in.force(), at.has_force(), at.force(), "force", carrier.direction());
  load.torque =
      here_or_at_start(in.has_torque(), in.torque(), at.has_torque(), at.torque(), "torque", carrier.direction());
  load.point_b = here_or_at_start(in.has_point(), in.point(), at.has_point(), at.point(), "point", carrier.point());
  load.constant = in.has_constant() ? in.constant() : (in.amplitude() != 0.0 ? 0.0 : 1.0);
  load.amplitude = in.amplitude();
  load.angular_frequency = in.angular_frequency();
  load.phase = in.phase();
  builder.add_load(std::move(load), in.body());
}

namespace {

Characteristic characteristic(const google::protobuf::RepeatedField<double>& x,
                              const google::protobuf::RepeatedField<double>& y, const char* field) {
  if (x.empty() && y.empty()) throw MechanismError(field, "is empty", "give two points at least, or leave it out");
  return {{x.begin(), x.end()}, {y.begin(), y.end()}};
}

// The ends of a spring or stop between two bodies: BetweenPoints or AlongDirection.
template <class Ends, class Element>
void place_ends(const Ends& in, const MechanismBuilder& builder, Element& element) {
  const wire::PointsAtStart& at = in.at_start();
  element.first_point_b =
      here_or_at_start(in.has_first_point(), in.first_point(), at.has_first_point(), at.first_point(), "first_point",
                       InBody{builder, in.first(), "first"}.point());
  element.second_point_b =
      here_or_at_start(in.has_second_point(), in.second_point(), at.has_second_point(), at.second_point(),
                       "second_point", InBody{builder, in.second(), "second"}.point());
}

}  // namespace

void add(const wire::Spring& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  Spring spring;
  spring.name = in.name();
  spring.stiffness = in.stiffness();
  spring.damping = in.damping();
  spring.rest = in.rest();
  spring.preload = in.preload();
  if (in.has_stiffness_table())
    spring.stiffness_table =
        characteristic(in.stiffness_table().deflection(), in.stiffness_table().effort(), "stiffness_table");
  if (in.has_damping_table())
    spring.damping_table = characteristic(in.damping_table().rate(), in.damping_table().effort(), "damping_table");
  switch (in.acts_case()) {
    case wire::Spring::kBetweenPoints:
      place_ends(in.between_points(), builder, spring);
      return builder.add_spring(spring, in.between_points().first(), in.between_points().second());
    case wire::Spring::kAlongDirection:
      spring.kind = Spring::Kind::along_direction;
      place_ends(in.along_direction(), builder, spring);
      spring.direction_0 = vector(in.along_direction().direction());
      return builder.add_spring(spring, in.along_direction().first(), in.along_direction().second());
    case wire::Spring::kInJoint:
      return builder.add_joint_spring(spring, in.in_joint().joint(),
                                      freedom(in.in_joint().freedom(), in.in_joint().joint(), file));
    default:
      throw MechanismError("between_points", "is missing", "write between_points, along_direction or in_joint");
  }
}

namespace {

Mat6 symmetric(const wire::Symmetric6& in, const char* field) {
  Mat6 matrix = Mat6::Zero();
  if (in.diagonal_size() == 6 && in.rows_size() == 0) {
    for (int i = 0; i < 6; ++i) matrix(i, i) = in.diagonal(i);
  } else if (in.rows_size() == 36 && in.diagonal_size() == 0) {
    for (int i = 0; i < 36; ++i) matrix(i / 6, i % 6) = in.rows(i);
  } else {
    throw MechanismError(field,
                         "has " + std::to_string(in.diagonal_size()) + " values of diagonal and " +
                             std::to_string(in.rows_size()) + " of rows",
                         "give either 6 of diagonal or 36 of rows");
  }
  return matrix;
}

}  // namespace

void add(const wire::Bushing& in, const wire::Mechanism&, MechanismBuilder& builder) {
  Bushing bushing;
  bushing.name = in.name();
  if (!in.has_stiffness() && !in.has_damping())
    throw MechanismError("stiffness", "is missing",
                         "write e.g. `stiffness { diagonal: [1e6, 1e6, 1e6, 1e3, 1e3, 1e3] }`");
  if (in.has_stiffness()) bushing.stiffness = symmetric(in.stiffness(), "stiffness");
  if (in.has_damping()) bushing.damping = symmetric(in.damping(), "damping");
  const bool in_bodies = in.has_in_first() || in.has_in_second();
  if (in.has_at_start() == in_bodies)
    throw MechanismError("at_start", in_bodies ? "stands beside in_first or in_second" : "is missing",
                         "place the bushing by at_start alone, or by in_first and in_second");
  if (in.has_at_start()) return builder.add_bushing(bushing, in.first(), in.second(), joint_side(in.at_start()));
  if (!in.has_in_first() || !in.has_in_second())
    throw MechanismError(in.has_in_first() ? "in_second" : "in_first", "is missing", "describe both sides");
  builder.add_bushing(bushing, in.first(), in.second(), joint_side(in.in_first()), joint_side(in.in_second()));
}

void add(const wire::JointFriction& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  JointFriction friction;
  friction.name = in.name();
  friction.coulomb = in.coulomb();
  friction.viscous = in.viscous();
  if (in.regularisation_speed() != 0.0) friction.regularisation_speed = in.regularisation_speed();
  builder.add_friction(std::move(friction), in.joint(), freedom(in.freedom(), in.joint(), file));
}

void add(const wire::Effort& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  AppliedEffort effort;
  effort.name = in.name();
  switch (in.signal_case()) {
    case wire::Effort::kConstant:
      effort.function = harmonic(in.constant(), 0.0, 0.0);
      break;
    case wire::Effort::kHarmonic:
      effort.function = time_function(in.harmonic());
      break;
    case wire::Effort::kPolynomial:
      effort.function = time_function(in.polynomial());
      break;
    case wire::Effort::kTable:
      effort.function = time_function(in.table());
      break;
    case wire::Effort::kSum:
      effort.function = sum_of(in.sum());
      break;
    default:
      throw MechanismError("constant", "is missing", "write constant, harmonic, polynomial, table or sum");
  }
  builder.add_effort(std::move(effort), in.joint(), freedom(in.freedom(), in.joint(), file));
}

void add(const wire::Motor& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  Motor motor;
  motor.name = in.name();
  motor.constant = in.constant();
  motor.position_gain = in.position_gain();
  motor.rate_gain = in.rate_gain();
  motor.effort_limit = in.effort_limit();
  motor.no_load_speed = in.no_load_speed();
  builder.add_motor(std::move(motor), in.joint(), freedom(in.freedom(), in.joint(), file),
                    {in.effort_input(), in.position_input(), in.rate_input()});
}

void add(const wire::Drag& in, const wire::Mechanism&, MechanismBuilder& builder) {
  Drag drag;
  drag.name = in.name();
  drag.point_b = here_or_at_start(in.has_point(), in.point(), in.at_start().has_point(), in.at_start().point(), "point",
                                  InBody{builder, in.body()}.point());
  drag.drag_area = in.drag_area();
  if (in.has_density()) drag.density = in.density();
  drag.wind_0 = vector(in.wind());
  builder.add_drag(std::move(drag), in.body());
}

namespace {

SlipCurve slip_curve(const wire::SlipCurve& in) {
  SlipCurve curve;
  if (in.has_b()) curve.B = in.b();
  if (in.has_c()) curve.C = in.c();
  if (in.has_e()) curve.E = in.e();
  if (in.has_friction()) curve.friction = in.friction();
  return curve;
}

}  // namespace

void add(const wire::Tyre& in, const wire::Mechanism&, MechanismBuilder& builder) {
  Tyre tyre;
  tyre.name = in.name();
  const wire::TyreAtStart& at = in.at_start();
  const InBody wheel{builder, in.body()};
  tyre.centre_b = here_or_at_start(in.has_centre(), in.centre(), at.has_centre(), at.centre(), "centre", wheel.point());
  if (in.has_axis() || at.has_axis())
    tyre.axis_b = here_or_at_start(in.has_axis(), in.axis(), at.has_axis(), at.axis(), "axis", wheel.direction());
  tyre.radius = in.radius();
  tyre.stiffness = in.stiffness();
  tyre.damping = in.damping();
  tyre.longitudinal = slip_curve(in.longitudinal());
  tyre.lateral = slip_curve(in.lateral());
  if (in.low_speed() != 0.0) tyre.low_speed = in.low_speed();
  tyre.road_point_0 = vector(in.road_point());
  if (in.has_road_normal()) tyre.road_normal_0 = vector(in.road_normal());
  builder.add_tyre(std::move(tyre), in.body(), in.height_input(), in.height_rate_input());
}

void add(const wire::Stop& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  Stop stop;
  stop.name = in.name();
  if (in.has_lower()) stop.lower = in.lower();
  if (in.has_upper()) stop.upper = in.upper();
  stop.stiffness = in.stiffness();
  stop.damping = in.damping();
  if (in.has_restitution())
    stop.damping = hunt_crossley_damping(in.restitution().coefficient(), in.restitution().at_speed());
  if (in.has_in_joint())
    return builder.add_element(std::move(stop), in.in_joint().joint(),
                               freedom(in.in_joint().freedom(), in.in_joint().joint(), file));
  if (!in.has_between_points()) throw MechanismError("in_joint", "is missing", "write in_joint or between_points");
  place_ends(in.between_points(), builder, stop);
  builder.add_element(std::move(stop), in.between_points().first(), in.between_points().second());
}

void add(const wire::Rope& in, const wire::Mechanism&, MechanismBuilder& builder) {
  Rope rope;
  rope.name = in.name();
  rope.length = in.length();
  rope.stiffness = in.stiffness();
  rope.damping = in.damping();
  std::vector<std::string> bodies;
  for (const wire::RopePoint& point : in.point()) {
    const std::string of_body = "point[" + std::to_string(bodies.size()) + "].body";
    const wire::PointAtStart& at = point.at_start();
    const InBody carrier{builder, point.body(), of_body.c_str()};
    bodies.push_back(point.body());
    rope.points.push_back({kGround, here_or_at_start(point.has_point(), point.point(), at.has_point(), at.point(),
                                                     "point", carrier.point())});
  }
  builder.add_element(std::move(rope), bodies, in.pay_out_input());
}

}  // namespace rigstep::config
