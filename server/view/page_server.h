// The web page and what it asks for, over HTTP. An observer like any other: it shares nothing with a loop thread.
//
// The page is a hostile place. Only names and addresses of this server are answered (no DNS rebinding), only its own
// pages may ask for anything (Origin, Sec-Fetch-Site), scripts come from the page's own file (content security policy),
// and nothing refers to another host. Beyond loopback everything but the page itself needs the token.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "server/view/subject.h"

namespace rigstep::server {

inline constexpr std::uint16_t kDefaultPagePort = 8470;

struct PageOptions {
  std::string address = "127.0.0.1";      // numeric
  std::uint16_t port = kDefaultPagePort;  // 0: any free one
  std::string token = {};                 // empty: none is asked for, which only loopback permits
  bool control = false;                   // operations are permitted, with the token
};

// A token file: its first line, at least 32 characters; only its owner may read it. Throws config::ConfigError.
std::string read_page_token(const std::string& path);

// The page was built in: else there is nothing to serve.
bool has_page() noexcept;

class PageServer {
 public:
  // Binds. Throws config::ConfigError for an address beyond loopback without a token, NetworkError where binding fails.
  PageServer(const PageOptions& options, Subject& subject);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  std::uint16_t port() const noexcept;
  // Where people find it: "http://127.0.0.1:8470/"; with the token behind it, for a terminal and not for a log.
  std::string link() const;
  std::string link_with_token() const;
  int watchers() const noexcept;  // open streams
  void stop();                    // ends all streams

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rigstep::server
