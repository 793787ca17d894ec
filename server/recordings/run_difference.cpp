#include "server/recordings/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "proto/printable.h"

namespace rigstep::server {

namespace {

// Columns of one kind and title in both runs, side by side; the others are named.
struct CommonColumns {
  std::vector<RunColumn> a, b;
  std::vector<std::string> only_a, only_b;
};

CommonColumns common_columns(const std::vector<RunColumn>& a, std::vector<RunColumn> b) {
  CommonColumns common;
  for (const RunColumn& column : a) {
    const auto same = std::find_if(b.begin(), b.end(), [&column](const RunColumn& other) {
      return column.kind == other.kind && column.title() == other.title();
    });
    if (same == b.end()) {
      common.only_a.push_back(column.title());
      continue;
    }
    common.a.push_back(column);
    common.b.push_back(*same);
    b.erase(same);
  }
  for (const RunColumn& column : b) common.only_b.push_back(column.title());
  return common;
}

// In the order of the first: rows of both tables at the same simulated time.
std::vector<std::pair<std::size_t, std::size_t>> common_rows(const RunTable& a, const RunTable& b) {
  std::vector<std::pair<std::size_t, std::size_t>> rows;
  std::size_t j = 0;
  for (std::size_t i = 0; i < a.sim_time_ns.size(); ++i) {
    while (j < b.sim_time_ns.size() && b.sim_time_ns[j] < a.sim_time_ns[i]) ++j;
    if (j < b.sim_time_ns.size() && b.sim_time_ns[j] == a.sim_time_ns[i]) rows.emplace_back(i, j++);
  }
  return rows;
}

// Between two nan it is 0.
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
         a.relative_compliance() == b.relative_compliance() && a.projection_passes() == b.projection_passes() &&
         (a.order() == 4) == (b.order() == 4);
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
    lines += fmt::format("  {:<32} {:>10.3g} {:>10.3g} {:>10.3g} {:>10g} {:>10.6g}  {}\n",
                         wire::printable_line(c.name + " [" + c.unit + "]"), c.largest, c.rms, c.range, c.tolerance,
                         c.at, c.within() ? "within" : "BEYOND");
  }
  const std::string count = fmt::format("{}: {} of {} channels are equal\n", what, equal, channels.size());
  if (lines.empty()) return count;
  return count +
         fmt::format("  {:<32} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "", "largest", "rms", "range", "tolerance",
                     "at [s]") +
         lines;
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
  const CommonColumns common = common_columns(a.columns_of(selection.names), b.columns_of(selection.names));
  const std::vector<RunColumn>& columns = common.a;
  found.channels_of_a = common.only_a, found.channels_of_b = common.only_b;
  const RunTable of_a = read_table(a, selection, common.a, progress);
  const RunTable of_b = read_table(b, selection, common.b, progress);
  found.damage_of_a = of_a.damage, found.damage_of_b = of_b.damage;
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
          {"channels_only_in_b", channels_of_b},
          {"damage_of_a", damage_of_a},
          {"damage_of_b", damage_of_b}};
}

std::string RunDifference::text() const {
  const auto same = [](bool yes) { return yes ? "the same" : "different"; };
  std::string out = fmt::format("a: {}\nb: {}\n", wire::printable_line(a), wire::printable_line(b));
  out += fmt::format("mechanism: {}; settings: {}; start: {}\n", same(same_mechanism), same(same_settings),
                     same(same_start));
  out += fmt::format("{} common instants, {} only in a, {} only in b\n", instants, only_a, only_b);
  if (instants > 0) {
    if (first_input_difference) out += fmt::format("inputs differ from {:.9g} s on\n", *first_input_difference);
    if (first_state_difference) out += fmt::format("states differ from {:.9g} s on\n", *first_state_difference);
    if (same_mechanism && !first_state_difference) out += "states are equal, bit for bit\n";
    out += lines_of("inputs", inputs) + lines_of("outputs", outputs);
  } else {
    out += "nothing was compared: the runs have no instant of simulated time in common\n";
  }
  for (const std::string& name : channels_of_a) out += fmt::format("only in a: {}\n", wire::printable_line(name));
  for (const std::string& name : channels_of_b) out += fmt::format("only in b: {}\n", wire::printable_line(name));
  return out + (within_tolerance() ? "within tolerance\n" : "DIFFER\n");
}

}  // namespace rigstep::server
