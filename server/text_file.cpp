#include "server/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "server/csv.h"

namespace rigstep::server {

void write_text(const std::filesystem::path& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return;
  const std::string reason = errno != 0 ? std::string(" (") + std::strerror(errno) + ")" : "";
  throw FileError(path.string() + ": cannot be written" + reason +
                  ": check the folder and its permissions, or name another");
}

}  // namespace rigstep::server
