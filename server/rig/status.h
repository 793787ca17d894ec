// What an operator asks a live server: how it is, to run or hold, to clear a latched fault, to write its black box. Few
// datagrams, in a session of their own, so the loop and the rig in control are not disturbed. May allocate; not real
// time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "proto/wire.pb.h"
#include "server/rig/rig_client.h"

namespace rigstep::server {

struct StatusTarget {
  std::string host = "127.0.0.1";
  std::uint16_t port = 47001;
  std::string key_file = {};  // empty: none, or the one that a server on this machine has left for its user
  double timeout_s = 2.0;
};

// "HOST:PORT", "[IPV6]:PORT" or "HOST". otherwise: the port of a host alone, 0: it needs one. Throws
// config::ConfigError.
StatusTarget parse_target(const std::string& text, std::uint16_t otherwise = StatusTarget{}.port);

// All throw NetworkError where no server answers or it refuses, wire::KeyError for the key file.
wire::StatusReport query_status(const StatusTarget& target);
// All others need an operator's key, and without a key file look for that of a server without keys.
// Clears fault `number`, of StatusReport; the report tells what stands afterwards: FAULTED if another one came.
wire::StatusReport reset_fault(const StatusTarget& target, std::uint32_t number);

// Asks for a transition of the run; the report tells the state after it. steps: of STEP. Throws NetworkError also where
// the present state does not permit it.
wire::StatusReport request_transition(const StatusTarget& target, wire::Command::Kind kind, std::uint32_t steps = 0);

// The bytes of a snapshot file of the run as it is, and the way back to one: the report tells the state after it. Both
// throw NetworkError also where the state does not permit it; the second where the file is of another mechanism.
std::string fetch_snapshot(const StatusTarget& target);
wire::StatusReport reset_to_file(const StatusTarget& target, std::string_view bytes);

// Has black box number `report.black_boxes() + 1` written and waits for it, at most `patience_s` beyond the time-out;
// black_box and black_box_failed of what is returned tell what became of it. Throws NetworkError also where the server
// keeps none, or does not come to an end.
wire::StatusReport write_black_box(const StatusTarget& target, const wire::StatusReport& report,
                                   double patience_s = 60.0);

// The parameters of the mechanism with what acts now. Needs no key where the server has none. Throws NetworkError.
std::vector<RigParameter> query_parameters(const StatusTarget& target);
// Changes tunable ones, all between the same two steps; the first step that they act in. Throws NetworkError also where
// the server refuses: nothing has changed then.
std::uint64_t change_parameters(const StatusTarget& target, const std::vector<RigParameterValue>& values,
                                std::uint32_t ramp_steps);

// "running", "ready", "holding" or "faulted".
const char* to_text(wire::LoopState state);
std::string status_text(const wire::StatusReport& report);
nlohmann::json status_json(const wire::StatusReport& report);

}  // namespace rigstep::server
