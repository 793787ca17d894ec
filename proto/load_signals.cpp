// Inputs and outputs of a mechanism file.
#include <string>
#include <utility>
#include <vector>

#include "proto/load_parts.h"

namespace rigstep::config {
namespace {

// Of BodyForce or BodyTorque.
template <class Load>
void direct(const Load& in, const MechanismBuilder& builder, Input& input) {
  input.frame = frame(in.frame());
  require_body_frame(in.frame(), in.at_start().has_direction(), "direction");
  input.direction = here_or_at_start(in.has_direction(), in.direction(), in.at_start().has_direction(),
                                     in.at_start().direction(), "direction", InBody{builder, in.body()}.direction());
}

}  // namespace

void add(const wire::Input& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  Input input;
  input.name = in.name();
  switch (in.acts_case()) {
    case wire::Input::kBodyForce:
      direct(in.body_force(), builder, input);
      input.point_b = here_or_at_start(in.body_force().has_point(), in.body_force().point(),
                                       in.body_force().at_start().has_point(), in.body_force().at_start().point(),
                                       "point", InBody{builder, in.body_force().body()}.point());
      return builder.add_body_input(input, in.body_force().body());
    case wire::Input::kBodyTorque:
      input.kind = Input::Kind::body_torque;
      direct(in.body_torque(), builder, input);
      if (in.body_torque().at_start().has_point())
        throw MechanismError("at_start.point", "belongs to a force", "leave it out: a torque has no point");
      return builder.add_body_input(input, in.body_torque().body());
    case wire::Input::kJointEffort:
      return builder.add_joint_input(input, in.joint_effort().joint(),
                                     freedom(in.joint_effort().freedom(), in.joint_effort().joint(), file));
    case wire::Input::kSignal:
      if (!in.signal().unit().empty()) input.unit = in.signal().unit();
      return builder.add_signal_input(input);
    default:
      throw MechanismError("body_force", "is missing", "write body_force, body_torque, joint_effort or signal");
  }
}

void add(const wire::Output& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  using Kind = Output::Kind;
  Output output;
  output.name = in.name();
  const auto of_kind = [&output](Kind kind) { return output.kind = kind, output; };
  const auto joint_freedom = [&](const wire::OfFreedom& of) { return freedom(of.freedom(), of.joint(), file); };
  switch (in.measures_case()) {
    case wire::Output::kBodyPose:
      return builder.add_body_output(of_kind(Kind::body_pose), in.body_pose().body());
    case wire::Output::kBodyVelocity:
      return builder.add_body_output(of_kind(Kind::body_velocity), in.body_velocity().body());
    case wire::Output::kBodyAcceleration:
      return builder.add_body_output(of_kind(Kind::body_acceleration), in.body_acceleration().body());
    case wire::Output::kSpecificForce:
      output.point_b = here_or_at_start(
          in.specific_force().has_point(), in.specific_force().point(), in.specific_force().at_start().has_point(),
          in.specific_force().at_start().point(), "point", InBody{builder, in.specific_force().body()}.point());
      return builder.add_body_output(of_kind(Kind::specific_force), in.specific_force().body());
    case wire::Output::kJointCoordinate:
      return builder.add_joint_output(of_kind(Kind::joint_coordinate), in.joint_coordinate().joint(),
                                      joint_freedom(in.joint_coordinate()));
    case wire::Output::kJointRate:
      return builder.add_joint_output(of_kind(Kind::joint_rate), in.joint_rate().joint(),
                                      joint_freedom(in.joint_rate()));
    case wire::Output::kJointReaction:
      return builder.add_joint_output(of_kind(Kind::joint_reaction), in.joint_reaction().joint(), Freedom::angle);
    case wire::Output::kForceElement:
      return builder.add_element_output(of_kind(Kind::force_element), in.force_element().element());
    case wire::Output::kTyre:
      return builder.add_element_output(of_kind(Kind::tyre), in.tyre().element());
    case wire::Output::kBushing:
      return builder.add_element_output(of_kind(Kind::bushing), in.bushing().element());
    case wire::Output::kDrag:
      return builder.add_element_output(of_kind(Kind::drag), in.drag().element());
    case wire::Output::kEnergy:
      return builder.add_output(of_kind(Kind::energy));
    case wire::Output::kConstraintResidual:
      return builder.add_output(of_kind(Kind::constraint_residual));
    case wire::Output::kSingularityMargin:
      return builder.add_output(of_kind(Kind::singularity_margin));
    case wire::Output::kStepError:
      return builder.add_output(of_kind(Kind::step_error));
    case wire::Output::kSolverStatus:
      return builder.add_output(of_kind(Kind::solver_status));
    case wire::Output::kDriverEffort:
      return builder.add_driver_output(of_kind(Kind::driver_effort), in.driver_effort().driver());
    default:
      throw MechanismError("energy", "is missing", "say what the output measures, e.g. `body_pose { body: \"A\" }`");
  }
}

void add(const wire::Parameter& in, const wire::Mechanism&, MechanismBuilder& builder) {
  if (in.factor_size() != 0 && in.factor_size() != in.of_size())
    throw MechanismError(
        "factor",
        "is given " + std::to_string(in.factor_size()) + " times for " + std::to_string(in.of_size()) + " of `of`",
        "give one for each, or none");
  for (const auto& [is_given, field] : {std::pair(in.has_minimum(), "minimum"), {in.has_maximum(), "maximum"}})
    if (!is_given) throw MechanismError(field, "is missing", "give the range that the parameter may have");
  std::vector<MechanismBuilder::ParameterTarget> targets;
  for (int k = 0; k < in.of_size(); ++k) targets.push_back({in.of(k), in.factor_size() > 0 ? in.factor(k) : 1.0});
  builder.add_parameter(in.name(), targets, in.minimum(), in.maximum());
}

}  // namespace rigstep::config
