// A bad network in a box: a UDP proxy that delays, loses, reorders, doubles and damages datagrams, the same ones for
// the same seed. Rigs talk to the proxy as if it were the server. May allocate; not real time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace rigstep::server {

// Of one direction. Shares lie in [0, 1].
struct Impairment {
  double delay_s = 0.0;
  double jitter_s = 0.0;      // added on top: uniform from 0 to this; more than the spacing reorders
  double loss = 0.0;          // share of datagrams lost one by one
  double burst_loss = 0.0;    // share of datagrams that begin a burst, in which all are lost
  double burst_length = 5.0;  // mean [datagrams]
  double reorder = 0.0;       // share held back by reorder_s
  double reorder_s = 0.005;
  double duplicate = 0.0;  // share sent twice
  double corrupt = 0.0;    // share with one bit flipped
};

// What becomes of the datagrams of one direction: depends on the seed and on their count, on nothing else.
class ImpairedWay {
 public:
  struct Fate {
    int copies = 1;                     // 0: lost
    std::array<double, 2> delay_s{};    // of each copy
    std::optional<std::uint64_t> flip;  // bit to flip, modulo the datagram's size
  };

  ImpairedWay(const Impairment& impairment, std::uint64_t seed) : impairment_(impairment), random_(seed) {}
  Fate next();

 private:
  double uniform();
  double delay_s();
  bool lost();

  Impairment impairment_;
  std::mt19937_64 random_;  // specified by the standard: the same everywhere
  bool in_burst_ = false;
};

inline constexpr std::size_t kMostRigs = 64;

struct ImpairOptions {
  std::string host = "127.0.0.1";  // numeric address of the server
  std::uint16_t port = 47001;
  std::string listen_address = "127.0.0.1";
  std::uint16_t listen_port = 0;  // 0: any free one
  std::uint64_t seed = 1;
  Impairment to_server, to_rig;
  std::function<void(std::uint16_t)> on_listening;  // with the port
  std::function<void()> on_full = {};               // at the first datagram of one rig too many
};

struct ImpairReport {
  struct Way {
    std::uint64_t received = 0, sent = 0, lost = 0, duplicated = 0, corrupted = 0;
  } to_server, to_rig;
  std::uint64_t rigs = 0;     // addresses served, at most kMostRigs
  std::uint64_t refused = 0;  // datagrams of further addresses, which get nowhere
};

// Runs until `stop`. Each rig reaches the server from a port of its own. Throws NetworkError, and config::ConfigError
// for addresses that are not numeric.
ImpairReport run_impair(const ImpairOptions& options, const std::atomic<bool>& stop);

}  // namespace rigstep::server
