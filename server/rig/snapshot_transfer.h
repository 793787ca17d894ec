// Snapshot files over the link, piece by piece, each asked for or sent until it is answered. Owned and used by the
// thread of the session; both block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/rig/client_session.h"
#include "server/rig/rig_requests.h"

namespace rigstep::server {

// Has the server make a snapshot; the bytes of its file. Throws NetworkError with the server's words where it refuses,
// and where no answer came.
std::string fetch_snapshot(ClientSession& link, const TakeDatagram& take, double timeout_s);

// Sends the bytes of such a file; the transfer's number, for Command::RESET_TO_FILE. Throws likewise.
std::uint64_t send_snapshot(ClientSession& link, const TakeDatagram& take, std::string_view bytes, double timeout_s);

}  // namespace rigstep::server
