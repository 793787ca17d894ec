#include "server/live/commission_verdict.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <xxhash.h>

#include <filesystem>

#include "proto/codec.h"
#include "server/live/session.h"

namespace rigstep::server {

std::string commission_verdict_path(const std::string& rig_path) {
  return std::filesystem::path(rig_path).replace_extension(".commissioned.json").string();
}

nlohmann::json commission_identity(const config::RigConfig& rig, const Mechanism& mechanism) {
  utsname system{};
  ::uname(&system);
  return {{"rig_file", fmt::format("{:016x}", XXH3_64bits(rig.text.data(), rig.text.size()))},
          {"mechanism", fmt::format("{:016x}", mechanism.id())},
          {"machine", fmt::format("{}, {}, {} {}", system.nodename, cpu_fingerprint(), system.sysname, system.release)},
          {"build", build_fingerprint()}};
}

namespace {

constexpr int kDeepest = 16;  // lists within lists: what prints JSON goes down with them on the stack; a verdict has 3

bool is_verdict(const nlohmann::json& found) {
  return found.is_object() && found.contains("identity") && found["identity"].is_object() && found.contains("carried");
}

}  // namespace

nlohmann::json parse_commission_verdict(const std::string& text) {
  bool too_deep = false;
  const auto shallow = [&too_deep](int depth, nlohmann::json::parse_event_t, const nlohmann::json&) {
    too_deep |= depth > kDeepest;
    return !too_deep;
  };
  nlohmann::json found = nlohmann::json::parse(text, shallow, false);
  return too_deep ? nlohmann::json(nlohmann::json::value_t::discarded) : found;
}

bool is_commission_verdict(const std::string& path) {
  try {
    return is_verdict(parse_commission_verdict(config::read_text_file(path, config::kLargestVerdict)));
  } catch (const config::ConfigError&) {
    return false;
  }
}

CommissionVerdict read_commission_verdict(const config::RigConfig& rig, const Mechanism& mechanism) {
  const std::string again = fmt::format("; rigstep commission {} measures it", rig.path);
  const std::string path = commission_verdict_path(rig.path);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {.problem = "this rig was not commissioned here" + again};
  std::string text;
  try {
    text = config::read_text_file(path, config::kLargestVerdict);
  } catch (const config::ConfigError& unreadable) {
    return {.problem = unreadable.what() + again};
  }
  const nlohmann::json found = parse_commission_verdict(text);
  if (!is_verdict(found)) return {.problem = path + ": is no verdict of rigstep commission" + again};
  const nlohmann::json here = commission_identity(rig, mechanism);
  for (const auto& [what, value] : here.items())
    if (found["identity"].value(what, nlohmann::json()) != value)
      return {.problem = fmt::format("{}: is about another {}{}", path, what, again)};
  return {.json = text, .carried = found["carried"] == true};
}

std::string commission_verdict_text(const nlohmann::json& verdict) {
  try {
    const std::string measured = wire::printable(verdict.at("measured").get<std::string>());
    if (verdict.at("carried").get<bool>())
      return fmt::format("carried, margin {:.0f} %, measured {}", 100.0 * verdict.at("margin").get<double>(), measured);
    std::string broken;
    for (const nlohmann::json& rule : verdict.at("rules"))
      if (!rule.at("holds").get<bool>())
        broken += (broken.empty() ? "" : ", ") + wire::printable(rule.at("rule").get<std::string>());
    return fmt::format("NOT CARRIED ({}), measured {}", broken, measured);
  } catch (const nlohmann::json::exception&) {
    return "a verdict that this version cannot read";
  }
}

}  // namespace rigstep::server
