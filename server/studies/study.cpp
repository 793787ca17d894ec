#include "server/studies/study.h"

#include <fmt/format.h>

#include <fstream>

#include "server/csv.h"

namespace rigstep::server {

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw FileError(path.string() + ": cannot be written: choose another --output");
}

std::string findings_section(const std::vector<Finding>& findings) {
  std::string text = "## What agrees\n\n| the paper | ours | agrees |\n|---|---|---|\n";
  for (const Finding& f : findings)
    text += fmt::format("| {} | {} | {} |\n", f.claim, f.ours, f.agrees ? "yes" : "**no**");
  return text;
}

}  // namespace rigstep::server
