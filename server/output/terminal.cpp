#include "server/output/terminal.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>

#include "proto/printable.h"

namespace rigstep::server {

namespace {

// What a log line says, as one line.
class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    const std::string text = wire::printable_line({message.payload.data(), message.payload.size()});
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableMessage>(); }
};

void write_all(std::FILE* file, const std::string& text) { std::fwrite(text.data(), 1, text.size(), file); }

}  // namespace

void write_output(std::string_view lines) { write_all(stdout, wire::printable_lines(lines)); }

void write_error(std::string_view line) { write_all(stderr, wire::printable_line(line) + "\n"); }

std::string json_text(const nlohmann::json& json) {
  return json.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

void log_to_standard_error() {
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%H:%M:%S.%e %^%l%$ %*");
  spdlog::set_default_logger(spdlog::stderr_color_mt("rigstep"));
  spdlog::set_formatter(std::move(formatter));
}

}  // namespace rigstep::server
