// A functional mock-up unit as an importer sees it: its description read, and what in it breaks the standard. Offline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/fmu/archive.h"
#include "server/fmu/model_description.h"

namespace rigstep::server {

// Of this program, as FMI 3.0 names its folder below binaries/.
#if defined(__aarch64__)
inline constexpr std::string_view kPlatform = "aarch64-linux";
#else
inline constexpr std::string_view kPlatform = "x86_64-linux";
#endif

struct FmuVariable {
  std::string name, type;                       // Float64, Int32 ... or Real, Integer ...
  std::string causality, variability, initial;  // with the defaults of the standard where they are left out
  std::string unit, start;
  std::optional<double> minimum, maximum;
  std::uint32_t reference = 0;
  std::size_t elements = 1;  // 0: as many as other variables say
  bool has_initial = false;  // it stands there
  bool is_clocked = false;
  // The numbers of others in its attributes, empty where they are left out: FMI 2.0: the index, FMI 3.0: the reference.
  std::string derivative, previous;  // whose derivative it is; what holds its previous value
  std::vector<std::string> aliases;  // of FMI 3.0: its further names

  bool is_real() const { return type == "Real" || type == "Float64"; }
  bool is_float() const { return is_real() || type == "Float32"; }
  bool is_parameter() const {
    return causality == "parameter" || causality == "calculatedParameter" || causality == "structuralParameter";
  }
  // nothing but its start value can say what it is
  bool is_exact() const { return variability == "constant" || (is_parameter() && causality != "calculatedParameter"); }
};

// What this importer needs of the description.
struct Fmu {
  FmiVersion version = FmiVersion::fmi3;
  std::string model_name, token, model_identifier;
  std::string version_text, encoding;  // that the description declares; empty: none
  bool can_save_state = false;
  double step_size = 0.0, stop_time = 0.0;  // of the default experiment [s]; 0: left out
  double internal_step = 0.0;               // fixed, FMI 3.0 [s]; 0: left out
  std::vector<FmuVariable> variables;
  std::filesystem::path folder;         // where it was extracted
  std::vector<std::string> violations;  // "FMI 3.0, 2.4.7: variable ...": what, where, clause

  std::filesystem::path binary() const;  // throws FmuError where its name is none of C
};

// Throws FmuError where the description cannot be read at all. Reads modelDescription.xml and checks its rules and the
// names of the files.
Fmu read_fmu(const std::filesystem::path& folder, const Extracted& extracted);

}  // namespace rigstep::server
