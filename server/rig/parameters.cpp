#include "server/rig/parameters.h"

#include <sodium.h>

#include "server/network_error.h"

namespace rigstep::server {

namespace {

// The report in the datagram; null: another datagram. Throws NetworkError where the server refuses or has stopped.
const wire::ParameterReport* report_in(ClientSession& link, const TakeDatagram& take,
                                       const ClientSession::Arrival& arrival) {
  if (take(arrival) != wire::DecodeStatus::ok) return nullptr;
  const wire::ServerToRig& message = *link.codec().message();
  const auto words = [&](const std::string& text) {
    return NetworkError(link.socket().server() + " refuses: " + wire::printable(text, wire::kMaxTextBytes));
  };
  if (message.has_refusal()) throw words(message.refusal().text());
  if (message.has_goodbye()) throw words(message.goodbye().text());
  return message.has_parameters() ? &message.parameters() : nullptr;
}

RigParameter parameter_of(const wire::ParameterDescription& in) {
  return {.name = wire::printable(in.name(), wire::kMaxTextBytes),
          .unit = wire::printable(in.unit()),
          .value = in.value(),
          .minimum = in.minimum(),
          .maximum = in.maximum(),
          .tunable = in.tunable()};
}

}  // namespace

std::vector<RigParameter> read_parameters(ClientSession& link, const TakeDatagram& take, double timeout_s) {
  std::vector<RigParameter> all;
  for (bool complete = false; !complete;) {
    const auto first = static_cast<std::uint32_t>(all.size());
    const auto query = [&] { link.send(link.codec().encode_parameter_query(first, 0)); };
    const auto take_page = [&](const ClientSession::Arrival& arrival) {
      const wire::ParameterReport* const page = report_in(link, take, arrival);
      if (page == nullptr || page->first() != first || page->total() > kMaxParameters) return false;
      if (first < page->total() && page->parameter().empty()) return false;
      for (const wire::ParameterDescription& each : page->parameter()) all.push_back(parameter_of(each));
      complete = all.size() >= page->total();
      return true;
    };
    if (!link.ask(timeout_s, query, take_page)) return {};
  }
  return all;
}

std::uint64_t set_parameters(ClientSession& link, const TakeDatagram& take,
                             const std::vector<RigParameterValue>& values, std::uint32_t ramp_steps, double timeout_s) {
  wire::ParameterSet set;
  std::uint64_t number = 0;
  while (number == 0) randombytes_buf(&number, sizeof number);
  set.set_request(number);
  set.set_ramp_steps(ramp_steps);
  for (const RigParameterValue& each : values) {
    wire::ParameterSetting& setting = *set.add_setting();
    setting.set_name(each.name);
    setting.set_value(each.value);
  }
  if (set.ByteSizeLong() + 64 > wire::kMaxPayload || values.size() > kMaxParameters)
    throw NetworkError("these are more parameters than one datagram holds: change fewer at a time");
  std::uint64_t acts_from = 0;
  const auto ask = [&] { link.send(link.codec().encode_parameter_set(set)); };
  const auto take_report = [&](const ClientSession::Arrival& arrival) {
    const wire::ParameterReport* const report = report_in(link, take, arrival);
    if (report == nullptr || report->request() != number) return false;
    acts_from = report->acts_from();
    return acts_from != 0;  // else the loop takes it at its next tick
  };
  return link.ask(timeout_s, ask, take_report) ? acts_from : 0;
}

}  // namespace rigstep::server
