// The UDP endpoint over the loopback device, before a thread that only counts steps and stands in for the mechanism.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/mechanism/builder.h"
#include "server/link/udp_endpoint.h"
#include "server/rig/rig.h"

namespace rigstep::server::loopback {

using namespace std::chrono_literals;
using wire::DecodeStatus;

constexpr std::int64_t kPeriod = 1'000'000;  // [ns]

inline Mechanism block() {
  MechanismBuilder builder("block");
  Body body;
  body.name = "body";
  body.mass = 2.0;
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

// Datagrams that were accepted or dropped.
inline std::uint64_t sum(const UdpCounters& counters) {
  std::uint64_t all = counters.accepted;
  for (const std::uint64_t dropped : counters.dropped) all += dropped;
  return all;
}

// An endpoint on a free port and a thread that answers every period, in lockstep every datagram, with the newest input
// as the first output.
class Server {
 public:
  enum class Pace { server, rig };
  explicit Server(const UdpOptions& options = {.port = 0}, Pace pace = Pace::server)
      : lockstep_(pace == Pace::rig),
        endpoint_(options, codec_, inputs_, snapshots_,
                  {.on_event = [this](const RigEvent& event) { note(event); },
                   .describe_loop =
                       [this](wire::StatusReport& report) {
                         report.set_loop_state(faulted_ ? wire::FAULTED : wire::RUNNING);
                         report.set_fault_number(7);
                         report.set_black_boxes(black_boxes_);
                         report.set_black_box("box " + std::to_string(black_boxes_));
                       },
                   .reset_fault = [this](std::uint32_t number) { faulted_ = faulted_ && number != 7; },
                   .write_black_box =
                       [this](std::uint32_t written) {
                         if (keeps_black_box_ && written == black_boxes_) ++black_boxes_;
                         return keeps_black_box_.load();
                       }}) {
    answer_.flags = kNoInputYet;
    answer_.outputs.count = 7;
    if (pace == Pace::server) endpoint_.start();
    stepping_ = std::thread([this, pace] { pace == Pace::server ? step_until_stopped() : serve_lockstep(); });
  }
  ~Server() { stop(); }

  UdpEndpoint& endpoint() { return endpoint_; }
  void stop() {
    stopping_ = true;
    if (lockstep_) endpoint_.stop();
    if (stepping_.joinable()) stepping_.join();
    endpoint_.stop();
  }
  std::uint16_t port() const { return endpoint_.local_port(); }
  UdpCounters counters() const { return endpoint_.counters(); }
  std::uint64_t dropped(DecodeStatus status) const { return counters().dropped[static_cast<std::size_t>(status)]; }
  std::uint64_t newest_sequence() const { return newest_sequence_; }
  bool kept_early() const { return kept_early_; }  // lockstep: recorded a step before its answer was sent
  std::vector<RigEvent> events() {
    const std::lock_guard lock(events_mutex_);
    return events_;
  }
  std::vector<RigEvent::Kind> event_kinds() {
    std::vector<RigEvent::Kind> kinds;
    for (const RigEvent& event : events()) kinds.push_back(event.kind);
    return kinds;
  }
  std::atomic<bool> faulted_{false};
  std::atomic<bool> keeps_black_box_{true};
  std::atomic<std::uint32_t> black_boxes_{0};

 private:
  void step(const InputSample& input) {
    newest_sequence_ = answer_.sequence = input.sequence;
    answer_.rig_time_ns = input.rig_time_ns;
    answer_.input_age_steps = 0;
    answer_.flags = faulted_ ? kFaulted : 0u;
    if (faulted_) return;
    answer_.outputs.value[0] = input.inputs.value[0];
    answer_.sim_time_ns = static_cast<std::int64_t>(++answer_.step) * kPeriod;
  }
  void step_until_stopped() {
    auto deadline = std::chrono::steady_clock::now();
    for (InputSample input; !stopping_;) {
      std::this_thread::sleep_until(deadline += std::chrono::nanoseconds(kPeriod));
      ++answer_.input_age_steps;
      if (inputs_.take(input)) {
        newest_sequence_ = answer_.sequence = input.sequence;
        answer_.rig_time_ns = input.rig_time_ns;
        answer_.input_age_steps = 0;
        answer_.flags = 0;
        answer_.outputs.value[0] = input.inputs.value[0];
      }
      answer_.sim_time_ns = static_cast<std::int64_t>(++answer_.step) * kPeriod;
      snapshots_.publish(answer_);
      const std::uint64_t one = 1;
      CHECK(::write(endpoint_.wake_fd(), &one, sizeof one) == sizeof one);
    }
  }
  void serve_lockstep() {
    const Lockstep lockstep{.step =
                                [this](const rt::TickTiming&) {
                                  sent_before_ = counters().sent;
                                  InputSample input;
                                  if (inputs_.take(input)) step(input);
                                },
                            .keep = [this] { kept_early_ = kept_early_ || counters().sent == sent_before_; },
                            .answer = answer_};
    endpoint_.serve_lockstep(lockstep, {});
  }
  void note(const RigEvent& event) {
    const std::lock_guard lock(events_mutex_);
    events_.push_back(event);
  }

  Mechanism mechanism_ = block();
  wire::ServerCodec codec_{mechanism_, {0, 1, 2}, kPeriod, "1.2.3"};
  rt::Mailbox<InputSample> inputs_;
  rt::Mailbox<Snapshot> snapshots_;
  std::mutex events_mutex_;
  std::vector<RigEvent> events_;
  std::atomic<std::uint64_t> newest_sequence_{0};
  std::uint64_t sent_before_ = 0;
  std::atomic<bool> kept_early_{false};
  std::atomic<bool> stopping_{false};
  Snapshot answer_;  // stepping thread only
  const bool lockstep_;
  UdpEndpoint endpoint_;
  std::thread stepping_;
};

inline bool becomes_true(auto&& condition, std::chrono::milliseconds limit = 1000ms) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

inline RigOptions options_for(const Server& server) {
  RigOptions options;
  options.port = server.port();
  options.product_version = "1.2.3";
  options.name = "rigstep rig";
  return options;
}

inline const std::atomic<bool> kNeverStop{false};

inline std::string error_of(const RigOptions& options) {
  try {
    run_rig(options, kNeverStop);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace rigstep::server::loopback
