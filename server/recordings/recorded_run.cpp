#include "server/recordings/recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/mechanism/nearest_names.h"
#include "proto/load_mechanism.h"
#include "server/live/recorder.h"
#include "server/live/replay.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

struct Timing {
  const char *name, *unit;
  double (*of)(const StepRecord&);
};

constexpr Timing kTiming[] = {
    {"run.wake_up", "us", [](const StepRecord& r) { return 1e-3 * r.wake_up_ns; }},
    {"run.step", "us", [](const StepRecord& r) { return 1e-3 * r.step_ns; }},
    {"run.missed_deadlines", "1", [](const StepRecord& r) { return static_cast<double>(r.missed_deadlines); }},
    {"run.input_age", "steps", [](const StepRecord& r) { return static_cast<double>(r.input_age_steps); }},
    {"run.status", "1", [](const StepRecord& r) { return static_cast<double>(r.status); }},
    {"run.position_error", "m", [](const StepRecord& r) { return r.position_error; }},
    {"run.orientation_error", "rad", [](const StepRecord& r) { return r.orientation_error; }},
    {"run.flags", "1", [](const StepRecord& r) { return static_cast<double>(r.flags); }},
};

// Fills and passes on the rows of a selection. outputs: of the mechanism, or as recorded.
class Rows {
 public:
  Rows(const RunSelection& selection, const std::vector<RunColumn>& columns,
       const std::function<void(const RunRow&)>& row)
      : selection_(selection), columns_(columns), row_(row), value_(columns.size()) {}

  // False: the selection is over.
  template <class PlaceOf>
  bool add(const StepRecord& record, std::span<const double> outputs, const PlaceOf& place_of) {
    const double t = exact_seconds(record.sim_time_ns);
    if (t > selection_.to) return false;
    if (!record.is_step() || record.step % selection_.every != 0 || t < selection_.from) return true;
    for (std::size_t k = 0; k < columns_.size(); ++k) value_[k] = value(columns_[k], record, outputs, place_of);
    row_({record.step, record.sim_time_ns, record.state_hash, record.flags, value_});
    return true;
  }

 private:
  template <class PlaceOf>
  static double value(const RunColumn& column, const StepRecord& record, std::span<const double> outputs,
                      const PlaceOf& place_of) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    if (column.kind == RunColumn::Kind::timing) return kTiming[column.index].of(record);
    if (column.kind == RunColumn::Kind::input)
      return column.index < record.inputs.count ? record.inputs.value[column.index] : kNone;
    const auto place = static_cast<std::size_t>(place_of(column));
    return place < outputs.size() ? outputs[place] : kNone;
  }

  const RunSelection& selection_;
  const std::vector<RunColumn>& columns_;
  const std::function<void(const RunRow&)>& row_;
  std::vector<double> value_;
};

std::string read_recorded(const std::string& path, Rows& rows, const RecordedRun::Progress& progress) {
  wire::RecordingReader reader(path);
  wire::RecordedStep step;
  while (reader.next(step)) {
    const auto place_of = [](const RunColumn& column) { return column.recorded; };
    if (!rows.add(from_message(step), reader.outputs(), place_of)) break;
    if (progress && (step.step() & 0xfff) == 0) progress(step.step());
  }
  return reader.damage_text();
}

std::string read_replayed(const std::string& path, Rows& rows, const RecordedRun::Progress& progress) {
  const ReplayReport report = replay(path, progress, [&rows](const ReplayedStep& step) {
    std::span<const double> outputs;
    if (step.outputs != nullptr) outputs = {step.outputs->value.data(), static_cast<std::size_t>(step.outputs->count)};
    return rows.add(step.recorded, outputs, [](const RunColumn& column) { return column.index; });
  });
  if (report.verdict == ReplayReport::Verdict::differs)
    throw Error(path +
                ": the replay differs from the recording, so that outputs which are not recorded cannot be "
                "computed: use the version and the kind of processor that recorded it");
  return report.damage;
}

}  // namespace

RecordedRun::RecordedRun(std::string path) : path_(std::move(path)) {
  header_ = wire::RecordingReader(path_).header();
  add_columns(mechanism_of(header_).mechanism);
}

void RecordedRun::add_columns(const Mechanism& mechanism) {
  using Kind = RunColumn::Kind;
  const std::vector<Channel>&inputs = mechanism.input_channels(), &outputs = mechanism.output_channels();
  for (std::size_t k = 0; k < inputs.size(); ++k)
    columns_.push_back({inputs[k].name, inputs[k].unit, Kind::input, static_cast<int>(k)});
  const auto& recorded = header_.output_channel();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    RunColumn column{outputs[k].name, outputs[k].unit, Kind::output, static_cast<int>(k)};
    const auto found = std::find(recorded.begin(), recorded.end(), column.title());
    if (found != recorded.end() && header_.outputs_every() == 1)
      column.recorded = static_cast<int>(found - recorded.begin());
    while (column.name == "t" || column.name == "step" || find_column(column.name) != columns_.end())
      column.name.insert(0, "output.");
    columns_.push_back(std::move(column));
  }
  for (std::size_t k = 0; k < std::size(kTiming); ++k)
    columns_.push_back({kTiming[k].name, kTiming[k].unit, Kind::timing, static_cast<int>(k)});
}

std::vector<RunColumn>::const_iterator RecordedRun::find_column(const std::string& name) const {
  return std::find_if(columns_.begin(), columns_.end(),
                      [&name](const RunColumn& column) { return column.name == name || column.title() == name; });
}

std::vector<RunColumn> RecordedRun::inputs() const {
  std::vector<RunColumn> chosen;
  for (const RunColumn& column : columns_)
    if (column.kind == RunColumn::Kind::input) chosen.push_back(column);
  return chosen;
}

std::vector<RunColumn> RecordedRun::columns_of(const std::vector<std::string>& names) const {
  std::vector<RunColumn> chosen;
  if (names.empty()) {
    for (const RunColumn& column : columns_)
      if (column.kind != RunColumn::Kind::timing) chosen.push_back(column);
    return chosen;
  }
  for (const std::string& name : names) {
    const auto found = find_column(name);
    if (found == columns_.end()) {
      std::vector<std::string> known;
      for (const RunColumn& column : columns_) known.push_back(column.name);
      throw config::ConfigError("\"" + name + "\" is no channel of " + path_ + ": the nearest are " +
                                quoted_list(nearest_names(known, name)) + ", `rigstep info` lists all");
    }
    chosen.push_back(*found);
  }
  return chosen;
}

std::string RecordedRun::read(const RunSelection& selection, const std::vector<RunColumn>& columns,
                              const Progress& progress, const std::function<void(const RunRow&)>& row) const {
  Rows rows(selection, columns, row);
  const bool has_all = std::all_of(columns.begin(), columns.end(), [](const RunColumn& column) {
    return column.kind != RunColumn::Kind::output || column.recorded >= 0;
  });
  return has_all ? read_recorded(path_, rows, progress) : read_replayed(path_, rows, progress);
}

namespace {

bool is_time(const RunColumn& column) { return column.name == "t" || column.name == "time"; }

// "phi [rad]"
RunColumn column_of(const std::string& title) {
  RunColumn column;
  const std::size_t open = title.find(" [");
  column.name = title.substr(0, open);
  if (open != title.npos && title.back() == ']') column.unit = title.substr(open + 2, title.size() - open - 3);
  return column;
}

}  // namespace

RunTable read_table(const std::string& csv, const RunSelection& selection) {
  const Table table = read_csv(csv);
  std::vector<RunColumn> all;
  std::vector<std::string> known;
  for (const std::string& title : table.columns) all.push_back(column_of(title)), known.push_back(all.back().name);
  const auto place_of = [&](const auto& is_wanted) { return std::find_if(all.begin(), all.end(), is_wanted); };
  const auto time = place_of(is_time);
  if (time == all.end())
    throw config::ConfigError(
        csv + ": has no column t: a table of a run has the time [s] in it, and names in its first line");
  RunTable result;
  std::vector<std::size_t> places;
  const auto choose = [&](std::vector<RunColumn>::const_iterator column) {
    places.push_back(static_cast<std::size_t>(column - all.cbegin()));
    result.columns.push_back(*column);
  };
  for (const std::string& name : selection.names) {
    const auto found = place_of([&](const RunColumn& c) { return c.name == name || c.title() == name; });
    if (found == all.end())
      throw config::ConfigError(fmt::format("\"{}\" is no column of {}: the nearest are {}", name, csv,
                                            quoted_list(nearest_names(known, name))));
    choose(found);
  }
  for (auto column = all.cbegin(); column != all.cend() && selection.names.empty(); ++column)
    if (!is_time(*column)) choose(column);
  result.value.resize(places.size());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const double t = table.rows[row][static_cast<std::size_t>(time - all.begin())];
    if (t < selection.from || t > selection.to || row % selection.every != 0) continue;
    result.step.push_back(row);
    result.sim_time_ns.push_back(std::llround(1e9 * t));
    for (std::size_t k = 0; k < places.size(); ++k) result.value[k].push_back(table.rows[row][places[k]]);
  }
  return result;
}

RunTable read_table(const RecordedRun& run, const RunSelection& selection, const std::vector<RunColumn>& columns,
                    const RecordedRun::Progress& progress) {
  RunTable table;
  table.columns = columns;
  table.value.resize(columns.size());
  table.damage = run.read(selection, columns, progress, [&table](const RunRow& row) {
    table.step.push_back(row.step);
    table.sim_time_ns.push_back(row.sim_time_ns);
    table.state_hash.push_back(row.state_hash);
    for (std::size_t k = 0; k < row.values.size(); ++k) table.value[k].push_back(row.values[k]);
  });
  return table;
}

void require_whole(const std::string& path, const std::string& damage) {
  if (!damage.empty())
    throw wire::RecordingError(path, "damaged at " + damage,
                               "take what is whole by `rigstep cut`, and that piece instead");
}

InputTable read_inputs(const std::string& path, const std::vector<Channel>& channels) {
  if (path.ends_with(".mcap")) return {inputs_of(RecordedRun(path)), path, channels};
  return {path, channels};
}

Table inputs_of(const RecordedRun& run) {
  const std::vector<RunColumn> columns = run.inputs();
  Table table;
  table.columns.push_back("t [s]");
  for (const RunColumn& column : columns) table.columns.push_back(column.title());
  const std::string damage = run.read({}, columns, {}, [&table](const RunRow& row) {
    std::vector<double>& cells = table.rows.emplace_back();
    cells.reserve(1 + row.values.size());
    cells.push_back(exact_seconds(row.sim_time_ns));
    cells.insert(cells.end(), row.values.begin(), row.values.end());
  });
  require_whole(run.path(), damage);
  if (table.rows.empty())
    throw wire::RecordingError(run.path(), "no step of the run is in it", "name a recording with steps");
  return table;
}

}  // namespace rigstep::server
