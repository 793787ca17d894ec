// Values of parameters on the command line: NAME=VALUE.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "proto/load_mechanism.h"

namespace rigstep::server {

// Throws config::ConfigError for what is no NAME=VALUE.
std::vector<config::ParameterSetting> read_settings(const std::vector<std::string>& texts);

// --set NAME=VALUE, any number of times
void add_set(CLI::App* command, std::vector<config::ParameterSetting>& settings);

}  // namespace rigstep::server
