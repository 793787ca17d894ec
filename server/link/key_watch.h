// Looks whether a server's key file has changed, and reads it again then. Not on the loop thread; made and used by one
// thread.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "proto/key_file.h"

namespace rigstep::server {

class KeyWatch {
 public:
  using Ring = std::shared_ptr<const wire::Secret<wire::KeyRing>>;

  // path: empty: there is nothing to watch. It has been read before.
  explicit KeyWatch(std::string path);

  struct Change {
    Ring ring = {};       // null: it cannot be used
    std::string problem;  // why
  };
  // At most four times a second; a change counts once it has stood for two looks, so that no half of it is read.
  std::optional<Change> look();

 private:
  struct Mark {
    std::int64_t size = -1, changed_ns = 0;
    std::uint64_t file = 0;
    unsigned mode = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const;

  const std::string path_;
  Mark known_, seen_;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace rigstep::server
