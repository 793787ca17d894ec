#include "server/output/text_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "proto/output_file.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace fs = std::filesystem;

namespace {

FileError not_written(const fs::path& path, int cause) {
  const std::string reason = cause != 0 ? " (" + wire::output_error(cause) + ")" : "";
  return FileError(path.string() + ": cannot be written" + reason +
                   ": check the folder and its permissions, or name another");
}

}  // namespace

void write_text(const fs::path& path, std::string_view text) {
  std::FILE* const file = wire::open_text_output(path.string());
  if (file == nullptr) throw not_written(path, errno);
  errno = 0;
  const bool all = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int cause = errno;
  if (std::fclose(file) != 0 || !all) throw not_written(path, all ? errno : cause);
}

void require_writable(const fs::path& path) {
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::path place = fs::exists(path, error) ? path : folder / "";  // the slash: a file is no folder
  int cause = 0;
  if (fs::is_directory(path, error))
    cause = EISDIR;
  else if (fs::is_symlink(path, error) && !fs::exists(path, error))
    cause = ELOOP;
  else if (::access(place.c_str(), W_OK) != 0)
    cause = errno;
  if (cause != 0) throw not_written(path, cause);
}

}  // namespace rigstep::server
