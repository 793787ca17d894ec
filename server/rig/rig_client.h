// A rig's end of the link, for programs that drive hardware: connects to `rigstep serve`, sends inputs, receives
// states. Installed as the CMake target rigstep::rig; this header needs the standard library only.
//
// One thread owns and uses a client. Constructing and reconnecting block; send() and receive() do not, do not throw,
// and after the first few datagrams do not allocate. Contract of the bytes: proto/wire.proto.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "proto/frame.h"

namespace rigstep::server {

struct RigClientOptions {
  std::string host = "127.0.0.1";  // name or numeric address of the server
  std::uint16_t port = 47001;
  // For people; empty: one that no other rig has. Without a key, a rig that was restarted takes its own place again
  // where it has the same name, user and machine: the secret of its session is in the user's runtime folder.
  std::string name = {};
  std::string product_version = {};  // of the rig's software, for people
  std::string key_file = {};         // of `rigstep keygen`, the participant's; empty: the server uses no key
  bool observe = false;              // receive states only
  double timeout_s = 3.0;            // for connecting
};

struct RigChannel {
  std::string name;
  std::string unit;
};

// What the server says about itself.
struct RigServer {
  std::string version;
  std::string mechanism;
  std::uint64_t mechanism_id = 0;
  std::int64_t period_ns = 0;
  std::uint32_t timeout_steps = 0;  // after which a silent rig is dropped
  bool lockstep = false;            // we ask for each step, else the server steps at its deadlines
  std::uint64_t step = 0;           // steps taken when we connected
  std::string controller;           // name and address of the rig in control as we connected, empty: nobody
  std::vector<RigChannel> inputs;
  std::vector<RigChannel> outputs;  // in the order of RigState::output
};

// StateFrame of wire.proto.
struct RigState {
  std::uint64_t step = 0;  // of the server; repeated while it is ready, holding or faulted
  std::int64_t sim_time_ns = 0;
  std::uint64_t sequence = 0;    // of the newest input used
  std::int64_t rig_time_ns = 0;  // when send() sent it, CLOCK_MONOTONIC
  std::uint32_t status = 0;
  // bit 0 stale input, 1 overrun, 2 record lost, 3 not converged, 4 faulted, 5 no input so far, 6 input limited, 7
  // faulted by missed deadlines, 8 ready, 9 holding, 10 faulted since control was lost
  std::uint32_t flags = 0;
  std::uint32_t input_age_steps = 0;
  std::span<const double> output = {};  // [channel's unit]; valid until the next receive()
};

// PoseFrame of wire.proto: where some bodies are at one instant.
struct RigPoses {
  std::uint64_t step = 0;
  std::int64_t sim_time_ns = 0;
  std::uint32_t first_body = 0, bodies = 0;  // bodies: of the mechanism
  // 7 a body: x y z [m] e0 e1 e2 e3; valid until the next receive(). None: this one tells of the step what follows.
  std::span<const float> numbers = {};
  std::span<const float> inputs = {};  // that acted, one per input channel [channel's unit]; likewise
  float wake_up_us = 0.0f, step_us = 0.0f, position_residual = 0.0f;  // [m]
};

// Message Command of wire.proto.
enum class RigCommand : std::uint8_t { run, hold, step, snapshot, reset_to_start, reset_to_snapshot };

// A parameter of the server's mechanism.
struct RigParameter {
  std::string name;
  std::string unit;
  double value = 0.0;  // that acts now [unit]
  double minimum = 0.0, maximum = 0.0;
  bool tunable = false;  // else fixed: it was given before the start
};

struct RigParameterValue {
  std::string name;
  double value = 0.0;  // [unit of the parameter]
};

class __attribute__((visibility("default"))) RigClient {
 public:
  enum class Arrival { nothing, state, goodbye, other, poses };

  // Connects and reads the channels. stop: gives up when it becomes true. What it throws derives from
  // std::runtime_error and says what to do: no host, no answer, refused with the server's words, key file.
  explicit RigClient(const RigClientOptions& options, const std::atomic<bool>* stop = nullptr);
  ~RigClient();  // says Goodbye
  RigClient(const RigClient&) = delete;
  RigClient& operator=(const RigClient&) = delete;

  bool connected() const noexcept;  // false: stopped before
  // Another rig with our key or secret has taken our place. reconnect() does not take it back: that is for people.
  bool displaced() const noexcept;
  // False: the system did not lock the memory of the key, which may come into swap space: see `ulimit -l`.
  bool keys_locked() const noexcept;
  const RigServer& server() const noexcept;

  // One value per input channel, finite. False: the system did not take the datagram.
  // In lockstep this asks for the step after the newest state. When no answer comes in good time, send once more: the
  // server makes each step once, and answers again.
  bool send(std::span<const double> inputs) noexcept;
  bool request_state() noexcept;  // lockstep: asks for the last state again, without a step; so a rig begins
  // For the next two seconds poses of all bodies come, too, at most 60 times a second. For people who watch.
  bool subscribe_poses() noexcept;
  // For a controller that sends inputs more rarely than every 25th of the time-out: after a tenth of silence another
  // rig with its key or secret may take its place.
  bool send_heartbeat() noexcept;
  // As the controller: clears the fault that is latched; false: none is, or no answer came.
  bool reset_fault(double timeout_s);
  // As the controller: has the server run, hold and so on; steps: of RigCommand::step. False: the state of the run does
  // not permit it, or no answer came.
  bool command(RigCommand command, std::uint32_t steps, double timeout_s);
  // The bytes of a snapshot file, as `rigstep snapshot` writes it. Throws std::runtime_error with the server's words
  // where it refuses, and where no answer came.
  std::string snapshot(double timeout_s);
  // As the controller: sets the run back to the state of such a file. False: the state of the run does not permit it,
  // or no answer came. Throws std::runtime_error where the server refuses the file.
  bool reset_to(std::string_view snapshot, double timeout_s);
  // The parameters of the mechanism with what acts now. Empty also where no answer came.
  std::vector<RigParameter> parameters(double timeout_s);
  // The text of the mechanism file that the server steps. Throws std::runtime_error where no answer comes, as from
  // servers that do not tell it. States that arrive meanwhile are skipped.
  std::string mechanism_text(double timeout_s);
  // As the controller: changes tunable parameters between two steps, all of them between the same two; over so many
  // steps in equal parts, 0: at once. The first step that it acts in; 0: no answer came, and it may act or not. Throws
  // std::runtime_error with the server's words where it refuses; nothing has changed then.
  std::uint64_t set_parameters(const std::vector<RigParameterValue>& values, std::uint32_t ramp_steps,
                               double timeout_s);
  std::uint64_t sent_inputs() const noexcept;  // sequence of the newest one

  // The next datagram that came, without waiting. state(): after Arrival::state.
  Arrival receive() noexcept;
  // Or until a datagram, a refusal by the server's machine or a signal comes; CLOCK_MONOTONIC.
  void wait_until(std::int64_t time_ns) noexcept;
  const RigState& state() const noexcept;
  const RigPoses& poses() const noexcept;       // after Arrival::poses
  const std::string& goodbye() const noexcept;  // the server's words when it stopped

  // A libfranka-like loop: for each state in time, `step` writes the next inputs and says whether to go on; in lockstep
  // for each state, begun with the present one, and lost datagrams are sent again. Ends then, or when the server says
  // Goodbye or is silent for the time-out (false).
  bool control(const std::function<bool(const RigState& state, std::span<double> inputs)>& step);

  // After silence: says Hello anew. False: no answer, or displaced. Throws when another mechanism answers, or another
  // rig is in control.
  bool reconnect(double timeout_s);

  // The server's clock against ours, and delays of the newest datagrams on either way [ns], as uncertain as it is.
  std::optional<wire::ClockOffset::Estimate> clock() const noexcept;
  std::optional<std::int64_t> delay_to_rig_ns() const noexcept;
  std::optional<std::int64_t> delay_to_server_ns() const noexcept;

  // Datagrams refused, by wire::DecodeStatus; old_sequence: states that were overtaken on the way.
  const std::array<std::uint64_t, wire::kDecodeStatusCount>& refused() const noexcept;
  // Says Goodbye with these words and ends the session.
  void leave(const std::string& words) noexcept;

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace rigstep::server
