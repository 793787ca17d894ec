#include "server/view/page_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <pthread.h>
#include <sodium.h>
#include <sys/stat.h>

#include <algorithm>
#include <asio/ip/address.hpp>
#include <chrono>
#include <fstream>
#include <thread>

#include "proto/config_text.h"
#include "server/network_error.h"
#include "server/view/page_assets.h"

namespace rigstep::server {
namespace {

using httplib::Request;
using httplib::Response;
using Json = nlohmann::json;

constexpr int kMostStreams = 32;                 // browsers that watch at a time
constexpr std::size_t kThreads = 40;             // streams, and requests beside them
constexpr std::size_t kStackBytes = 512 * 1024;  // of a thread: beside a loop, memory is locked, stacks included
constexpr std::size_t kMostBytes = 64 * 1024;    // of a request
constexpr double kCommandsPerSecond = 60.0;
constexpr std::size_t kLeastToken = 32;  // characters

constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Commands per second of all browsers together.
class RateLimit {
 public:
  bool take() {
    const std::lock_guard lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    left_ =
        std::min(kCommandsPerSecond, left_ + kCommandsPerSecond * std::chrono::duration<double>(now - last_).count());
    last_ = now;
    if (left_ < 1.0) return false;
    left_ -= 1.0;
    return true;
  }

 private:
  std::mutex mutex_;
  double left_ = kCommandsPerSecond;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// In a time that does not tell how much of it was right.
bool same_token(const std::string& given, const std::string& expected) {
  std::array<unsigned char, 32> a{}, b{};
  const auto hash = [](const std::string& text, std::array<unsigned char, 32>& to) {
    crypto_generichash(to.data(), to.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr,
                       0);
  };
  hash(given, a);
  hash(expected, b);
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

void refuse(Response& response, int status, const std::string& why) {
  response.status = status;
  response.set_content(Json{{"error", why}}.dump(-1, ' ', true, Json::error_handler_t::replace), "application/json");
}

// While it lives, threads are made with small stacks.
class SmallStacks {
 public:
  SmallStacks() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t small;
    ::pthread_getattr_default_np(&small);
    ::pthread_attr_setstacksize(&small, kStackBytes);
    ::pthread_setattr_default_np(&small);
    ::pthread_attr_destroy(&small);
  }
  ~SmallStacks() {
    ::pthread_setattr_default_np(&before_);
    ::pthread_attr_destroy(&before_);
  }
  SmallStacks(const SmallStacks&) = delete;
  SmallStacks& operator=(const SmallStacks&) = delete;

 private:
  pthread_attr_t before_;
};

// "127.0.0.1:8470" -> "127.0.0.1"; "[::1]:8470" -> "::1".
std::string name_in(const std::string& host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

struct PageServer::Impl {
  Impl(const PageOptions& given, Subject& shown) : options(given), subject(shown) {
    asio::error_code wrong;
    address = asio::ip::make_address(options.address, wrong);
    if (wrong)
      throw config::ConfigError("page address " + options.address +
                                ": is no numeric address: use 127.0.0.1, or one of this machine");
    if (!address.is_loopback() && options.token.empty())
      throw config::ConfigError(
          "page address " + options.address +
          ": others can reach it, and no token is asked for: give --token-file, or use 127.0.0.1");
    server.new_task_queue = [] {
      const SmallStacks small;
      return new httplib::ThreadPool(kThreads);
    };
    server.set_payload_max_length(kMostBytes);
    server.set_read_timeout(5);
    server.set_write_timeout(5);
    // one request a connection: what follows a refused request in its body is never taken for another request
    server.set_keep_alive_max_count(1);
    server.set_tcp_nodelay(true);
    server.set_default_headers({{"Content-Security-Policy", kPolicy},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Cross-Origin-Opener-Policy", "same-origin"},
                                {"Cache-Control", "no-store"}});
    server.set_pre_routing_handler(
        [this](const Request& request, Response& response) { return check(request, response); });
    server.set_exception_handler([](const Request&, Response& response, std::exception_ptr) {
      refuse(response, 500, "this cannot be answered");
    });
    add_routes();
    port = options.port;
    if (options.port == 0) {
      const int bound = server.bind_to_any_port(options.address);
      if (bound <= 0) throw NetworkError(options.address + ": no port is free");
      port = static_cast<std::uint16_t>(bound);
    } else if (!server.bind_to_port(options.address, options.port)) {
      throw NetworkError(
          fmt::format("{} port {}: cannot be bound: another program has it, or the address is not of this "
                      "machine: give --page-port with another one",
                      options.address, options.port));
    }
    thread = std::thread([this] { server.listen_after_bind(); });
    for (int k = 0; k < 1000 && !server.is_running(); ++k) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  ~Impl() { stop(); }

  void stop() {
    stopping = true;
    subject.broadcast().close();
    server.stop();
    if (thread.joinable()) thread.join();
  }

  // The name by which the browser asked is one of this server's.
  bool is_own_host(const std::string& host) const {
    const std::string name = name_in(host);
    if (name == "localhost") return address.is_loopback() || address.is_unspecified();
    asio::error_code error;
    const auto asked = asio::ip::make_address(name, error);
    if (error) return false;  // a name: somebody's DNS may point it here
    return asked == address || address.is_unspecified() || (asked.is_loopback() && address.is_loopback());
  }

  bool has_token(const Request& request) const {
    const std::string given = request.get_header_value("Authorization");
    return !options.token.empty() && given.starts_with("Bearer ") && same_token(given.substr(7), options.token);
  }

  httplib::Server::HandlerResponse check(const Request& request, Response& response) const {
    using Answer = httplib::Server::HandlerResponse;
    const std::string host = request.get_header_value("Host"), origin = request.get_header_value("Origin");
    const std::string site = request.get_header_value("Sec-Fetch-Site");
    const bool is_data = request.path.starts_with("/api/");
    const bool has_no_bound = request.has_header("Transfer-Encoding") || request.has_header("Content-Encoding") ||
                              (request.method != "GET" && !request.has_header("Content-Length"));
    if (has_no_bound) return refuse(response, 411, "a request has its length, and no encoding"), Answer::Handled;
    if (!is_own_host(host))
      return refuse(response, 421, "this server does not answer by that name: use its address"), Answer::Handled;
    if (!origin.empty() && origin != "http://" + host)
      return refuse(response, 403, "a page from elsewhere may not ask here"), Answer::Handled;
    if (is_data && !site.empty() && site != "same-origin")
      return refuse(response, 403, "a page from elsewhere may not ask here"), Answer::Handled;
    if (is_data && !options.token.empty() && !has_token(request))
      return refuse(response, 401, "the token is missing or wrong: open the link that `rigstep view` has printed"),
             Answer::Handled;
    return Answer::Unhandled;
  }

  void add_routes() {
    for (const PageAsset& asset : page_assets())
      server.Get(std::string(asset.path),
                 [&asset](const Request& request, Response& response) { send(asset, request, response); });
    server.Get("/api/scene", [this](const Request&, Response& response) {
      response.set_content(subject.scene(), "application/json");
    });
    server.Get(R"(/api/mesh/(\d{1,6}))", [this](const Request& request, Response& response) {
      send_binary(subject.mesh(std::stoul(request.matches[1])), response);
    });
    server.Get(R"(/api/track/(\d))", [this](const Request& request, Response& response) {
      send_shared(subject.track(std::stoul(request.matches[1])), response);
    });
    server.Get(R"(/api/steps/(\d)/(\d{1,18}))", [this](const Request& request, Response& response) {
      try {
        send_binary(subject.steps(std::stoul(request.matches[1]), std::stoull(request.matches[2])), response);
      } catch (const Error& error) {
        refuse(response, 409, error.what());
      }
    });
    server.Get("/api/stream", [this](const Request&, Response& response) { stream(response); });
    server.Post("/api/command", [this](const Request& request, Response& response) { command(request, response); });
  }

  static void send(const PageAsset& asset, const Request& request, Response& response) {
    const std::string accepted = request.get_header_value("Accept-Encoding");
    std::string_view content = asset.plain;
    if (accepted.find("br") != accepted.npos) {
      content = asset.brotli;
      response.set_header("Content-Encoding", "br");
    } else if (accepted.find("gzip") != accepted.npos) {
      content = asset.gzip;
      response.set_header("Content-Encoding", "gzip");
    }
    response.set_header("Vary", "Accept-Encoding");
    const char* type = asset.type.data();
    // by a provider, which the library does not compress again
    response.set_content_provider(content.size(), type,
                                  [content](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                    return sink.write(content.data() + offset, length);
                                  });
  }

  static void send_binary(std::string bytes, Response& response) {
    if (bytes.empty()) return refuse(response, 404, "there is nothing under this number");
    response.set_content(std::move(bytes), "application/octet-stream");
  }

  // However many browsers load it, it is there once.
  static void send_shared(const std::shared_ptr<const std::string>& bytes, Response& response) {
    if (bytes == nullptr) return refuse(response, 404, "there is nothing under this number");
    response.set_content_provider(bytes->size(), "application/octet-stream",
                                  [bytes](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
                                    return sink.write(bytes->data() + offset, length);
                                  });
  }

  void stream(Response& response) {
    if (streams.fetch_add(1) >= kMostStreams) {
      streams.fetch_sub(1);
      return refuse(response, 503, fmt::format("{} browsers watch already: close one", kMostStreams));
    }
    auto seen = std::make_shared<Broadcast::Seen>();
    response.set_chunked_content_provider(
        "application/octet-stream",
        [this, seen](std::size_t, httplib::DataSink& sink) {
          const std::string newer = subject.broadcast().take_newer(*seen, std::chrono::milliseconds(500));
          if (stopping) return false;
          // nothing new: an empty status, so that a browser that is gone is noticed
          static constexpr char kAlive[8] = {3, 0, 0, 0, 0, 0, 0, 0};
          return newer.empty() ? sink.write(kAlive, sizeof kAlive) : sink.write(newer.data(), newer.size());
        },
        [this](bool) { streams.fetch_sub(1); });
  }

  void command(const Request& request, Response& response) {
    if (!request.get_header_value("Content-Type").starts_with("application/json"))
      return refuse(response, 415, "commands are JSON");
    if (!rate.take()) return refuse(response, 429, "too many commands: wait a second");
    const Json asked = Json::parse(request.body, nullptr, false);
    if (!asked.is_object()) return refuse(response, 400, "the command is no JSON object");
    try {
      if (subject.is_operation(asked) && !(options.control && has_token(request)))
        return refuse(response, 403, "operating is not permitted here: see `view { control: true }` of the rig file");
      response.set_content(subject.command(asked).dump(-1, ' ', true, Json::error_handler_t::replace),
                           "application/json");
    } catch (const Json::exception&) {
      refuse(response, 400, "the command has a field of another kind than it needs");
    } catch (const Error& error) {
      refuse(response, 409, error.what());
    }
  }

  const PageOptions options;
  Subject& subject;
  asio::ip::address address;
  std::uint16_t port = 0;
  std::atomic<bool> stopping{false};
  std::atomic<int> streams{0};
  RateLimit rate;
  httplib::Server server;
  std::thread thread;
};

std::string read_page_token(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode))
    throw config::ConfigError("--token-file: " + path +
                              ": is no file: make one with `head -c 24 /dev/urandom | base64`");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw config::ConfigError("--token-file: " + path + ": others may read it: chmod 600 " + path);
  std::ifstream file(path);
  std::string token;
  std::getline(file, token);
  while (!token.empty() && token.back() == '\r') token.pop_back();
  const bool is_plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  if (token.size() < kLeastToken || token.size() > 1024 || !is_plain)
    throw config::ConfigError("--token-file: " + path +
                              ": its first line is no token of 32 letters or more: make one with "
                              "`head -c 24 /dev/urandom | base64`");
  return token;
}

bool has_page() noexcept { return !page_assets().empty(); }

PageServer::PageServer(const PageOptions& options, Subject& subject)
    : impl_(std::make_unique<Impl>(options, subject)) {}
PageServer::~PageServer() = default;
std::uint16_t PageServer::port() const noexcept { return impl_->port; }
std::string PageServer::link() const {
  const bool is_six = impl_->address.is_v6();
  return fmt::format("http://{}{}{}:{}/", is_six ? "[" : "", impl_->options.address, is_six ? "]" : "", impl_->port);
}
std::string PageServer::link_with_token() const {
  return link() + (impl_->options.token.empty() ? "" : "#token=" + impl_->options.token);
}
int PageServer::watchers() const noexcept { return impl_->streams; }
void PageServer::stop() { impl_->stop(); }

}  // namespace rigstep::server
