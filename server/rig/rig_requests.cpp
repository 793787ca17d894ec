#include "server/rig/rig_requests.h"

#include <algorithm>

#include "server/network_error.h"

namespace rigstep::server {

namespace {

// The page that follows on `channels`; false: another datagram.
bool take_page(ClientSession& link, wire::Direction direction, std::size_t total, std::vector<RigChannel>& channels) {
  if (link.codec().message()->has_goodbye())
    throw NetworkError("the server at " + link.socket().server() + " has stopped.");
  if (!link.codec().message()->has_channel_page()) return false;
  const wire::ChannelPage& page = link.codec().message()->channel_page();
  if (page.direction() != direction || page.first() != channels.size() || page.channel_size() == 0 ||
      channels.size() + static_cast<std::size_t>(page.channel_size()) > total)
    return false;
  for (const auto& channel : page.channel()) channels.push_back({channel.name(), channel.unit()});
  return true;
}

}  // namespace

bool read_channels(ClientSession& link, const TakeDatagram& take, wire::Direction direction, std::size_t total,
                   double timeout_s, std::vector<RigChannel>& channels) {
  if (total > kMaxChannels) throw NetworkError("the server at " + link.socket().server() + " has too many channels.");
  while (channels.size() < total) {
    const auto first = static_cast<std::uint32_t>(channels.size());
    const auto request = [&] { link.send(link.codec().encode_channel_query(direction, first)); };
    const auto answer = [&](const ClientSession::Arrival& arrival) {
      return take(arrival) == wire::DecodeStatus::ok && take_page(link, direction, total, channels);
    };
    if (!link.ask(timeout_s, request, answer)) return false;
  }
  return true;
}

std::string read_mechanism(ClientSession& link, const TakeDatagram& take, double timeout_s) {
  std::string text;
  std::uint32_t total = 1;
  while (text.size() < total) {
    const auto offset = static_cast<std::uint32_t>(text.size());
    const auto request = [&] { link.send(link.codec().encode_mechanism_query(offset)); };
    const auto answer = [&](const ClientSession::Arrival& arrival) {
      if (take(arrival) != wire::DecodeStatus::ok) return false;
      const wire::ServerToRig& message = *link.codec().message();
      if (message.has_goodbye()) throw NetworkError("the server at " + link.socket().server() + " has stopped.");
      if (!message.has_mechanism_piece()) return false;
      const wire::MechanismPiece& piece = message.mechanism_piece();
      if (piece.offset() != offset || piece.data().empty() || (offset > 0 && piece.total() != total)) return false;
      total = piece.total();
      text += piece.data();
      return true;
    };
    if (!link.ask(timeout_s, request, answer)) return {};
  }
  return text;
}

bool reset_fault(ClientSession& link, const TakeDatagram& take, double timeout_s) {
  std::optional<wire::StatusReport> before;
  const auto take_report = [&](const ClientSession::Arrival& arrival) {
    if (take(arrival) != wire::DecodeStatus::ok || !link.codec().message()->has_status()) return false;
    const wire::StatusReport& report = link.codec().message()->status();
    if (before && report.loop_state() == wire::FAULTED && report.fault_number() == before->fault_number())
      return false;  // the loop clears it at its next step
    before = report;
    return true;
  };
  const auto query = [&] { link.send(link.codec().encode_status_query(true)); };
  const auto reset = [&] { link.send(link.codec().encode_reset_fault(before->fault_number())); };
  try {
    return link.ask(timeout_s, query, take_report) && before->loop_state() == wire::FAULTED &&
           link.ask(timeout_s, reset, take_report);
  } catch (const NetworkError&) {
    return false;
  }
}

bool request_command(ClientSession& link, const TakeDatagram& take, wire::Command::Kind kind, std::uint32_t steps,
                     std::uint64_t transfer, double timeout_s) {
  std::optional<std::uint32_t> before;
  bool refused = false, done = false;
  const auto take_report = [&](const ClientSession::Arrival& arrival) {
    if (take(arrival) != wire::DecodeStatus::ok) return false;
    refused = link.codec().message()->has_refusal();
    if (refused || !link.codec().message()->has_status()) return refused;
    const std::uint32_t transitions = link.codec().message()->status().transitions();
    done = before && *before != transitions;
    if (before) return done;  // the loop makes it at its next tick
    before = transitions;
    return true;
  };
  const auto query = [&] { link.send(link.codec().encode_status_query(true)); };
  const auto ask = [&] { link.send(link.codec().encode_command(kind, steps, *before, transfer)); };
  try {
    return link.ask(timeout_s, query, take_report) && link.ask(timeout_s, ask, take_report) && done;
  } catch (const NetworkError&) {
    return false;
  }
}

bool are_equal(const std::vector<RigChannel>& a, const std::vector<RigChannel>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const RigChannel& x, const RigChannel& y) { return x.name == y.name && x.unit == y.unit; });
}

RigServer server_of(const wire::Welcome& welcome) {
  RigServer server;
  server.version = wire::printable(welcome.product_version());
  server.mechanism = wire::printable(welcome.mechanism(), wire::kMaxTextBytes);
  server.mechanism_id = welcome.mechanism_id();
  server.period_ns = static_cast<std::int64_t>(welcome.period_ns());
  server.timeout_steps = welcome.timeout_steps();
  server.lockstep = welcome.lockstep();
  server.step = welcome.step();
  if (welcome.has_controller())
    server.controller =
        wire::printable(welcome.controller().rig_name()) + " at " + wire::printable(welcome.controller().address());
  return server;
}

RigState state_of(const Snapshot& snapshot) {
  return {.step = snapshot.step,
          .sim_time_ns = snapshot.sim_time_ns,
          .sequence = snapshot.sequence,
          .rig_time_ns = snapshot.rig_time_ns,
          .status = static_cast<std::uint32_t>(snapshot.status),
          .flags = snapshot.flags,
          .input_age_steps = snapshot.input_age_steps,
          .output = {snapshot.outputs.value.data(), static_cast<std::size_t>(snapshot.outputs.count)}};
}

LinkDelays delays_of(const wire::FrameHeader& header, std::int64_t came_ns, const wire::ClockOffset& clock) {
  LinkDelays delays;
  const auto estimate = clock.estimate(came_ns);
  if (!estimate) return delays;
  delays.to_rig_ns = came_ns - (header.sent_ns - estimate->offset_ns);
  if (header.echo_sent_ns != 0) delays.to_server_ns = (header.echo_came_ns - estimate->offset_ns) - header.echo_sent_ns;
  return delays;
}

}  // namespace rigstep::server
