#include "server/recordings/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rigstep::server {

namespace {

bool has_column(const std::vector<RunColumn>& columns, const RunColumn& wanted) {
  return std::any_of(columns.begin(), columns.end(), [&wanted](const RunColumn& column) {
    return column.kind == wanted.kind && column.title() == wanted.title();
  });
}

// The columns of `a` that `b` has too; the others are named in `missing`.
std::vector<RunColumn> common_columns(const std::vector<RunColumn>& a, const std::vector<RunColumn>& b,
                                      std::vector<std::string>& missing) {
  std::vector<RunColumn> common;
  for (const RunColumn& column : a) {
    if (has_column(b, column))
      common.push_back(column);
    else
      missing.push_back(column.title());
  }
  return common;
}

// In the order of the first: rows of both tables at the same simulated time.
std::vector<std::pair<std::size_t, std::size_t>> common_rows(const RunTable& a, const RunTable& b) {
  std::vector<std::pair<std::size_t, std::size_t>> rows;
  std::size_t j = 0;
  for (std::size_t i = 0; i < a.sim_time_ns.size(); ++i) {
    while (j < b.sim_time_ns.size() && b.sim_time_ns[j] < a.sim_time_ns[i]) ++j;
    if (j < b.sim_time_ns.size() && b.sim_time_ns[j] == a.sim_time_ns[i]) rows.emplace_back(i, j);
  }
  return rows;
}

// Numbers that are none are equal to one another.
double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0.0;
  const double d = std::abs(b - a);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

class Comparison {
 public:
  Comparison(const RunTable& a, const RunTable& b) : a_(a), b_(b), rows_(common_rows(a, b)) {}

  std::size_t instants() const { return rows_.size(); }

  ChannelDifference channel(std::size_t column, double tolerance) const {
    const std::vector<double>&a = a_.value[column], &b = b_.value[column];
    ChannelDifference found{.name = a_.columns[column].name, .unit = a_.columns[column].unit, .tolerance = tolerance};
    double squares = 0.0, lowest = 0.0, highest = 0.0;
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const auto [i, j] = rows_[k];
      const double d = distance(a[i], b[j]);
      squares += d * d;
      lowest = k == 0 ? a[i] : std::min(lowest, a[i]);
      highest = k == 0 ? a[i] : std::max(highest, a[i]);
      if (d <= found.largest) continue;
      found.largest = d;
      found.at = exact_seconds(a_.sim_time_ns[i]);
    }
    if (!rows_.empty()) found.rms = std::sqrt(squares / static_cast<double>(rows_.size()));
    found.range = highest - lowest;
    return found;
  }

  template <class Differ>
  std::optional<double> first(const Differ& differ) const {
    for (const auto& [i, j] : rows_)
      if (differ(i, j)) return exact_seconds(a_.sim_time_ns[i]);
    return std::nullopt;
  }

 private:
  const RunTable &a_, &b_;
  std::vector<std::pair<std::size_t, std::size_t>> rows_;
};

bool same_settings(const wire::RecordingHeader& a, const wire::RecordingHeader& b) {
  return a.dt_ns() == b.dt_ns() && a.iterations() == b.iterations() &&
         a.relative_compliance() == b.relative_compliance() && a.projection_passes() == b.projection_passes();
}

nlohmann::json json_of(const std::vector<ChannelDifference>& channels) {
  nlohmann::json list = nlohmann::json::array();
  for (const ChannelDifference& c : channels)
    list.push_back({{"name", c.name},
                    {"unit", c.unit},
                    {"largest", c.largest},
                    {"rms", c.rms},
                    {"range", c.range},
                    {"at_s", c.at},
                    {"tolerance", c.tolerance},
                    {"within", c.within()}});
  return list;
}

std::string lines_of(const char* what, const std::vector<ChannelDifference>& channels) {
  std::size_t equal = 0;
  std::string lines;
  for (const ChannelDifference& c : channels) {
    if (c.largest == 0.0) {
      ++equal;
      continue;
    }
    lines += fmt::format("  {:<32} {:>10.3g} {:>10.3g} {:>10.3g} {:>10g} {:>10.6g}  {}\n", c.name + " [" + c.unit + "]",
                         c.largest, c.rms, c.range, c.tolerance, c.at, c.within() ? "within" : "BEYOND");
  }
  if (lines.empty()) return fmt::format("{}: all {} are equal\n", what, equal);
  const std::string head = fmt::format("  {:<32} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "largest", "rms", "range",
                                       "tolerance", "at [s]");
  return fmt::format("{}: {} are equal, of the others differ\n{}{}", what, equal, head, lines);
}

}  // namespace

double Tolerances::of(const std::string& name) const {
  for (const auto& [channel, tolerance] : of_channel)
    if (channel == name) return tolerance;
  return all;
}

RunDifference compare_runs(const RecordedRun& a, const RecordedRun& b, const RunSelection& selection,
                           const Tolerances& tolerances, const RecordedRun::Progress& progress) {
  RunDifference found;
  found.a = a.path(), found.b = b.path();
  found.same_mechanism = a.header().mechanism_id() == b.header().mechanism_id();
  found.same_settings = same_settings(a.header(), b.header());
  found.same_start = a.header().start_hash() == b.header().start_hash();
  const std::vector<RunColumn> columns =
      common_columns(a.columns_of(selection.names), b.columns_of(selection.names), found.channels_of_a);
  common_columns(b.columns_of(selection.names), a.columns_of(selection.names), found.channels_of_b);
  std::vector<std::string> names;
  for (const RunColumn& column : columns) names.push_back(column.title());
  const RunTable of_a = read_table(a, selection, columns, progress);
  const RunTable of_b = read_table(b, selection, names.empty() ? columns : b.columns_of(names), progress);
  const Comparison rows(of_a, of_b);
  found.instants = rows.instants();
  found.only_a = of_a.step.size() - found.instants;
  found.only_b = of_b.step.size() - found.instants;
  for (std::size_t k = 0; k < columns.size(); ++k)
    (columns[k].kind == RunColumn::Kind::input ? found.inputs : found.outputs)
        .push_back(rows.channel(k, tolerances.of(columns[k].name)));
  found.first_input_difference = rows.first([&](std::size_t i, std::size_t j) {
    for (std::size_t k = 0; k < columns.size(); ++k)
      if (columns[k].kind == RunColumn::Kind::input && distance(of_a.value[k][i], of_b.value[k][j]) > 0.0) return true;
    return false;
  });
  if (found.same_mechanism)
    found.first_state_difference =
        rows.first([&](std::size_t i, std::size_t j) { return of_a.state_hash[i] != of_b.state_hash[j]; });
  return found;
}

bool RunDifference::within_tolerance() const {
  const auto good = [](const ChannelDifference& channel) { return channel.within(); };
  return instants > 0 && only_a == 0 && only_b == 0 && channels_of_a.empty() && channels_of_b.empty() &&
         std::all_of(inputs.begin(), inputs.end(), good) && std::all_of(outputs.begin(), outputs.end(), good);
}

nlohmann::json RunDifference::json() const {
  const auto time = [](const std::optional<double>& t) { return t ? nlohmann::json(*t) : nlohmann::json(); };
  return {{"schema", 1},
          {"a", a},
          {"b", b},
          {"within_tolerance", within_tolerance()},
          {"same_mechanism", same_mechanism},
          {"same_settings", same_settings},
          {"same_start", same_start},
          {"instants", instants},
          {"only_in_a", only_a},
          {"only_in_b", only_b},
          {"first_input_difference_s", time(first_input_difference)},
          {"first_state_difference_s", time(first_state_difference)},
          {"inputs", json_of(inputs)},
          {"outputs", json_of(outputs)},
          {"channels_only_in_a", channels_of_a},
          {"channels_only_in_b", channels_of_b}};
}

std::string RunDifference::text() const {
  const auto answer = [](bool same) { return same ? "the same" : "OTHERS"; };
  std::string out = fmt::format("a: {}\nb: {}\n", a, b);
  out += fmt::format("mechanism {}, settings {}, start {}\n", same_mechanism ? "the same" : "ANOTHER",
                     answer(same_settings), same_start ? "the same" : "ANOTHER");
  out += fmt::format("{} common instants, {} only in a, {} only in b\n", instants, only_a, only_b);
  if (first_input_difference) out += fmt::format("inputs differ from {:.9g} s on\n", *first_input_difference);
  if (first_state_difference) out += fmt::format("states differ from {:.9g} s on\n", *first_state_difference);
  if (same_mechanism && instants > 0 && !first_state_difference) out += "states are equal, bit for bit\n";
  out += lines_of("inputs", inputs) + lines_of("outputs", outputs);
  for (const std::string& name : channels_of_a) out += fmt::format("only in a: {}\n", name);
  for (const std::string& name : channels_of_b) out += fmt::format("only in b: {}\n", name);
  return out + (within_tolerance() ? "within tolerance\n" : "DIFFER\n");
}

}  // namespace rigstep::server
