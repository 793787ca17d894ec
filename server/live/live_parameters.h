// What rigs and operators ask of the parameters of a live run: checks it, hands it to the loop, one request after the
// other, and tells since when each acts. Owned by the live run; used by the network thread, in lockstep the loop
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "proto/wire.pb.h"
#include "rt/cycle.h"

namespace rigstep::server {

class LiveParameters {
 public:
  // Both outlive it. mechanism: as at the start.
  LiveParameters(const Mechanism& mechanism, rt::Cycle& cycle) : mechanism_(mechanism), cycle_(cycle) {}

  // As UdpHooks.set_parameters. A request that comes while the loop has not taken the one before is left to be
  // repeated.
  std::string set(const wire::ParameterSet& set);
  // As UdpHooks.describe_parameters.
  void describe(wire::ParameterReport& report);
  void describe(wire::StatusReport& report) const;

 private:
  void note_applied();
  std::uint64_t acts_from(std::uint64_t number) const;  // 0: not yet
  // Throws MechanismError for what cannot be set.
  ParameterValue wanted(const wire::ParameterSetting& setting) const;

  const Mechanism& mechanism_;
  rt::Cycle& cycle_;
  std::uint64_t pending_ = 0;                        // the request that the loop has not taken yet; 0: none
  std::array<rt::AppliedParameters, 64> applied_{};  // the newest ones, so that none is made twice
  std::size_t next_ = 0;                             // place in them
};

}  // namespace rigstep::server
