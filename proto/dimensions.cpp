#include "proto/dimensions.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "proto/load_parts.h"

namespace rigstep::config {
namespace {

namespace pb = google::protobuf;

struct Entry {
  std::string_view field;  // Message.field
  std::string_view dimension;
};

constexpr Entry kDimensions[] = {
    {"Rig.period_us", "us"},
    {"ErrorLimit.position", "m"},
    {"ErrorLimit.orientation", "rad"},
    {"Link.max_input_delay_ms", "ms"},
    {"Realtime.busy_poll_us", "us"},
    {"BlackBox.seconds", "s"},
    {"BlackBox.least_interval_seconds", "s"},
    {"ChannelInput.safe", "channel"},
    {"ChannelInput.minimum", "channel"},
    {"ChannelInput.maximum", "channel"},
    {"ChannelInput.most_change_per_step", "channel"},
    {"SafeOutput.value", "channel"},
    {"StartParameter.value", "parameter"},

    {"EulerAngles.angle", "rad"},
    {"AxisAngle.angle", "rad"},
    {"Mechanism.gravity", "m/s^2"},
    {"Parameter.minimum", "parameter"},
    {"Parameter.maximum", "parameter"},
    {"Inertia.xx", "kg m^2"},
    {"Inertia.yy", "kg m^2"},
    {"Inertia.zz", "kg m^2"},
    {"Inertia.xy", "kg m^2"},
    {"Inertia.xz", "kg m^2"},
    {"Inertia.yz", "kg m^2"},
    {"ShapeInertia.density", "kg/m^3"},
    {"Box.x", "m"},
    {"Box.y", "m"},
    {"Box.z", "m"},
    {"Cylinder.radius", "m"},
    {"Cylinder.length", "m"},
    {"Sphere.radius", "m"},
    {"Tube.inner_radius", "m"},
    {"Tube.outer_radius", "m"},
    {"Tube.length", "m"},
    {"Rod.length", "m"},
    {"Rod.radius", "m"},
    {"Capsule.radius", "m"},
    {"Capsule.length", "m"},
    {"Shape.position", "m"},
    {"Body.mass", "kg"},
    {"Body.position", "m"},
    {"Body.velocity", "m/s"},
    {"Body.angular_velocity", "rad/s"},

    {"Joint.lead", "m"},
    {"Joint.length", "m"},
    {"JointAtStart.point", "m"},
    {"JointAtStart.second_point", "m"},
    {"JointAtStart.coordinate", "x1"},
    {"JointAtStart.second_coordinate", "x2"},
    {"JointSide.point", "m"},
    {"HeldAtStart.displacement", "m"},
    {"HeldAtStart.angle", "rad"},
    {"HeldAtStart.first_angle", "rad"},
    {"HeldAtStart.second_angle", "rad"},
    {"HeldAtStart.third_angle", "rad"},
    {"HeldAtStart.displacement_x", "m"},
    {"HeldAtStart.displacement_y", "m"},
    {"HeldAtStart.displacement_z", "m"},
    {"HeldAtStart.rate", "x/s"},
    {"Coupling.ratio", "x1/x2"},
    {"Harmonic.constant", "q"},
    {"Harmonic.amplitude", "q"},
    {"Harmonic.angular_frequency", "rad/s"},
    {"Harmonic.phase", "rad"},
    {"Polynomial.coefficient", "q/s^[k]"},
    {"Table.time", "s"},
    {"Table.value", "q"},
    {"PositionOnly.time_constant", "s"},

    {"Load.force", "N"},
    {"Load.torque", "N m"},
    {"Load.point", "m"},
    {"Load.constant", "-"},
    {"Load.amplitude", "-"},
    {"Load.angular_frequency", "rad/s"},
    {"Load.phase", "rad"},
    {"LoadAtStart.point", "m"},
    {"LoadAtStart.force", "N"},
    {"LoadAtStart.torque", "N m"},
    {"PointsAtStart.first_point", "m"},
    {"PointsAtStart.second_point", "m"},
    {"PointAtStart.point", "m"},
    {"BetweenPoints.first_point", "m"},
    {"BetweenPoints.second_point", "m"},
    {"AlongDirection.first_point", "m"},
    {"AlongDirection.second_point", "m"},
    {"Spring.stiffness", "E/x"},
    {"Spring.damping", "E s/x"},
    {"Spring.rest", "x"},
    {"Spring.preload", "E"},
    {"StiffnessTable.deflection", "x"},
    {"StiffnessTable.effort", "E"},
    {"DampingTable.rate", "x/s"},
    {"DampingTable.effort", "E"},
    {"Symmetric6.diagonal", "mount[k]"},
    {"Symmetric6.rows", "mount[k]"},
    {"JointFriction.coulomb", "E"},
    {"JointFriction.viscous", "E s/x"},
    {"JointFriction.regularisation_speed", "x/s"},
    {"Motor.constant", "E"},
    {"Motor.position_gain", "E/x"},
    {"Motor.rate_gain", "E s/x"},
    {"Motor.effort_limit", "E"},
    {"Motor.no_load_speed", "x/s"},
    {"Effort.constant", "E"},
    {"Drag.point", "m"},
    {"Drag.drag_area", "m^2"},
    {"Drag.density", "kg/m^3"},
    {"Drag.wind", "m/s"},
    {"Stop.lower", "x"},
    {"Stop.upper", "x"},
    {"Stop.stiffness", "E/x"},
    {"Stop.damping", "s/x"},
    {"Restitution.coefficient", "-"},
    {"Restitution.at_speed", "x/s"},
    {"Rope.length", "m"},
    {"Rope.stiffness", "N"},
    {"Rope.damping", "N s"},
    {"RopePoint.point", "m"},
    {"Tyre.centre", "m"},
    {"Tyre.radius", "m"},
    {"Tyre.stiffness", "N/m"},
    {"Tyre.damping", "N s/m"},
    {"Tyre.low_speed", "m/s"},
    {"Tyre.road_point", "m"},
    {"TyreAtStart.centre", "m"},
    {"BodyForce.point", "m"},
    {"InputAtStart.point", "m"},
    {"AtPoint.point", "m"},
};

std::string entry_of(const pb::FieldDescriptor& field) {
  static const std::unordered_map<std::string_view, std::string_view> table = [] {
    std::unordered_map<std::string_view, std::string_view> all;
    for (const Entry& entry : kDimensions) all.emplace(entry.field, entry.dimension);
    return all;
  }();
  const auto found = table.find(field.containing_type()->name() + "." + field.name());
  return found == table.end() ? std::string() : std::string(found->second);
}

// Of a bushing's stiffness: force or torque over a translation or a rotation. (k: of 6 on the diagonal or of 36.)
std::string mount_dimension(bool is_diagonal, int k, bool is_damping) {
  const int row = is_diagonal ? k : k / 6, column = is_diagonal ? k : k % 6;
  return std::string(row < 3 ? "N" : "N m") + (is_damping ? " s" : "") + (column < 3 ? "/m" : "/rad");
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

const char* unit_of(Freedom freedom) { return is_length(freedom) ? "m" : "rad"; }

struct Coordinates {
  const char* first = "m";
  const char* second = "m";
};

Coordinates coordinates_of(const wire::Joint& joint) {
  const std::vector<Freedom> open = freedoms(joint_type(joint.type()));
  return {open.empty() ? "-" : unit_of(open[0]), open.size() < 2 ? "-" : unit_of(open[1])};
}

// A message with `joint` and `freedom`.
template <class OnFreedom>
Coordinates on_freedom(const OnFreedom& in, const wire::Mechanism& file) {
  return {unit_of(freedom(in.freedom(), in.joint(), file))};
}

template <class Element>
Coordinates in_joint_or_between(const Element& in, const wire::Mechanism& file) {
  return in.has_in_joint() ? on_freedom(in.in_joint(), file) : Coordinates{};
}

// What the element acts on; absent: it has no such thing.
std::optional<Coordinates> coordinates(const pb::Message& element, const wire::Mechanism& file) {
  const auto is = [&element]<class Kind>(const Kind*) { return dynamic_cast<const Kind*>(&element); };
  if (const auto* joint = is(static_cast<wire::Joint*>(nullptr))) return coordinates_of(*joint);
  if (const auto* spring = is(static_cast<wire::Spring*>(nullptr))) return in_joint_or_between(*spring, file);
  if (const auto* stop = is(static_cast<wire::Stop*>(nullptr))) return in_joint_or_between(*stop, file);
  if (const auto* driver = is(static_cast<wire::Driver*>(nullptr))) return on_freedom(*driver, file);
  if (const auto* friction = is(static_cast<wire::JointFriction*>(nullptr))) return on_freedom(*friction, file);
  if (const auto* motor = is(static_cast<wire::Motor*>(nullptr))) return on_freedom(*motor, file);
  if (const auto* effort = is(static_cast<wire::Effort*>(nullptr))) return on_freedom(*effort, file);
  if (const auto* start = is(static_cast<wire::HeldAtStart*>(nullptr))) {
    const auto held = held_freedom(*start, file);
    return held ? std::optional(Coordinates{unit_of(*held)}) : std::nullopt;
  }
  if (const auto* coupling = is(static_cast<wire::Coupling*>(nullptr)))
    return Coordinates{unit_of(freedom(coupling->first_freedom(), coupling->first_joint(), file, "first_freedom")),
                       unit_of(freedom(coupling->second_freedom(), coupling->second_joint(), file, "second_freedom"))};
  return std::nullopt;
}

}  // namespace

std::string dimension_of(const pb::FieldDescriptor& field, const pb::FieldDescriptor* parent, int index) {
  std::string dimension = entry_of(field);
  if (dimension.empty() && parent != nullptr && parent->message_type() != nullptr &&
      parent->message_type()->name() == "Vector")
    dimension = entry_of(*parent);
  if (dimension == "mount[k]")
    return mount_dimension(field.name() == "diagonal", index, parent != nullptr && parent->name() == "damping");
  return index == 0 && dimension == "q/s^[k]" ? "q" : replaced(dimension, "[k]", std::to_string(index));
}

bool is_open(const std::string& dimension) {
  return dimension == "channel" || dimension == "parameter" || dimension.find_first_of("xEq") != dimension.npos;
}

std::optional<std::string> closed_dimension(const std::string& dimension, const pb::Message& element,
                                            const pb::Message& root) {
  const auto* file = dynamic_cast<const wire::Mechanism*>(&root);
  if (file == nullptr) return std::nullopt;
  const std::optional<Coordinates> x = coordinates(element, *file);
  if (!x) return std::nullopt;
  const bool is_length = std::string_view(x->first) == "m";
  const bool gives_effort = dynamic_cast<const wire::Effort*>(&element) != nullptr;
  std::string closed = replaced(dimension, "q", gives_effort ? "E" : "x");
  closed = replaced(replaced(closed, "x1", x->first), "x2", x->second);
  return replaced(replaced(closed, "x", x->first), "E", is_length ? "N" : "N m");
}

}  // namespace rigstep::config
