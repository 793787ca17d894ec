// modelDescription.xml of a mechanism, for both standards from one table of variables. Offline.
#pragma once

#include <string>
#include <vector>

#include "server/plugin/instance.h"
#include "server/plugin/variables.h"

namespace rigstep::server {

enum class FmiVersion { fmi2 = 2, fmi3 = 3 };

struct ModelDescription {
  FmiVersion version = FmiVersion::fmi3;
  std::string model_identifier;  // a name of C, that of the binary
  std::string token;             // instantiation token, FMI 2.0: guid
  std::string made_at;           // "2026-11-24T22:00:00Z"
};

// A name of C made of that of the mechanism.
std::string model_identifier_of(const std::string& mechanism_name);

std::string model_description(const ModelDescription& description, const plugin::Instance& instance,
                              const std::vector<plugin::Variable>& variables);

// "name[k]" of an element of a vector, k from 1 on; the name of a scalar.
std::string element_name(const plugin::Variable& variable, int element);

}  // namespace rigstep::server
