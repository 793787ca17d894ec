// A functional mock-up unit behind both standards: an instance with its variables, its phase, and what it tells the
// importer. fmi2.cpp and fmi3.cpp translate.
//
// Owned by the importer, one thread at a time. step(), get and set allocate nothing in the phase `stepping`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "server/plugin/instance.h"
#include "server/plugin/variables.h"

namespace rigstep::plugin {

// As both standards number them.
enum class Status { ok, warning, discard, error, fatal };

// Bits, so that a function can name all phases in which it may be called.
enum Phase : unsigned {
  kInstantiated = 1,
  kInitialization = 2,
  kStepping = 4,
  kFailed = 8,  // FMI 2.0 only: after a step that was discarded
  kTerminated = 16,
  kError = 32,
  kAnyPhase = 63,
};

class Unit {
 public:
  using Log = std::function<void(Status, const char* category, const char* text)>;

  enum class Standard {
    fmi2,  // a reference stands for one number; errors are always told
    fmi3,  // a reference stands for all elements of a vector; nothing is told while logging is off; errors terminate
  };

  // From the folder `resources` of the unit. Throws Error for files that cannot be used, and where token is not that of
  // these files.
  Unit(const std::string& resources, const std::string& token, Standard standard, Log log);

  Phase phase() const noexcept { return phase_; }
  void set_phase(Phase phase) noexcept { phase_ = phase; }
  // Whether a function may be called now; else the importer is told when it may.
  bool may(const char* function, unsigned phases) noexcept;
  void tell(Status status, const char* text) noexcept;
  // The same for something that goes wrong: what is returned, and from `error` on the phase.
  Status fail(Status status, const char* text) noexcept;
  void set_logging(bool on) noexcept { logging_ = on; }

  Status enter_initialization(double start_time, bool has_stop_time, double stop_time) noexcept;
  Status exit_initialization() noexcept;
  Status reset() noexcept;

  Status get_reals(const std::uint32_t* references, std::size_t count, double* values, std::size_t room) noexcept;
  Status get_integers(const std::uint32_t* references, std::size_t count, std::int32_t* values,
                      std::size_t room) noexcept;
  Status get_texts(const std::uint32_t* references, std::size_t count, const char** values, std::size_t room) noexcept;
  Status set_reals(const std::uint32_t* references, std::size_t count, const double* values, std::size_t room) noexcept;
  // For the types of which there is no variable, or none that may be set.
  Status refuse_values(const char* function, std::size_t count) noexcept;

  // Whole internal steps from `time` to time + size. early_return: in: allowed, out: made. What fails is not made:
  // the last good state stands, at last_time.
  Status step(double time, double size, bool& early_return, double& last_time) noexcept;
  double time() const noexcept;

  std::vector<std::byte> save() const;
  Status restore(const std::vector<std::byte>& bytes) noexcept;

 private:
  struct Place {
    std::size_t variable;
    int element;
  };

  template <class Put>
  Status for_values(const std::uint32_t* references, std::size_t count, std::size_t room, Variable::Type type,
                    const Put& put) noexcept;
  double number(const Variable& variable, int element) const noexcept;
  void set_start_inputs() noexcept;
  Status set_number(const Variable& variable, double value) noexcept;
  bool before_start() const noexcept { return (phase_ & (kInstantiated | kInitialization)) != 0; }
  bool build_if_changed() noexcept;
  bool build(std::span<const double> parameters) noexcept;
  bool restore_instance(std::span<const std::byte> bytes, std::span<const double> parameters) noexcept;
  Status check_step(double time, double size, std::int64_t& steps) noexcept;

  Log log_;
  bool logging_ = false;
  Standard standard_;
  std::optional<Instance> instance_;
  std::vector<Variable> variables_;
  std::vector<Place> places_;     // by reference
  std::vector<double> defaults_;  // of the parameters
  std::vector<double> asked_;     // for the next start; instance_ has them once it was built
  Phase phase_ = kInstantiated;
  double start_time_ = 0.0, stop_time_ = 0.0;
  bool has_stop_time_ = false;
  char state_hash_[17] = {};
};

}  // namespace rigstep::plugin
