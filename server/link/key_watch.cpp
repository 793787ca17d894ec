#include "server/link/key_watch.h"

#include <utility>

namespace rigstep::server {

namespace {

constexpr std::chrono::milliseconds kLookEvery{250};

}  // namespace

KeyWatch::KeyWatch(std::string path)
    : path_(std::move(path)), known_(mark()), seen_(known_), looked_(std::chrono::steady_clock::now()) {}

KeyWatch::Mark KeyWatch::mark() const {
  struct stat status {};
  if (path_.empty() || ::stat(path_.c_str(), &status) != 0) return {};
  return {.size = status.st_size,
          .changed_ns = std::int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec,
          .file = status.st_ino,
          .mode = status.st_mode};
}

std::optional<KeyWatch::Change> KeyWatch::look() {
  const auto now = std::chrono::steady_clock::now();
  if (path_.empty() || now - looked_ < kLookEvery) return std::nullopt;
  looked_ = now;
  const Mark before = std::exchange(seen_, mark());
  if (seen_ == known_ || seen_ != before) return std::nullopt;
  known_ = seen_;
  try {
    return Change{.ring = std::make_shared<const wire::Secret<wire::KeyRing>>(wire::read_key_ring(path_)),
                  .problem = {}};
  } catch (const wire::KeyError& error) {
    return Change{.problem = error.what()};
  }
}

}  // namespace rigstep::server
