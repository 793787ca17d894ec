// Text files, read whole, and the error of everybody who reads a file that people write. Load time only.
#pragma once

#include <cstddef>
#include <string>

#include "core/mechanism/mechanism.h"
#include "proto/limits.h"

namespace rigstep::config {

// A file that cannot be used as written; what() is "file:line: field: problem: remedy" (no line where there is none).
struct ConfigError : Error {
  using Error::Error;
};

ConfigError error_at(const std::string& path, int line, const std::string& field, const std::string& problem,
                     const std::string& remedy);

// "file:line"; the file alone where the line is 0.
std::string place(const std::string& path, int line);

// A whole regular file. Throws ConfigError if it cannot be read, is none, or has more than `most_bytes`.
std::string read_file(const std::string& path, std::size_t most_bytes);

// A whole regular file of UTF-8 text. Throws ConfigError if it cannot be read, is none, or has more than `most_bytes`.
std::string read_text_file(const std::string& path, std::size_t most_bytes = kLargestConfigFile);

// What every text in files and datagrams is.
bool is_utf8(const std::string& text);

}  // namespace rigstep::config
