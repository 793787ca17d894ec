// A mechanism file (protobuf text format, schema mechanism.proto) -> Mechanism. Load time only. Every error carries
// file:line: field: what is wrong: what to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "proto/config_text.h"
#include "proto/load_shapes.h"

namespace rigstep::config {

struct LoadedMechanism {
  Mechanism mechanism;
  std::optional<Mechanism> as_written;  // with the bodies where the file has them; absent: they stay there
  std::string text;                     // the file's content
  std::string path;                     // as given
  std::vector<int> joint_line;          // line of each joint, from 1
  std::vector<int> coupling_line;
  std::vector<int> driver_line;
  std::vector<DrawnShape> shapes = {};  // of all bodies and of the ground; no part of the mechanism's identity
  double penalty_factor = 0.0;          // of the reference solver index3_literal [N/m], [N m]; 0: its own choice

  // The error about joint j as it reads for the person who wrote the file. Couplings and drivers count on after the
  // joints.
  ConfigError at_joint(int j, const MechanismError& error) const;
};

LoadedMechanism load_mechanism(const std::string& path);

// A value of a parameter that was asked for by name.
struct ParameterSetting {
  std::string name;
  double value = 0.0;
};

// Declares these values, of tunable and fixed parameters, before the start. Throws MechanismError that names the
// parameter.
void set_parameters(LoadedMechanism& mechanism, const std::vector<ParameterSetting>& settings);

// path: for messages only.
LoadedMechanism parse_mechanism(std::string text, const std::string& path);

}  // namespace rigstep::config
