// Makes mechanisms: every element is checked as it is added. Load time.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/mechanism/assembly.h"
#include "core/mechanism/mechanism.h"

namespace rigstep {

// Collects a description and checks each element as it is added. Every add_* throws MechanismError and leaves
// the builder as it was. Names refer to elements added before; "ground" is the world.
class MechanismBuilder {
 public:
  explicit MechanismBuilder(std::string name) { mechanism_.name_ = std::move(name); }

  void set_gravity(const Vec3& gravity_0);  // [m/s^2]
  void add_body(Body body);

  // The joint as it stands at the start pose: point [m] and axes in the world frame. `axis` is the joint axis (of
  // the first body for universal and perpendicular_axes), `second_axis` that of the second body (universal and
  // perpendicular_axes only). Always consistent with the start pose. Planar, gimbal and floating joints measure from
  // the start pose; the coordinate of a screw is its displacement, its angle follows.
  struct JointAtStart {
    std::string name;
    JointType type = JointType::spherical;
    std::string first, second;
    Vec3 point = Vec3::Zero();
    Vec3 axis = Vec3::Zero();
    Vec3 second_axis = Vec3::Zero();
    double coordinate_at_start = 0.0;         // [m] or [rad]; the displacement of a cylindrical joint
    double second_coordinate_at_start = 0.0;  // [rad]; cylindrical: its angle; universal: its second angle
    Vec3 normal = Vec3::Zero();               // x of the joint frame; zero: any normal to the axis
    Vec3 second_point = Vec3::Zero();         // distance: the point on the second body [m]
    double lead = 0.0;                        // screw [m]
  };
  void add_joint(const JointAtStart& joint);

  // The joint as built into each body: point [m] from the mass centre, axis and a reference direction normal to it,
  // in body coordinates (world for the ground). Coordinates are zero where the reference directions coincide.
  // May disagree with the start pose; that is found, and corrected on request, when the start state is made.
  using SideInBody = rigstep::SideInBody;
  // size: the lead of a screw or the length of a distance [m]; the displacement of a screw is zero where its angle is.
  void add_joint(std::string name, JointType type, const std::string& first, const std::string& second,
                 const SideInBody& in_first, const SideInBody& in_second, double size = 0.0);

  // A point [m] or direction given in the world at the start pose, in the coordinates of the body that carries it
  // (those of the world for the ground): for all elements below that take points of bodies. field: that names the body.
  Vec3 point_in_body(const std::string& body, const Vec3& point_0, const char* field = "body") const;
  Vec3 direction_in_body(const std::string& body, const Vec3& direction_0, const char* field = "body") const;

  // The other way round: a point or direction in the body's coordinates, in the world at the start pose; and how the
  // body's own axes stand there.
  Vec3 point_in_world(const std::string& body, const Vec3& point_b, const char* field = "body") const;
  Vec3 direction_in_world(const std::string& body, const Vec3& direction_b, const char* field = "body") const;
  EulerParameters orientation_in_world(const std::string& body, const char* field = "body") const;

  void add_load(AppliedLoad load, const std::string& body);
  // A force element of any kind; `where`: what its own header says it is connected to (`connect`).
  template <class Element, class... Where>
  void add_element(Element element, const Where&... where) {
    check_name(element.name, Element::kName);
    require_new_element(element.name, Element::kName);
    connect(element, *this, where...);
    std::get<std::vector<Element>>(mechanism_.elements_).push_back(std::move(element));
  }
  void add_spring(Spring spring, const std::string& first, const std::string& second) {
    add_element(std::move(spring), first, second);
  }
  void add_joint_spring(Spring spring, const std::string& joint, Freedom freedom) {
    add_element(std::move(spring), joint, freedom);
  }
  void add_body_input(Input input, const std::string& body);
  void add_joint_input(Input input, const std::string& joint, Freedom freedom);
  void add_body_output(Output output, const std::string& body);
  void add_joint_output(Output output, const std::string& joint, Freedom freedom);  // freedom unused for reactions
  void add_output(Output output);  // energy, constraint_residual, solver_status, singularity_margin, step_error
  void add_coupling(Coupling coupling, const std::string& first_joint, Freedom first_freedom,
                    const std::string& second_joint, Freedom second_freedom);
  void add_driver(Driver driver, const std::string& joint, Freedom freedom);
  void add_driver_output(Output output, const std::string& driver);

  void add_bushing(Bushing bushing, const std::string& first, const std::string& second, const SideInBody& at_start) {
    add_element(std::move(bushing), first, second, at_start);
  }
  void add_bushing(Bushing bushing, const std::string& first, const std::string& second, const SideInBody& in_first,
                   const SideInBody& in_second) {
    add_element(std::move(bushing), first, second, in_first, in_second);
  }
  void add_friction(JointFriction friction, const std::string& joint, Freedom freedom) {
    add_element(std::move(friction), joint, freedom);
  }
  void add_effort(AppliedEffort effort, const std::string& joint, Freedom freedom) {
    add_element(std::move(effort), joint, freedom);
  }
  void add_signal_input(Input input);  // an input that only force elements read

  using MotorInputs = rigstep::MotorInputs;
  void add_motor(Motor motor, const std::string& joint, Freedom freedom, const MotorInputs& inputs) {
    add_element(std::move(motor), joint, freedom, inputs);
  }
  void add_drag(Drag drag, const std::string& body) { add_element(std::move(drag), body); }
  void add_tyre(Tyre tyre, const std::string& body, const std::string& height_input,
                const std::string& height_rate_input) {
    add_element(std::move(tyre), body, height_input, height_rate_input);
  }
  // force_element, tyre, bushing or drag, by the element's name
  void add_element_output(Output output, const std::string& element);

  // For force elements, to find what they are connected to. `field` names the field in what is thrown.
  int find_body(const std::string& name, const char* field) const;   // kGround for "ground"
  int find_input(const std::string& name, const char* field) const;  // -1 for ""
  AlongFreedom along(const std::string& joint, Freedom freedom);     // of a joint that has this freedom
  JointFrame frame_in_body(int body, const Vec3& point_0, const Mat3& axes_0) const;  // given in the world at the start
  std::string_view body_name(int body) const { return mechanism_.body_name(body); }

  // What holds at the start, where bodies as they were added give it only roughly: a joint coordinate or its rate (a
  // joint without numbers keeps all its freedoms), or a body. place: what messages call it. build() places the other
  // bodies by core/mechanism/assembly.h. Whatever was given at the start pose is given in that of the bodies as
  // they were added. Without any of these the bodies stay as they were added.
  struct Start {
    std::string joint;
    std::optional<Freedom> freedom;
    std::optional<double> value;  // [m] or [rad]
    std::optional<double> rate;   // [m/s] or [rad/s]
    std::string place;
  };
  void hold_joint(const Start& start);
  void hold_body(const std::string& body);
  // A parameter that moves numbers of what was added before. of: OWNER.NUMBER, "gravity" or a name and what the tables
  // say (core/mechanism/numbers.h); the numbers must agree on the value, by their factors.
  struct ParameterTarget {
    std::string of;
    double factor = 1.0;
  };
  void add_parameter(const std::string& name, const std::vector<ParameterTarget>& targets, double minimum,
                     double maximum);
  // That a parameter with this first target has.
  std::string unit_of(const ParameterTarget& target);

  // Checks what only the whole can show (at least one body, channel counts) and numbers the channels.
  Mechanism build();
  // With the bodies where they were added, whatever is held.
  Mechanism build_as_added();
  bool holds_start() const { return !held_.empty(); }

 private:
  int find_joint(const std::string& name, const char* field = "joint") const;
  void check_name(const std::string& name, const char* kind) const;
  // Place of the freedom among those of the joint; throws if it has no such freedom.
  int require_freedom(int joint, Freedom freedom, const char* field) const;
  int follow_coordinate(int joint, Freedom freedom);
  void require_new_element(const std::string& name, const char* kind) const;  // among all force elements
  struct Candidate;
  std::vector<Candidate> candidates(const ParameterTarget& wanted, std::vector<std::string>& names);
  Candidate find_candidate(const ParameterTarget& wanted);
  Target find_target(const ParameterTarget& wanted, Parameter& parameter);  // fills in the unit where it is the first
  void require_own_target(const Parameter& parameter, const Target& target) const;
  void require_possible_ranges();
  void push_joint(Joint joint, double offset, double second_offset);
  void push_output(Output output);
  void assemble_start(Mechanism& m) const;

  Mechanism mechanism_;
  Held held_;
  std::vector<std::string> start_places_;                      // (Held::coordinates)
  std::vector<std::pair<double, double>> coordinate_offsets_;  // per joint, of its first and second freedom
};

}  // namespace rigstep
