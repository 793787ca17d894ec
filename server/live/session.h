// From files to a stepper, and what a recording says about where it came from. Shared by every command that steps.
// Load time only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/index3/stepper.h"
#include "proto/load_mechanism.h"
#include "proto/load_rig.h"
#include "proto/recording.h"
#include "server/live/output_selection.h"

namespace rigstep::server {

// Version of the product, e.g. "0.1.0".
const char* product_version();
// Compiler, version and flags that decide the bits of a run.
std::string build_fingerprint();
// Processor model and instruction sets that decide the bits of a run.
std::string cpu_fingerprint();

// The stepper at its consistent start. A start pose that contradicts a joint is a MechanismFileError with the line, and
// so is an output that is not finite there.
index3::Stepper make_stepper(const config::LoadedMechanism& mechanism, const index3::Settings& settings);

// Why stepping stopped, with the name of the body or joint where a failed step began, or of the output channel that is
// not finite: for people.
std::string describe_fault(const Mechanism& mechanism, StepStatus status, int body, int joint, int output = -1);

// Why stepping stopped without a step that failed: for people. flags: of the record.
const char* describe_stop(std::uint32_t flags);

// The same of the record of a fault.
std::string why_stopped(const Mechanism& mechanism, const StepRecord& record);

// Settings of a rig file, and those with which a recording was made.
index3::Settings settings_of(const config::RigConfig& rig);
index3::Settings settings_of(const wire::RecordingHeader& header);

// Header of a recording that begins with the stepper's present state. rig: absent for an offline simulation.
wire::RecordingHeader recording_header(const config::LoadedMechanism& mechanism, const config::RigConfig* rig,
                                       const index3::Stepper& stepper, const RecordedOutputs& outputs,
                                       const std::vector<std::string>& realtime);

// Of a recording of a run that began with a snapshot file, at this step of the run: the stepper's state counts other
// ones after a reset.
void set_start(wire::RecordingHeader& header, const std::string& snapshot, std::uint64_t step);

// Where a recording meant for `path` goes: there, or where a file is already to a name with the time in it.
std::string fresh_recording_path(const std::string& path);

// A mechanism file that cannot be used; everything else that load throws is about the rig file or the arguments.
struct MechanismFileError : Error {
  using Error::Error;
};

// config::load_mechanism and config::parse_mechanism with their errors as MechanismFileError.
config::LoadedMechanism load_mechanism_file(const std::string& path);
// ... with these values of its parameters.
config::LoadedMechanism load_mechanism_file(const std::string& path,
                                            const std::vector<config::ParameterSetting>& settings);
// That of a rig file, with the values that it starts with; its line is named where the mechanism is not there.
config::LoadedMechanism load_mechanism_of(const config::RigConfig& rig);
config::LoadedMechanism parse_mechanism_text(const std::string& text, const std::string& path);
// That of a recording, with the values of its parameters with which the recording starts.
config::LoadedMechanism mechanism_of(const wire::RecordingHeader& header);

}  // namespace rigstep::server
