#include "proto/codec.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "proto/config_text.h"

namespace rigstep::wire {
namespace {

// Parses into memory that is reused. Null: not a message.
template <class Message>
Message* parse(DecodeArena& arena, std::span<const std::byte> payload) {
  // protobuf would write a line to stderr for every string that is not UTF-8: a flood anyone could start
  const google::protobuf::LogSilencer quiet;
  auto* message = arena.fresh<Message>();
  return message->ParseFromArray(payload.data(), static_cast<int>(payload.size())) ? message : nullptr;
}

// proven: with room for the proof at its end.
template <class Message>
std::span<const std::byte> serialise(Message& message, std::span<std::byte> buffer, bool proven = false) {
  message.set_proof(std::string(proven ? kProofBytes : 0, '\0'));
  const std::size_t size = message.ByteSizeLong();
  assert(size <= buffer.size());
  if (size > buffer.size()) return {};
  message.SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(buffer.data()));
  return buffer.first(size);
}

template <class Number>
bool all_finite(const google::protobuf::RepeatedField<Number>& values) {
  return std::all_of(values.begin(), values.end(), [](Number value) { return std::isfinite(value); });
}

// At most max_bytes, never cut inside a UTF-8 character: its later bytes are 10xxxxxx.
std::string_view cut(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xC0u) == 0x80u) --max_bytes;
  return text.substr(0, max_bytes);
}

// The largest StateFrame of this many outputs.
std::size_t worst_state_size(std::size_t outputs) {
  ServerToRig message;
  StateFrame& state = *message.mutable_state();
  state.set_mechanism_id(~0ull);
  state.set_step(~0ull);
  state.set_sim_time_ns(-1);
  state.set_sequence(~0ull);
  state.set_rig_time_ns(-1);
  state.set_status(NOT_FINITE);
  state.set_flags(~0u);
  state.set_input_age_steps(~0u);
  state.mutable_value()->Resize(static_cast<int>(outputs), 0.0);
  return message.ByteSizeLong();
}

DecodeStatus read_parameter_set(const ParameterSet& set) {
  if (set.request() == 0 || set.setting().empty() || set.setting_size() > kMaxParameters)
    return DecodeStatus::unexpected_content;
  const bool finite = std::all_of(set.setting().begin(), set.setting().end(),
                                  [](const ParameterSetting& each) { return std::isfinite(each.value()); });
  return finite ? DecodeStatus::ok : DecodeStatus::not_finite;
}

DecodeStatus check_piece(const SnapshotPiece& piece) {
  const bool fits = piece.transfer() != 0 && piece.data().size() <= kSnapshotPieceBytes &&
                    piece.total() <= config::kLargestSnapshot && piece.offset() <= piece.total() &&
                    piece.data().size() <= piece.total() - piece.offset();
  return fits ? DecodeStatus::ok : DecodeStatus::unexpected_content;
}

DecodeStatus check_mechanism_piece(const MechanismPiece& piece) {
  const bool fits = piece.data().size() <= kMechanismPieceBytes && piece.total() <= config::kLargestConfigFile &&
                    piece.offset() <= piece.total() && piece.data().size() <= piece.total() - piece.offset();
  return fits ? DecodeStatus::ok : DecodeStatus::unexpected_content;
}

// Outputs that fit one frame and one Snapshot.
std::size_t most_outputs() {
  std::size_t outputs = kMaxChannels;
  while (worst_state_size(outputs) > kMaxPayload) --outputs;
  return outputs;
}

}  // namespace

ServerCodec::ServerCodec(const Mechanism& mechanism, std::vector<int> outputs, std::int64_t period_ns,
                         std::string product_version)
    : mechanism_name_(mechanism.name()),
      mechanism_id_(mechanism.id()),
      input_channels_(mechanism.input_channels()),
      outputs_(std::move(outputs)),
      period_ns_(period_ns),
      product_version_(std::move(product_version)) {
  for (const int output : outputs_) output_channels_.push_back(mechanism.output_channels().at(output));
  check_sizes();
  state_.mutable_state()->mutable_value()->Reserve(static_cast<int>(outputs_.size()));
  poses_.mutable_poses()->mutable_pose()->Reserve(static_cast<int>(7 * kPosesPerFrame));
  poses_.mutable_poses()->mutable_input()->Reserve(static_cast<int>(input_channels_.size()));
  encode_poses({});  // takes what else it keeps
}

void ServerCodec::check_sizes() {
  if (outputs_.size() > most_outputs()) {
    throw config::ConfigError("output: " + std::to_string(outputs_.size()) +
                              " output channels do not fit into one datagram of " + std::to_string(kMaxDatagram) +
                              " bytes, at most " + std::to_string(most_outputs()) +
                              " do: list fewer `output`s in the rig file");
  }
  const auto check_name = [](const std::string& name, const char* what) {
    if (name.size() <= 500) return;
    throw config::ConfigError("name: the " + std::string(what) + " name " + name.substr(0, 40) + "... has " +
                              std::to_string(name.size()) +
                              " bytes and cannot be sent to a rig: give it a name of at most 500 bytes");
  };
  check_name(mechanism_name_, "mechanism's");
  for (const Channel& channel : input_channels_) check_name(channel.name, "input channel's");
  for (const Channel& channel : output_channels_) check_name(channel.name, "output channel's");
}

DecodeStatus ServerCodec::decode(std::span<const std::byte> payload, std::optional<std::uint64_t> last_sequence,
                                 RigRequest& request) {
  request.content = RigToServer::CONTENT_NOT_SET;
  const auto* message = parse<RigToServer>(arena_, payload);
  if (message == nullptr) return DecodeStatus::malformed;

  request.content = message->content_case();
  switch (message->content_case()) {
    case RigToServer::kHello:
      return read_hello(message->hello(), request);
    case RigToServer::kResetFault:
      request.number = message->reset_fault().fault_number();
      return DecodeStatus::ok;
    case RigToServer::kWriteBlackBox:
      request.number = message->write_black_box().black_boxes();
      return DecodeStatus::ok;
    case RigToServer::kCommand:
      request.command = message->command();
      return Command::Kind_IsValid(request.command.kind()) &&
                     (request.command.kind() != Command::STEP || request.command.steps() > 0)
                 ? DecodeStatus::ok
                 : DecodeStatus::unexpected_content;
    case RigToServer::kParameterSet:
      request.parameter_set = message->parameter_set();
      return read_parameter_set(request.parameter_set);
    case RigToServer::kParameterQuery:
      request.first = message->parameter_query().first();
      request.parameter_request = message->parameter_query().request();
      return DecodeStatus::ok;
    case RigToServer::kMechanismQuery:
      request.first = message->mechanism_query().offset();
      return DecodeStatus::ok;
    case RigToServer::kSnapshotQuery:
      request.snapshot_query = message->snapshot_query();
      return request.snapshot_query.transfer() != 0 ? DecodeStatus::ok : DecodeStatus::unexpected_content;
    case RigToServer::kSnapshotPiece:
      request.snapshot_piece = message->snapshot_piece();
      return check_piece(request.snapshot_piece);
    case RigToServer::kJoin:
    case RigToServer::kGoodbye:
    case RigToServer::kHeartbeat:
    case RigToServer::kStatusQuery:
    case RigToServer::kPoseSubscription:
      return DecodeStatus::ok;
    case RigToServer::kChannelQuery:
      request.direction = message->channel_query().direction();
      request.first = message->channel_query().first();
      return Direction_IsValid(request.direction) ? DecodeStatus::ok : DecodeStatus::unexpected_content;
    case RigToServer::kInput:
      return read_input(message->input(), last_sequence, request.input);
    case RigToServer::CONTENT_NOT_SET:
      break;
  }
  return DecodeStatus::unexpected_content;
}

DecodeStatus ServerCodec::read_hello(const Hello& hello, RigRequest& request) {
  request.rig_name = printable(hello.rig_name());
  request.product_version = printable(hello.product_version());
  request.role = hello.role();
  request.nonce = hello.nonce();
  request.former_session = hello.former_session();
  request.cookie.assign(hello.cookie().begin(), hello.cookie().end());
  request.key_id.assign(hello.key_id().begin(), hello.key_id().end());
  request.public_key.assign(hello.public_key().begin(), hello.public_key().end());
  request.token.assign(hello.token().begin(), hello.token().end());
  return Role_IsValid(request.role) ? DecodeStatus::ok : DecodeStatus::unexpected_content;
}

DecodeStatus ServerCodec::read_input(const InputFrame& frame, std::optional<std::uint64_t> last_sequence,
                                     InputSample& sample) const {
  if (frame.mechanism_id() != mechanism_id_) return DecodeStatus::wrong_mechanism;
  if (static_cast<std::size_t>(frame.value_size()) != input_channels_.size()) return DecodeStatus::channel_count;
  if (!all_finite(frame.value())) return DecodeStatus::not_finite;
  if (last_sequence && frame.sequence() <= *last_sequence) return DecodeStatus::old_sequence;
  sample.sequence = frame.sequence();
  sample.rig_time_ns = frame.rig_time_ns();
  sample.inputs.count = frame.value_size();
  std::copy(frame.value().begin(), frame.value().end(), sample.inputs.value.begin());
  return DecodeStatus::ok;
}

std::span<const std::byte> ServerCodec::encode_state(const Snapshot& snapshot) {
  StateFrame& state = *state_.mutable_state();
  state.set_mechanism_id(mechanism_id_);
  state.set_step(snapshot.step);
  state.set_sim_time_ns(snapshot.sim_time_ns);
  state.set_sequence(snapshot.sequence);
  state.set_rig_time_ns(snapshot.rig_time_ns);
  state.set_status(static_cast<Status>(snapshot.status));
  state.set_flags(snapshot.flags);
  state.set_input_age_steps(snapshot.input_age_steps);
  state.clear_value();
  for (const int output : outputs_) state.add_value(snapshot.outputs.value[static_cast<std::size_t>(output)]);
  return serialise(state_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_poses(const PoseFields& fields) {
  PoseFrame& frame = *poses_.mutable_poses();
  frame.set_mechanism_id(mechanism_id_);
  frame.set_step(fields.step);
  frame.set_sim_time_ns(fields.sim_time_ns);
  frame.set_first_body(fields.first_body);
  frame.set_bodies(fields.bodies);
  frame.clear_pose();
  for (const float number : fields.numbers) frame.add_pose(number);
  frame.clear_input();
  for (const float value : fields.inputs) frame.add_input(value);
  frame.set_wake_up_us(fields.wake_up_us);
  frame.set_step_us(fields.step_us);
  frame.set_position_residual(fields.position_residual);
  return serialise(poses_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_welcome(const WelcomeFields& fields) {
  Welcome& welcome = *reply_.mutable_welcome();
  welcome.Clear();
  welcome.set_product_version(product_version_);
  welcome.set_mechanism(mechanism_name_);
  welcome.set_mechanism_id(mechanism_id_);
  welcome.set_period_ns(static_cast<std::uint64_t>(period_ns_));
  welcome.set_input_channels(static_cast<std::uint32_t>(input_channels_.size()));
  welcome.set_output_channels(static_cast<std::uint32_t>(output_channels_.size()));
  welcome.set_timeout_steps(fields.timeout_steps);
  welcome.set_lockstep(fields.lockstep);
  welcome.set_step(fields.step);
  welcome.set_token(fields.token.data(), fields.token.size());
  welcome.set_max_input_delay_ms(fields.max_input_delay_ms);
  if (fields.controller != nullptr) *welcome.mutable_controller() = *fields.controller;
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_accept(std::uint64_t nonce, std::uint64_t session,
                                                      const PublicKey* public_key) {
  Accept& accept = *reply_.mutable_accept();
  accept.Clear();
  accept.set_nonce(nonce);
  accept.set_session(session);
  if (public_key != nullptr) accept.set_public_key(public_key->data(), public_key->size());
  return serialise(reply_, buffer_, public_key != nullptr);
}

std::span<const std::byte> ServerCodec::encode_challenge(std::uint64_t nonce,
                                                         std::span<const std::uint8_t, kCookieBytes> cookie) {
  reply_.mutable_challenge()->set_nonce(nonce);
  reply_.mutable_challenge()->set_cookie(cookie.data(), cookie.size());
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_status(StatusReport report) {
  report.set_product_version(product_version_);
  report.set_mechanism(printable(mechanism_name_));
  report.set_mechanism_id(mechanism_id_);
  report.set_period_ns(static_cast<std::uint64_t>(period_ns_));
  StatusReport& sent = *reply_.mutable_status();
  sent = std::move(report);
  const auto is_too_long = [this] { return reply_.ByteSizeLong() > kMaxPayload; };
  const auto shorten = [&](auto& list) {
    while (is_too_long() && !list.empty()) list.RemoveLast();
  };
  if (is_too_long())
    for (Distribution& distribution : *sent.mutable_distribution()) distribution.clear_count_of_quarter();
  sent.set_is_cut(is_too_long());
  shorten(*sent.mutable_parameter());
  shorten(*sent.mutable_observer());
  // numbers tell what no log does
  for (const std::size_t most : {120u, 60u})
    for (std::string* text : {sent.mutable_recording_error(), sent.mutable_black_box(), sent.mutable_fault()})
      if (is_too_long() && text->size() > most) *text = std::string(cut(*text, most)) + "...";
  shorten(*sent.mutable_refused());
  shorten(*sent.mutable_counter());
  shorten(*sent.mutable_distribution());
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_refusal(RefusalReason reason, std::string_view text) {
  return encode_refusal(reason, text, 0, false);
}

std::span<const std::byte> ServerCodec::encode_refusal(RefusalReason reason, std::string_view text, std::uint64_t nonce,
                                                       bool proven) {
  reply_.mutable_refusal()->set_reason(reason);
  reply_.mutable_refusal()->set_text(printable(text, kMaxTextBytes));
  reply_.mutable_refusal()->set_nonce(nonce);
  return serialise(reply_, buffer_, proven);
}

std::span<const std::byte> ServerCodec::encode_channel_page(Direction direction, std::uint32_t first) {
  const std::vector<Channel>& channels = direction == OUTPUT ? output_channels_ : input_channels_;
  ChannelPage& page = *reply_.mutable_channel_page();
  page.Clear();
  page.set_direction(direction);
  page.set_first(first);
  page.set_total(static_cast<std::uint32_t>(channels.size()));
  for (std::size_t i = first; i < channels.size(); ++i) {
    ChannelDescription& channel = *page.add_channel();
    channel.set_name(channels[i].name);
    channel.set_unit(channels[i].unit);
    if (reply_.ByteSizeLong() > kMaxPayload) {
      page.mutable_channel()->RemoveLast();
      break;
    }
  }
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_parameters(ParameterReport report) {
  ParameterReport& sent = *reply_.mutable_parameters();
  sent = std::move(report);
  while (reply_.ByteSizeLong() > kMaxPayload && !sent.parameter().empty()) sent.mutable_parameter()->RemoveLast();
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_snapshot_piece(const SnapshotPiece& piece) {
  *reply_.mutable_snapshot_piece() = piece;
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_mechanism_piece(std::string_view text, std::uint32_t offset) {
  MechanismPiece& piece = *reply_.mutable_mechanism_piece();
  const std::size_t from = std::min<std::size_t>(offset, text.size());
  piece.set_offset(static_cast<std::uint32_t>(from));
  piece.set_total(static_cast<std::uint32_t>(text.size()));
  piece.set_data(std::string(text.substr(from, kMechanismPieceBytes)));
  return serialise(reply_, buffer_);
}

std::span<const std::byte> ServerCodec::encode_goodbye(std::string_view text, GoodbyeReason reason) {
  reply_.mutable_goodbye()->set_text(printable(text, kMaxTextBytes));
  reply_.mutable_goodbye()->set_reason(reason);
  return serialise(reply_, buffer_);
}

// Requests from an address that is not proven are as large as any answer to them.
std::span<const std::byte> RigCodec::fill_up(bool proven) {
  constexpr std::size_t kTagAndLength = 3;
  request_.clear_padding();
  request_.set_proof(std::string(proven ? kProofBytes : 0, '\0'));
  request_.set_padding(std::string(kMaxPayload - kTagAndLength - request_.ByteSizeLong(), '\0'));
  const auto payload = serialise(request_, buffer_, proven);
  request_.clear_padding();
  return payload;
}

std::span<const std::byte> RigCodec::encode_hello(const HelloFields& fields) {
  Hello& hello = *request_.mutable_hello();
  hello.Clear();
  hello.set_product_version(printable(fields.product_version));
  hello.set_rig_name(printable(fields.rig_name));
  hello.set_role(fields.role);
  hello.set_nonce(fields.nonce);
  hello.set_cookie(std::string(fields.cookie));
  if (fields.key_id != nullptr) hello.set_key_id(fields.key_id->data(), fields.key_id->size());
  if (fields.public_key != nullptr) hello.set_public_key(fields.public_key->data(), fields.public_key->size());
  hello.set_former_session(fields.former_session);
  hello.set_token(std::string(fields.token));
  return fill_up(fields.key_id != nullptr);
}

std::span<const std::byte> RigCodec::encode_join() {
  request_.mutable_join();
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_status_query(bool in_session) {
  request_.mutable_status_query();
  return in_session ? serialise(request_, buffer_) : fill_up(false);
}

std::span<const std::byte> RigCodec::encode_reset_fault(std::uint32_t fault_number) {
  request_.mutable_reset_fault()->set_fault_number(fault_number);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_write_black_box(std::uint32_t black_boxes) {
  request_.mutable_write_black_box()->set_black_boxes(black_boxes);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_command(Command::Kind kind, std::uint32_t steps, std::uint32_t transitions,
                                                    std::uint64_t transfer) {
  Command& command = *request_.mutable_command();
  command.set_kind(kind);
  command.set_steps(steps);
  command.set_transitions(transitions);
  command.set_transfer(transfer);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_snapshot_query(std::uint64_t transfer, std::uint32_t offset) {
  request_.mutable_snapshot_query()->set_transfer(transfer);
  request_.mutable_snapshot_query()->set_offset(offset);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_snapshot_piece(const SnapshotPiece& piece) {
  *request_.mutable_snapshot_piece() = piece;
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_mechanism_query(std::uint32_t offset) {
  request_.mutable_mechanism_query()->set_offset(offset);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_parameter_set(const ParameterSet& set) {
  *request_.mutable_parameter_set() = set;
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_parameter_query(std::uint32_t first, std::uint64_t request) {
  request_.mutable_parameter_query()->set_first(first);
  request_.mutable_parameter_query()->set_request(request);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_heartbeat() {
  request_.mutable_heartbeat();
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_channel_query(Direction direction, std::uint32_t first) {
  request_.mutable_channel_query()->set_direction(direction);
  request_.mutable_channel_query()->set_first(first);
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_pose_subscription() {
  request_.mutable_pose_subscription();
  return serialise(request_, buffer_);
}

std::span<const std::byte> RigCodec::encode_input(const InputSample& sample) {
  assert(started_);
  InputFrame& frame = *input_.mutable_input();
  frame.set_mechanism_id(mechanism_id_);
  frame.set_sequence(sample.sequence);
  frame.set_rig_time_ns(sample.rig_time_ns);
  frame.clear_value();
  for (int i = 0; i < sample.inputs.count; ++i) frame.add_value(sample.inputs.value[static_cast<std::size_t>(i)]);
  return serialise(input_, buffer_);
}

std::span<const std::byte> RigCodec::encode_goodbye(std::string_view text) {
  request_.mutable_goodbye()->set_text(printable(text, kMaxTextBytes));
  return serialise(request_, buffer_);
}

void RigCodec::start(const Welcome& welcome) {
  started_ = true;
  mechanism_id_ = welcome.mechanism_id();
  input_channels_ = welcome.input_channels();
  output_channels_ = welcome.output_channels();
}

DecodeStatus RigCodec::decode(std::span<const std::byte> payload, std::uint64_t last_step, Snapshot& state) {
  message_ = parse<ServerToRig>(arena_, payload);
  if (message_ == nullptr) return DecodeStatus::malformed;

  switch (message_->content_case()) {
    case ServerToRig::kWelcome: {
      const Welcome& welcome = message_->welcome();
      const bool fits = std::max(welcome.input_channels(), welcome.output_channels()) <= kMaxChannels;
      return fits ? DecodeStatus::ok : DecodeStatus::channel_count;
    }
    case ServerToRig::kState:
      return read_state(message_->state(), last_step, state);
    case ServerToRig::kPoses:
      return check_poses(message_->poses());
    case ServerToRig::kSnapshotPiece:
      return check_piece(message_->snapshot_piece());
    case ServerToRig::kMechanismPiece:
      return check_mechanism_piece(message_->mechanism_piece());
    case ServerToRig::kRefusal:
    case ServerToRig::kChannelPage:
    case ServerToRig::kGoodbye:
    case ServerToRig::kChallenge:
    case ServerToRig::kAccept:
    case ServerToRig::kStatus:
    case ServerToRig::kParameters:
      return DecodeStatus::ok;
    case ServerToRig::CONTENT_NOT_SET:
      break;
  }
  return DecodeStatus::unexpected_content;
}

DecodeStatus RigCodec::check_poses(const PoseFrame& frame) const {
  if (!started_) return DecodeStatus::unexpected_content;
  if (frame.mechanism_id() != mechanism_id_) return DecodeStatus::wrong_mechanism;
  const auto bodies = static_cast<std::uint32_t>(frame.pose_size()) / 7;
  if (frame.pose_size() % 7 != 0 || bodies > frame.bodies() || frame.first_body() > frame.bodies() - bodies)
    return DecodeStatus::malformed;
  if (frame.input_size() != 0 && static_cast<std::uint32_t>(frame.input_size()) != input_channels_)
    return DecodeStatus::channel_count;
  const bool is_finite = all_finite(frame.pose()) && all_finite(frame.input()) && std::isfinite(frame.wake_up_us()) &&
                         std::isfinite(frame.step_us()) && std::isfinite(frame.position_residual());
  return is_finite ? DecodeStatus::ok : DecodeStatus::not_finite;
}

DecodeStatus RigCodec::read_state(const StateFrame& frame, std::uint64_t last_step, Snapshot& state) const {
  if (!started_) return DecodeStatus::unexpected_content;
  if (frame.mechanism_id() != mechanism_id_) return DecodeStatus::wrong_mechanism;
  if (static_cast<std::uint32_t>(frame.value_size()) != output_channels_) return DecodeStatus::channel_count;
  if (!Status_IsValid(frame.status())) return DecodeStatus::malformed;
  if (!all_finite(frame.value())) return DecodeStatus::not_finite;
  if (frame.step() < last_step) return DecodeStatus::old_sequence;
  state.step = frame.step();
  state.sim_time_ns = frame.sim_time_ns();
  state.sequence = frame.sequence();
  state.rig_time_ns = frame.rig_time_ns();
  state.status = static_cast<StepStatus>(frame.status());
  state.flags = frame.flags();
  state.input_age_steps = frame.input_age_steps();
  state.outputs.count = frame.value_size();
  std::copy(frame.value().begin(), frame.value().end(), state.outputs.value.begin());
  return DecodeStatus::ok;
}

}  // namespace rigstep::wire
