#include "proto/config_text.h"

#include <fcntl.h>
#include <google/protobuf/text_format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace rigstep::config {

// Of a regular file: a pipe may never end, and a device may have no end.
std::string read_file(const std::string& path, std::size_t most_bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) throw ConfigError(path + ": file: cannot be read: check the path and the permissions");
  const std::unique_ptr<const int, void (*)(const int*)> closed(&file, [](const int* open) { ::close(*open); });
  struct stat status {};
  if (::fstat(file, &status) != 0 || S_ISDIR(status.st_mode))
    throw ConfigError(path + ": file: cannot be read: check the path and the permissions");
  if (!S_ISREG(status.st_mode))
    throw ConfigError(path + ": file: is no regular file: write what comes from there to a file, and name that");
  std::string content(std::min(static_cast<std::size_t>(status.st_size), most_bytes) + 1, '\0');
  std::size_t size = 0;
  for (ssize_t got = 1; got > 0 && size <= most_bytes; size += static_cast<std::size_t>(got)) {
    if (size == content.size()) content.resize(2 * size);
    got = ::read(file, content.data() + size, content.size() - size);
    if (got < 0) throw ConfigError(path + ": file: cannot be read: check the disk and read it again");
  }
  if (size > most_bytes)
    throw ConfigError(path + ": file: has more than " + std::to_string(most_bytes) +
                      " bytes, the most of its kind: shorten it");
  content.resize(size);
  return content;
}

std::string place(const std::string& path, int line) { return line > 0 ? path + ":" + std::to_string(line) : path; }

ConfigError error_at(const std::string& path, int line, const std::string& field, const std::string& problem,
                     const std::string& remedy) {
  return ConfigError(place(path, line) + ": " + field + ": " + problem + ": " + remedy);
}

std::string read_text_file(const std::string& path, std::size_t most_bytes) {
  std::string content = read_file(path, most_bytes);
  if (content.starts_with("\x89MCAP"))
    throw ConfigError(path + ": file: is a recording: give it to rigstep replay, and here a file in text");
  if (!is_utf8(content)) throw ConfigError(path + ": file: is not UTF-8 text: save it as UTF-8");
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors put it in front
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  return content;
}

bool is_utf8(const std::string& text) {
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(), static_cast<int>(text.size()));
}

}  // namespace rigstep::config
