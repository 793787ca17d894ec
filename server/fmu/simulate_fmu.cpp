#include "server/fmu/simulate_fmu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include "proto/output_file.h"
#include "proto/printable.h"
#include "server/fmu/fmu_instance.h"
#include "server/fmu/forms.h"
#include "server/fmu/rules.h"
#include "server/output/csv.h"
#include "server/output/temporary_folder.h"
#include "server/output/terminal.h"

namespace rigstep::server {

namespace {

namespace fs = std::filesystem;

constexpr double kMostSteps = 1e9;
constexpr std::size_t kMostColumns = 100'000;

// The variables of one kind, as they are set and got in one call.
struct Group {
  std::vector<const FmuVariable*> variables;
  std::vector<std::uint32_t> references;
  std::vector<double> values;  // of all elements

  void add(const FmuVariable& variable) {
    variables.push_back(&variable);
    references.push_back(variable.reference);
    values.resize(values.size() + variable.elements);
  }
};

Group reals(const Fmu& fmu, const char* causality) {
  Group group;
  for (const FmuVariable& v : fmu.variables)
    if (v.causality == causality && (v.type == "Real" || v.type == "Float64")) group.add(v);
  if (group.values.size() > kMostColumns)
    throw FmuError(
        fmt::format("it has {} numbers as {}: {} at most are handled", group.values.size(), causality, kMostColumns));
  return group;
}

class OutputTable {
 public:
  OutputTable(const std::string& path, const Group& outputs)
      : path_(path),
        file_(path == "-" ? stdout : wire::open_text_output(path), path == "-" ? std::fflush : std::fclose) {
    if (!file_)
      throw FileError(path + ": cannot be written (" + wire::output_error(errno) +
                      "): name a file in a folder that you may write to");
    text_ = "time";
    for (const FmuVariable* v : outputs.variables)
      for (std::size_t k = 0; k < v->elements; ++k)
        text_ += "," + wire::printable(v->name) + (v->elements > 1 ? fmt::format("[{}]", k + 1) : "");
    text_ += '\n';
  }
  void write(double time, const std::vector<double>& values) {
    fmt::format_to(std::back_inserter(text_), "{}", time);
    for (const double value : values) fmt::format_to(std::back_inserter(text_), ",{}", value);
    text_ += '\n';
    if (text_.size() > kPiece) flush();
  }
  void flush() {
    std::fwrite(text_.data(), 1, text_.size(), file_.get());
    text_.clear();
    if (std::fflush(file_.get()) != 0 || std::ferror(file_.get()) != 0)
      throw FileError(path_ + ": cannot be written: make room on that disk");
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string path_, text_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

const FmuVariable& named(const Fmu& fmu, const std::string& name) {
  for (const FmuVariable& v : fmu.variables)
    if (v.name == name && v.is_real()) return v;
  throw config::ConfigError("--set: \"" + name + "\" is no real variable of " + wire::printable(fmu.model_name));
}

double step_size_of(const Fmu& fmu, const FmuRun& run) {
  for (const double size : {run.step_size, fmu.step_size, fmu.internal_step})
    if (size > 0.0) return size;
  return 1e-3;
}

std::optional<InputTable> table_of(const FmuRun& run, const Group& inputs) {
  if (run.inputs.empty()) return {};
  std::vector<Channel> channels;
  for (const FmuVariable* v : inputs.variables) channels.push_back({v->name, v->unit.empty() ? "-" : v->unit});
  if (channels.size() > kMaxChannels || channels.size() != inputs.values.size())
    throw config::ConfigError(
        fmt::format("--inputs: tables are for units with scalar inputs, {} at most", kMaxChannels));
  return InputTable(run.inputs, channels);
}

// From its start to its stop time.
void run_whole(const Fmu& fmu, const FmuRun& run, FmuRunResult& result) {
  Rules rules(fmu.version);
  const FmuBinary binary(fmu);
  for (const std::string& function : binary.missing(fmu.version))
    rules.broken(Rule::functions, "the binary has no function " + function);
  for (const std::string& violation : rules.take()) result.violations.push_back(violation);

  Group inputs = reals(fmu, "input"), outputs = reals(fmu, "output"), parameters;
  const std::optional<InputTable> table = table_of(run, inputs);
  for (std::size_t i = 0; i < inputs.variables.size() && inputs.values.size() == inputs.variables.size(); ++i)
    inputs.values[i] = number_of(inputs.variables[i]->start).value_or(0.0);
  for (const auto& [name, value] : run.parameters) {
    parameters.add(named(fmu, name));
    parameters.values.back() = value;
  }
  const double size = step_size_of(fmu, run), stop = run.stop_time > 0.0   ? run.stop_time
                                                     : fmu.stop_time > 0.0 ? fmu.stop_time
                                                                           : 10.0;
  if (!(stop / size >= 0.5 && stop / size <= kMostSteps))
    throw config::ConfigError(
        fmt::format("--stop: {:g} s in steps of {:g} s is no run: give one step at least, 1e9 at most", stop, size));
  const auto steps = static_cast<std::uint64_t>(std::llround(stop / size));
  const auto time_at = [&](std::uint64_t k) { return static_cast<double>(k) * size; };
  Inputs applied;

  const std::unique_ptr<FmuInstance> instance =
      instantiate(fmu, binary, fmu.model_name.empty() ? "unit" : fmu.model_name);
  instance->set_reals(parameters.references, parameters.values);
  instance->enter_initialization(0.0, 0.0);
  instance->exit_initialization();
  std::optional<OutputTable> output;
  if (!run.output.empty()) output.emplace(run.output, outputs);
  const auto keep = [&](double time) {
    if (!output) return;
    instance->get_reals(outputs.references, outputs.values);
    output->write(time, outputs.values);
  };
  keep(0.0);
  std::chrono::steady_clock::duration spent{};
  for (std::uint64_t k = 0; k < steps; ++k) {
    if (table) {
      table->read(time_at(k + 1), applied);
      std::copy_n(applied.value.begin(), inputs.values.size(), inputs.values.begin());
      instance->set_reals(inputs.references, inputs.values);
    }
    const auto begin = std::chrono::steady_clock::now();
    const FmuStep step = instance->step(time_at(k), size);
    spent += std::chrono::steady_clock::now() - begin;
    const std::vector<std::string> messages = instance->take_messages();
    for (const std::string& message : messages)
      if (run.tell) run.tell(message);
    result.time = step.last_time;
    if (step.status > FmuStatus::warning || step.ends) {
      result.failure =
          fmt::format("the step from {:.12g} s returned {}; the unit is at {:.12g} s{}", time_at(k),
                      to_string(step.status), step.last_time, messages.empty() ? "" : ": " + messages.back());
      break;
    }
    ++result.steps;
    keep(time_at(k + 1));
    if (run.progress && k % 256 == 0) run.progress(time_at(k));
  }
  if (output) output->flush();
  result.wall = std::chrono::duration<double>(spent).count();
  for (const FmuVariable& v : fmu.variables)
    if (v.name == "rigstep.state_hash") result.state_hash = wire::printable(instance->get_text(v.reference));
  if (result.failure.empty()) instance->terminate();
}

}  // namespace

FmuRunResult simulate_fmu(const fs::path& unit, const FmuRun& run) {
  const TemporaryFolder folder;
  const Fmu fmu = read_fmu(folder.path(), extract_archive(unit, folder.path()));
  FmuRunResult result;
  result.violations = fmu.violations;
  try {
    run_whole(fmu, run, result);
  } catch (FmuError& error) {
    error.violations = std::move(result.violations);
    throw;
  }
  return result;
}

}  // namespace rigstep::server
