#include "server/text_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "server/csv.h"

namespace rigstep::server {

namespace fs = std::filesystem;

namespace {

FileError not_written(const fs::path& path, int cause) {
  const std::string reason = cause != 0 ? std::string(" (") + std::strerror(cause) + ")" : "";
  return FileError(path.string() + ": cannot be written" + reason +
                   ": check the folder and its permissions, or name another");
}

}  // namespace

void write_text(const fs::path& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw not_written(path, errno);
}

void require_writable(const fs::path& path) {
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path place = fs::exists(path, error) ? path : folder / "";  // the slash: a file is no folder
  const int cause = fs::is_directory(path, error) ? EISDIR : ::access(place.c_str(), W_OK) != 0 ? errno : 0;
  if (cause != 0) throw not_written(path, cause);
}

}  // namespace rigstep::server
