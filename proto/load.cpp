#include "proto/load.h"

#include <fcntl.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>

#include "proto/mechanism.pb.h"
#include "proto/rig.pb.h"

namespace rigstep::wire {

namespace {

namespace pb = google::protobuf;
using Tree = pb::TextFormat::ParseInfoTree;

std::string place(const std::string& path, int line) { return line > 0 ? path + ":" + std::to_string(line) : path; }

ConfigError error_at(const std::string& path, int line, const std::string& field, const std::string& problem,
                     const std::string& remedy) {
  return ConfigError(place(path, line) + ": " + field + ": " + problem + ": " + remedy);
}

// Keeps the first complaint of the text format parser.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int at_line, pb::io::ColumnNumber, const std::string& what) override {
    if (!message.empty()) return;
    line = at_line + 1;
    message = what;
  }
  int line = 0;
  std::string message;
};

constexpr int kDeepest = 16;  // messages within messages; the schemas need 4

// A parsed file that knows where each of its fields stands.
class Source {
 public:
  Source(const std::string& text, std::string path, pb::Message& message) : path_(std::move(path)) {
    FirstError first;
    pb::TextFormat::Parser parser;
    parser.SetRecursionLimit(kDeepest);
    parser.RecordErrorsTo(&first);
    parser.WriteLocationsTo(&tree_);
    pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
    if (!parser.Parse(&stream, &message))
      throw error_at(path_, first.line, "syntax", first.message,
                     "see the schema of " + message.GetDescriptor()->full_name() + " in proto/");
  }

  // Runs `add` for element `index` of the repeated field and says where the file is wrong if it throws.
  template <class Add>
  void element(const pb::Message& message, const char* field, int index, const Add& add) const {
    const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
    const pb::Message& part = message.GetReflection()->GetRepeatedMessage(message, descriptor, index);
    try {
      add();
      if (const auto beyond = find_out_of_bounds(part))
        throw MechanismError(beyond->field, beyond->problem, beyond->remedy);
    } catch (const MechanismError& error) {
      const auto* name = part.GetDescriptor()->FindFieldByName("name");
      if (name == nullptr) name = part.GetDescriptor()->FindFieldByName("channel");
      const std::string label = part.GetReflection()->GetString(part, name);
      const Tree* tree = tree_.GetTreeForNested(descriptor, index);
      const int line = line_in(part, tree, error.field, tree_.GetLocation(descriptor, index).line + 1);
      const std::string element = label.empty() ? field : std::string(field) + " \"" + label + "\"";
      throw error_at(path_, line, element + "." + error.field, error.problem, error.remedy);
    }
  }

  // Of all but the elements of lists of messages, which element() sees to.
  void require_bounds(const pb::Message& message) const {
    if (const auto beyond = find_out_of_bounds(message)) fail(message, beyond->field, beyond->problem, beyond->remedy);
  }

  int line_of(const pb::Message& message, const char* field, int index = -1) const {
    return tree_.GetLocation(message.GetDescriptor()->FindFieldByName(field), index).line + 1;
  }

  // Line of a dotted field, or of what encloses it; 0 if neither is written.
  int line_of_path(const pb::Message& message, const std::string& field) const {
    return line_in(message, &tree_, field, 0);
  }

  [[noreturn]] void fail(const pb::Message& message, const std::string& field, const std::string& problem,
                         const std::string& remedy) const {
    throw error_at(path_, line_of_path(message, field), field, problem, remedy);
  }

 private:
  // As line_of_path; `otherwise` if neither is written.
  static int line_in(const pb::Message& message, const Tree* tree, const std::string& field, int otherwise) {
    if (tree == nullptr) return otherwise;
    const std::string head = field.substr(0, field.find('.'));
    const auto* descriptor = message.GetDescriptor()->FindFieldByName(head);
    if (descriptor == nullptr) return line_in_part(message, tree, field, otherwise);
    const int line = tree->GetLocation(descriptor, descriptor->is_repeated() ? 0 : -1).line;
    const int found = line >= 0 ? line + 1 : otherwise;
    if (head.size() == field.size() || descriptor->message_type() == nullptr || descriptor->is_repeated()) return found;
    return line_in(message.GetReflection()->GetMessage(message, descriptor), tree->GetTreeForNested(descriptor, -1),
                   field.substr(head.size() + 1), found);
  }

  // Line of a field that belongs to a part such as `joint_effort`.
  static int line_in_part(const pb::Message& message, const Tree* tree, const std::string& field, int otherwise) {
    std::vector<const pb::FieldDescriptor*> set;
    message.GetReflection()->ListFields(message, &set);
    for (const auto* part : set)
      if (part->message_type() != nullptr && !part->is_repeated() &&
          part->message_type()->FindFieldByName(field) != nullptr)
        return line_in(message.GetReflection()->GetMessage(message, part), tree->GetTreeForNested(part, -1), field,
                       otherwise);
    return otherwise;
  }

  std::string path_;
  Tree tree_;
};

Vec3 vector(const Vector& v) { return {v.x(), v.y(), v.z()}; }

rigstep::Frame frame(FrameOfReference frame) { return frame == BODY ? rigstep::Frame::body : rigstep::Frame::world; }

rigstep::Body body(const wire::Body& in) {
  rigstep::Body b;
  b.name = in.name();
  b.mass = in.mass();
  const Inertia& i = in.inertia();
  b.inertia_b << i.xx(), i.xy(), i.xz(), i.xy(), i.yy(), i.yz(), i.xz(), i.yz(), i.zz();
  b.position_0 = vector(in.position());
  if (in.has_orientation()) {
    const auto& p = in.orientation();
    b.orientation << p.e0(), p.e1(), p.e2(), p.e3();
  }
  b.velocity_0 = vector(in.velocity());
  b.angular_velocity_0 = vector(in.angular_velocity());
  return b;
}

rigstep::JointType joint_type(wire::JointType type) {
  switch (type) {
    case SPHERICAL:
      return rigstep::JointType::spherical;
    case REVOLUTE:
      return rigstep::JointType::revolute;
    case PRISMATIC:
      return rigstep::JointType::prismatic;
    case CYLINDRICAL:
      return rigstep::JointType::cylindrical;
    case UNIVERSAL:
      return rigstep::JointType::universal;
    case FIXED:
      return rigstep::JointType::fixed;
    case POINT_ON_POINT:
      return rigstep::JointType::point_on_point;
    case POINT_ON_LINE:
      return rigstep::JointType::point_on_line;
    case PERPENDICULAR_AXES:
      return rigstep::JointType::perpendicular_axes;
    case PARALLEL_AXES:
      return rigstep::JointType::parallel_axes;
    case PLANAR:
      return rigstep::JointType::planar;
    case GIMBAL:
      return rigstep::JointType::gimbal;
    case SCREW:
      return rigstep::JointType::screw;
    case POINT_ON_PLANE:
      return rigstep::JointType::point_on_plane;
    case DISTANCE:
      return rigstep::JointType::distance;
    case FLOATING:
      return rigstep::JointType::floating;
    default:
      throw MechanismError("type", "is missing", "write e.g. `type: REVOLUTE`");
  }
}

void require_own_fields(const wire::Joint& in, rigstep::JointType type) {
  if (in.lead() != 0.0 && type != rigstep::JointType::screw)
    throw MechanismError("lead", "belongs to a screw", "leave it out, or write `type: SCREW`");
  if (in.length() == 0.0) return;
  if (type != rigstep::JointType::distance)
    throw MechanismError("length", "belongs to a distance", "leave it out, or write `type: DISTANCE`");
  if (in.has_at_start())
    throw MechanismError("length", "is that of the start pose beside at_start",
                         "leave it out, or place the joint by in_first and in_second");
}

void add_joint(const wire::Joint& in, MechanismBuilder& builder) {
  const rigstep::JointType type = joint_type(in.type());
  require_own_fields(in, type);
  const bool in_bodies = in.has_in_first() || in.has_in_second();
  if (in.has_at_start() == in_bodies)
    throw MechanismError("at_start", in_bodies ? "stands beside in_first or in_second" : "is missing",
                         "place the joint by at_start alone, or by in_first and in_second");
  if (in.has_at_start()) {
    const JointAtStart& at = in.at_start();
    builder.add_joint({in.name(), type, in.first(), in.second(), vector(at.point()), vector(at.axis()),
                       vector(at.second_axis()), at.coordinate(), at.second_coordinate(), vector(at.normal()),
                       vector(at.second_point()), in.lead()});
    return;
  }
  if (!in.has_in_first() || !in.has_in_second())
    throw MechanismError(in.has_in_first() ? "in_second" : "in_first", "is missing", "describe both sides");
  const auto side = [](const JointSide& s) {
    return MechanismBuilder::SideInBody{vector(s.point()), vector(s.axis()), vector(s.normal())};
  };
  builder.add_joint(in.name(), type, in.first(), in.second(), side(in.in_first()), side(in.in_second()),
                    type == rigstep::JointType::screw ? in.lead() : in.length());
}

std::string in_capitals(rigstep::Freedom freedom) {
  std::string text(to_string(freedom));
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

// The freedom meant, where the file may leave it out if the joint has only one.
rigstep::Freedom freedom(wire::Freedom written, const std::string& joint, const wire::Mechanism& file,
                         const char* field = "freedom") {
  switch (written) {
    case DISPLACEMENT:
      return rigstep::Freedom::displacement;
    case ANGLE:
      return rigstep::Freedom::angle;
    case FIRST_ANGLE:
      return rigstep::Freedom::first_angle;
    case SECOND_ANGLE:
      return rigstep::Freedom::second_angle;
    case THIRD_ANGLE:
      return rigstep::Freedom::third_angle;
    case DISPLACEMENT_X:
      return rigstep::Freedom::displacement_x;
    case DISPLACEMENT_Y:
      return rigstep::Freedom::displacement_y;
    case DISPLACEMENT_Z:
      return rigstep::Freedom::displacement_z;
    default:
      break;
  }
  for (const wire::Joint& candidate : file.joint()) {
    if (candidate.name() != joint) continue;
    const auto open = freedoms(joint_type(candidate.type()));
    if (open.size() > 1)
      throw MechanismError(
          field,
          "is missing and joint \"" + joint + "\" has " + (open.size() == 2 ? "two" : std::to_string(open.size())),
          "write `" + std::string(field) + ": " + in_capitals(open[0]) + "` or another of them");
    if (!open.empty()) return open[0];
  }
  return rigstep::Freedom::angle;  // the builder says what is wrong with the joint
}

// A vector of `in` that stands either in its own field or in at_start, in the world at the start pose.
template <class Convert>
Vec3 here_or_at_start(bool has_here, const Vector& here, bool has_at_start, const Vector& at_start, const char* field,
                      const Convert& convert) {
  if (!has_at_start) return vector(here);
  if (has_here)
    throw MechanismError(std::string("at_start.") + field, std::string("stands beside ") + field, "give one of them");
  return convert(vector(at_start));
}

// The converters of here_or_at_start for what one body carries.
struct InBody {
  const MechanismBuilder& builder;
  const std::string& body;
  const char* field = "body";  // that names it
  auto point() const {
    return [this](const Vec3& point_0) { return builder.point_in_body(body, point_0, field); };
  }
  auto direction() const {
    return [this](const Vec3& direction_0) { return builder.direction_in_body(body, direction_0, field); };
  }
};

// Directions of the world that do not turn with a body are the same at the start as ever.
void require_body_frame(FrameOfReference frame, bool turns, const char* field) {
  if (turns && frame != BODY)
    throw MechanismError(std::string("at_start.") + field, "does not turn with the body",
                         std::string("write `frame: BODY`, or give ") + field + " outside at_start");
}

void add_load(const wire::Load& in, MechanismBuilder& builder) {
  AppliedLoad load;
  load.name = in.name();
  load.frame = frame(in.frame());
  const LoadAtStart& at = in.at_start();
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

Characteristic characteristic(const pb::RepeatedField<double>& x, const pb::RepeatedField<double>& y,
                              const char* field) {
  if (x.empty() && y.empty()) throw MechanismError(field, "is empty", "give two points at least, or leave it out");
  return {{x.begin(), x.end()}, {y.begin(), y.end()}};
}

// The ends of a spring between two bodies: BetweenPoints or AlongDirection.
template <class Ends>
void place_ends(const Ends& in, const MechanismBuilder& builder, rigstep::Spring& spring) {
  const PointsAtStart& at = in.at_start();
  spring.first_point_b =
      here_or_at_start(in.has_first_point(), in.first_point(), at.has_first_point(), at.first_point(), "first_point",
                       InBody{builder, in.first(), "first"}.point());
  spring.second_point_b =
      here_or_at_start(in.has_second_point(), in.second_point(), at.has_second_point(), at.second_point(),
                       "second_point", InBody{builder, in.second(), "second"}.point());
}

void add_spring(const wire::Spring& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::Spring spring;
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
      spring.kind = rigstep::Spring::Kind::along_direction;
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

// Of BodyForce or BodyTorque.
template <class Load>
void direct(const Load& in, const MechanismBuilder& builder, rigstep::Input& input) {
  input.frame = frame(in.frame());
  require_body_frame(in.frame(), in.at_start().has_direction(), "direction");
  input.direction = here_or_at_start(in.has_direction(), in.direction(), in.at_start().has_direction(),
                                     in.at_start().direction(), "direction", InBody{builder, in.body()}.direction());
}

void add_input(const wire::Input& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::Input input;
  input.name = in.name();
  switch (in.acts_case()) {
    case wire::Input::kBodyForce:
      direct(in.body_force(), builder, input);
      input.point_b = here_or_at_start(in.body_force().has_point(), in.body_force().point(),
                                       in.body_force().at_start().has_point(), in.body_force().at_start().point(),
                                       "point", InBody{builder, in.body_force().body()}.point());
      return builder.add_body_input(input, in.body_force().body());
    case wire::Input::kBodyTorque:
      input.kind = rigstep::Input::Kind::body_torque;
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

void add_coupling(const wire::Coupling& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::Coupling coupling;
  coupling.name = in.name();
  coupling.ratio = in.ratio();
  builder.add_coupling(coupling, in.first_joint(), freedom(in.first_freedom(), in.first_joint(), file, "first_freedom"),
                       in.second_joint(), freedom(in.second_freedom(), in.second_joint(), file, "second_freedom"));
}

TimeFunction time_function(const Harmonic& in) {
  return harmonic(in.constant(), in.amplitude(), in.angular_frequency(), in.phase());
}

TimeFunction time_function(const Polynomial& in) {
  return polynomial({in.coefficient().begin(), in.coefficient().end()});
}

TimeFunction time_function(const wire::Table& in) {
  return table({in.time().begin(), in.time().end()}, {in.value().begin(), in.value().end()});
}

// DriverSum or EffortSum, less its input.
template <class Sum>
TimeFunction sum_of(const Sum& in) {
  TimeFunction sum;
  for (const auto& term : in.harmonic()) sum = sum + time_function(term);
  for (const auto& term : in.polynomial()) sum = sum + time_function(term);
  for (const auto& term : in.table()) sum = sum + time_function(term);
  return sum;
}

void follow_input(const FromInput& in, rigstep::Driver& driver) {
  using From = rigstep::Driver::FromInput;
  driver.from_input = in.has_position_only() ? From::filtered : From::motion;
  driver.time_constant = in.position_only().time_constant();
}

void add_driver(const wire::Driver& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::Driver driver;
  driver.name = in.name();
  switch (in.motion_case()) {
    case wire::Driver::kHarmonic:
      driver.function = time_function(in.harmonic());
      break;
    case wire::Driver::kPolynomial:
      driver.function = time_function(in.polynomial());
      break;
    case wire::Driver::kTable:
      driver.function = time_function(in.table());
      break;
    case wire::Driver::kInput:
      follow_input(in.input(), driver);
      break;
    case wire::Driver::kSum:
      driver.function = sum_of(in.sum());
      if (in.sum().has_input()) follow_input(in.sum().input(), driver);
      break;
    default:
      throw MechanismError("polynomial", "is missing", "write harmonic, polynomial, table, input or sum");
  }
  builder.add_driver(std::move(driver), in.joint(), freedom(in.freedom(), in.joint(), file));
}

void add_effort(const wire::Effort& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::AppliedEffort effort;
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

void add_output(const wire::Output& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  using Kind = rigstep::Output::Kind;
  rigstep::Output output;
  output.name = in.name();
  const auto of_kind = [&output](Kind kind) { return output.kind = kind, output; };
  const auto joint_freedom = [&](const OfFreedom& of) { return freedom(of.freedom(), of.joint(), file); };
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
      return builder.add_joint_output(of_kind(Kind::joint_reaction), in.joint_reaction().joint(),
                                      rigstep::Freedom::angle);
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
    case wire::Output::kSolverStatus:
      return builder.add_output(of_kind(Kind::solver_status));
    case wire::Output::kDriverEffort:
      return builder.add_driver_output(of_kind(Kind::driver_effort), in.driver_effort().driver());
    default:
      throw MechanismError("energy", "is missing", "say what the output measures, e.g. `body_pose { body: \"A\" }`");
  }
}

Mat6 symmetric(const Symmetric6& in, const char* field) {
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

MechanismBuilder::SideInBody bushing_side(const JointSide& side) {
  return {vector(side.point()), vector(side.axis()), vector(side.normal())};
}

void add_bushing(const wire::Bushing& in, MechanismBuilder& builder) {
  rigstep::Bushing bushing;
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
  if (in.has_at_start()) return builder.add_bushing(bushing, in.first(), in.second(), bushing_side(in.at_start()));
  if (!in.has_in_first() || !in.has_in_second())
    throw MechanismError(in.has_in_first() ? "in_second" : "in_first", "is missing", "describe both sides");
  builder.add_bushing(bushing, in.first(), in.second(), bushing_side(in.in_first()), bushing_side(in.in_second()));
}

void add_friction(const wire::JointFriction& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::JointFriction friction;
  friction.name = in.name();
  friction.coulomb = in.coulomb();
  friction.viscous = in.viscous();
  if (in.regularisation_speed() != 0.0) friction.regularisation_speed = in.regularisation_speed();
  builder.add_friction(std::move(friction), in.joint(), freedom(in.freedom(), in.joint(), file));
}

void add_motor(const wire::Motor& in, const wire::Mechanism& file, MechanismBuilder& builder) {
  rigstep::Motor motor;
  motor.name = in.name();
  motor.constant = in.constant();
  motor.position_gain = in.position_gain();
  motor.rate_gain = in.rate_gain();
  motor.effort_limit = in.effort_limit();
  motor.no_load_speed = in.no_load_speed();
  builder.add_motor(std::move(motor), in.joint(), freedom(in.freedom(), in.joint(), file),
                    {in.effort_input(), in.position_input(), in.rate_input()});
}

void add_drag(const wire::Drag& in, MechanismBuilder& builder) {
  rigstep::Drag drag;
  drag.name = in.name();
  drag.point_b = here_or_at_start(in.has_point(), in.point(), in.at_start().has_point(), in.at_start().point(), "point",
                                  InBody{builder, in.body()}.point());
  drag.drag_area = in.drag_area();
  if (in.has_density()) drag.density = in.density();
  drag.wind_0 = vector(in.wind());
  builder.add_drag(std::move(drag), in.body());
}

rigstep::SlipCurve slip_curve(const wire::SlipCurve& in) {
  rigstep::SlipCurve curve;
  if (in.has_b()) curve.B = in.b();
  if (in.has_c()) curve.C = in.c();
  if (in.has_e()) curve.E = in.e();
  if (in.has_friction()) curve.friction = in.friction();
  return curve;
}

void add_tyre(const wire::Tyre& in, MechanismBuilder& builder) {
  rigstep::Tyre tyre;
  tyre.name = in.name();
  const TyreAtStart& at = in.at_start();
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

rigstep::Mechanism build(const wire::Mechanism& file, const Source& source) {
  MechanismBuilder builder(file.name());
  if (file.has_gravity()) {
    const Vec3 gravity = vector(file.gravity());
    if (!gravity.allFinite()) source.fail(file, "gravity", "is not a finite number", "write finite components");
    builder.set_gravity(gravity);
  }
  source.require_bounds(file);
  const auto each = [&](const char* field, int count, const auto& add) {
    for (int i = 0; i < count; ++i) source.element(file, field, i, [&] { add(i); });
  };
  each("body", file.body_size(), [&](int i) { builder.add_body(body(file.body(i))); });
  each("joint", file.joint_size(), [&](int i) { add_joint(file.joint(i), builder); });
  each("load", file.load_size(), [&](int i) { add_load(file.load(i), builder); });
  each("spring", file.spring_size(), [&](int i) { add_spring(file.spring(i), file, builder); });
  each("input", file.input_size(), [&](int i) { add_input(file.input(i), file, builder); });
  each("coupling", file.coupling_size(), [&](int i) { add_coupling(file.coupling(i), file, builder); });
  each("driver", file.driver_size(), [&](int i) { add_driver(file.driver(i), file, builder); });
  each("bushing", file.bushing_size(), [&](int i) { add_bushing(file.bushing(i), builder); });
  each("joint_friction", file.joint_friction_size(),
       [&](int i) { add_friction(file.joint_friction(i), file, builder); });
  each("effort", file.effort_size(), [&](int i) { add_effort(file.effort(i), file, builder); });
  each("motor", file.motor_size(), [&](int i) { add_motor(file.motor(i), file, builder); });
  each("drag", file.drag_size(), [&](int i) { add_drag(file.drag(i), builder); });
  each("tyre", file.tyre_size(), [&](int i) { add_tyre(file.tyre(i), builder); });
  each("output", file.output_size(), [&](int i) { add_output(file.output(i), file, builder); });
  try {
    return builder.build();
  } catch (const MechanismError& error) {
    source.fail(file, error.field, error.problem, error.remedy);
  }
}

}  // namespace

namespace {

// Of a regular file: a pipe may never end, and a device may have no end.
std::string read_bytes(const std::string& path, std::size_t most_bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) throw ConfigError(path + ": file: cannot be read: check the path and the permissions");
  const std::unique_ptr<const int, void (*)(const int*)> closed(&file, [](const int* open) { ::close(*open); });
  struct stat status {};
  if (::fstat(file, &status) != 0 || S_ISDIR(status.st_mode))
    throw ConfigError(path + ": file: cannot be read: check the path and the permissions");
  if (!S_ISREG(status.st_mode))
    throw ConfigError(path + ": file: is no regular file: write what comes from there to a file, and name that");
  std::string content(std::min(static_cast<std::size_t>(status.st_size), most_bytes) + 1, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size <= most_bytes; size += static_cast<std::size_t>(got)) {
    if (size == content.size()) content.resize(2 * size);
    got = ::read(file, content.data() + size, content.size() - size);
    if (got < 0) throw ConfigError(path + ": file: cannot be read: check the disk and read it again");
  }
  if (size > most_bytes)
    throw ConfigError(path + ": file: has more than " + std::to_string(most_bytes) +
                      " bytes, the most of its kind: shorten it");
  content.resize(size);
  return content;
}

}  // namespace

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
  std::string content = read_bytes(path, most_bytes);
  if (!is_utf8(content)) throw ConfigError(path + ": file: is not UTF-8 text: save it as UTF-8");
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors put it in front
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  return content;
}

bool is_utf8(const std::string& text) {
  return pb::internal::IsStructurallyValidUTF8(text.data(), static_cast<int>(text.size()));
}

ConfigError LoadedMechanism::at_joint(int j, const MechanismError& error) const {
  std::vector<int> line = joint_line;
  line.insert(line.end(), coupling_line.begin(), coupling_line.end());
  line.insert(line.end(), driver_line.begin(), driver_line.end());
  return error_at(path, line[j], error.field, error.problem, error.remedy);
}

LoadedMechanism parse_mechanism(std::string text, const std::string& path) {
  wire::Mechanism file;
  const Source source(text, path, file);
  LoadedMechanism loaded{build(file, source), std::move(text), path, {}, {}, {}};
  for (int j = 0; j < file.joint_size(); ++j) loaded.joint_line.push_back(source.line_of(file, "joint", j));
  for (int k = 0; k < file.coupling_size(); ++k) loaded.coupling_line.push_back(source.line_of(file, "coupling", k));
  for (int k = 0; k < file.driver_size(); ++k) loaded.driver_line.push_back(source.line_of(file, "driver", k));
  return loaded;
}

LoadedMechanism load_mechanism(const std::string& path) { return parse_mechanism(read_text_file(path), path); }

namespace {

void set(const Vec3& from, Vector& to) {
  to.set_x(from[0]);
  to.set_y(from[1]);
  to.set_z(from[2]);
}

Vec3 turned_about(const Vec3& axis, const Vec3& normal, double angle) {
  return std::cos(angle) * normal + std::sin(angle) * axis.cross(normal);
}

// The same joint as built into its bodies; what it measured at the start goes into its points and normals.
void build_in(const rigstep::Joint& joint, wire::Joint& file) {
  if (!file.has_at_start()) return;
  const JointAtStart at = file.at_start();
  file.clear_at_start();
  if (joint.type == rigstep::JointType::distance) file.set_length(joint.length);
  Vec3 first_point = joint.in_first.point_b;
  Vec3 first_normal = joint.in_first.axes_b.col(0), second_normal = joint.in_second.axes_b.col(0);
  const Vec3 first_axis = joint.in_first.axes_b.col(2), second_axis = joint.in_second.axes_b.col(2);
  const auto open = freedoms(joint.type);
  for (std::size_t k = 0; k < open.size(); ++k) {
    double start = k == 0 ? at.coordinate() : k == 1 ? at.second_coordinate() : 0.0;
    if (joint.type == rigstep::JointType::screw && k == 1) start = at.coordinate() * (2.0 * M_PI / joint.lead);
    if (open[k] == rigstep::Freedom::displacement)
      first_point -= start * first_axis;
    else if (is_length(open[k]))
      first_point -= start * joint.in_first.axes_b.col(open[k] == rigstep::Freedom::displacement_x ? 0 : 1);
    else if (open[k] == rigstep::Freedom::second_angle)
      second_normal = turned_about(second_axis, second_normal, start);
    else
      first_normal = turned_about(first_axis, first_normal, -start);
  }
  set(first_point, *file.mutable_in_first()->mutable_point());
  set(first_axis, *file.mutable_in_first()->mutable_axis());
  set(first_normal, *file.mutable_in_first()->mutable_normal());
  set(joint.in_second.point_b, *file.mutable_in_second()->mutable_point());
  set(second_axis, *file.mutable_in_second()->mutable_axis());
  set(second_normal, *file.mutable_in_second()->mutable_normal());
}

// A bushing measures nothing at the start: its two frames are all.
void build_in(const rigstep::Bushing& bushing, wire::Bushing& file) {
  if (!file.has_at_start()) return;
  file.clear_at_start();
  const auto write = [](const JointFrame& frame, JointSide& side) {
    set(frame.point_b, *side.mutable_point());
    set(frame.axes_b.col(2), *side.mutable_axis());
    set(frame.axes_b.col(0), *side.mutable_normal());
  };
  write(bushing.in_first, *file.mutable_in_first());
  write(bushing.in_second, *file.mutable_in_second());
}

// The others keep what at_start does not give.
void build_in(const AppliedLoad& load, wire::Load& file) {
  if (file.at_start().has_point()) set(load.point_b, *file.mutable_point());
  if (file.at_start().has_force()) set(load.force, *file.mutable_force());
  if (file.at_start().has_torque()) set(load.torque, *file.mutable_torque());
  file.clear_at_start();
}

template <class Ends>
void build_in_ends(const rigstep::Spring& spring, Ends& file) {
  if (file.at_start().has_first_point()) set(spring.first_point_b, *file.mutable_first_point());
  if (file.at_start().has_second_point()) set(spring.second_point_b, *file.mutable_second_point());
  file.clear_at_start();
}

void build_in(const rigstep::Spring& spring, wire::Spring& file) {
  if (file.has_between_points()) build_in_ends(spring, *file.mutable_between_points());
  if (file.has_along_direction()) build_in_ends(spring, *file.mutable_along_direction());
}

template <class Load>
void build_in_direction(const rigstep::Input& input, Load& file) {
  if (file.at_start().has_direction()) set(input.direction, *file.mutable_direction());
  file.clear_at_start();
}

void build_in(const rigstep::Input& input, wire::Input& file) {
  if (file.body_force().at_start().has_point()) set(input.point_b, *file.mutable_body_force()->mutable_point());
  if (file.has_body_force()) build_in_direction(input, *file.mutable_body_force());
  if (file.has_body_torque()) build_in_direction(input, *file.mutable_body_torque());
}

void build_in(const rigstep::Drag& drag, wire::Drag& file) {
  if (file.at_start().has_point()) set(drag.point_b, *file.mutable_point());
  file.clear_at_start();
}

void build_in(const rigstep::Tyre& tyre, wire::Tyre& file) {
  if (file.at_start().has_centre()) set(tyre.centre_b, *file.mutable_centre());
  if (file.at_start().has_axis()) set(tyre.axis_b, *file.mutable_axis());
  file.clear_at_start();
}

void build_in(const rigstep::Output& output, wire::Output& file) {
  if (!file.specific_force().at_start().has_point()) return;
  set(output.point_b, *file.mutable_specific_force()->mutable_point());
  file.mutable_specific_force()->clear_at_start();
}

// Elements and their messages, which are in the same order.
template <class Elements, class Messages>
void build_in_all(const Elements& elements, Messages& messages) {
  for (int k = 0; k < messages.size(); ++k) build_in(elements[static_cast<std::size_t>(k)], *messages.Mutable(k));
}

}  // namespace

std::string with_start(const LoadedMechanism& loaded, const std::vector<rigstep::Body>& bodies) {
  wire::Mechanism file;
  const Source source(loaded.text, loaded.path, file);
  for (int i = 0; i < file.body_size(); ++i) {
    const rigstep::Body& from = bodies[i];
    wire::Body& to = *file.mutable_body(i);
    set(from.position_0, *to.mutable_position());
    set(from.velocity_0, *to.mutable_velocity());
    set(from.angular_velocity_0, *to.mutable_angular_velocity());
    to.mutable_orientation()->set_e0(from.orientation[0]);
    to.mutable_orientation()->set_e1(from.orientation[1]);
    to.mutable_orientation()->set_e2(from.orientation[2]);
    to.mutable_orientation()->set_e3(from.orientation[3]);
  }
  const rigstep::Mechanism& m = loaded.mechanism;
  build_in_all(m.joints(), *file.mutable_joint());
  build_in_all(m.bushings(), *file.mutable_bushing());
  build_in_all(m.loads(), *file.mutable_load());
  build_in_all(m.springs(), *file.mutable_spring());
  build_in_all(m.inputs(), *file.mutable_input());
  build_in_all(m.drags(), *file.mutable_drag());
  build_in_all(m.tyres(), *file.mutable_tyre());
  build_in_all(m.outputs(), *file.mutable_output());
  std::string out;
  pb::TextFormat::PrintToString(file, &out);
  return "# proto-file: proto/mechanism.proto\n# proto-message: rigstep.wire.Mechanism\n" + out;
}

RigConfig load_rig(const std::string& path) { return parse_rig(read_text_file(path), path); }

namespace {

void read_solver(const Rig& file, const Source& source, RigConfig& rig) {
  if (file.solver().iterations() != 0) rig.iterations = static_cast<int>(file.solver().iterations());
  rig.projection_passes = static_cast<int>(file.solver().projection_passes());
  if (const double eps = file.solver().relative_compliance(); eps != 0.0) {
    if (!(eps > 0.0 && eps < 1e-2))
      source.fail(file, "solver.relative_compliance", "is not between 0 and 0.01", "leave it out, or use 1e-8");
    rig.relative_compliance = eps;
  }
}

// Periods that so many seconds have, at least one. All that is long enough for a count is the largest one.
std::uint32_t steps_of(double seconds, const RigConfig& rig) {
  const double steps = std::ceil(seconds * 1e9 / static_cast<double>(rig.period_ns));
  return static_cast<std::uint32_t>(std::clamp(steps, 1.0, 4294967295.0));
}

void read_deadline_misses(const DeadlineMisses& misses, RigConfig& rig) {
  constexpr std::uint32_t kLeast = 10;
  rig.consecutive_misses = misses.has_consecutive() ? misses.consecutive() : std::max(kLeast, steps_of(1.0, rig));
  rig.misses_per_second = misses.has_per_second() ? misses.per_second() : std::max(kLeast, steps_of(0.75, rig));
}

void read_realtime(const Rig& file, const Source& source, RigConfig& rig) {
  rig.enforce_realtime = file.realtime().mode() == ENFORCE;
  if (file.realtime().priority() != 0) rig.priority = static_cast<int>(file.realtime().priority());
  if (file.realtime().threads() != 0) rig.threads = static_cast<int>(file.realtime().threads());
  if (file.realtime().has_cpu()) rig.cpu = static_cast<int>(file.realtime().cpu());
  rig.lockstep = file.realtime().pace() == RIG;
  rig.busy_poll_ns = 1000 * static_cast<std::int64_t>(file.realtime().busy_poll_us());
  if (!rig.lockstep && rig.busy_poll_ns >= rig.period_ns)
    source.fail(file, "realtime.busy_poll_us", "is not shorter than the period",
                "use what a wake-up takes at most, for instance 50");
  read_deadline_misses(file.realtime().deadline_misses_until_fault(), rig);
}

rigstep::StaleRule stale_rule(wire::StaleRule rule) {
  switch (rule) {
    case ZERO:
      return rigstep::StaleRule::zero;
    case FAULT:
      return rigstep::StaleRule::fault;
    case RAMP:
      return rigstep::StaleRule::ramp;
    case RATE:
      return rigstep::StaleRule::rate;
    default:
      return rigstep::StaleRule::hold;
  }
}

void read_stale_input(const Rig& file, const Source& source, RigConfig& rig) {
  if (file.stale_input().max_age_steps() != 0) rig.max_input_age_steps = file.stale_input().max_age_steps();
  if (file.stale_input().has_rule()) rig.stale_rule = stale_rule(file.stale_input().rule());
  if (rig.stale_rule == rigstep::StaleRule::rate)
    source.fail(file, "stale_input.rule", "is a rule of single channels",
                "write an `input { channel: \"...\" rule: RATE }` for each");
  rig.ramp_steps = file.stale_input().ramp_steps() != 0 ? file.stale_input().ramp_steps() : steps_of(0.25, rig);
}

// After the channels: the default leaves each of them the time that it was given.
void read_fault_after(const Rig& file, const Source& source, RigConfig& rig) {
  const StaleInput& stale = file.stale_input();
  if (stale.has_fault_after_steps()) {
    rig.fault_after_steps = stale.fault_after_steps();
    if (rig.fault_after_steps != 0 && rig.fault_after_steps <= rig.max_input_age_steps)
      source.fail(file, "stale_input.fault_after_steps", "is not more than max_age_steps",
                  "give an age after the stale rule has begun, or use `rule: FAULT`");
    return;
  }
  std::uint64_t ends = std::uint64_t{rig.max_input_age_steps} + rig.ramp_steps;
  for (const auto& input : rig.inputs)
    ends = std::max(ends, std::uint64_t{input.treatment.max_age_steps} + input.treatment.ramp_steps);
  rig.fault_after_steps = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(ends, steps_of(2.0, rig), std::numeric_limits<std::uint32_t>::max()));
}

rigstep::InputPolicy input_policy(const ChannelInput& in, const RigConfig& rig) {
  rigstep::InputPolicy policy{.rule = in.has_rule() ? stale_rule(in.rule()) : rig.stale_rule,
                              .max_age_steps = in.max_age_steps() != 0 ? in.max_age_steps() : rig.max_input_age_steps,
                              .safe = in.safe(),
                              .ramp_steps = in.has_ramp_steps() ? in.ramp_steps() : rig.ramp_steps};
  if (in.has_minimum()) policy.minimum = in.minimum();
  if (in.has_maximum()) policy.maximum = in.maximum();
  if (in.has_most_change_per_step()) policy.most_change_per_step = in.most_change_per_step();
  if (!std::isfinite(policy.safe)) throw MechanismError("safe", "is not a finite number", "give one");
  if (!(policy.minimum <= policy.maximum))
    throw MechanismError("minimum", "is not below the maximum", "give a range from minimum to maximum");
  if (!(policy.safe >= policy.minimum && policy.safe <= policy.maximum))
    throw MechanismError("safe", "lies outside minimum and maximum",
                         "give a safe value in the range; it is zero where it is not given");
  if (policy.rule == rigstep::StaleRule::zero && !(policy.minimum <= 0.0 && policy.maximum >= 0.0))
    throw MechanismError("rule", "is ZERO, which lies outside minimum and maximum", "use RAMP to a safe value");
  if (!(policy.most_change_per_step > 0.0))
    throw MechanismError("most_change_per_step", "is not more than zero", "leave it out for no limit");
  return policy;
}

template <class List>
void require_new_name(const List& list, const std::string& channel) {
  if (channel.empty()) throw MechanismError("channel", "is missing", "name the channel");
  for (const auto& known : list)
    if (known.channel == channel) throw MechanismError("channel", "is named twice", "describe each channel once");
}

void read_channels(const Rig& file, const Source& source, RigConfig& rig) {
  for (int k = 0; k < file.input_size(); ++k)
    source.element(file, "input", k, [&] {
      require_new_name(rig.inputs, file.input(k).channel());
      rig.inputs.push_back(
          {file.input(k).channel(), input_policy(file.input(k), rig), source.line_of(file, "input", k)});
    });
  for (int k = 0; k < file.safe_output_size(); ++k)
    source.element(file, "safe_output", k, [&] {
      const wire::SafeOutput& out = file.safe_output(k);
      require_new_name(rig.safe_outputs, out.channel());
      if (!std::isfinite(out.value())) throw MechanismError("value", "is not a finite number", "give one");
      rig.safe_outputs.push_back({out.channel(),
                                  {.value = out.value(), .ramp_steps = out.ramp_steps()},
                                  source.line_of(file, "safe_output", k)});
    });
}

void read_black_box(const Rig& file, const Source& source, RigConfig& rig) {
  if (!file.has_black_box()) return;
  rig.black_box_folder = file.black_box().folder();
  if (rig.black_box_folder.empty())
    source.fail(file, "black_box.folder", "is missing", "name an existing folder, \".\" for this one");
  if (file.black_box().seconds() != 0.0) rig.black_box_seconds = file.black_box().seconds();
  const double steps = rig.black_box_seconds * 1e9 / static_cast<double>(rig.period_ns);
  if (!(steps >= 1.0 && steps <= 1e6))
    source.fail(file, "black_box.seconds", "is not between one step and a million steps", "use 30");
  if (file.black_box().has_least_interval_seconds())
    rig.black_box_least_interval_s = file.black_box().least_interval_seconds();
  if (!(rig.black_box_least_interval_s >= 0.0 && rig.black_box_least_interval_s <= 86400.0))
    source.fail(file, "black_box.least_interval_seconds", "is not between 0 and a day", "use 10");
  if (file.black_box().most_files() != 0) rig.most_black_boxes = file.black_box().most_files();
  constexpr int kMebibyte = 20;  // binary digits
  if (const std::uint64_t most = file.black_box().most_mebibytes(); most != 0)
    rig.most_black_box_bytes = most << kMebibyte;
  if (file.black_box().has_reserve_mebibytes())
    rig.disk_reserve_bytes = std::uint64_t{file.black_box().reserve_mebibytes()} << kMebibyte;
}

// Index of the channel called so. what: "input" or "output".
int channel_named(const std::vector<Channel>& channels, const std::string& name, const RigConfig& rig, int line,
                  const char* field, const std::string& what) {
  std::string names;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].name == name) return static_cast<int>(c);
    names += (c == 0 ? "" : ", ") + channels[c].name;
  }
  throw error_at(rig.path, line, field, "\"" + name + "\" is no " + what + " channel of the mechanism",
                 names.empty() ? "it has none" : "use one of " + names);
}

void read_link(const Rig& file, const Source& source, const std::filesystem::path& folder, RigConfig& rig) {
  const Link& link = file.link();
  if (!link.address().empty()) rig.address = link.address();
  if (link.port() != 0) rig.port = static_cast<std::uint16_t>(link.port());
  if (!link.key_file().empty()) rig.key_path = (folder / link.key_file()).lexically_normal().string();
  rig.allow_unauthenticated = link.allow_unauthenticated();
  constexpr std::int64_t kUsual = 2'000'000'000;  // [ns]
  rig.timeout_steps = static_cast<std::uint32_t>(kUsual / rig.period_ns);
  if (link.timeout_steps() != 0) rig.timeout_steps = link.timeout_steps();
  const std::int64_t timeout_ns = rig.period_ns * rig.timeout_steps;
  if (timeout_ns < 10'000'000 || timeout_ns > 60'000'000'000)
    source.fail(file, "link.timeout_steps", "is a time-out of " + std::to_string(timeout_ns / 1'000'000) + " ms",
                "use as many steps as 10 ms to one minute have, or leave it out for two seconds");
  const std::int64_t stale_ms = rig.period_ns * rig.max_input_age_steps / 1'000'000;
  rig.max_input_delay_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(stale_ms, 100, 60'000));
  if (link.has_max_input_delay_ms()) rig.max_input_delay_ms = link.max_input_delay_ms();
}

}  // namespace

RigConfig parse_rig(std::string text, const std::string& path) {
  Rig file;
  const Source source(text, path, file);
  source.require_bounds(file);
  RigConfig rig;
  if (file.mechanism().empty()) source.fail(file, "mechanism", "is missing", "name the mechanism file");
  rig.mechanism_path = (std::filesystem::path(path).parent_path() / file.mechanism()).lexically_normal().string();
  if (file.period_us() != 0) rig.period_ns = 1000 * static_cast<std::int64_t>(file.period_us());
  if (rig.period_ns < 100'000 || rig.period_ns > 1'000'000'000)
    source.fail(file, "period_us", "is not between 100 and 1000000", "use 1000 for 1 kHz");
  read_solver(file, source, rig);
  read_realtime(file, source, rig);
  rig.recording_path = file.recording().path();
  if (file.recording().full_state_every() != 0) rig.full_state_every = file.recording().full_state_every();
  read_stale_input(file, source, rig);
  read_link(file, source, std::filesystem::path(path).parent_path(), rig);
  read_channels(file, source, rig);
  read_fault_after(file, source, rig);
  read_black_box(file, source, rig);
  rig.outputs.assign(file.output().begin(), file.output().end());
  rig.text = std::move(text);
  rig.path = path;
  return rig;
}

std::string place_in(const RigConfig& rig, const std::string& field, int index) {
  Rig file;
  const Source source(rig.text, rig.path, file);
  int line = source.line_of_path(file, field);
  if (file.GetDescriptor()->FindFieldByName(field) != nullptr)
    for (int k = index; k > 0; --k)  // a list in brackets stands where it begins
      if (const int own = source.line_of(file, field.c_str(), k); own > 0) {
        line = own;
        break;
      }
  return place(rig.path, line) + ": " + field;
}

std::vector<rigstep::InputPolicy> input_policies(const RigConfig& rig, const rigstep::Mechanism& mechanism) {
  std::vector<rigstep::InputPolicy> policies(
      mechanism.input_channels().size(),
      {.rule = rig.stale_rule, .max_age_steps = rig.max_input_age_steps, .ramp_steps = rig.ramp_steps});
  for (const auto& input : rig.inputs)
    policies[static_cast<std::size_t>(channel_named(mechanism.input_channels(), input.channel, rig, input.line,
                                                    "input.channel", "input"))] = input.treatment;
  return policies;
}

std::vector<rigstep::SafeOutput> safe_outputs(const RigConfig& rig, const rigstep::Mechanism& mechanism) {
  std::vector<rigstep::SafeOutput> outputs;
  for (const auto& output : rig.safe_outputs) {
    outputs.push_back(output.treatment);
    outputs.back().channel =
        channel_named(mechanism.output_channels(), output.channel, rig, output.line, "safe_output.channel", "output");
  }
  return outputs;
}

}  // namespace rigstep::wire
