// Where a user's programs leave secrets for each other while the machine runs: a folder that only he may enter. Not on
// the loop thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rigstep::server {

// $XDG_RUNTIME_DIR/rigstep, or /run/user/UID/rigstep, or /tmp/rigstep-UID: the first that can be had, made with mode
// 0700. One that is a link, belongs to somebody else or is open to others is not used.
class RuntimeFolder {
 public:
  RuntimeFolder();
  ~RuntimeFolder();
  RuntimeFolder(const RuntimeFolder&) = delete;
  RuntimeFolder& operator=(const RuntimeFolder&) = delete;

  // Empty: there is none, problem() says why.
  const std::string& path() const noexcept { return path_; }
  const std::string& problem() const noexcept { return problem_; }

  // A file of mode 0600, changed in one instant; `name` has no slash. False: not written.
  bool write(const std::string& name, std::string_view text) const;
  // Nothing where there is none, or it is no file of this user alone.
  std::optional<std::string> read(const std::string& name) const;
  void remove(const std::string& name) const;

 private:
  bool use(const std::string& path);

  int fd_ = -1;
  std::string path_, problem_;
};

}  // namespace rigstep::server
