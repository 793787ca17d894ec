#include "server/rig/runtime_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace rigstep::server {
namespace {

constexpr std::size_t kMaxFileBytes = 1024;

// Of this user, and closed to all others.
bool is_private(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type && status.st_uid == ::geteuid() &&
         (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

std::array<std::string, 3> candidates() {
  const char* const given = std::getenv("XDG_RUNTIME_DIR");
  const std::string user = std::to_string(::geteuid());
  return {given != nullptr && given[0] == '/' ? std::string(given) + "/rigstep" : std::string(),
          "/run/user/" + user + "/rigstep", "/tmp/rigstep-" + user};
}

}  // namespace

RuntimeFolder::RuntimeFolder() {
  for (const std::string& path : candidates())
    if (!path.empty() && use(path)) return;
}

RuntimeFolder::~RuntimeFolder() {
  if (fd_ >= 0) ::close(fd_);
}

bool RuntimeFolder::use(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    problem_ = "cannot make the folder " + path + " (" + std::generic_category().message(errno) + ")";
    return false;
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || !is_private(fd, S_IFDIR)) {
    problem_ = path + " is no folder of this user alone: remove it, or chmod 700 " + path;
    if (fd >= 0) ::close(fd);
    return false;
  }
  fd_ = fd;
  path_ = path;
  problem_.clear();
  return true;
}

bool RuntimeFolder::write(const std::string& name, std::string_view text) const {
  if (fd_ < 0) return false;
  const std::string fresh = name + "." + std::to_string(::getpid());
  ::unlinkat(fd_, fresh.c_str(), 0);
  const int file =
      ::openat(fd_, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file < 0) return false;
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  if (written && ::renameat(fd_, fresh.c_str(), fd_, name.c_str()) == 0) return true;
  ::unlinkat(fd_, fresh.c_str(), 0);
  return false;
}

std::optional<std::string> RuntimeFolder::read(const std::string& name) const {
  if (fd_ < 0) return std::nullopt;
  const int file = ::openat(fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text(kMaxFileBytes, '\0');
  const ssize_t size = is_private(file, S_IFREG) ? ::read(file, text.data(), text.size()) : -1;
  ::close(file);
  if (size < 0) return std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  return text;
}

void RuntimeFolder::remove(const std::string& name) const {
  if (fd_ >= 0) ::unlinkat(fd_, name.c_str(), 0);
}

}  // namespace rigstep::server
