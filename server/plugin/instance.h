// One mechanism in a host: stepper, inputs, outputs, parameters, and what went wrong last. The C library and the
// functional mock-up units are interfaces of it.
//
// Owned by the host, used by one thread at a time. Construction and build() are load time and may throw; everything
// else is noexcept and allocates nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"

namespace rigstep::wire {
class SnapshotFile;
}

namespace rigstep::plugin {

class Instance {
 public:
  // Throws config::ConfigError, with file and line where there are some, and MechanismError.
  // values: parameters of both kinds that differ from the file.
  Instance(config::LoadedMechanism loaded, const index3::Settings& settings, std::span<const ParameterValue> values);

  // Anew from the start with these parameters. Throws as the constructor does; then everything stands as it was.
  void build(std::span<const ParameterValue> values);

  // Load time: goes on from a snapshot file instead; a reset leads there. Throws config::ConfigError, with `path` in
  // front, where it is none of this mechanism, which has the values of its parameters that the run started with. Ramps
  // that were running end where they are.
  void start_from(const wire::SnapshotFile& snapshot, const std::string& path);

  const Mechanism& mechanism() const noexcept { return loaded_.mechanism; }
  const index3::Settings& settings() const noexcept { return stepper_->settings(); }
  std::uint64_t step_index() const noexcept { return stepper_->state().step; }
  std::int64_t time_ns() const noexcept;  // of the state
  const index3::State& state() const noexcept { return stepper_->state(); }
  std::uint64_t state_hash() const noexcept { return stepper_->state().hash(); }

  std::span<double> inputs() noexcept;                           // (input channels) held over the next step
  std::span<const double> outputs() const noexcept;              // (output channels) of the state as it is
  const StepReport& report() const noexcept { return report_; }  // of the last step
  std::int64_t step_ns() const noexcept { return step_ns_; }     // time it took

  double parameter(int index) const noexcept { return stepper_->parameter(index); }
  double start_output(int index) const noexcept { return start_outputs_.value[static_cast<std::size_t>(index)]; }
  double start_parameter(int index) const noexcept { return start_parameters_[static_cast<std::size_t>(index)]; }
  // False: none with this index, fixed, or out of range; nothing has changed, and error() says which.
  bool set_parameter(int index, double value) noexcept;

  // One step with the inputs held. diverged and beyond: it is not made, and error() says why.
  StepStatus step() noexcept;
  // To the start with the parameters of build(); inputs become zero.
  void reset() noexcept;

  // The state as bytes: flat state, inputs, outputs, parameters and report behind a header that says of what.
  std::size_t saved_size() const noexcept;
  void save(std::span<std::byte> bytes) const noexcept;  // (saved_size())
  // False: these bytes are none of this instance; nothing has changed, and error() says why.
  bool restore(std::span<const std::byte> bytes) noexcept;
  // Of the parameters in saved bytes, for whoever builds anew for them. None: the bytes are of something else.
  std::optional<std::vector<ParameterValue>> parameters_of(std::span<const std::byte> bytes) const;

  const char* error() const noexcept { return error_.data(); }
  [[gnu::format(printf, 2, 3)]] void explain(const char* format, ...) noexcept;

 private:
  void read_start() noexcept;
  // value(index) of all tunable parameters
  template <class Value>
  bool set_tunable(const Value& value) noexcept;
  bool inputs_are_finite() noexcept;
  void explain_failed_step() noexcept;

  config::LoadedMechanism loaded_;
  index3::Settings asked_;  // where they leave the choice, settings() has what was chosen
  std::optional<index3::Stepper> stepper_;
  std::vector<double> start_parameters_;
  std::vector<ParameterValue> tunable_;  // room for setting all of them together
  std::vector<double> start_state_;      // flat
  std::uint64_t start_step_ = 0;         // that it counts
  Inputs start_inputs_;
  mutable std::vector<double> saved_state_;  // flat: room for save() and restore()
  Inputs inputs_;
  Outputs outputs_, start_outputs_;
  StepReport report_;
  std::int64_t step_ns_ = 0;
  std::array<char, 512> error_{};
};

}  // namespace rigstep::plugin
