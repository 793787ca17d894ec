// A rig in software: drives inputs, reads states, measures round trip and loss. For tests, demos and commissioning;
// also the example of how a real rig talks to Rigstep. Runs on the caller's thread, may allocate, is not real time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"
#include "proto/codec.h"
#include "server/network_error.h"
#include "server/output/csv.h"

namespace rigstep::server {

// What one input channel does over time.
class Drive {
 public:
  // "CHANNEL=sine:AMPLITUDE,FREQUENCY_HZ", "CHANNEL=step:VALUE[,TIME_S]", "CHANNEL=TABLE.csv" for one column of a table
  // of inputs (InputTable), or "TABLE.csv" for all of its columns. Throws config::ConfigError that names the drive,
  // what is wrong and the channels there are.
  static std::vector<Drive> parse(const std::string& text, const std::vector<Channel>& inputs);

  int channel() const { return channel_; }  // index of the input channel
  double value(double time_s) const;        // [channel's unit]

 private:
  struct Sine {
    double amplitude, frequency_hz;
  };
  struct Step {
    double value, time_s;
  };
  using FromTable = std::shared_ptr<const InputTable>;
  using Shape = std::variant<Sine, Step, FromTable>;

  Drive(int channel, Shape shape) : channel_(channel), shape_(std::move(shape)) {}

  int channel_ = 0;
  Shape shape_;
};

// What the server says about itself when a rig connects.
struct RigLink {
  std::string server_version;
  std::string controller;  // name and address of the rig in control, empty: nobody
  std::string mechanism;
  std::int64_t period_ns = 0;
  bool lockstep = false;
  std::vector<Channel> inputs;
  std::vector<Channel> outputs;  // the selected ones, as in StateFrame
};

struct RigOptions {
  std::string host = "127.0.0.1";  // name or numeric address of the server
  std::uint16_t port = 47001;
  std::string name;  // empty: one that no other rig has
  std::string product_version;
  std::string key_file;             // of `rigstep keygen`; empty: none
  bool observe = false;             // send no inputs
  std::vector<std::string> drives;  // see Drive::parse; inputs without a drive are sent as zero
  double rate_hz = 0.0;             // of the inputs, in lockstep at most; 0: one per period of the server
  double duration_s = 10.0;         // 0: until stopped
  double timeout_s = 3.0;           // for the connection, and without any state afterwards
  std::function<void(const RigLink&)> on_connected;  // before the first input
  std::function<void(const Snapshot&)> on_state;     // every state; outputs as in RigLink::outputs
};

// Percentiles of a time [us].
struct Times {
  std::uint64_t count = 0;
  double p50_us = 0.0, p99_us = 0.0, p999_us = 0.0, max_us = 0.0;
};

struct RigReport {
  enum class End { duration_over, stopped, server_stopped, server_silent, displaced };
  End end = End::duration_over;
  std::string goodbye;  // the server's words when it stopped, or when another rig took our place
  RigLink link;

  double seconds = 0.0;  // from the first input to the end
  std::uint64_t inputs_sent = 0;
  std::uint64_t send_errors = 0;
  std::uint64_t reconnects = 0;   // after the server was silent
  std::uint64_t asked_again = 0;  // lockstep: inputs sent again since no answer came in time
  std::uint64_t states = 0;
  double state_rate_hz = 0.0;
  std::uint64_t lost = 0;                                         // gaps in the step numbers [states]
  std::array<std::uint64_t, wire::kDecodeStatusCount> dropped{};  // datagrams by DecodeStatus; old_sequence: overtaken

  // From the sending of an input to the arrival of the first state that used it. Includes the wait for the server's
  // next deadline: up to one period.
  Times round_trip;
  // The server's clock minus ours, and the ways of single datagrams that follow from it: all as uncertain as it is.
  std::optional<wire::ClockOffset::Estimate> clock;
  Times to_server, to_rig;

  std::uint32_t max_input_age_steps = 0;  // once the server has used an input of this rig
  std::uint32_t flags_seen = 0;           // all bits of Flag that any state had
  StepStatus last_status = StepStatus::ok;
  Snapshot last;  // the newest state
};

const char* to_string(RigReport::End end) noexcept;

// Connects, sends inputs and receives states until the duration is over, `stop` is set or the server ends.
// In lockstep it asks for step after step, at most at the rate, and drives follow simulated time.
// A server that is silent for a third of the time-out is asked anew, so a restarted one is found again.
// Throws NetworkError where no server answers or it refuses, wire::KeyError, config::ConfigError for drives and
// options.
RigReport run_rig(const RigOptions& options, const std::atomic<bool>& stop);

}  // namespace rigstep::server
