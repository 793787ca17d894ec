#include "server/rig/operator_key.h"

#include <sodium.h>

namespace rigstep::server {

OperatorKey::OperatorKey() {
  auto ring = std::make_shared<wire::Secret<wire::KeyRing>>();
  const auto key = wire::make_participant_key("operator", wire::KeyRole::operator_);
  (*ring)->add("operator", wire::KeyRole::operator_, key->key);
  ring_ = std::move(ring);
}

// That of a server which was started on this port after this one stays.
OperatorKey::~OperatorKey() {
  if (port_ != 0 && folder_.read(file_name(port_)) == line()) folder_.remove(file_name(port_));
}

std::string OperatorKey::line() const { return wire::key_line((**ring_).all().front())->data(); }

std::string OperatorKey::publish(std::uint16_t port) {
  if (!folder_.write(file_name(port), line()))
    return folder_.path().empty() ? folder_.problem() : "cannot write to " + folder_.path();
  port_ = port;
  return {};
}

}  // namespace rigstep::server
