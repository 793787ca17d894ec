// Units of channels as FMI wants them: exponents of the base units of SI and a factor. Offline.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace rigstep::server {

struct BaseUnit {
  // kg m s A K mol cd rad, as the attributes of FMI's <BaseUnit> are called
  static constexpr std::array<const char*, 8> kNames{"kg", "m", "s", "A", "K", "mol", "cd", "rad"};
  std::array<int, 8> exponent{};
  double factor = 1.0;  // value in base units = factor * value
};

// "N m/rad", "m/s^2": factors that are separated by spaces; what follows a stroke divides. None for names that are no
// unit of SI or in use beside it.
std::optional<BaseUnit> base_unit_of(std::string_view unit);

}  // namespace rigstep::server
