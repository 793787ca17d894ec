#include "proto/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rigstep::wire {

int open_output(const std::string& path, int access, Existing existing) noexcept {
  // with O_EXCL no link is followed
  const int created = ::open(path.c_str(), access | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (created >= 0 || errno != EEXIST || existing == Existing::refuse) return created;
  const int opened = ::open(path.c_str(), access | O_CLOEXEC);
  if (opened < 0 && errno == ENOENT) errno = ELOOP;
  return opened;
}

std::FILE* open_text_output(const std::string& path) noexcept {
  const int descriptor = open_output(path, O_WRONLY, Existing::replace);
  if (descriptor < 0) return nullptr;
  // pipes and devices have no length, which is as good
  [[maybe_unused]] const int cut = ::ftruncate(descriptor, 0);
  std::FILE* const file = ::fdopen(descriptor, "w");
  if (file == nullptr) ::close(descriptor);
  return file;
}

std::string output_error(int error) {
  if (error == ELOOP) return "it is a symbolic link to nothing, which is not followed";
  return std::generic_category().message(error);
}

}  // namespace rigstep::wire
