// Zip files as both standards of FMI want them, and their safe extraction: whatever an archive holds, nothing is
// written but regular files below the folder. Offline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"

namespace rigstep::server {

// An archive or a unit that cannot be used; what() says what, where, why and what to do.
struct FmuError : Error {
  using Error::Error;
  std::vector<std::string> violations = {};  // of the standard, that were found before it
};

struct ArchiveFile {
  std::string name;  // "binaries/x86_64-linux/four_bar.so"
  std::string content;
};

// Replaces what is there. Deflated, entries in the order given. Throws FileError (csv.h).
void write_archive(const std::filesystem::path& path, const std::vector<ArchiveFile>& files);

// Names of what an archive breaks, each with its clause; empty: nothing. Extracts what is sound below `folder`.
struct Extracted {
  std::vector<std::string> names;
  std::vector<std::string> violations;
};

// Throws FmuError for what is no zip file, and for what may harm: names that lead outside, links, encryption, sizes
// beyond kMostBytes or kMostFiles, checksums that do not hold.
Extracted extract_archive(const std::filesystem::path& path, const std::filesystem::path& folder);

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // of all files, extracted
inline constexpr std::uint64_t kMostFiles = 10'000;

}  // namespace rigstep::server
