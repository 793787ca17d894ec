// Medians, percentiles and extremes of what was measured. Offline.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rigstep::server {

// Smallest value that at least `share` (0..1) of them do not exceed; NaN of none. Changes their order.
inline double quantile(std::vector<double>& values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::max(1.0, std::ceil(share * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank) - 1;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace rigstep::server
