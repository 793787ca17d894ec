// The one way to standard output and standard error, for texts and for JSON. Whatever came from a network, a file or
// the command line is shown, and steers nothing (printable.h).
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace rigstep::server {

// Lines for people, on standard output. What cannot be written is told at the end of the program.
void write_output(std::string_view lines);

// One line for people, on standard error; its end is added.
void write_error(std::string_view line);

template <class... Args>
void print_text(fmt::format_string<Args...> format, Args&&... args) {
  write_output(fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  write_error(fmt::format(format, std::forward<Args>(args)...));
}

// Indented, ASCII only, with a line end: other characters escaped, bytes that are no UTF-8 replaced.
std::string json_text(const nlohmann::json& json);

inline void print_json(const nlohmann::json& json) { write_output(json_text(json)); }

// Sends the log to standard error, a line each.
void log_to_standard_error();

}  // namespace rigstep::server
