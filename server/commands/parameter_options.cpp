#include "server/commands/parameter_options.h"

#include "proto/printable.h"
#include "server/output/csv.h"

namespace rigstep::server {

std::vector<config::ParameterSetting> read_settings(const std::vector<std::string>& texts) {
  std::vector<config::ParameterSetting> settings;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const auto value =
        equals == std::string::npos ? std::nullopt : finite_number(std::string_view(text).substr(equals + 1));
    if (equals == 0 || !value)
      throw config::ConfigError("\"" + wire::printable_line(text) +
                                "\" sets no parameter: write NAME=VALUE with a finite number");
    settings.push_back({text.substr(0, equals), *value});
  }
  return settings;
}

void add_set(CLI::App* command, std::vector<config::ParameterSetting>& settings) {
  command
      ->add_option_function<std::vector<std::string>>(
          "--set",
          [&settings](const std::vector<std::string>& texts) {
            try {
              settings = read_settings(texts);
            } catch (const config::ConfigError& error) {
              throw CLI::ValidationError("--set", error.what());
            }
          },
          "NAME=VALUE: value of a parameter instead of the one that the mechanism file declares; `rigstep check` tells "
          "names, units and ranges")
      ->allow_extra_args(false);
}

}  // namespace rigstep::server
