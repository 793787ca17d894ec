#include "server/rig/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "proto/codec.h"
#include "proto/config_text.h"
#include "server/network_error.h"
#include "server/rig/client_session.h"
#include "server/rig/operator_key.h"
#include "server/rig/parameters.h"
#include "server/rig/runtime_folder.h"
#include "server/rig/snapshot_transfer.h"

namespace rigstep::server {
namespace {

// One request outside a session, where no key is needed.
wire::StatusReport query_without_key(const StatusTarget& target) {
  ClientSocket socket(target.host, target.port);
  wire::RigCodec codec;
  std::vector<std::int64_t> asked_ns;  // when: an answer echoes one of them, and no other is believed
  std::string refusal;
  const std::int64_t give_up = now_ns() + nanoseconds(target.timeout_s);
  while (now_ns() < give_up) {
    asked_ns.push_back(now_ns());
    socket.send({.sender = wire::Sender::rig, .sent_ns = asked_ns.back()}, codec.encode_status_query(false));
    const std::int64_t repeat = now_ns() + kRepeatAfterNs;
    while (now_ns() < repeat) {
      socket.wait_until(repeat);
      while (const auto arrival = socket.receive()) {
        Snapshot ignored;
        const wire::FrameHeader& header = arrival->frame.header;
        if (arrival->status != wire::DecodeStatus::ok || header.session != 0 ||
            std::find(asked_ns.begin(), asked_ns.end(), header.echo_sent_ns) == asked_ns.end() ||
            codec.decode(arrival->frame.payload, 0, ignored) != wire::DecodeStatus::ok)
          continue;
        if (codec.message()->has_status()) return codec.message()->status();
        if (codec.message()->has_refusal())
          refusal = wire::printable(codec.message()->refusal().text(), wire::kMaxTextBytes);
      }
    }
  }
  throw NetworkError(refusal.empty() ? socket.no_answer() : socket.server() + " refuses: " + refusal);
}

// A session of an operator.
class Console {
 public:
  Console(const StatusTarget& target, const std::string& key_file, wire::Role role = wire::CONSOLE)
      : timeout_s_(target.timeout_s),
        session_({.host = target.host, .port = target.port, .key_file = key_file, .role = role}, nullptr) {
    session_.open(timeout_s_, [](const wire::Welcome&, const ClientSession::Arrival&) {});
  }
  ~Console() { session_.leave("done"); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  wire::StatusReport query() {
    return ask([this] { return session_.codec().encode_status_query(true); },
               [](const wire::StatusReport&) { return true; }, timeout_s_);
  }

  std::vector<RigParameter> parameters() { return read_parameters(session_, take(), timeout_s_); }

  std::uint64_t change(const std::vector<RigParameterValue>& values, std::uint32_t ramp_steps) {
    const std::uint64_t step = set_parameters(session_, take(), values, ramp_steps, timeout_s_);
    if (step == 0) throw NetworkError(session_.socket().no_answer());
    return step;
  }

  wire::StatusReport reset(std::uint32_t number) {
    // the loop clears it at its next step, the report may be older
    return ask([this, number] { return session_.codec().encode_reset_fault(number); },
               [number](const wire::StatusReport& report) {
                 return report.loop_state() != wire::FAULTED || report.fault_number() != number;
               },
               timeout_s_);
  }

  std::string fetch_snapshot() { return server::fetch_snapshot(session_, take(), timeout_s_); }

  wire::StatusReport reset_to_file(std::string_view bytes) {
    return request_transition(wire::Command::RESET_TO_FILE, 0, send_snapshot(session_, take(), bytes, timeout_s_));
  }

  wire::StatusReport request_transition(wire::Command::Kind kind, std::uint32_t steps, std::uint64_t transfer = 0) {
    const std::uint32_t before = query().transitions();
    return ask([&] { return session_.codec().encode_command(kind, steps, before, transfer); },
               [before](const wire::StatusReport& report) { return report.transitions() != before; }, timeout_s_);
  }

  wire::StatusReport write_black_box(const wire::StatusReport& before, double patience_s) {
    const std::uint32_t count = before.black_boxes();
    const auto written = [count](const wire::StatusReport& report) {
      return report.black_boxes() > count && !report.black_box().empty();
    };
    const wire::StatusReport accepted = ask([this, count] { return session_.codec().encode_write_black_box(count); },
                                            [](const wire::StatusReport&) { return true; }, timeout_s_);
    if (written(accepted)) return accepted;
    try {
      return ask([this] { return session_.codec().encode_status_query(true); }, written, timeout_s_ + patience_s);
    } catch (const NetworkError&) {
      throw NetworkError(
          fmt::format("{} has not written its black box within {} s: look at its disk; `rigstep status` "
                      "names the file once it is there",
                      session_.socket().server(), timeout_s_ + patience_s));
    }
  }

 private:
  TakeDatagram take() {
    return [this](const ClientSession::Arrival& arrival) {
      Snapshot ignored;
      return session_.take(arrival, 0, ignored);
    };
  }

  wire::StatusReport ask(const std::function<std::span<const std::byte>()>& request,
                         const std::function<bool(const wire::StatusReport&)>& done, double timeout_s) {
    wire::StatusReport report;
    session_.ask(
        timeout_s, [&] { session_.send(request()); },
        [&](const ClientSession::Arrival& arrival) {
          Snapshot ignored;
          if (session_.take(arrival, 0, ignored) != wire::DecodeStatus::ok) return false;
          const wire::ServerToRig& message = *session_.codec().message();
          if (message.has_refusal()) throw refused(message.refusal().text());
          if (message.has_goodbye()) throw refused(message.goodbye().text());
          if (!message.has_status() || !done(message.status())) return false;
          report = message.status();
          return true;
        });
    return report;
  }

  NetworkError refused(const std::string& words) {
    return NetworkError(session_.socket().server() + " refuses: " + wire::printable(words, wire::kMaxTextBytes));
  }

  const double timeout_s_;
  ClientSession session_;
};

// Of the server on this machine that runs for the same user without keys.
std::string operator_key_file(const StatusTarget& target) {
  if (!target.key_file.empty()) return target.key_file;
  const RuntimeFolder folder;
  const std::string name = OperatorKey::file_name(target.port);
  if (!folder.read(name))
    throw NetworkError(
        fmt::format("there is no operator's key for port {}{}: give --key with the file of a participant whose role is "
                    "operator, or, "
                    "where the server has no key file, run this as the server's user on its machine",
                    target.port, folder.path().empty() ? " (" + folder.problem() + ")" : " in " + folder.path()));
  return folder.path() + "/" + name;
}

std::string text_of(const wire::Participant& participant) {
  std::string text =
      fmt::format("\"{}\" (version {}) at {}, heard {:.1f} ms ago", wire::printable(participant.rig_name()),
                  wire::printable(participant.product_version()), wire::printable(participant.address()),
                  1e-6 * static_cast<double>(participant.silent_ns()));
  if (!participant.key_name().empty())
    text += fmt::format(", with the key of {}", wire::printable(participant.key_name()));
  if (participant.has_clock())
    text += fmt::format("; its clock is {:+.1f} us from the server's, +- {:.1f} us, round trip {:.1f} us",
                        1e-3 * static_cast<double>(participant.clock().offset_ns()),
                        1e-3 * static_cast<double>(participant.clock().uncertainty_ns()),
                        1e-3 * static_cast<double>(participant.clock().round_trip_ns()));
  return text;
}

nlohmann::json json_of(const wire::Participant& participant) {
  nlohmann::json clock;
  if (participant.has_clock())
    clock = {{"offset_us", 1e-3 * static_cast<double>(participant.clock().offset_ns())},
             {"uncertainty_us", 1e-3 * static_cast<double>(participant.clock().uncertainty_ns())},
             {"round_trip_us", 1e-3 * static_cast<double>(participant.clock().round_trip_ns())}};
  return {{"rig_name", wire::printable(participant.rig_name())},
          {"address", wire::printable(participant.address())},
          {"product_version", wire::printable(participant.product_version())},
          {"silent_ns", participant.silent_ns()},
          {"key_name", wire::printable(participant.key_name())},
          {"clock", clock}};
}

}  // namespace

const char* to_text(wire::LoopState state) {
  switch (state) {
    case wire::FAULTED:
      return "faulted";
    case wire::READY:
      return "ready";
    case wire::HOLDING:
      return "holding";
    default:
      return "running";
  }
}

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
    throw config::ConfigError("\"" + text + "\" is not HOST:PORT: give for instance 127.0.0.1:47001");
  return target;
}

wire::StatusReport query_status(const StatusTarget& target) {
  if (target.key_file.empty()) return query_without_key(target);
  return std::make_unique<Console>(target, target.key_file)->query();
}

wire::StatusReport reset_fault(const StatusTarget& target, std::uint32_t number) {
  return std::make_unique<Console>(target, operator_key_file(target))->reset(number);
}

wire::StatusReport request_transition(const StatusTarget& target, wire::Command::Kind kind, std::uint32_t steps) {
  return std::make_unique<Console>(target, operator_key_file(target))->request_transition(kind, steps);
}

std::string fetch_snapshot(const StatusTarget& target) {
  return std::make_unique<Console>(target, operator_key_file(target))->fetch_snapshot();
}

wire::StatusReport reset_to_file(const StatusTarget& target, std::string_view bytes) {
  return std::make_unique<Console>(target, operator_key_file(target))->reset_to_file(bytes);
}

wire::StatusReport write_black_box(const StatusTarget& target, const wire::StatusReport& report, double patience_s) {
  return std::make_unique<Console>(target, operator_key_file(target))->write_black_box(report, patience_s);
}

std::vector<RigParameter> query_parameters(const StatusTarget& target) {
  return std::make_unique<Console>(target, target.key_file, wire::OBSERVER)->parameters();
}

std::uint64_t change_parameters(const StatusTarget& target, const std::vector<RigParameterValue>& values,
                                std::uint32_t ramp_steps) {
  return std::make_unique<Console>(target, operator_key_file(target))->change(values, ramp_steps);
}

std::string status_text(const wire::StatusReport& report) {
  std::string out =
      fmt::format("{:<22}Rigstep {}, {} at {} us{}{}\n", "server", wire::printable(report.product_version()),
                  wire::printable(report.mechanism()), report.period_ns() / 1000,
                  report.lockstep() ? ", in lockstep" : "", report.authenticated() ? ", authenticated" : "");
  out += fmt::format("{:<22}{} at step {}, {} faults so far\n", "loop", to_text(report.loop_state()), report.step(),
                     report.fault_number());
  if (!report.fault().empty()) out += fmt::format("{:<22}{}\n", "  fault", wire::printable(report.fault(), 300));
  if (!report.black_box().empty())
    out += fmt::format("{:<22}{}\n", "black box", wire::printable(report.black_box(), 300));
  if (!report.recording_error().empty())
    out += fmt::format("{:<22}ended: {}\n", "recording", wire::printable(report.recording_error(), 300));
  out += fmt::format("{:<22}{}\n", "in control", report.has_controller() ? text_of(report.controller()) : "nobody");
  out += fmt::format("{:<22}{}\n", "observers", report.observers());
  for (const auto& observer : report.observer()) out += fmt::format("{:<22}{}\n", "", text_of(observer));
  for (const auto& parameter : report.parameter())
    out += fmt::format("{:<22}{} {:.9g} {}\n", "parameter", wire::printable(parameter.name()), parameter.value(),
                       wire::printable(parameter.unit()));
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
  nlohmann::json parameters = nlohmann::json::object();
  for (const auto& parameter : report.parameter())
    parameters[wire::printable(parameter.name())] = {{"value", parameter.value()},
                                                     {"unit", wire::printable(parameter.unit())}};
  return {{"schema", 1},
          {"parameters", parameters},
          {"product_version", wire::printable(report.product_version())},
          {"mechanism", wire::printable(report.mechanism())},
          {"mechanism_id", fmt::format("{:016x}", report.mechanism_id())},
          {"period_ns", report.period_ns()},
          {"state", to_text(report.loop_state())},
          {"transitions", report.transitions()},
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
