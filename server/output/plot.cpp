#include "server/output/plot.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "proto/config_text.h"
#include "server/network_error.h"

namespace rigstep::server {

Plot::Plot(const std::string& target) {
  const std::string scheme = "udp://";
  const auto colon = target.rfind(':');
  if (!target.starts_with(scheme) || colon < scheme.size() + 1 || colon + 1 == target.size()) {
    throw config::ConfigError("plot: \"" + target +
                              "\" is not udp://HOST:PORT: for PlotJuggler on this machine give "
                              "udp://127.0.0.1:9870");
  }
  const std::string host = target.substr(scheme.size(), colon - scheme.size());
  std::error_code error;
  asio::ip::udp::resolver resolver(context_);
  const auto found = resolver.resolve(host, target.substr(colon + 1), error);
  if (error || found.empty()) {
    throw NetworkError("plot: cannot find \"" + host + "\" (" + error.message() + "). Check the name and the port.");
  }
  const auto older =
      std::find_if(found.begin(), found.end(), [](const auto& each) { return each.endpoint().address().is_v4(); });
  const asio::ip::udp::endpoint remote = (older == found.end() ? found.begin() : older)->endpoint();
  socket_.open(remote.protocol(), error);
  if (!error) socket_.connect(remote, error);
  if (!error) socket_.non_blocking(true, error);
  if (error) throw NetworkError("plot: cannot send to " + target + " (" + error.message() + "). Check the network.");
}

void Plot::send(const Snapshot& state) {
  nlohmann::json sample = {{"timestamp", 1e-9 * static_cast<double>(state.sim_time_ns)},
                           {"step", state.step},
                           {"flags", state.flags},
                           {"input_age_steps", state.input_age_steps}};
  for (std::size_t i = 0; i < outputs_.size(); ++i) sample[outputs_[i].name] = state.outputs.value[i];
  const std::string text = sample.dump();
  std::error_code nobody_listens;
  socket_.send(asio::buffer(text), 0, nobody_listens);
}

}  // namespace rigstep::server
