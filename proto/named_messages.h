// Messages with a field for each output channel or body of one mechanism. Their schema is made when a recording begins
// and stands in the file, so that tools which know nothing of Rigstep show channels and bodies by name.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "proto/recording.pb.h"

namespace rigstep::wire {

inline constexpr const char* kOutputsMessage = "rigstep.run.Outputs";
inline constexpr const char* kBodiesMessage = "rigstep.run.Bodies";

// A field's name for a channel "name [unit]": what no field name may hold becomes '_', the unit follows in letters:
// "wheel speed [rad/s]" is wheel_speed_rad_per_s.
std::string field_name_of_channel(const std::string& channel);

// Load time; then owned and used by the thread that writes or reads the recording.
class NamedMessages {
 public:
  // Channels and bodies are those of the header. Throws Error for a header whose names make no schema.
  explicit NamedMessages(const RecordingHeader& header);

  const google::protobuf::Descriptor* outputs_type() const { return outputs_type_; }
  const google::protobuf::Descriptor* bodies_type() const { return bodies_type_; }

  bool has_bodies() const { return !body_field_.empty(); }

  // values: (output channels of the header) [their units]. Valid until the next call.
  const google::protobuf::Message& outputs(std::uint64_t step, std::int64_t sim_time_ns,
                                           std::span<const double> values);
  // state: as in RecordedState, with the bodies of the header. Valid until the next call.
  const google::protobuf::Message& bodies(const RecordedState& state);

  // The values of an encoded message of outputs; false: it is none. step: its step.
  bool read_outputs(const std::uint8_t* data, std::size_t size, std::uint64_t& step, std::vector<double>& values);

 private:
  google::protobuf::DescriptorPool pool_;
  google::protobuf::DynamicMessageFactory factory_;
  const google::protobuf::Descriptor* outputs_type_ = nullptr;
  const google::protobuf::Descriptor* bodies_type_ = nullptr;
  std::unique_ptr<google::protobuf::Message> outputs_, bodies_;
  std::vector<const google::protobuf::FieldDescriptor*> output_field_, body_field_;
};

}  // namespace rigstep::wire
