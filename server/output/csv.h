// Comma-separated tables of numbers: the project's exchange format for trajectories, inputs and references.
// First comment lines beginning with '#', then one line of column names, then rows. Offline only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/index3/outputs/reactions.h"
#include "core/index3/stepper.h"
#include "core/mechanism/signals.h"
#include "core/offline/solver.h"

namespace rigstep::server {

// A file of this machine that cannot be written or read.
struct FileError : Error {
  using Error::Error;
};

// A whole number of nanoseconds in seconds, the nearest number there is: printed, it is the exact decimal.
inline double exact_seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

// All of a text as one finite number, with a decimal point.
std::optional<double> finite_number(std::string_view text);

struct Table {
  std::vector<std::string> columns;  // empty if the file has no line of names
  std::vector<std::vector<double>> rows;

  // Index of a column, or -1.
  int column(const std::string& name) const;
};

// Throws config::ConfigError with file:line for anything that is not a number in its place.
Table read_csv(const std::string& path);

// Throws config::ConfigError unless the times ascend from row to row.
void require_ascending(const Table& table, int time_column, const std::string& path);

// A column at time t, linear between rows, held before the first and after the last.
double interpolated(const Table& table, int time_column, int column, double t);

// Inputs over time from a table with a column `t` [s] and columns named like input channels, each with its unit or
// without: "drive [N m]" or "drive".
class InputTable {
 public:
  // Throws config::ConfigError for columns that are no channel or have another unit, times that do not ascend, missing
  // `t`. path: where the table comes from, for errors.
  InputTable(Table table, const std::string& path, const std::vector<Channel>& channels);
  InputTable(const std::string& path, const std::vector<Channel>& channels);
  // Linear interpolation at t [s]; held before the first and after the last row. Channels without a column are zero.
  void read(double t, Inputs& inputs) const;

  std::vector<int> driven_channels() const;          // those with a column
  double value(int driven_channel, double t) const;  // of one of them

 private:
  Table table_;
  std::vector<int> channel_of_column_;  // -1 for t
  int time_column_ = 0;
  std::size_t channels_;
};

// A trajectory in the exchange format, row by row: t, per body pose, velocity and acceleration, per joint the load on
// its second body, energies, residuals, all in the world frame; then the mechanism's output channels by their names,
// with "output." before a name that another column has. "-" is standard output.
class TrajectoryTable {
 public:
  // Throws FileError.
  TrajectoryTable(const std::string& path, const Mechanism& mechanism);
  // The header, before the first row. not_unique: how the loads of joints were chosen that the motion leaves open;
  // reasons: (outputs) why one has no columns, empty: it has.
  void begin(const std::string& not_unique, const std::vector<std::string>& unsupported_reasons);
  void put(double value);
  void put_outputs(std::span<const double> channels);  // (output channels) at the end of a row
  template <class Values>
  void put_all(const Values& values) {
    for (Eigen::Index k = 0; k < values.size(); ++k) put(values[k]);
  }
  void end_row();
  void write(const offline::Instant& instant);  // a row; what the solver does not know: nan
  // Throws FileError if not everything reached the file.
  void close();

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::string line_;
  const Mechanism* mechanism_;
  std::vector<std::size_t> channels_;  // output channels that have a column
};

// Writes a run of the stepper; loads of joints of least norm where they are not unique (reactions.h).
class TrajectoryWriter {
 public:
  // Throws FileError.
  TrajectoryWriter(const std::string& path, const index3::Stepper& stepper);
  void write(const index3::Stepper& stepper, const StepReport& report);
  void close() { table_.close(); }

 private:
  index3::Workspace pose_;  // constraints of the state that is written
  index3::Reactions reactions_;
  Outputs outputs_;
  TrajectoryTable table_;
};

}  // namespace rigstep::server
