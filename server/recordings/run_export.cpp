#include "server/recordings/run_export.h"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "proto/output_file.h"
#include "proto/printable.h"
#include "server/output/csv.h"

namespace rigstep::server {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;  // written at a time [bytes]

// Text on its way to a file.
class Out {
 public:
  explicit Out(const std::string& path) : path_(path) {
    file_ = path == "-" ? stdout : wire::open_text_output(path);
    if (file_ == nullptr) fail();
  }
  // Without close() the table is not whole: it is removed.
  ~Out() {
    if (file_ == nullptr || file_ == stdout) return;
    std::fclose(file_);
    std::error_code error;
    if (std::filesystem::is_regular_file(path_, error)) std::filesystem::remove(path_, error);
  }
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;

  fmt::memory_buffer& text() { return text_; }
  void end_row() {
    text_.push_back('\n');
    if (text_.size() >= kPiece) flush();
  }
  void close() {
    flush();
    std::FILE* const file = std::exchange(file_, nullptr);
    if ((file == stdout ? std::fflush(file) : std::fclose(file)) != 0) fail();
  }

 private:
  void flush() {
    if (std::fwrite(text_.data(), 1, text_.size(), file_) != text_.size()) fail();
    text_.clear();
  }
  [[noreturn]] void fail() const {
    throw FileError(path_ + ": cannot be written (" + wire::output_error(errno) +
                    "): check the folder and its space, or name another");
  }

  std::string path_;
  std::FILE* file_ = nullptr;
  fmt::memory_buffer text_;
};

void put(fmt::memory_buffer& text, double value) { fmt::format_to(std::back_inserter(text), "{}", value); }

void write_csv_head(Out& out, const RecordedRun& run, const std::vector<RunColumn>& columns) {
  fmt::format_to(std::back_inserter(out.text()), "# {}: {}", wire::printable_line(run.path()),
                 wire::printable_line(run.header().mechanism_file()));
  out.end_row();
  fmt::format_to(std::back_inserter(out.text()), "t [s]");
  for (const RunColumn& column : columns)
    fmt::format_to(std::back_inserter(out.text()), ",{}", wire::printable_line(column.title()));
  out.end_row();
}

void write_csv_row(Out& out, const RunRow& row) {
  put(out.text(), exact_seconds(row.sim_time_ns));
  for (const double value : row.values) {
    out.text().push_back(',');
    put(out.text(), value);
  }
  out.end_row();
}

void write_json_row(Out& out, const RunRow& row, const std::vector<std::string>& keys) {
  fmt::format_to(std::back_inserter(out.text()), "{{\"t\":{},\"step\":{}", exact_seconds(row.sim_time_ns), row.step);
  for (std::size_t k = 0; k < keys.size(); ++k) {
    fmt::format_to(std::back_inserter(out.text()), ",{}:", keys[k]);
    if (std::isfinite(row.values[k]))
      put(out.text(), row.values[k]);
    else
      fmt::format_to(std::back_inserter(out.text()), "null");
  }
  out.text().push_back('}');
  out.end_row();
}

}  // namespace

Exported export_run(const RecordedRun& run, const RunSelection& selection, const std::vector<RunColumn>& columns,
                    ExportFormat format, const std::string& path, const RecordedRun::Progress& progress) {
  Out out(path);
  std::vector<std::string> keys;
  for (const RunColumn& column : columns)
    keys.push_back(nlohmann::json(column.name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
  if (format == ExportFormat::csv) write_csv_head(out, run, columns);
  Exported done;
  done.damage = run.read(selection, columns, progress, [&](const RunRow& row) {
    ++done.rows;
    if (format == ExportFormat::csv)
      write_csv_row(out, row);
    else
      write_json_row(out, row, keys);
  });
  out.close();
  return done;
}

}  // namespace rigstep::server
