#include "server/bench/peers.h"

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "proto/config_text.h"

namespace rigstep::server {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string find_peers(const std::string& given) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!given.empty()) {
    if (!fs::exists(given, error)) throw config::ConfigError("--peers: " + given + ": is not there");
    return given;
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& path : {folder / "rigstep_bench_peers", folder / "../tests/rigstep_bench_peers"})
    if (fs::exists(path, error)) return path.lexically_normal().string();
  return {};
}

std::optional<nlohmann::json> run_peers(const std::string& executable, const std::vector<std::string>& arguments) {
  std::string command = quoted(executable);
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string text;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, count);
  const int status = pclose(pipe);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded() || !document.contains("peers") || !document.contains("missing")) return std::nullopt;
  return document;
}

std::vector<std::string> peer_arguments(const std::string& what, const BenchMechanism& which, bool quick) {
  std::vector<std::string> arguments{what, "--mechanism", which.name, "--bodies", std::to_string(which.bodies)};
  if (!which.file.empty()) arguments.insert(arguments.end(), {"--file", which.file});
  if (quick) arguments.push_back("--quick");
  return arguments;
}

}  // namespace rigstep::server
