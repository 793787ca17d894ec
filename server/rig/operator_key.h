// The operator's key that a server without a key file makes for its own user: in his runtime folder while the server
// runs, so that `rigstep reset` and `rigstep blackbox` work for him on this machine and for nobody else.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "proto/key_file.h"
#include "server/rig/runtime_folder.h"

namespace rigstep::server {

class OperatorKey {
 public:
  OperatorKey();
  ~OperatorKey();
  OperatorKey(const OperatorKey&) = delete;
  OperatorKey& operator=(const OperatorKey&) = delete;

  std::shared_ptr<const wire::Secret<wire::KeyRing>> ring() const { return ring_; }
  // Writes it for the server of this port. Empty, or why that could not be.
  std::string publish(std::uint16_t port);

  static std::string file_name(std::uint16_t port) { return "operator-" + std::to_string(port) + ".key"; }

 private:
  std::string line() const;

  std::shared_ptr<const wire::Secret<wire::KeyRing>> ring_;
  RuntimeFolder folder_;
  std::uint16_t port_ = 0;  // 0: not published
};

}  // namespace rigstep::server
