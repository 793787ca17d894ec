// WHAT is simulated: bodies, joints, force elements, input and output channels at the start pose.
// The only thing that all solvers share. Built once by MechanismBuilder, which checks it; afterwards nothing changes
// but the values of its parameters. Load time only: nothing here is called inside the loop except const accessors and
// set_parameter.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/mechanism/elements/list.h"
#include "core/mechanism/freedom.h"
#include "core/mechanism/parameter.h"
#include "core/mechanism/time_function.h"
#include "core/mechanism/types.h"

namespace rigstep {

struct Body {
  std::string name;
  double mass = 0.0;                                // [kg]
  Mat3 inertia_b = Mat3::Zero();                    // about the mass centre, body axes [kg m^2]
  Vec3 position_0 = Vec3::Zero();                   // mass centre, world frame [m]
  EulerParameters orientation{1.0, 0.0, 0.0, 0.0};  // body -> world, unit norm [-]
  Vec3 velocity_0 = Vec3::Zero();                   // of the mass centre, world frame [m/s]
  Vec3 angular_velocity_0 = Vec3::Zero();           // world frame [rad/s]
};

enum class JointType {
  spherical,
  revolute,
  prismatic,
  cylindrical,
  universal,
  fixed,
  point_on_point,
  point_on_line,
  perpendicular_axes,
  parallel_axes,
  planar,          // the second point stays in the plane through the first one normal to the axis; parallel axes
  gimbal,          // as spherical, with its three Cardan angles as freedoms
  screw,           // cylindrical, with displacement = lead / (2 pi) * angle
  point_on_plane,  // the second point stays in the plane through the first one normal to the first body's axis
  distance,        // the two points keep their distance: a rod without mass between two balls
  floating,        // no constraint: measures, loads or drives the pose of the second body against the first
};

struct Joint {
  std::string name;
  JointType type = JointType::spherical;
  int first = kGround;   // body index or kGround
  int second = kGround;  // body index or kGround; reactions are those exerted on the second body
  JointFrame in_first;
  JointFrame in_second;
  double lead = 0.0;    // screw: displacement per turn, positive for a right-handed thread [m]
  double length = 0.0;  // distance: of the two points [m]
};

// A joint freedom whose unwrapped value is followed over time; index into State.coordinate.
struct JointCoordinate {
  int joint = 0;
  Freedom freedom = Freedom::angle;
  double offset = 0.0;  // added to what the joint frames measure [m] or [rad]
};

// A gear, belt or rack: first coordinate + ratio * second coordinate keeps its value of the start pose. It acts on the
// bodies of both joints.
struct Coupling {
  std::string name;
  int first = -1;  // indices into Mechanism::coordinates()
  int second = -1;
  double ratio = 0.0;  // [unit of the first coordinate per unit of the second]: rad/rad, m/rad, rad/m or m/m
};

// A joint coordinate that follows a function of time, an input, or the sum of both, whatever effort that takes.
struct Driver {
  enum class FromInput {
    nothing,
    motion,    // channels NAME.position, NAME.velocity, NAME.acceleration
    filtered,  // channel NAME.position alone, through 1 / (time_constant p + 1)^3
  };
  std::string name;
  int coordinate = -1;    // index into Mechanism::coordinates()
  TimeFunction function;  // [m] or [rad]; may be empty beside an input
  FromInput from_input = FromInput::nothing;
  double time_constant = 0.0;  // filtered [s]
  int first_channel = -1;      // of the inputs; set by the builder

  int channels() const { return from_input == FromInput::motion ? 3 : from_input == FromInput::filtered ? 1 : 0; }
};

enum class Frame { world, body };

// A load of the mechanism itself: scale(t) (force, torque), scale(t) = constant + amplitude sin(omega t + phase).
struct AppliedLoad {
  std::string name;
  int body = 0;
  Frame frame = Frame::world;      // of force and torque; the direction turns with the body if `body`
  Vec3 force = Vec3::Zero();       // [N]
  Vec3 torque = Vec3::Zero();      // [N m]
  Vec3 point_b = Vec3::Zero();     // where the force acts, from the mass centre, body frame [m]
  double constant = 1.0;           // [-]
  double amplitude = 0.0;          // [-]
  double angular_frequency = 0.0;  // [rad/s]
  double phase = 0.0;              // [rad]
};

// An input channel: one number per step that becomes a load. Held constant on (t_k, t_k+1].
struct Input {
  enum class Kind {
    body_force,
    body_torque,
    joint_effort,
    signal,  // no load of its own: motors and tyres read it
  };
  std::string name;
  Kind kind = Kind::body_force;
  int body = 0;                    // body_force, body_torque
  Frame frame = Frame::world;      // of direction
  Vec3 direction = Vec3::UnitX();  // unit; the load is value * direction
  Vec3 point_b = Vec3::Zero();     // body_force: where it acts, body frame [m]
  int joint = -1;                  // joint_effort: positive effort increases the coordinate
  Freedom freedom = Freedom::angle;
  std::string unit = "-";  // signal: as its readers understand it
};

// An output quantity; takes channel_names(...).size() consecutive output channels.
struct Output {
  enum class Kind {
    body_pose,            // x y z [m] e0 e1 e2 e3 [-]
    body_velocity,        // vx vy vz [m/s] wx wy wz [rad/s], world frame
    body_acceleration,    // ax ay az [m/s^2] alx aly alz [rad/s^2], world frame
    specific_force,       // x y z [m/s^2]: acceleration minus gravity at a point, body frame (an accelerometer)
    joint_coordinate,     // [m] or [rad]
    joint_rate,           // [m/s] or [rad/s]
    joint_reaction,       // fx fy fz [N] tx ty tz [N m] on the second body, about its joint point, world frame
    energy,               // kinetic potential total [J]
    constraint_residual,  // position [m] velocity [m/s] acceleration [m/s^2], largest row
    solver_status,        // status [-] last_increment [m, rad]
    driver_effort,        // of a driver along its freedom, positive increases the coordinate [N] or [N m]
    force_element,        // deflection [m] or [rad], rate, effort [N] or [N m] of a spring, friction, motor or effort
    tyre,                 // fx fy fz [N] on the wheel, road axes; slip [-] slip_angle [rad] deflection [m]
    bushing,              // x y z [m] rx ry rz [rad] deflection; fx fy fz [N] tx ty tz [N m] on the second body; both
                          // in the first frame's axes
    singularity_margin,   // [-] 0 at a singular pose, of the order of 1 elsewhere
    drag,                 // fx fy fz [N] on the body, world frame; speed [m/s] of the point against the air
    step_error,  // position [m] orientation [rad], estimates for the worst body, and its index; -1 where the step
                 // has none
  };
  std::string name;
  Kind kind = Kind::energy;
  int body = 0;
  Vec3 point_b = Vec3::Zero();  // specific_force: sensor point from the mass centre, body frame [m]
  int joint = -1;               // joint_reaction
  int coordinate = -1;          // joint_coordinate, joint_rate: index into Mechanism::coordinates()
  int first_channel = 0;        // set by the builder
  int element = -1;             // force_element, tyre, bushing, drag: index among elements of its kind
  int element_kind = 0;         // their kind: kind_of<Element>
  int driver = -1;              // driver_effort
};

struct Channel {
  std::string name;
  std::string unit;
};

class Mechanism {
 public:
  const std::string& name() const { return name_; }
  const Vec3& gravity_0() const { return gravity_0_; }  // [m/s^2], world frame
  const std::vector<Body>& bodies() const { return bodies_; }
  const std::vector<Joint>& joints() const { return joints_; }
  const std::vector<AppliedLoad>& loads() const { return loads_; }
  const std::vector<Spring>& springs() const { return all<Spring>(); }
  const std::vector<Bushing>& bushings() const { return all<Bushing>(); }
  const std::vector<JointFriction>& frictions() const { return all<JointFriction>(); }
  const std::vector<Motor>& motors() const { return all<Motor>(); }
  const std::vector<AppliedEffort>& efforts() const { return all<AppliedEffort>(); }
  const std::vector<Drag>& drags() const { return all<Drag>(); }
  const std::vector<Tyre>& tyres() const { return all<Tyre>(); }
  // the force elements of one kind
  template <class Element>
  const std::vector<Element>& all() const {
    return std::get<std::vector<Element>>(elements_);
  }
  const std::vector<JointCoordinate>& coordinates() const { return coordinates_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Output>& outputs() const { return outputs_; }
  const std::vector<Coupling>& couplings() const { return couplings_; }
  const std::vector<Driver>& drivers() const { return drivers_; }
  const std::vector<Channel>& input_channels() const { return input_channels_; }
  const std::vector<Channel>& output_channels() const { return output_channels_; }
  // Index of the channel among Inputs::value or Outputs::value. Load time: look up once, then use the index in the
  // loop. Throws MechanismError that tells the nearest names.
  int input_channel(std::string_view name) const;
  int output_channel(std::string_view name) const;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  // Index among these; throws MechanismError that tells the nearest names.
  int parameter(std::string_view name) const;
  // Writes the numbers that the parameter drives. False, and nothing changed, where there is no such parameter or it
  // does not allow the value.
  bool set_parameter(int index, double value) noexcept;

  // Identifies content, not file: equal for equal descriptions, different with any changed number or name. Of
  // parameters with other values it is that of the declared ones.
  std::uint64_t id() const { return id_; }

  // Constraints in the order of their rows: joints, then couplings, then drivers. The name says of which kind it is,
  // e.g. `coupling "mesh"`.
  int constraints() const { return static_cast<int>(joints_.size() + couplings_.size() + drivers_.size()); }
  std::string constraint_name(int constraint) const;

  // "ground" for kGround.
  std::string_view body_name(int body) const;

 private:
  friend class MechanismBuilder;
  // everything of this type whose numbers a parameter may name (numbers.h); Vec3: gravity
  template <class Owner>
  std::span<Owner> owners();
  std::string name_;
  Vec3 gravity_0_ = Vec3::Zero();
  std::vector<Body> bodies_;
  std::vector<Joint> joints_;
  std::vector<AppliedLoad> loads_;
  ElementKinds::Vectors elements_;
  std::vector<JointCoordinate> coordinates_;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<Coupling> couplings_;
  std::vector<Driver> drivers_;
  std::vector<Channel> input_channels_;
  std::vector<Channel> output_channels_;
  std::vector<Parameter> parameters_;
  std::uint64_t id_ = 0;
};

template <class Owner>
std::span<Owner> Mechanism::owners() {
  if constexpr (std::is_same_v<Owner, Vec3>)
    return {&gravity_0_, 1};
  else if constexpr (std::is_same_v<Owner, Body>)
    return bodies_;
  else if constexpr (std::is_same_v<Owner, Joint>)
    return joints_;
  else if constexpr (std::is_same_v<Owner, Coupling>)
    return couplings_;
  else if constexpr (std::is_same_v<Owner, AppliedLoad>)
    return loads_;
  else if constexpr (std::is_same_v<Owner, Driver>)
    return drivers_;
  else
    return std::get<std::vector<Owner>>(elements_);
}

// Base of every error that Rigstep throws at load time.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A mechanism that cannot be simulated as described.
struct MechanismError : Error {
  // field: the offending field in the schema's words, e.g. "mass"; remedy: what to do about it.
  MechanismError(std::string field, std::string problem, std::string remedy);
  std::string field;
  std::string problem;
  std::string remedy;
};

// Freedoms that a joint of this type leaves measurable; empty for joints without a scalar freedom.
std::vector<Freedom> freedoms(JointType type);

std::string_view to_string(JointType type);
std::string_view to_string(Freedom freedom);

// Largest number of input or of output channels of one mechanism.
inline constexpr int kMaxChannels = 128;

}  // namespace rigstep
