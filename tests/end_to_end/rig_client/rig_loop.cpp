// A rig in thirty lines: a callback at the loop's rate. Usage: rig_loop PORT STEPS [KEY_FILE]
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "server/rig/rig_client.h"

using rigstep::server::RigClient;
using rigstep::server::RigState;

int main(int argc, char** argv) try {
  if (argc < 3) return std::fputs("usage: rig_loop PORT STEPS [KEY_FILE]\n", stderr), 2;
  RigClient rig({.port = static_cast<std::uint16_t>(std::atoi(argv[1])),
                 .name = "rig_loop",
                 .product_version = "example",
                 .key_file = argc > 3 ? argv[3] : ""});
  std::printf("%s at %ld us\n", rig.server().mechanism.c_str(), static_cast<long>(rig.server().period_ns / 1000));

  const int steps = std::atoi(argv[2]);
  int taken = 0;
  // a damper on the first output, here in place of your sensors and actuators
  const bool finished = rig.control([&](const RigState& state, std::span<double> inputs) {
    inputs[0] = -0.1 * state.output[0];
    return ++taken < steps;
  });
  if (!finished) return std::fprintf(stderr, "the server went away: %s\n", rig.goodbye().c_str()), 1;
  if (const auto clock = rig.clock())
    std::printf("clocks %.1f us apart, +- %.1f us\n", 1e-3 * static_cast<double>(clock->offset_ns),
                1e-3 * static_cast<double>(clock->uncertainty_ns));
  std::printf("%d steps\n", taken);
} catch (const std::exception& error) {
  return std::fprintf(stderr, "%s\n", error.what()), 1;
}
