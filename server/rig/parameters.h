// Parameters of a live server's mechanism, asked for and changed in a session. Owned and used by the thread of the
// session; both block.
#pragma once

#include <cstdint>
#include <vector>

#include "server/rig/client_session.h"
#include "server/rig/rig_client.h"
#include "server/rig/rig_requests.h"

namespace rigstep::server {

// All of them with what acts now; empty also where no answer came.
std::vector<RigParameter> read_parameters(ClientSession& link, const TakeDatagram& take, double timeout_s);

// The first step that these values act in; 0: no answer came. Throws NetworkError with the server's words where it
// refuses.
std::uint64_t set_parameters(ClientSession& link, const TakeDatagram& take,
                             const std::vector<RigParameterValue>& values, std::uint32_t ramp_steps, double timeout_s);

}  // namespace rigstep::server
