// States as JSON datagrams for plotting programs such as PlotJuggler (its UDP server with the protocol JSON): one
// object per state, "timestamp" [s] and one number per output channel. What gets lost is not sent again.
#pragma once

#include <asio.hpp>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"

namespace rigstep::server {

class Plot {
 public:
  // target: udp://HOST:PORT. Throws config::ConfigError for another form, NetworkError where HOST is not found.
  explicit Plot(const std::string& target);

  void name_channels(const std::vector<Channel>& outputs) { outputs_ = outputs; }
  void send(const Snapshot& state);

 private:
  std::vector<Channel> outputs_;
  asio::io_context context_;
  asio::ip::udp::socket socket_{context_};
};

}  // namespace rigstep::server
