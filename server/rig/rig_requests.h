// What a rig asks of the server while it waits: the channels, that a latched fault be cleared, that the run goes on or
// holds; and what it makes of the answers. Owned and used by the client's thread; the first three block.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "server/rig/client_session.h"
#include "server/rig/rig_client.h"

namespace rigstep::server {

// Checks and decodes a datagram of the session.
using TakeDatagram = std::function<wire::DecodeStatus(const ClientSession::Arrival&)>;

// Appends the channels of a direction, `total` in all, page by page. False: stopped. Throws NetworkError.
bool read_channels(ClientSession& link, const TakeDatagram& take, wire::Direction direction, std::size_t total,
                   double timeout_s, std::vector<RigChannel>& channels);

// The text of the mechanism file that the server steps, piece by piece. Empty: stopped. Throws NetworkError where the
// server has stopped, or gives no answer.
std::string read_mechanism(ClientSession& link, const TakeDatagram& take, double timeout_s);

// Clears the fault that is latched. False: none is, stopped, or no answer came.
bool reset_fault(ClientSession& link, const TakeDatagram& take, double timeout_s);

// Asks for a transition of the run; transfer: that of a snapshot file, of RESET_TO_FILE. False: not permitted now,
// stopped, or no answer came.
bool request_command(ClientSession& link, const TakeDatagram& take, wire::Command::Kind kind, std::uint32_t steps,
                     std::uint64_t transfer, double timeout_s);

bool are_equal(const std::vector<RigChannel>& a, const std::vector<RigChannel>& b);

// What a Welcome says about the server, without its channels.
RigServer server_of(const wire::Welcome& welcome);

// Views the outputs of the snapshot.
RigState state_of(const Snapshot& snapshot);

// How long the newest datagrams were on their way [ns]; none without an estimate of the server's clock.
struct LinkDelays {
  std::optional<std::int64_t> to_rig_ns, to_server_ns;
};
LinkDelays delays_of(const wire::FrameHeader& header, std::int64_t came_ns, const wire::ClockOffset& clock);

}  // namespace rigstep::server
