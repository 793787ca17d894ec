#include "proto/load_rig.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "proto/dimensions.h"
#include "proto/rig.pb.h"
#include "proto/text_source.h"
#include "proto/units.h"

namespace rigstep::config {
namespace {

void read_error_limit(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  const auto read = [&](const char* field, double value, double& limit) {
    if (value == 0.0) return;
    if (!(value > 0.0 && std::isfinite(value)))
      source.fail(file, std::string("solver.error_limit.") + field, "is no limit",
                  "give a number above 0, or leave it out for none");
    limit = value;
  };
  const wire::ErrorLimit& given = file.solver().error_limit();
  read("position", given.position(), rig.error_limit.position);
  read("orientation", given.orientation(), rig.error_limit.orientation);
  if (given.position() == 0.0 && given.orientation() == 0.0)
    source.fail(file, "solver.error_limit", "limits nothing", "give position, orientation, or both");
  if (rig.order != 4)
    source.fail(file, "solver.error_limit", "needs steps that estimate their error", "use solver { order: 4 }");
}

void read_solver(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  if (file.solver().iterations() != 0) rig.iterations = static_cast<int>(file.solver().iterations());
  rig.projection_passes = static_cast<int>(file.solver().projection_passes());
  if (const std::uint32_t order = file.solver().order(); order != 0) {
    if (order != 2 && order != 4)
      source.fail(file, "solver.order", "is neither 2 nor 4", "leave it out for 2, or use 4");
    rig.order = static_cast<int>(order);
  }
  if (file.solver().has_error_limit()) read_error_limit(file, source, rig);
  if (const double eps = file.solver().relative_compliance(); eps != 0.0) {
    if (!(eps > 0.0 && eps < 1e-2))
      source.fail(file, "solver.relative_compliance", "is not between 0 and 0.01", "leave it out, or use 1e-8");
    rig.relative_compliance = eps;
  }
}

// Periods that so many seconds have, at least one. All that is long enough for a count is the largest one.
std::uint32_t steps_of(double seconds, const RigConfig& rig) {
  const double steps = std::ceil(seconds * 1e9 / static_cast<double>(rig.period_ns));
  return static_cast<std::uint32_t>(std::clamp(steps, 1.0, 4294967295.0));
}

void read_deadline_misses(const wire::DeadlineMisses& misses, RigConfig& rig) {
  constexpr std::uint32_t kLeast = 10;
  rig.consecutive_misses = misses.has_consecutive() ? misses.consecutive() : std::max(kLeast, steps_of(1.0, rig));
  rig.misses_per_second = misses.has_per_second() ? misses.per_second() : std::max(kLeast, steps_of(0.75, rig));
}

void read_realtime(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  rig.enforce_realtime = file.realtime().mode() == wire::ENFORCE;
  if (file.realtime().priority() != 0) rig.priority = static_cast<int>(file.realtime().priority());
  if (file.realtime().threads() != 0) rig.threads = static_cast<int>(file.realtime().threads());
  if (file.realtime().has_cpu()) rig.cpu = static_cast<int>(file.realtime().cpu());
  rig.lockstep = file.realtime().pace() == wire::RIG;
  rig.busy_poll_ns = 1000 * static_cast<std::int64_t>(file.realtime().busy_poll_us());
  if (!rig.lockstep && rig.busy_poll_ns >= rig.period_ns)
    source.fail(file, "realtime.busy_poll_us", "is not shorter than the period",
                "use what a wake-up takes at most, for instance 50");
  read_deadline_misses(file.realtime().deadline_misses_until_fault(), rig);
}

StaleRule stale_rule(wire::StaleRule rule) {
  switch (rule) {
    case wire::ZERO:
      return StaleRule::zero;
    case wire::FAULT:
      return StaleRule::fault;
    case wire::RAMP:
      return StaleRule::ramp;
    case wire::RATE:
      return StaleRule::rate;
    default:
      return StaleRule::hold;
  }
}

void read_stale_input(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  if (file.stale_input().max_age_steps() != 0) rig.max_input_age_steps = file.stale_input().max_age_steps();
  if (file.stale_input().has_rule()) rig.stale_rule = stale_rule(file.stale_input().rule());
  if (rig.stale_rule == StaleRule::rate)
    source.fail(file, "stale_input.rule", "is a rule of single channels",
                "write an `input { channel: \"...\" rule: RATE }` for each");
  rig.ramp_steps = file.stale_input().ramp_steps() != 0 ? file.stale_input().ramp_steps() : steps_of(0.25, rig);
}

// After the channels: the default leaves each of them the time that it was given.
void read_fault_after(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  const wire::StaleInput& stale = file.stale_input();
  if (stale.has_fault_after_steps()) {
    rig.fault_after_steps = stale.fault_after_steps();
    if (rig.fault_after_steps != 0 && rig.fault_after_steps <= rig.max_input_age_steps)
      source.fail(file, "stale_input.fault_after_steps", "is not more than max_age_steps",
                  "give an age after the stale rule has begun, or use `rule: FAULT`");
    return;
  }
  std::uint64_t ends = std::uint64_t{rig.max_input_age_steps} + rig.ramp_steps;
  for (const auto& input : rig.inputs)
    ends = std::max(ends, std::uint64_t{input.treatment.max_age_steps} + input.treatment.ramp_steps);
  rig.fault_after_steps = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(ends, steps_of(2.0, rig), std::numeric_limits<std::uint32_t>::max()));
}

InputPolicy input_policy(const wire::ChannelInput& in, const RigConfig& rig) {
  InputPolicy policy{.rule = in.has_rule() ? stale_rule(in.rule()) : rig.stale_rule,
                     .max_age_steps = in.max_age_steps() != 0 ? in.max_age_steps() : rig.max_input_age_steps,
                     .safe = in.safe(),
                     .ramp_steps = in.has_ramp_steps() ? in.ramp_steps() : rig.ramp_steps};
  if (in.has_minimum()) policy.minimum = in.minimum();
  if (in.has_maximum()) policy.maximum = in.maximum();
  if (in.has_most_change_per_step()) policy.most_change_per_step = in.most_change_per_step();
  if (!std::isfinite(policy.safe)) throw MechanismError("safe", "is not a finite number", "give one");
  if (!(policy.minimum <= policy.maximum))
    throw MechanismError("minimum", "is not below the maximum", "give a range from minimum to maximum");
  if (!(policy.safe >= policy.minimum && policy.safe <= policy.maximum))
    throw MechanismError("safe", "lies outside minimum and maximum",
                         "give a safe value in the range; it is zero where it is not given");
  if (policy.rule == StaleRule::zero && !(policy.minimum <= 0.0 && policy.maximum >= 0.0))
    throw MechanismError("rule", "is ZERO, which lies outside minimum and maximum", "use RAMP to a safe value");
  if (!(policy.most_change_per_step > 0.0))
    throw MechanismError("most_change_per_step", "is not more than zero", "leave it out for no limit");
  return policy;
}

template <class List>
void require_new_name(const List& list, const std::string& channel) {
  if (channel.empty()) throw MechanismError("channel", "is missing", "name the channel");
  for (const auto& known : list)
    if (known.channel == channel) throw MechanismError("channel", "is named twice", "describe each channel once");
}

std::vector<RigConfig::WrittenUnit> units_in(const TextSource& source, const char* field, int index) {
  std::vector<RigConfig::WrittenUnit> units;
  for (const WrittenUnit& unit : source.units_in(field, index))
    if (is_open(unit.dimension)) units.push_back({unit.field, unit.text, unit.line});
  return units;
}

void read_channels(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  for (int k = 0; k < file.input_size(); ++k)
    source.element(file, "input", k, [&] {
      require_new_name(rig.inputs, file.input(k).channel());
      rig.inputs.push_back({file.input(k).channel(), input_policy(file.input(k), rig), source.line_of(file, "input", k),
                            units_in(source, "input", k)});
    });
  for (int k = 0; k < file.safe_output_size(); ++k)
    source.element(file, "safe_output", k, [&] {
      const wire::SafeOutput& out = file.safe_output(k);
      require_new_name(rig.safe_outputs, out.channel());
      if (!std::isfinite(out.value())) throw MechanismError("value", "is not a finite number", "give one");
      rig.safe_outputs.push_back({out.channel(),
                                  {.value = out.value(), .ramp_steps = out.ramp_steps()},
                                  source.line_of(file, "safe_output", k),
                                  units_in(source, "safe_output", k)});
    });
}

// Of the value of parameter k of `start`.
std::vector<RigConfig::WrittenUnit> units_of_start(const TextSource& source, int k) {
  const auto* start = wire::Rig::descriptor()->FindFieldByNumber(wire::Rig::kStartFieldNumber);
  const auto* parameter = wire::Start::descriptor()->FindFieldByNumber(wire::Start::kParameterFieldNumber);
  const auto* value = wire::StartParameter::descriptor()->FindFieldByNumber(wire::StartParameter::kValueFieldNumber);
  const TextSource::Step steps[] = {{start, -1}, {parameter, k}, {value, -1}};
  const TextSource::Span span = source.span_of(steps);
  std::vector<RigConfig::WrittenUnit> units;
  for (const WrittenUnit& unit : source.units_in("start", 0))
    if (unit.si_begin >= span.begin && unit.si_begin < span.end)
      units.push_back({"start." + unit.field, unit.text, unit.line});
  return units;
}

void read_start(const wire::Rig& file, const TextSource& source, const std::filesystem::path& folder, RigConfig& rig) {
  const wire::Start& start = file.start();
  if (!start.from().empty()) rig.snapshot_path = (folder / start.from()).lexically_normal().string();
  if (!start.from().empty() && start.parameter_size() > 0)
    source.fail(file, "start.from", "holds values of all parameters", "leave `parameter` out, or `from`");
  for (int k = 0; k < start.parameter_size(); ++k)
    source.element(start, "parameter", k, [&] {
      const wire::StartParameter& in = start.parameter(k);
      if (in.name().empty()) throw MechanismError("name", "is missing", "name the parameter");
      for (const RigConfig::StartValue& known : rig.parameters)
        if (known.setting.name == in.name())
          throw MechanismError("name", "is given twice", "give each parameter one value");
      rig.parameters.push_back(
          {{in.name(), in.value()}, source.line_of(start, "parameter", k), units_of_start(source, k)});
    });
}

void read_black_box(const wire::Rig& file, const TextSource& source, RigConfig& rig) {
  if (!file.has_black_box()) return;
  rig.black_box_folder = file.black_box().folder();
  if (rig.black_box_folder.empty())
    source.fail(file, "black_box.folder", "is missing", "name an existing folder, \".\" for this one");
  if (file.black_box().seconds() != 0.0) rig.black_box_seconds = file.black_box().seconds();
  const double steps = rig.black_box_seconds * 1e9 / static_cast<double>(rig.period_ns);
  if (!(steps >= 1.0 && steps <= 1e6))
    source.fail(file, "black_box.seconds", "is not between one step and a million steps", "use 30");
  if (file.black_box().has_least_interval_seconds())
    rig.black_box_least_interval_s = file.black_box().least_interval_seconds();
  if (!(rig.black_box_least_interval_s >= 0.0 && rig.black_box_least_interval_s <= 86400.0))
    source.fail(file, "black_box.least_interval_seconds", "is not between 0 and a day", "use 10");
  if (file.black_box().most_files() != 0) rig.most_black_boxes = file.black_box().most_files();
  constexpr int kMebibyte = 20;  // binary digits
  if (const std::uint64_t most = file.black_box().most_mebibytes(); most != 0)
    rig.most_black_box_bytes = most << kMebibyte;
  if (file.black_box().has_reserve_mebibytes())
    rig.disk_reserve_bytes = std::uint64_t{file.black_box().reserve_mebibytes()} << kMebibyte;
}

// Index of the channel called so. what: "input" or "output".
int channel_named(const std::vector<Channel>& channels, const std::string& name, const RigConfig& rig, int line,
                  const char* field, const std::string& what) {
  std::string names;
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].name == name) return static_cast<int>(c);
    names += (c == 0 ? "" : ", ") + channels[c].name;
  }
  throw error_at(rig.path, line, field, "\"" + name + "\" is no " + what + " channel of the mechanism",
                 names.empty() ? "it has none" : "use one of " + names);
}

// Numbers of a channel or parameter are in its unit, which only the mechanism knows. what: it, for messages.
void require_units(const std::vector<RigConfig::WrittenUnit>& units, const std::string& what,
                   const std::string& expected_text, const RigConfig& rig) {
  const auto expected = parse_unit(expected_text);
  for (const RigConfig::WrittenUnit& written : units) {
    const auto fail = [&](const std::string& but, const std::string& remedy) {
      throw error_at(rig.path, written.line, written.field, "is in " + written.unit + ", but " + what + but, remedy);
    };
    if (!expected || !expected->is_si())
      fail(" is in \"" + expected_text + "\", which is not SI", "write a plain number in that unit");
    if (expected->measures_as(parse_unit(written.unit).value_or(Unit{}))) continue;
    if (expected_text == "-") fail(" is a plain number", "leave the unit out");
    fail(" is in " + expected_text, good_units(expected_text));
  }
}

void require_units_of_channel(const std::vector<RigConfig::WrittenUnit>& units, const Channel& channel,
                              const RigConfig& rig) {
  require_units(units, "channel \"" + channel.name + "\"", channel.unit, rig);
}

void read_view(const wire::Rig& file, const TextSource& source, const std::filesystem::path& folder, RigConfig& rig) {
  if (!file.has_view()) return;
  const wire::View& view = file.view();
  RigConfig::Page& page = rig.page.emplace(RigConfig::Page{});
  if (!view.address().empty()) page.address = view.address();
  if (view.port() != 0) page.port = static_cast<std::uint16_t>(view.port());
  if (!view.token_file().empty()) page.token_path = (folder / view.token_file()).lexically_normal().string();
  page.control = view.control();
  if (page.control && page.token_path.empty()) source.fail(file, "view.control", "needs a token", "name a token_file");
}

void read_link(const wire::Rig& file, const TextSource& source, const std::filesystem::path& folder, RigConfig& rig) {
  const wire::Link& link = file.link();
  if (!link.address().empty()) rig.address = link.address();
  if (link.port() != 0) rig.port = static_cast<std::uint16_t>(link.port());
  if (!link.key_file().empty()) rig.key_path = (folder / link.key_file()).lexically_normal().string();
  rig.allow_unauthenticated = link.allow_unauthenticated();
  constexpr std::int64_t kUsual = 2'000'000'000;  // [ns]
  rig.timeout_steps = static_cast<std::uint32_t>(kUsual / rig.period_ns);
  if (link.timeout_steps() != 0) rig.timeout_steps = link.timeout_steps();
  const std::int64_t timeout_ns = rig.period_ns * rig.timeout_steps;
  if (timeout_ns < 10'000'000 || timeout_ns > 60'000'000'000)
    source.fail(file, "link.timeout_steps", "is a time-out of " + std::to_string(timeout_ns / 1'000'000) + " ms",
                "use as many steps as 10 ms to one minute have, or leave it out for two seconds");
  const std::int64_t stale_ms = rig.period_ns * rig.max_input_age_steps / 1'000'000;
  rig.max_input_delay_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(stale_ms, 100, 60'000));
  if (link.has_max_input_delay_ms()) rig.max_input_delay_ms = link.max_input_delay_ms();
}

}  // namespace

RigConfig load_rig(const std::string& path) { return parse_rig(read_text_file(path), path); }

RigConfig parse_rig(std::string text, const std::string& path) {
  wire::Rig file;
  const TextSource source(text, path, file);
  source.require_bounds(file);
  RigConfig rig;
  if (file.mechanism().empty()) source.fail(file, "mechanism", "is missing", "name the mechanism file");
  rig.mechanism_path = (std::filesystem::path(path).parent_path() / file.mechanism()).lexically_normal().string();
  if (file.period_us() != 0) rig.period_ns = 1000 * static_cast<std::int64_t>(file.period_us());
  if (rig.period_ns < 20'000 || rig.period_ns > 1'000'000'000)
    source.fail(file, "period_us", "is not between 20 and 1000000", "use 1000 for 1 kHz");
  read_solver(file, source, rig);
  read_realtime(file, source, rig);
  rig.recording_path = file.recording().path();
  if (file.recording().full_state_every() != 0) rig.full_state_every = file.recording().full_state_every();
  if (file.recording().has_outputs_every()) rig.outputs_every = file.recording().outputs_every();
  rig.recorded_outputs.assign(file.recording().output().begin(), file.recording().output().end());
  read_stale_input(file, source, rig);
  read_link(file, source, std::filesystem::path(path).parent_path(), rig);
  read_channels(file, source, rig);
  read_start(file, source, std::filesystem::path(path).parent_path(), rig);
  read_fault_after(file, source, rig);
  read_black_box(file, source, rig);
  read_view(file, source, std::filesystem::path(path).parent_path(), rig);
  rig.start = static_cast<StartMode>(file.lifecycle().start());
  rig.control_lost = static_cast<ControlLost>(file.lifecycle().control_lost());
  rig.soft_start_steps = file.lifecycle().soft_start_steps();
  rig.outputs.assign(file.output().begin(), file.output().end());
  rig.text = std::move(text);
  rig.path = path;
  return rig;
}

std::string place_in(const RigConfig& rig, const std::string& field, int index) {
  wire::Rig file;
  const TextSource source(rig.text, rig.path, file);
  int line = source.line_of_path(file, field);
  if (file.GetDescriptor()->FindFieldByName(field) != nullptr)
    for (int k = index; k > 0; --k)  // a list in brackets stands where it begins
      if (const int own = source.line_of(file, field.c_str(), k); own > 0) {
        line = own;
        break;
      }
  return place(rig.path, line) + ": " + field;
}

void set_start_parameters(LoadedMechanism& mechanism, const RigConfig& rig) {
  for (const RigConfig::StartValue& each : rig.parameters) {
    try {
      const int k = mechanism.mechanism.parameter(each.setting.name);
      const Parameter& parameter = mechanism.mechanism.parameters()[static_cast<std::size_t>(k)];
      require_units(each.units, "parameter \"" + parameter.name + "\"", parameter.unit, rig);
      set_parameters(mechanism, {each.setting});
    } catch (const MechanismError& error) {
      throw error_at(rig.path, each.line, error.field, error.problem, error.remedy);
    }
  }
}

std::vector<InputPolicy> input_policies(const RigConfig& rig, const Mechanism& mechanism) {
  std::vector<InputPolicy> policies(
      mechanism.input_channels().size(),
      {.rule = rig.stale_rule, .max_age_steps = rig.max_input_age_steps, .ramp_steps = rig.ramp_steps});
  for (const auto& input : rig.inputs) {
    const auto channel = static_cast<std::size_t>(
        channel_named(mechanism.input_channels(), input.channel, rig, input.line, "input.channel", "input"));
    require_units_of_channel(input.units, mechanism.input_channels()[channel], rig);
    policies[channel] = input.treatment;
  }
  return policies;
}

std::vector<SafeOutput> safe_outputs(const RigConfig& rig, const Mechanism& mechanism) {
  std::vector<SafeOutput> outputs;
  for (const auto& output : rig.safe_outputs) {
    outputs.push_back(output.treatment);
    outputs.back().channel =
        channel_named(mechanism.output_channels(), output.channel, rig, output.line, "safe_output.channel", "output");
    require_units_of_channel(output.units,
                             mechanism.output_channels()[static_cast<std::size_t>(outputs.back().channel)], rig);
  }
  return outputs;
}

}  // namespace rigstep::config
