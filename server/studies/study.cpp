#include "server/studies/study.h"

#include <fmt/format.h>

namespace rigstep::server {

std::string findings_section(const std::vector<Finding>& findings) {
  std::string text = "## What agrees\n\n| the paper | ours | agrees |\n|---|---|---|\n";
  for (const Finding& f : findings)
    text += fmt::format("| {} | {} | {} |\n", f.claim, f.ours, f.agrees ? "yes" : "**no**");
  return text;
}

}  // namespace rigstep::server
