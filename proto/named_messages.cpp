#include "proto/named_messages.h"

#include <google/protobuf/descriptor.pb.h>

#include <unordered_map>
#include <unordered_set>

#include "core/mechanism/mechanism.h"

namespace rigstep::wire {

namespace {

using google::protobuf::DescriptorProto;
using google::protobuf::FieldDescriptorProto;

constexpr int kFirstField = 3;  // after step and sim_time_ns
constexpr int kReserved = 19000, kAfterReserved = 20000;
constexpr int kNumbersPerBody = 19;

// Protobuf keeps 19000 ... 19999 for itself.
int field_number(int k) {
  const int number = kFirstField + k;
  return number < kReserved ? number : number + (kAfterReserved - kReserved);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string identifier(const std::string& text) {
  std::string name;
  for (const char c : text) name += is_letter(c) || is_digit(c) ? c : '_';
  return name.empty() || is_digit(name[0]) ? "_" + name : name;
}

std::string unit_in_letters(const std::string& unit) {
  std::string letters;
  for (const char c : unit) {
    if (c == '/')
      letters += "_per_";
    else if (is_letter(c) || is_digit(c))
      letters += c;
    else if (c == ' ' || c == '*')
      letters += '_';
  }
  return letters == "1" ? std::string() : letters;
}

// Adds fields whose names differ also where only letters and digits count and capitals do not, as proto3 demands.
class Fields {
 public:
  explicit Fields(DescriptorProto& message) : message_(message) {
    add("step", "step", FieldDescriptorProto::TYPE_UINT64, 1);
    add("sim_time_ns", "sim_time_ns", FieldDescriptorProto::TYPE_INT64, 2);
  }

  // label: for JSON, as people write it
  FieldDescriptorProto& add(const std::string& name, const std::string& label, FieldDescriptorProto::Type type,
                            int number) {
    std::string free_name = name;
    const std::string key = without_case(name);
    while (!taken_.insert(without_case(free_name)).second)
      free_name = name + "_n" + std::to_string(++numbered_.try_emplace(key, 1).first->second);
    FieldDescriptorProto& field = *message_.add_field();
    field.set_name(free_name);
    field.set_json_name(label);
    field.set_number(number);
    field.set_type(type);
    field.set_label(FieldDescriptorProto::LABEL_OPTIONAL);
    return field;
  }

 private:
  static std::string without_case(const std::string& name) {
    std::string key;
    for (const char c : name)
      if (c != '_') key += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return key;
  }

  DescriptorProto& message_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> numbered_;  // the number given last to a name, so that many equal ones take no
                                                   // longer than different ones
};

class FirstProblem : public google::protobuf::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& /*file*/, const std::string& element, const google::protobuf::Message* /*of*/,
                ErrorLocation /*where*/, const std::string& message) override {
    if (text.empty()) text = element + ": " + message;
  }
  std::string text;
};

// The fields of a message after step and time.
std::vector<const google::protobuf::FieldDescriptor*> fields_after_time(const google::protobuf::Descriptor* type) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  for (int k = kFirstField - 1; k < type->field_count(); ++k) fields.push_back(type->field(k));
  return fields;
}

void set_time(google::protobuf::Message& message, std::uint64_t step, std::int64_t sim_time_ns) {
  const auto* type = message.GetDescriptor();
  message.GetReflection()->SetUInt64(&message, type->field(0), step);
  message.GetReflection()->SetInt64(&message, type->field(1), sim_time_ns);
}

void set_vector(RecordedVector& vector, const double* xyz) {
  vector.set_x(xyz[0]), vector.set_y(xyz[1]), vector.set_z(xyz[2]);
}

// number: r p v w_b a alpha_b
void set_body(RecordedBody& body, const double* number) {
  set_vector(*body.mutable_position(), number);
  RecordedQuaternion& p = *body.mutable_orientation();
  p.set_w(number[3]), p.set_x(number[4]), p.set_y(number[5]), p.set_z(number[6]);
  set_vector(*body.mutable_velocity(), number + 7);
  set_vector(*body.mutable_angular_velocity(), number + 10);
  set_vector(*body.mutable_acceleration(), number + 13);
  set_vector(*body.mutable_angular_acceleration(), number + 16);
}

}  // namespace

std::string field_name_of_channel(const std::string& channel) {
  const std::size_t bracket = channel.rfind(" [");
  const std::string name = identifier(channel.substr(0, bracket));
  if (bracket == std::string::npos) return name;
  const std::string unit = unit_in_letters(channel.substr(bracket + 2, channel.size() - bracket - 3));
  return unit.empty() ? name : name + "_" + unit;
}

NamedMessages::NamedMessages(const RecordingHeader& header)
    : pool_(google::protobuf::DescriptorPool::generated_pool()), factory_(&pool_) {
  factory_.SetDelegateToGeneratedFactory(true);
  google::protobuf::FileDescriptorProto file;
  file.set_name("rigstep/run.proto");
  file.set_package("rigstep.run");
  file.set_syntax("proto3");
  file.add_dependency(RecordedBody::descriptor()->file()->name());
  DescriptorProto& outputs = *file.add_message_type();
  outputs.set_name("Outputs");
  Fields output_fields(outputs);
  for (int k = 0; k < header.output_channel_size(); ++k)
    output_fields.add(field_name_of_channel(header.output_channel(k)), header.output_channel(k),
                      FieldDescriptorProto::TYPE_DOUBLE, field_number(k));
  DescriptorProto& bodies = *file.add_message_type();
  bodies.set_name("Bodies");
  Fields body_fields(bodies);
  for (int k = 0; k < header.body_size(); ++k)
    body_fields.add(identifier(header.body(k)), header.body(k), FieldDescriptorProto::TYPE_MESSAGE, field_number(k))
        .set_type_name("." + RecordedBody::descriptor()->full_name());
  FirstProblem problem;
  const google::protobuf::FileDescriptor* made = pool_.BuildFileCollectingErrors(file, &problem);
  if (!made) throw Error("its channels and bodies make no schema: " + problem.text);
  outputs_type_ = made->FindMessageTypeByName("Outputs");
  bodies_type_ = made->FindMessageTypeByName("Bodies");
  outputs_.reset(factory_.GetPrototype(outputs_type_)->New());
  bodies_.reset(factory_.GetPrototype(bodies_type_)->New());
  output_field_ = fields_after_time(outputs_type_);
  body_field_ = fields_after_time(bodies_type_);
}

const google::protobuf::Message& NamedMessages::outputs(std::uint64_t step, std::int64_t sim_time_ns,
                                                        std::span<const double> values) {
  set_time(*outputs_, step, sim_time_ns);
  const auto* reflection = outputs_->GetReflection();
  for (std::size_t k = 0; k < output_field_.size(); ++k)
    reflection->SetDouble(outputs_.get(), output_field_[k], k < values.size() ? values[k] : 0.0);
  return *outputs_;
}

const google::protobuf::Message& NamedMessages::bodies(const RecordedState& state) {
  set_time(*bodies_, state.step(), state.sim_time_ns());
  const auto* reflection = bodies_->GetReflection();
  for (std::size_t k = 0; k < body_field_.size(); ++k) {
    const int first = static_cast<int>(k) * kNumbersPerBody;
    if (first + kNumbersPerBody > state.state_size()) break;
    google::protobuf::Message* body = reflection->MutableMessage(bodies_.get(), body_field_[k], &factory_);
    set_body(static_cast<RecordedBody&>(*body), state.state().data() + first);
  }
  return *bodies_;
}

bool NamedMessages::read_outputs(const std::uint8_t* data, std::size_t size, std::uint64_t& step,
                                 std::vector<double>& values) {
  if (!outputs_->ParseFromArray(data, static_cast<int>(size))) return false;
  const auto* reflection = outputs_->GetReflection();
  step = reflection->GetUInt64(*outputs_, outputs_type_->field(0));
  values.resize(output_field_.size());
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = reflection->GetDouble(*outputs_, output_field_[k]);
  return true;
}

}  // namespace rigstep::wire
