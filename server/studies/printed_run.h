// Runs of the printed form of [001] with a fixed step, and what the paper plots of them. Offline.
#pragma once

#include <array>
#include <vector>

#include "core/offline/index3_literal.h"

namespace rigstep::server {

struct PrintedSample {
  double time = 0.0;                  // [s]
  std::vector<Vec3> r_0;              // (bodies) mass centres [m]
  Vec3 v_0, a_0;                      // of the watched body's mass centre [m/s] [m/s^2]
  Vec3 force_0;                       // of the first joint of the chain on its body [N]
  double kinetic = 0.0;               // [J]
  double potential = 0.0;             // from that at the start on [J]
  std::array<double, 3> violation{};  // norms of joint and normalisation constraints: positions, velocities,
                                      // accelerations
  double energy() const { return kinetic + potential; }
};

struct PrintedRun {
  std::vector<PrintedSample> samples;  // (steps + 1) before it blew up
  long blown_up_at = 0;                // step; 0: it did not
  double last_increment = 0.0;         // largest norm of the last increment of all coordinates [m, -]
  const PrintedSample& lowest_energy() const;
  const PrintedSample& highest_kinetic() const;
  double largest_energy_error() const;  // [J]
  double largest_violation(std::size_t level) const;
};

// Blown up: the increment is no number, or the total energy is off by more than what all masses release by falling
// through the extent of the mechanism. watched: a body. Starts at rest or as the mechanism says.
PrintedRun run_printed(const Mechanism& mechanism, const offline::LiteralSettings& settings, double duration,
                       int watched);

}  // namespace rigstep::server
