#include "proto/bounds.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <charconv>
#include <string_view>
#include <unordered_map>

namespace rigstep::config {
namespace {

namespace pb = google::protobuf;

// Of a number its value, of a list how many it holds, of a text its bytes.
struct Bound {
  std::string_view field;  // Message.field
  double least = 0.0;
  double most = 0.0;
  std::string_view remedy;
};

constexpr double kAnyCount = 4294967295.0;  // a number of steps that costs nothing
constexpr double kMostElements = 100'000.0;
constexpr double kMostPoints = 1'000'000.0;  // of a table
constexpr double kLargestSize = 1e6;         // of a solid [m]
constexpr std::string_view kMetres = "write metres";
constexpr std::string_view kSequence = "write three letters such as \"zyx\"";
constexpr std::string_view kSplit = "split the mechanism";
constexpr std::string_view kThin = "keep fewer points";
constexpr std::string_view kForged = "the file is damaged or forged: use a copy";

// Zero of a number in a rig file: absent.
constexpr Bound kBounds[] = {
    {"Rig.period_us", 0, 1'000'000, "use 1000 for 1 kHz"},
    {"Rig.output", 0, 4096, "list each output once"},
    {"Rig.input", 0, 4096, "list each channel once"},
    {"Rig.safe_output", 0, 4096, "list each channel once"},
    {"Solver.iterations", 0, 50, "use 3, or a few more"},
    {"Solver.projection_passes", 0, 50, "leave it out"},
    {"Solver.order", 0, 4, "use 2 or 4"},
    {"Solver.relative_compliance", 0, 0.01, "leave it out, or use 1e-8"},
    {"Link.port", 0, 65535, "use a UDP port, 1 to 65535"},
    {"Link.timeout_steps", 0, 600'000, "use as many steps as 10 ms to one minute have"},
    {"Link.max_input_delay_ms", 0, 60'000, "use some hundred, or 0 to take inputs of any age"},
    {"Realtime.priority", 0, 99, "use a SCHED_FIFO priority, 1 to 99, or leave it out for 80"},
    {"Realtime.cpu", 0, 4095, "use 0 to the last core"},
    {"Realtime.threads", 0, 64, "use 1, or the cores to spare"},
    {"Realtime.busy_poll_us", 0, 1'000'000, "use some hundred, or leave it out"},
    {"DeadlineMisses.consecutive", 0, kAnyCount, "leave it out"},
    {"DeadlineMisses.per_second", 0, kAnyCount, "leave it out"},
    {"Recording.full_state_every", 0, 1'000'000'000, "leave it out for 1000"},
    {"Recording.outputs_every", 0, 1'000'000'000, "leave it out for 1"},
    {"Recording.output", 0, 4096, "name each output once"},
    {"StaleInput.max_age_steps", 0, kAnyCount, "leave it out for 20"},
    {"StaleInput.ramp_steps", 0, kAnyCount, "leave it out for 0.25 s"},
    {"StaleInput.fault_after_steps", 0, kAnyCount, "leave it out for 2 s"},
    {"ChannelInput.max_age_steps", 0, kAnyCount, "leave it out for 20"},
    {"ChannelInput.ramp_steps", 0, kAnyCount, "use some hundred"},
    {"SafeOutput.ramp_steps", 0, kAnyCount, "use some hundred"},
    {"Lifecycle.soft_start_steps", 0, kAnyCount, "use some hundred"},
    {"View.port", 0, 65535, "use a TCP port, 1 to 65535, or leave it out for 8470"},
    {"BlackBox.seconds", 0, 1'000'000, "use 30"},
    {"BlackBox.most_files", 0, 1'000'000, "leave it out for 50"},
    {"BlackBox.most_mebibytes", 0, 1e9, "leave it out for 1024"},
    {"BlackBox.reserve_mebibytes", 0, 1e9, "leave it out for 100"},

    {"EulerAngles.angle", 0, 3, "give 3"},
    {"EulerAngles.sequence", 0, 3, kSequence},
    {"ShapeInertia.density", 0, 1e6, "write kilograms per cubic metre: steel has 7850"},
    {"Box.x", 0, kLargestSize, kMetres},
    {"Box.y", 0, kLargestSize, kMetres},
    {"Box.z", 0, kLargestSize, kMetres},
    {"Cylinder.radius", 0, kLargestSize, kMetres},
    {"Cylinder.length", 0, kLargestSize, kMetres},
    {"Sphere.radius", 0, kLargestSize, kMetres},
    {"Tube.inner_radius", 0, kLargestSize, kMetres},
    {"Tube.outer_radius", 0, kLargestSize, kMetres},
    {"Tube.length", 0, kLargestSize, kMetres},
    {"Rod.length", 0, kLargestSize, kMetres},
    {"Rod.radius", 0, kLargestSize, kMetres},
    {"Capsule.radius", 0, kLargestSize, kMetres},
    {"Capsule.length", 0, kLargestSize, kMetres},
    {"Mesh.scale", 0, kLargestSize, "write the metres that a unit of the file has: 0.001 for millimetres"},
    {"Body.shape", 0, 1000, kSplit},

    {"Mechanism.body", 0, kMostElements, kSplit},
    {"Mechanism.joint", 0, kMostElements, kSplit},
    {"Mechanism.load", 0, kMostElements, kSplit},
    {"Mechanism.spring", 0, kMostElements, kSplit},
    {"Mechanism.input", 0, kMostElements, kSplit},
    {"Mechanism.output", 0, kMostElements, kSplit},
    {"Mechanism.coupling", 0, kMostElements, kSplit},
    {"Mechanism.driver", 0, kMostElements, kSplit},
    {"Mechanism.bushing", 0, kMostElements, kSplit},
    {"Mechanism.joint_friction", 0, kMostElements, kSplit},
    {"Mechanism.motor", 0, kMostElements, kSplit},
    {"Mechanism.drag", 0, kMostElements, kSplit},
    {"Mechanism.tyre", 0, kMostElements, kSplit},
    {"Mechanism.stop", 0, kMostElements, kSplit},
    {"Mechanism.rope", 0, kMostElements, kSplit},
    {"Mechanism.start", 0, 10'000, "hold less"},
    {"Mechanism.ground_shape", 0, 1000, kSplit},
    {"Rope.point", 0, 1000, "divide the rope"},
    {"Mechanism.effort", 0, kMostElements, kSplit},
    {"Mechanism.parameter", 0, 128, "let one parameter move several numbers"},
    {"Parameter.of", 0, 256, "divide the parameter"},
    {"Parameter.factor", 0, 256, "give one for each `of`"},
    {"ReferenceSolvers.penalty_factor", 1, 1e15, "leave it out, or use 1e12"},
    {"Start.parameter", 0, 128, "give each once"},
    {"DriverSum.harmonic", 0, 100, "use a table"},
    {"DriverSum.polynomial", 0, 100, "use a table"},
    {"DriverSum.table", 0, 100, "use one table"},
    {"EffortSum.harmonic", 0, 100, "use a table"},
    {"EffortSum.polynomial", 0, 100, "use a table"},
    {"EffortSum.table", 0, 100, "use one table"},
    {"StiffnessTable.deflection", 0, kMostPoints, kThin},
    {"StiffnessTable.effort", 0, kMostPoints, kThin},
    {"DampingTable.rate", 0, kMostPoints, kThin},
    {"DampingTable.effort", 0, kMostPoints, kThin},
    {"Table.time", 0, kMostPoints, kThin},
    {"Table.value", 0, kMostPoints, kThin},
    {"Polynomial.coefficient", 0, 100, "use a table"},
    {"Symmetric6.diagonal", 0, 36, "give 6"},
    {"Symmetric6.rows", 0, 36, "give 36"},

    {"SnapshotFile.mechanism_text", 0, static_cast<double>(kLargestConfigFile), kForged},
    {"SnapshotFile.mechanism_id", 0, 18446744073709551615.0, kForged},
    {"SnapshotFile.state_hash", 0, 18446744073709551615.0, kForged},
    {"SnapshotFile.dt_ns", 1, 1e9, kForged},
    {"SnapshotFile.iterations", 1, 50, kForged},
    {"SnapshotFile.relative_compliance", 0, 0.01, kForged},
    {"SnapshotFile.projection_passes", 1, 50, kForged},
    {"SnapshotFile.order", 2, 4, kForged},
    {"SnapshotFile.step", 0, static_cast<double>(kMostSteps), kForged},
    {"SnapshotFile.state_step", 0, static_cast<double>(kMostSteps), kForged},
    {"SnapshotFile.state", 0, 8'000'000, kForged},
    {"SnapshotFile.parameter", 0, 128, kForged},
    {"SnapshotFile.applied", 0, 128, kForged},
    {"SnapshotFile.newest", 0, 128, kForged},
    {"SnapshotFile.rate", 0, 128, kForged},
    {"SnapshotFile.ramp_start", 0, 128, kForged},
    {"SnapshotFile.age_steps", 0, kAnyCount, kForged},
    {"SnapshotFile.steps_since_start", 0, kAnyCount, kForged},
    {"SnapshotParameter.ramp_steps", 0, kAnyCount, kForged},
    {"SnapshotParameter.ramp_done", 0, kAnyCount, kForged},

    {"RecordingHeader.format_version", 0, kAnyCount, kForged},  // other versions are told by their number
    {"RecordingHeader.mechanism_id", 0, 18446744073709551615.0, kForged},
    {"RecordingHeader.start_hash", 0, 18446744073709551615.0, kForged},
    {"RecordingHeader.dt_ns", 1, 1e9, kForged},
    {"RecordingHeader.iterations", 1, 50, kForged},
    {"RecordingHeader.relative_compliance", 0, 0.01, kForged},
    {"RecordingHeader.projection_passes", 1, 50, kForged},
    {"RecordingHeader.order", 0, 4, kForged},
    {"RecordingHeader.start_step", 0, static_cast<double>(kMostSteps), kForged},
    {"RecordingHeader.start_state_step", 0, static_cast<double>(kMostSteps), kForged},
    {"RecordingHeader.start_state", 0, 8'000'000, kForged},
    {"RecordingHeader.input_channel", 0, 4096, kForged},
    {"RecordingHeader.output_channel", 0, 4096, kForged},
    {"RecordingHeader.body", 0, 400'000, kForged},
    {"RecordingHeader.parameter", 0, 128, kForged},
    {"RecordingHeader.start_parameter", 0, 128, kForged},
    {"RecordingHeader.outputs_every", 0, 1'000'000'000, kForged},
    {"RecordingHeader.realtime", 0, 4096, kForged},
    {"RecordingHeader.mechanism_text", 0, static_cast<double>(kLargestConfigFile), kForged},
    {"RecordingHeader.rig_text", 0, static_cast<double>(kLargestConfigFile), kForged},
    {"RecordingHeader.commissioning", 0, static_cast<double>(kLargestVerdict), kForged},
};

// Of every other number that is not whole, and of every other text: names and paths.
constexpr Bound kOtherNumber{"", -1e300, 1e300, "write a number that a machine part can have"};
constexpr Bound kOtherText{"", 0, 4096, "shorten it"};

using OwnBounds = std::unordered_map<const pb::FieldDescriptor*, const Bound*>;

const Bound* own_bound(const pb::FieldDescriptor& field) {
  static const OwnBounds bounds = [] {
    OwnBounds all;
    for (const Bound& bound : kBounds)
      all.emplace(pb::DescriptorPool::generated_pool()->FindFieldByName("rigstep.wire." + std::string(bound.field)),
                  &bound);
    return all;
  }();
  const auto found = bounds.find(&field);
  return found == bounds.end() ? nullptr : found->second;
}

std::string number_text(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 10).ptr};
}

// Empty where the value is within its bound.
std::string problem_of(const Bound& bound, double value, const std::string& what) {
  if (value >= bound.least && value <= bound.most) return {};
  const bool below = value < bound.least;
  return what + number_text(value) + ", " + (below ? "the least is " : "the most is ") +
         number_text(below ? bound.least : bound.most);
}

double as_number(const pb::Message& message, const pb::FieldDescriptor& field, int index) {
  const pb::Reflection& r = *message.GetReflection();
  const bool listed = field.is_repeated();
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return listed ? r.GetRepeatedDouble(message, &field, index) : r.GetDouble(message, &field);
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return listed ? r.GetRepeatedUInt32(message, &field, index) : r.GetUInt32(message, &field);
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(listed ? r.GetRepeatedUInt64(message, &field, index) : r.GetUInt64(message, &field));
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return static_cast<double>(
          (listed ? r.GetRepeatedString(message, &field, index) : r.GetString(message, &field)).size());
    default:
      return 0.0;  // true or false, one of a list of words
  }
}

// Of one value of the field.
std::string problem_of_value(const pb::Message& message, const pb::FieldDescriptor& field, const Bound* own,
                             int index) {
  const double value = as_number(message, field, index);
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return problem_of(own != nullptr ? *own : kOtherText, value, "its length in bytes is ");
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return problem_of(own != nullptr ? *own : kOtherNumber, value, "is ");
    default:
      return own != nullptr ? problem_of(*own, value, "is ") : std::string();
  }
}

std::string problem_of_list(const pb::Message& message, const pb::FieldDescriptor& field, const Bound* own) {
  const int count = message.GetReflection()->FieldSize(message, &field);
  std::string problem = own != nullptr ? problem_of(*own, count, "has a length of ") : std::string();
  if (field.message_type() != nullptr) return problem;
  for (int k = 0; k < count && problem.empty(); ++k) problem = problem_of_value(message, field, nullptr, k);
  return problem;
}

}  // namespace

std::optional<OutOfBounds> find_out_of_bounds(const pb::Message& message) {
  const pb::Reflection& reflection = *message.GetReflection();
  for (int k = 0; k < message.GetDescriptor()->field_count(); ++k) {
    const pb::FieldDescriptor& field = *message.GetDescriptor()->field(k);
    if (field.has_presence() && !reflection.HasField(message, &field)) continue;
    if (field.message_type() != nullptr && !field.is_repeated()) {
      auto inside = find_out_of_bounds(reflection.GetMessage(message, &field));
      if (!inside) continue;
      inside->field = field.name() + "." + inside->field;
      return inside;
    }
    const Bound* own = own_bound(field);
    const std::string problem =
        field.is_repeated() ? problem_of_list(message, field, own) : problem_of_value(message, field, own, -1);
    if (problem.empty()) continue;
    const Bound& bound = own != nullptr                                            ? *own
                         : field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING ? kOtherText
                                                                                   : kOtherNumber;
    return OutOfBounds{field.name(), problem, std::string(bound.remedy)};
  }
  return std::nullopt;
}

bool has_own_bound(const pb::FieldDescriptor& field) { return own_bound(field) != nullptr; }

}  // namespace rigstep::config
