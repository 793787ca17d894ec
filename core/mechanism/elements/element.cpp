#include "core/mechanism/elements/element.h"

#include "core/mechanism/mechanism.h"

namespace rigstep {

std::vector<Channel> scalar_channels(bool along_length) {
  const std::string x = along_length ? "m" : "rad";
  return {{".deflection", x}, {".rate", x + "/s"}, {".effort", along_length ? "N" : "N m"}};
}

std::vector<Channel> scalar_channels(const Mechanism& mechanism, int coordinate) {
  return scalar_channels(is_length(mechanism.coordinates()[static_cast<std::size_t>(coordinate)].freedom));
}

int require_moving(int body, const char* what) {
  if (body == kGround)
    throw MechanismError("body", std::string("the ground cannot carry ") + what, "name a moving body");
  return body;
}

}  // namespace rigstep
