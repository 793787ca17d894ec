// A recorded run as columns of numbers: inputs as applied, outputs, timing. Outputs that the recording does not hold
// are computed by replay. Offline.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "core/mechanism/signals.h"
#include "proto/recording_reader.h"
#include "server/output/csv.h"

namespace rigstep::server {

// A quantity with a value at each step.
struct RunColumn {
  enum class Kind { input, output, timing };
  std::string name, unit;
  Kind kind = Kind::output;
  int index = 0;      // input channel, output channel of the mechanism, or which of the timing quantities
  int recorded = -1;  // outputs: place on /outputs; -1: not there at every step

  std::string title() const { return name + " [" + unit + "]"; }
};

// Which columns, and of which steps.
struct RunSelection {
  std::vector<std::string> names;  // of columns, with or without their unit; empty: all inputs and outputs
  double from = 0.0, to = std::numeric_limits<double>::infinity();  // [s] of simulated time, both included
  std::uint64_t every = 1;                                          // [steps]
};

struct RunRow {
  std::uint64_t step = 0;
  std::int64_t sim_time_ns = 0;
  std::uint64_t state_hash = 0;
  std::uint32_t flags = 0;
  std::span<const double> values;  // (columns asked for)
};

class RecordedRun {
 public:
  using Progress = std::function<void(std::uint64_t step)>;

  // Throws wire::RecordingError for a file that is no recording, MechanismFileError for a mechanism that this version
  // refuses.
  explicit RecordedRun(std::string path);

  const std::string& path() const { return path_; }
  const wire::RecordingHeader& header() const { return header_; }
  // Inputs, outputs, then timing. The name of an output that another column has begins with "output.".
  const std::vector<RunColumn>& columns() const { return columns_; }
  // Those of a selection, in its order. Throws config::ConfigError for a name that is none.
  std::vector<RunColumn> columns_of(const std::vector<std::string>& names) const;
  std::vector<RunColumn> inputs() const;

  // Calls row for each step of the selection that ran, in order; a step at which a fault stopped the run is none. What
  // is not known of a step is nan: outputs that are not recorded, between a gap and the next full state.
  // Returns why the file could not be read to its end, empty if it could. Throws Error where outputs have to be
  // replayed and the replay differs from the recording.
  [[nodiscard]] std::string read(const RunSelection& selection, const std::vector<RunColumn>& columns,
                                 const Progress& progress, const std::function<void(const RunRow&)>& row) const;

 private:
  void add_columns(const Mechanism& mechanism);
  std::vector<RunColumn>::const_iterator find_column(const std::string& name) const;  // with its unit or without

  std::string path_;
  wire::RecordingHeader header_;
  std::vector<RunColumn> columns_;
};

// A run in memory.
struct RunTable {
  std::vector<RunColumn> columns;
  std::vector<std::uint64_t> step, state_hash;
  std::vector<std::int64_t> sim_time_ns;
  std::vector<std::vector<double>> value;  // (columns x steps)
  std::string damage;                      // as of RecordedRun::read
};
RunTable read_table(const RecordedRun& run, const RunSelection& selection, const std::vector<RunColumn>& columns,
                    const RecordedRun::Progress& progress);

// Of a table of numbers with a column `t` [s], as simulate, tune and export write them: columns with their unit, "phi
// [rad]", or without. selection.every counts rows. Throws config::ConfigError for what is no such table, and for names
// that are no column of it.
RunTable read_table(const std::string& csv, const RunSelection& selection);

// The inputs as they were applied, at the end of each step, up to the time of the last one: a table as InputTable takes
// it. Throws wire::RecordingError for a recording that is damaged or has no step.
Table inputs_of(const RecordedRun& run);

// From a table or, where `path` ends with .mcap, from a recorded run. Throws as these do.
InputTable read_inputs(const std::string& path, const std::vector<Channel>& channels);

// Throws wire::RecordingError where a recording could not be read to its end; damage: why, or nothing.
void require_whole(const std::string& path, const std::string& damage);

}  // namespace rigstep::server
