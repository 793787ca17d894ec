// An instance of any unit for co-simulation, by the state machine of its standard. The binary is foreign code: it runs
// in this process. Offline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/fmu/fmu.h"

namespace rigstep::server {

// A shared library of a unit, loaded with its functions apart from those of others.
class FmuBinary {
 public:
  // Throws FmuError with the loader's reason.
  explicit FmuBinary(const Fmu& fmu);
  ~FmuBinary();
  FmuBinary(const FmuBinary&) = delete;
  FmuBinary& operator=(const FmuBinary&) = delete;

  void* find(const char* function) const;  // null: it has none
  // Functions of the standard that it lacks.
  std::vector<std::string> missing(FmiVersion version) const;

 private:
  void* handle_ = nullptr;
};

// fmi2OK ... fmi2Fatal, which FMI 3.0 numbers alike.
enum class FmuStatus { ok, warning, discard, error, fatal };
const char* to_string(FmuStatus status);

struct FmuStep {
  FmuStatus status = FmuStatus::ok;
  double last_time = 0.0;  // up to which it is computed [s]
  bool ends = false;       // the unit asks for the end of the simulation
};

class FmuInstance {
 public:
  virtual ~FmuInstance() = default;

  // What fails throws FmuError with the function, its status and the unit's messages.
  virtual void set_reals(const std::vector<std::uint32_t>& references, const std::vector<double>& values) = 0;
  virtual void enter_initialization(double start_time, double stop_time) = 0;
  virtual void exit_initialization() = 0;
  // values: of all elements of all references
  virtual void get_reals(const std::vector<std::uint32_t>& references, std::vector<double>& values) = 0;
  virtual std::string get_text(std::uint32_t reference) = 0;
  virtual FmuStep step(double time, double size) = 0;
  virtual std::vector<std::uint8_t> save() = 0;  // serialised
  virtual void restore(const std::vector<std::uint8_t>& bytes) = 0;
  virtual void terminate() = 0;
  virtual void reset() = 0;

  // What the unit said since the last call, a line each.
  std::vector<std::string> take_messages() { return std::exchange(messages_, {}); }

 protected:
  void add_message(int status, const char* category, const char* text);
  // Throws FmuError unless ok or warning.
  void require(int status, const char* function);

  std::vector<std::string> messages_;
};

// binary: must live longer. Throws FmuError where it lacks a function or gives no instance.
std::unique_ptr<FmuInstance> instantiate(const Fmu& fmu, const FmuBinary& binary, const std::string& name);

}  // namespace rigstep::server
