#include "server/status.h"

#include <fmt/format.h>
#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "proto/codec.h"
#include "proto/load.h"
#include "rt/clock.h"
#include "server/client_socket.h"
#include "server/network_error.h"

namespace rigstep::server {
namespace {

// Requests outside a session, repeated until the answer that counts has come.
class Operator {
 public:
  explicit Operator(const StatusTarget& target) : target_(target), socket_(target.host, target.port, target.key) {
    if (sodium_init() < 0) throw NetworkError("no random numbers from the system: the server cannot be asked");
  }

  wire::StatusReport query() {
    return ask([this] { return codec_.encode_status_query(); }, [](const wire::StatusReport&) { return true; });
  }

  wire::StatusReport reset(std::uint32_t number) {
    randombytes_buf(&nonce_, sizeof nonce_);
    // the loop clears it at its next step, the report may be older
    return ask([this, number] { return codec_.encode_reset_fault(number, nonce_, cookie_); },
               [number](const wire::StatusReport& report) {
                 return report.loop_state() != wire::FAULTED || report.fault_number() != number;
               });
  }

  wire::StatusReport write_black_box(const wire::StatusReport& before, double patience_s) {
    randombytes_buf(&nonce_, sizeof nonce_);
    const std::uint32_t count = before.black_boxes();
    const auto written = [count](const wire::StatusReport& report) {
      return report.black_boxes() > count && !report.black_box().empty();
    };
    try {
      const wire::StatusReport accepted =
          ask([this, count] { return codec_.encode_write_black_box(count, nonce_, cookie_); },
              [](const wire::StatusReport&) { return true; });
      if (written(accepted)) return accepted;
    } catch (const NetworkError&) {
      if (!refusal_.empty()) throw;
      throw NetworkError(
          fmt::format("{} runs Rigstep {} and did not answer: releases that write no black box on "
                      "request keep silent. Install the same release on both sides, or send SIGUSR1 to "
                      "the server's process.",
                      socket_.server(), wire::printable(before.product_version())));
    }
    target_.timeout_s += patience_s;
    try {
      return ask([this] { return codec_.encode_status_query(); }, written);
    } catch (const NetworkError&) {
      throw NetworkError(
          fmt::format("{} has not written its black box within {} s: look at its disk; `rigstep status` "
                      "names the file once it is there",
                      socket_.server(), target_.timeout_s));
    }
  }

 private:
  wire::StatusReport ask(const std::function<std::span<const std::byte>()>& request,
                         const std::function<bool(const wire::StatusReport&)>& done) {
    const std::int64_t give_up = now_ns() + std::llround(target_.timeout_s * 1e9);
    while (now_ns() < give_up) {
      asked_ns_.push_back(now_ns());
      socket_.send({.sender = wire::Sender::rig, .sent_ns = asked_ns_.back()}, request());
      const std::int64_t repeat = now_ns() + kRepeatAfterNs;
      bool challenged = false;
      while (!challenged && now_ns() < repeat) {
        socket_.wait_until(repeat);
        while (const auto arrival = socket_.receive()) {
          const wire::ServerToRig* message = read(*arrival);
          if (message == nullptr) continue;
          if (message->has_status() && done(message->status())) return message->status();
          if (message->has_refusal()) throw NetworkError(refused());
          if (!message->has_challenge() || message->challenge().nonce() != nonce_ ||
              message->challenge().cookie().size() != wire::kCookieBytes)
            continue;
          challenged = cookie_ != message->challenge().cookie();
          cookie_ = message->challenge().cookie();
        }
      }
    }
    if (!refusal_.empty()) throw NetworkError(refused());
    throw NetworkError(socket_.no_answer());
  }

  std::string refused() const { return socket_.server() + " refuses: " + refusal_; }

  // Null: nothing to go by. An answer echoes the time of a question of ours: no other one is believed.
  const wire::ServerToRig* read(const ClientSocket::Arrival& arrival) {
    Snapshot ignored;
    if (arrival.status != wire::DecodeStatus::ok && !arrival.hint) return nullptr;
    if (codec_.decode(arrival.frame.payload, 0, ignored) != wire::DecodeStatus::ok) return nullptr;
    const wire::ServerToRig* message = codec_.message();
    if (message->has_refusal()) refusal_ = wire::printable(message->refusal().text(), wire::kMaxTextBytes);
    const wire::FrameHeader& header = arrival.frame.header;
    const bool is_answer =
        header.session == 0 && std::find(asked_ns_.begin(), asked_ns_.end(), header.echo_sent_ns) != asked_ns_.end();
    return arrival.hint || !is_answer ? nullptr : message;
  }

  StatusTarget target_;
  ClientSocket socket_;
  wire::RigCodec codec_;
  std::uint64_t nonce_ = 0;
  std::vector<std::int64_t> asked_ns_;  // when
  std::string cookie_;
  std::string refusal_;
};

std::string text_of(const wire::Participant& participant) {
  std::string text =
      fmt::format("\"{}\" (version {}) at {}, heard {:.1f} ms ago", wire::printable(participant.rig_name()),
                  wire::printable(participant.product_version()), wire::printable(participant.address()),
                  1e-6 * static_cast<double>(participant.silent_ns()));
  if (participant.has_clock())
    text += fmt::format("; its clock is {:+.3f} ms from the server's, +- {:.0f} us, round trip {:.0f} us",
                        1e-6 * static_cast<double>(participant.clock().offset_ns()),
                        1e-3 * static_cast<double>(participant.clock().uncertainty_ns()),
                        1e-3 * static_cast<double>(participant.clock().round_trip_ns()));
  return text;
}

nlohmann::json json_of(const wire::Participant& participant) {
  nlohmann::json clock;
  if (participant.has_clock())
    clock = {{"offset_ns", participant.clock().offset_ns()},
             {"uncertainty_ns", participant.clock().uncertainty_ns()},
             {"round_trip_ns", participant.clock().round_trip_ns()}};
  return {{"rig_name", wire::printable(participant.rig_name())},
          {"address", wire::printable(participant.address())},
          {"product_version", wire::printable(participant.product_version())},
          {"silent_ns", participant.silent_ns()},
          {"clock", clock}};
}

const char* state_name(const wire::StatusReport& report) {
  return report.loop_state() == wire::FAULTED ? "faulted" : "running";
}

}  // namespace

StatusTarget parse_target(const std::string& text, std::uint16_t otherwise) {
  StatusTarget target;
  target.port = otherwise;
  const auto colon = text.rfind(':');
  const bool bare_v6 = text.find(':') != colon && text.back() != ']' && text.find(']') == std::string::npos;
  const bool has_port = colon != std::string::npos && !bare_v6 && (text.back() != ']');
  target.host = has_port ? text.substr(0, colon) : text;
  if (target.host.size() > 2 && target.host.front() == '[' && target.host.back() == ']')
    target.host = target.host.substr(1, target.host.size() - 2);
  if (has_port) {
    const std::string port = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
    if (error != std::errc() || end != port.data() + port.size()) target.host.clear();
  }
  if (target.host.empty() || target.port == 0)
    throw wire::ConfigError("\"" + text + "\" is not HOST:PORT: give for instance 127.0.0.1:47001");
  return target;
}

wire::StatusReport query_status(const StatusTarget& target) { return std::make_unique<Operator>(target)->query(); }

wire::StatusReport reset_fault(const StatusTarget& target, std::uint32_t number) {
  return std::make_unique<Operator>(target)->reset(number);
}

wire::StatusReport write_black_box(const StatusTarget& target, const wire::StatusReport& report, double patience_s) {
  return std::make_unique<Operator>(target)->write_black_box(report, patience_s);
}

std::string status_text(const wire::StatusReport& report) {
  std::string out =
      fmt::format("{:<22}Rigstep {}, {} at {} us{}{}\n", "server", wire::printable(report.product_version()),
                  wire::printable(report.mechanism()), report.period_ns() / 1000,
                  report.lockstep() ? ", in lockstep" : "", report.authenticated() ? ", authenticated" : "");
  out += fmt::format("{:<22}{} at step {}, {} faults so far\n", "loop", state_name(report), report.step(),
                     report.fault_number());
  if (!report.fault().empty()) out += fmt::format("{:<22}{}\n", "  fault", wire::printable(report.fault(), 300));
  if (!report.black_box().empty())
    out += fmt::format("{:<22}{}\n", "black box", wire::printable(report.black_box(), 300));
  if (!report.recording_error().empty())
    out += fmt::format("{:<22}ended: {}\n", "recording", wire::printable(report.recording_error(), 300));
  out += fmt::format("{:<22}{}\n", "in control", report.has_controller() ? text_of(report.controller()) : "nobody");
  out += fmt::format("{:<22}{}\n", "observers", report.observers());
  for (const auto& observer : report.observer()) out += fmt::format("{:<22}{}\n", "", text_of(observer));
  for (const auto& d : report.distribution())
    out += fmt::format("{:<22}p50 {}  p99 {}  p99.9 {}  max {}, of {}\n", wire::printable(d.name()), d.p50(), d.p99(),
                       d.p999(), d.max(), d.count());
  for (const auto& counter : report.counter())
    out += fmt::format("{:<22}{}\n", wire::printable(counter.name()), counter.count());
  for (const auto& counter : report.refused())
    out += fmt::format("{:<22}{} ({})\n", "refused", counter.count(), wire::printable(counter.name()));
  if (report.is_cut())
    out += "(more than one datagram holds: texts are cut, and perhaps observers or numbers missing)\n";
  return out;
}

nlohmann::json status_json(const wire::StatusReport& report) {
  nlohmann::json observers = nlohmann::json::array(), distributions = nlohmann::json::object();
  for (const auto& observer : report.observer()) observers.push_back(json_of(observer));
  for (const auto& d : report.distribution())
    distributions[wire::printable(d.name())] = {
        {"count", d.count()}, {"p50", d.p50()}, {"p99", d.p99()}, {"p99.9", d.p999()}, {"max", d.max()}};
  nlohmann::json refused = nlohmann::json::object(), counters = nlohmann::json::object();
  for (std::size_t k = 1; k < wire::kDecodeStatusCount; ++k)
    refused[wire::to_string(static_cast<wire::DecodeStatus>(k))] =
        report.is_cut() ? nlohmann::json() : nlohmann::json(0);
  for (const auto& counter : report.refused()) refused[wire::printable(counter.name())] = counter.count();
  for (const auto& counter : report.counter()) counters[wire::printable(counter.name())] = counter.count();
  return {{"schema", 1},
          {"product_version", wire::printable(report.product_version())},
          {"mechanism", wire::printable(report.mechanism())},
          {"mechanism_id", fmt::format("{:016x}", report.mechanism_id())},
          {"period_ns", report.period_ns()},
          {"state", state_name(report)},
          {"step", report.step()},
          {"faults", report.fault_number()},
          {"fault", wire::printable(report.fault(), 300)},
          {"black_box", wire::printable(report.black_box(), 300)},
          {"black_boxes", report.black_boxes()},
          {"black_box_failed", report.black_box_failed()},
          {"recording_error", wire::printable(report.recording_error(), 300)},
          {"lockstep", report.lockstep()},
          {"authenticated", report.authenticated()},
          {"is_cut", report.is_cut()},
          {"timeout_steps", report.timeout_steps()},
          {"controller", report.has_controller() ? json_of(report.controller()) : nlohmann::json()},
          {"observers", report.observers()},
          {"observer", observers},
          {"counters", counters},
          {"refused", refused},
          {"distributions", distributions}};
}

}  // namespace rigstep::server
