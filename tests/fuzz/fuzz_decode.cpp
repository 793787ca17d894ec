// Any bytes as a datagram, for both ends of the link: refused or understood, never a crash, and never a value that the
// checks should have stopped. First as they are; then, since hardly any have a right tag, as the payload of a frame of
// which the first bytes give the header. libFuzzer entry.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/mechanism/builder.h"
#include "proto/codec.h"

namespace {

using namespace rigstep;

Mechanism block() {
  MechanismBuilder builder("block");
  Body body;
  body.name = "body";
  body.mass = 1.0;
  body.inertia_b = Mat3::Identity();
  builder.add_body(body);
  Input input;
  input.name = "force";
  builder.add_body_input(input, "body");
  Output output;
  output.name = "pose";
  output.kind = Output::Kind::body_pose;
  builder.add_body_output(output, "body");
  return builder.build();
}

struct Link {
  Link() {
    rig.decode(server.encode_welcome({.timeout_steps = 2000}), 0, state);
    rig.start(rig.message()->welcome());
  }
  Mechanism mechanism = block();
  wire::ServerCodec server{mechanism, {0, 1, 2}, 1'000'000, "fuzz"};
  wire::RigCodec rig;
  wire::RigRequest request;
  Snapshot state;
};

void require(bool condition) {
  if (!condition) std::abort();
}

void at_server(Link& link, std::span<const std::byte> payload) {
  const auto status = link.server.decode(payload, 7, link.request);
  if (status == wire::DecodeStatus::ok && link.request.content == wire::RigToServer::kInput) {
    require(link.request.input.sequence > 7 && link.request.input.inputs.count == 1);
    require(std::isfinite(link.request.input.inputs.value[0]));
  }
  require(link.request.rig_name.size() <= wire::kMaxNameBytes);
}

void at_rig(Link& link, std::span<const std::byte> payload) {
  const auto status = link.rig.decode(payload, 7, link.state);
  if (status == wire::DecodeStatus::ok && link.rig.message()->has_state()) {
    require(link.state.step >= 7 && link.state.outputs.count == 3);
    for (int i = 0; i < 3; ++i) require(std::isfinite(link.state.outputs.value[static_cast<std::size_t>(i)]));
  }
}

// A frame that somebody with the key has made up: header and stamps are as hostile as the rest.
void sealed(std::span<const std::byte> bytes) {
  wire::FrameHeader header;
  std::memcpy(&header.number, bytes.data(), 8);
  std::memcpy(&header.sent_ns, bytes.data() + 8, 8);
  std::memcpy(&header.echo_sent_ns, bytes.data() + 16, 8);
  std::memcpy(&header.echo_came_ns, bytes.data() + 24, 8);
  header.session = 1;
  std::array<std::byte, wire::kMaxDatagram> buffer;
  const auto payload = bytes.subspan(32, std::min(bytes.size() - 32, wire::kMaxPayload));
  const wire::Key key{std::to_integer<std::uint8_t>(bytes[0])};
  for (const wire::Key* with : {&key, static_cast<const wire::Key*>(nullptr)}) {
    const std::size_t size = wire::seal_frame(header, payload, with, buffer).size();
    wire::Frame frame;
    require(wire::open_frame(std::span(buffer).first(size), wire::Sender::server, with, frame) ==
            wire::DecodeStatus::ok);
    require(std::equal(payload.begin(), payload.end(), frame.payload.begin(), frame.payload.end()));
  }
  const std::size_t size = wire::seal_frame(header, payload, nullptr, buffer).size();
  wire::Frame frame;
  require(wire::open_frame(std::span(buffer).first(size), wire::Sender::server, nullptr, frame) ==
          wire::DecodeStatus::ok);
  wire::is_proven(std::span(buffer).first(size), key);
  static wire::SessionEnd end(wire::Sender::server, 1);
  const auto status = end.accept(frame.header, 1'000'000);
  require(status == wire::DecodeStatus::ok || status == wire::DecodeStatus::replayed);
  require(end.accept(frame.header, 1'000'000) == wire::DecodeStatus::replayed);
  if (const auto clock = end.clock().estimate(1'000'000)) require(clock->uncertainty_ns >= 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Link link;
  const auto bytes = std::as_bytes(std::span(data, size));
  std::vector<std::byte> datagram(bytes.begin(), bytes.end());
  wire::Frame frame;
  wire::is_proven(bytes, {});
  if (wire::open_frame(datagram, wire::Sender::server, nullptr, frame) == wire::DecodeStatus::ok)
    at_server(link, frame.payload);
  if (wire::open_frame(datagram, wire::Sender::rig, nullptr, frame) == wire::DecodeStatus::ok)
    at_rig(link, frame.payload);
  const auto payload = bytes.first(std::min(bytes.size(), wire::kMaxPayload));
  at_server(link, payload);
  at_rig(link, payload);
  if (bytes.size() >= 32) sealed(bytes);
  return 0;
}
