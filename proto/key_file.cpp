#include "proto/key_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rigstep::wire {
namespace {

constexpr std::size_t kDigits = 2 * sizeof(Key);

// Closes a file descriptor.
struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

KeyError key_error(const std::string& path, const std::string& problem, const std::string& remedy) {
  return KeyError("key file " + path + ": " + problem + ": " + remedy);
}

std::string system_text() { return std::system_category().message(errno); }

void require_private(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw key_error(path, system_text(), "check the path");
  if (!S_ISREG(status.st_mode))
    throw key_error(path, "is no regular file", "name the file that `rigstep keygen` wrote");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw key_error(path, "others than its owner may use it",
                    "chmod 600 " + path + ", and make a new key where somebody may have read it");
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    throw key_error(path, "belongs to another user", "copy it to a file of the user who runs this");
  }
}

}  // namespace

Key read_key_file(const std::string& path) {
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));  // else a FIFO is waited for
  if (file.fd < 0) {
    throw key_error(path, system_text(), "make one with `rigstep keygen " + path + "`, or copy the other side's");
  }
  require_private(path, file.fd);
  char text[kDigits + 2];
  const ssize_t size = ::read(file.fd, text, sizeof text);
  Key key{};
  std::size_t bytes = 0;
  const bool length = size == kDigits || (size == kDigits + 1 && text[kDigits] == '\n');
  if (!length || sodium_hex2bin(key.data(), key.size(), text, kDigits, nullptr, &bytes, nullptr) != 0 ||
      bytes != key.size()) {
    throw key_error(path, "is not one line of " + std::to_string(kDigits) + " hexadecimal digits",
                    "copy the other side's file again, or make a new key with `rigstep keygen`");
  }
  sodium_memzero(text, sizeof text);
  return key;
}

void write_key_file(const std::string& path) {
  if (sodium_init() < 0) throw KeyError("no random numbers from the system: the key was not made");
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.fd < 0) {
    throw key_error(path, system_text(),
                    errno == EEXIST ? "remove it first if nobody uses it any more" : "check the path");
  }
  Key key{};
  randombytes_buf(key.data(), key.size());
  char text[kDigits + 1];
  sodium_bin2hex(text, sizeof text, key.data(), key.size());
  text[kDigits] = '\n';
  const bool written =
      ::write(file.fd, text, sizeof text) == static_cast<ssize_t>(sizeof text) && ::fsync(file.fd) == 0;
  sodium_memzero(text, sizeof text);
  sodium_memzero(key.data(), key.size());
  if (!written) throw key_error(path, system_text(), "is the disk full?");
}

}  // namespace rigstep::wire
