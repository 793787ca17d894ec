// The colours of bodies without one of their own, for picture and page alike: quiet, and told apart by people who do
// not see red or green.
#pragma once

#include <array>
#include <cstdint>

namespace rigstep::server {

using Colour = std::array<std::uint8_t, 4>;  // red, green, blue, opacity

inline constexpr Colour kBodyColours[] = {{58, 124, 165, 255},  {217, 128, 48, 255}, {82, 148, 106, 255},
                                          {150, 108, 170, 255}, {199, 90, 90, 255},  {120, 132, 148, 255},
                                          {176, 148, 62, 255},  {72, 156, 164, 255}};
inline constexpr Colour kJointColour{56, 66, 80, 255};
inline constexpr Colour kSupportColour{150, 158, 168, 255};
inline constexpr Colour kWheelColour{70, 74, 82, 255};

inline constexpr Colour body_colour(int body) {
  return body < 0 ? kSupportColour : kBodyColours[static_cast<std::size_t>(body) % std::size(kBodyColours)];
}

}  // namespace rigstep::server
