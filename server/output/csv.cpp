#include "server/output/csv.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <unordered_set>

#include "core/index3/compile/plan.h"
#include "core/index3/outputs/diagnostics.h"
#include "core/index3/outputs/sensors.h"
#include "core/index3/step/evaluate_state.h"
#include "core/index3/stepper_access.h"
#include "proto/config_text.h"
#include "proto/output_file.h"

namespace rigstep::server {

namespace {

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells;
  std::stringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) {
    const auto first = cell.find_first_not_of(" \t\r"), last = cell.find_last_not_of(" \t\r");
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, last - first + 1));
  }
  return cells;
}

// The last of them would win unseen.
void require_different(const std::vector<std::string>& names, const std::string& where) {
  std::unordered_set<std::string_view> known;
  for (std::size_t k = 0; k < names.size(); ++k)
    if (!known.insert(names[k]).second)
      throw config::ConfigError(where + "column " + std::to_string(k + 1) + ": \"" + names[k] +
                                "\" names another column already: give each column its own name");
}

}  // namespace

std::optional<double> finite_number(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

int Table::column(const std::string& name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  return found == columns.end() ? -1 : static_cast<int>(found - columns.begin());
}

Table read_csv(const std::string& path) {
  std::istringstream text(config::read_text_file(path, config::kLargestTable));
  Table table;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (line.empty() || line[0] == '#' || line == "\r") continue;
    const std::vector<std::string> cells = split(line);
    std::vector<double> row;
    for (const std::string& cell : cells) {
      const std::optional<double> value = finite_number(cell);
      if (!value) break;
      row.push_back(*value);
    }
    const std::size_t good = row.size();
    const bool is_names = good < cells.size() && table.columns.empty() && table.rows.empty();
    const std::string where = path + ":" + std::to_string(number) + ": ";
    if (is_names) {
      require_different(cells, where);
      table.columns = cells;
      continue;
    }
    if (good < cells.size())
      throw config::ConfigError(where + "column " + std::to_string(good + 1) + ": \"" + cells[good] +
                                "\" is not a finite number: write numbers with a decimal point");
    const std::size_t width =
        table.columns.empty() ? (table.rows.empty() ? row.size() : table.rows[0].size()) : table.columns.size();
    if (row.size() != width)
      throw config::ConfigError(where + "row: has " + std::to_string(row.size()) + " values instead of " +
                                std::to_string(width) + ": give every row one value per column");
    table.rows.push_back(std::move(row));
  }
  if (table.rows.empty()) throw config::ConfigError(path + ": rows: there are none: give at least one row of numbers");
  return table;
}

void require_ascending(const Table& table, int time_column, const std::string& path) {
  for (std::size_t k = 1; k < table.rows.size(); ++k)
    if (!(table.rows[k][time_column] > table.rows[k - 1][time_column]))
      throw config::ConfigError(path + ": t: does not ascend at row " + std::to_string(k + 1) +
                                ": sort the rows by time");
}

double interpolated(const Table& table, int time_column, int column, double t) {
  const auto after = std::upper_bound(table.rows.begin(), table.rows.end(), t,
                                      [time_column](double time, const auto& row) { return time < row[time_column]; });
  if (after == table.rows.begin()) return after->at(column);
  const auto& left = *(after - 1);
  if (after == table.rows.end()) return left[column];
  const double part = (t - left[time_column]) / ((*after)[time_column] - left[time_column]);
  return left[column] + part * ((*after)[column] - left[column]);
}

namespace {

struct ColumnTitle {
  std::string name;
  std::optional<std::string> unit;
};

// "name [unit]" or "name"
ColumnTitle parse_title(const std::string& title) {
  const std::size_t bracket = title.rfind(" [");
  if (bracket == std::string::npos || !title.ends_with(']')) return {title, std::nullopt};
  return {title.substr(0, bracket), title.substr(bracket + 2, title.size() - bracket - 3)};
}

void require_unit(const std::string& path, const ColumnTitle& column, const std::string& unit) {
  if (column.unit && *column.unit != unit)
    throw config::ConfigError(path + ": " + column.name + ": is in [" + *column.unit + "], its channel in [" + unit +
                              "]: convert the column");
}

config::ConfigError unknown_channel(const std::string& path, const std::string& name,
                                    const std::vector<Channel>& channels) {
  std::string known;
  for (const Channel& c : channels) {
    if (!known.empty()) known += ", ";
    known += c.name;
  }
  return config::ConfigError(path + ": " + name + ": is not an input channel: use " +
                             (known.empty() ? "no inputs, this mechanism has none" : known));
}

}  // namespace

InputTable::InputTable(const std::string& path, const std::vector<Channel>& channels)
    : InputTable(read_csv(path), path, channels) {}

InputTable::InputTable(Table table, const std::string& path, const std::vector<Channel>& channels)
    : table_(std::move(table)), channels_(channels.size()) {
  time_column_ = -1;
  for (const std::string& title : table_.columns) {
    const ColumnTitle column = parse_title(title);
    if (column.name == "t") {
      time_column_ = static_cast<int>(channel_of_column_.size());
      require_unit(path, column, "s");
      channel_of_column_.push_back(-1);
      continue;
    }
    const auto found =
        std::find_if(channels.begin(), channels.end(), [&column](const Channel& c) { return c.name == column.name; });
    if (found == channels.end()) throw unknown_channel(path, title, channels);
    require_unit(path, column, found->unit);
    channel_of_column_.push_back(static_cast<int>(found - channels.begin()));
  }
  if (time_column_ < 0)
    throw config::ConfigError(path + ": t: there is no such column: the first line names the columns, t in seconds");
  require_ascending(table_, time_column_, path);
}

void InputTable::read(double t, Inputs& inputs) const {
  inputs.count = static_cast<int>(channels_);
  for (std::size_t c = 0; c < channel_of_column_.size(); ++c)
    if (channel_of_column_[c] >= 0)
      inputs.value[channel_of_column_[c]] = interpolated(table_, time_column_, static_cast<int>(c), t);
}

std::vector<int> InputTable::driven_channels() const {
  std::vector<int> driven;
  for (const int channel : channel_of_column_)
    if (channel >= 0) driven.push_back(channel);
  return driven;
}

double InputTable::value(int driven_channel, double t) const {
  const auto column = std::find(channel_of_column_.begin(), channel_of_column_.end(), driven_channel);
  return interpolated(table_, time_column_, static_cast<int>(column - channel_of_column_.begin()), t);
}

namespace {

constexpr const char* kBodyColumns[] = {"x",  "y",  "z",  "e0", "e1", "e2", "e3",  "vx",  "vy", "vz",
                                        "wx", "wy", "wz", "ax", "ay", "az", "alx", "aly", "alz"};
constexpr const char* kJointColumns[] = {"fx", "fy", "fz", "tx", "ty", "tz"};

// Those that every mechanism has.
std::vector<std::string> motion_columns(const Mechanism& mechanism) {
  std::vector<std::string> columns{"t"};
  for (const Body& body : mechanism.bodies())
    for (const char* column : kBodyColumns) columns.push_back(body.name + "." + column);
  for (const Joint& joint : mechanism.joints())
    for (const char* column : kJointColumns) columns.push_back(joint.name + "." + column);
  for (const char* column : {"energy.kinetic", "energy.potential", "energy.total", "residual.position",
                             "residual.velocity", "residual.acceleration"})
    columns.emplace_back(column);
  return columns;
}

std::vector<std::size_t> channels_of(const Mechanism& mechanism, std::size_t output) {
  const std::vector<Output>& all = mechanism.outputs();
  const std::size_t first = static_cast<std::size_t>(all[output].first_channel);
  const std::size_t end = output + 1 < all.size() ? static_cast<std::size_t>(all[output + 1].first_channel)
                                                  : mechanism.output_channels().size();
  std::vector<std::size_t> channels(end - first);
  std::iota(channels.begin(), channels.end(), first);
  return channels;
}

}  // namespace

TrajectoryTable::TrajectoryTable(const std::string& path, const Mechanism& mechanism)
    : path_(path),
      file_(path == "-" ? stdout : wire::open_text_output(path), path == "-" ? std::fflush : std::fclose),
      mechanism_(&mechanism) {
  if (!file_)
    throw FileError(path + ": cannot be written (" + wire::output_error(errno) +
                    "): check the folder and its permissions");
}

void TrajectoryTable::begin(const std::string& not_unique, const std::vector<std::string>& unsupported_reasons) {
  std::vector<std::string> columns = motion_columns(*mechanism_);
  std::set<std::string> taken(columns.begin(), columns.end());
  std::string units, missing;
  const std::vector<Output>& outputs = mechanism_->outputs();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (k < unsupported_reasons.size() && !unsupported_reasons[k].empty()) {
      missing += (missing.empty() ? "" : "; ") + outputs[k].name + ": " + unsupported_reasons[k];
      continue;
    }
    for (const std::size_t c : channels_of(*mechanism_, k)) {
      std::string name = mechanism_->output_channels()[c].name;
      while (!taken.insert(name).second) name.insert(0, "output.");
      units += (units.empty() ? "" : ", ") + name + " [" + mechanism_->output_channels()[c].unit + "]";
      columns.push_back(name);
      channels_.push_back(c);
    }
  }
  line_ =
      "# units: s, m, m/s, rad/s, m/s^2, rad/s^2, N, N m, J; frame: world; e0..e3: Euler parameters, body -> world; "
      "f, t of a joint: load it exerts on its second body, about its joint point, " +
      not_unique + " where `rigstep check` calls it not unique; mechanism: " + mechanism_->name() + "\n";
  if (!units.empty()) line_ += "# outputs of the mechanism: " + units + "\n";
  if (!missing.empty()) line_ += "# outputs without columns: " + missing + "\n";
  for (std::size_t k = 0; k < columns.size(); ++k) line_ += (k == 0 ? "" : ",") + columns[k];
  end_row();
}

void TrajectoryTable::put(double value) {
  char text[32];
  const auto result = std::to_chars(text, text + sizeof text, value);
  if (!line_.empty()) line_ += ',';
  line_.append(text, result.ptr);
}

void TrajectoryTable::put_outputs(std::span<const double> channels) {
  for (const std::size_t c : channels_) put(channels[c]);
}

void TrajectoryTable::end_row() {
  line_ += '\n';
  std::fwrite(line_.data(), 1, line_.size(), file_.get());
  line_.clear();
}

void TrajectoryTable::write(const offline::Instant& instant) {
  const double unknown = std::numeric_limits<double>::quiet_NaN();
  put(instant.time);
  for (std::size_t i = 0; i < mechanism_->bodies().size(); ++i) {
    const offline::BodyMotion& body = instant.body[i];
    put_all(body.r_0);
    put_all(body.p);
    put_all(body.v_0);
    put_all(body.omega_0);
    put_all(i < instant.acceleration.size() ? instant.acceleration[i] : Vec6(Vec6::Constant(unknown)));
  }
  for (std::size_t j = 0; j < mechanism_->joints().size(); ++j) {
    Vec6 load = Vec6::Constant(unknown);
    if (j < instant.reaction.size()) load << instant.reaction[j].force_0, instant.reaction[j].torque_0;
    put_all(load);
  }
  for (const double value : {instant.kinetic_energy, instant.energy - instant.kinetic_energy, instant.energy,
                             instant.position_residual, instant.velocity_residual, instant.acceleration_residual})
    put(value);
  put_outputs(instant.output);
  end_row();
}

void TrajectoryTable::close() {
  if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0)
    throw FileError(path_ + ": not everything could be written (" + std::strerror(errno) + "): is the disk full?");
}

TrajectoryWriter::TrajectoryWriter(const std::string& path, const index3::Stepper& stepper)
    : pose_(index3::plan_of(stepper)),
      reactions_(index3::plan_of(stepper), stepper.state(),
                 std::vector<bool>(static_cast<std::size_t>(stepper.mechanism().constraints()), true)),
      table_(path, stepper.mechanism()) {
  table_.begin("of least norm", {});
}

void TrajectoryWriter::write(const index3::Stepper& stepper, const StepReport& report) {
  const index3::Plan& plan = index3::plan_of(stepper);
  const index3::State& x = stepper.state();
  table_.put(exact_seconds(static_cast<std::int64_t>(x.step) * plan.settings.dt_ns));
  for (std::size_t i = 0; i < x.body.size(); ++i) {
    const index3::BodyState& b = x.body[i];
    const Mat3 A = index3::rotation_matrix(b.p);
    table_.put_all(b.r);
    table_.put_all(b.p);
    table_.put_all(b.v);
    table_.put_all(Vec3(A * b.w_b));
    table_.put_all(b.a);
    table_.put_all(Vec3(A * b.alpha_b));
  }
  if (reactions_.redistributes()) index3::evaluate_pose(plan, x, pose_);
  reactions_.read(x, pose_);
  for (std::size_t j = 0; j < plan.mechanism.joints().size(); ++j)
    table_.put_all(reactions_.of_joint(x, static_cast<int>(j)));
  const index3::Energy e = index3::energy(plan, x, index3::workspace_of(stepper));
  for (const double value : {e.kinetic, e.potential, e.kinetic + e.potential, report.position_residual,
                             report.velocity_residual, report.acceleration_residual})
    table_.put(value);
  stepper.read_outputs(report, outputs_);
  table_.put_outputs(outputs_.value);
  table_.end_row();
}

}  // namespace rigstep::server
