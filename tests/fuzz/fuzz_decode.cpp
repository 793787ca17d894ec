// Any bytes as a datagram, for both ends of the link: refused or understood, never a crash, and never a value that the
// checks should have stopped. libFuzzer entry.
#include <cmath>
#include <cstdlib>

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
    rig.decode(server.encode_welcome(), 0, state);
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Link link;
  const auto datagram = std::as_bytes(std::span(data, size));
  const auto at_server = link.server.decode(datagram, 7, link.request);
  if (at_server == wire::DecodeStatus::ok && link.request.content == wire::RigToServer::kInput) {
    require(link.request.input.sequence > 7 && link.request.input.inputs.count == 1);
    require(std::isfinite(link.request.input.inputs.value[0]));
  }
  require(link.request.rig_name.size() <= wire::kMaxNameBytes);
  const auto at_rig = link.rig.decode(datagram, 7, link.state);
  if (at_rig == wire::DecodeStatus::ok && link.rig.message()->has_state()) {
    require(link.state.step >= 7 && link.state.outputs.count == 3);
    for (int i = 0; i < 3; ++i) require(std::isfinite(link.state.outputs.value[static_cast<std::size_t>(i)]));
  }
  return 0;
}
