// Sizes beyond which a file is refused before anybody looks into it, and the longest run. Load time only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rigstep::config {

inline constexpr std::size_t kLargestConfigFile = std::size_t{16} << 20;  // rig or mechanism file [bytes]
inline constexpr std::size_t kLargestTable = std::size_t{1} << 30;        // file of comma-separated values [bytes]
inline constexpr std::size_t kLargestVerdict = std::size_t{1} << 20;      // of rigstep commission [bytes]
inline constexpr std::size_t kLargestSnapshot = std::size_t{96} << 20;    // file of `rigstep snapshot` [bytes]
inline constexpr std::uint64_t kMostSteps = 1'000'000'000'000;  // of a run; safe to multiply with a period [ns]

}  // namespace rigstep::config
