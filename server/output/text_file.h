// Files that are written in one piece.
#pragma once

#include <filesystem>
#include <string_view>

namespace rigstep::server {

// Replaces what is there. Throws FileError (csv.h) with the system's reason if not everything reached the file.
void write_text(const std::filesystem::path& path, std::string_view text);

// Before long work whose result goes there; touches nothing. Throws FileError as write_text would.
void require_writable(const std::filesystem::path& path);

}  // namespace rigstep::server
