// A folder of its own, with all that is in it removed at the end.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "server/output/csv.h"

namespace rigstep::server {

class TemporaryFolder {
 public:
  TemporaryFolder() {  // throws FileError (csv.h)
    std::string pattern = (std::filesystem::temp_directory_path() / "rigstep_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
      throw FileError(pattern + ": no folder can be made there: point TMPDIR to one that you may write to");
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace rigstep::server
