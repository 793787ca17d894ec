// What the studies of the papers have in common: what they are asked, what they find, and how that is written down.
// Offline.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace rigstep::server {

inline constexpr double kSmallest = 1e-17;  // what a logarithmic axis shows as zero

struct StudyRequest {
  bool quick = false;                                                  // shows that it works, in seconds
  std::filesystem::path folder;                                        // of the results; exists
  std::function<std::string(const std::string& name)> mechanism_file;  // path of a mechanism that comes with Rigstep
  std::function<void(double done)> progress;                           // 0 to 1; may throw to stop
};

// A claim of the paper against our numbers.
struct Finding {
  std::string claim, ours;
  bool agrees = false;
};

// The section "What agrees" of a page.
std::string findings_section(const std::vector<Finding>& findings);

}  // namespace rigstep::server
