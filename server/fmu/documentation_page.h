// documentation/index.html of a unit: what it is, its variables, and what it can do. Offline.
#pragma once

#include <string>

#include "server/fmu/model_description.h"

namespace rigstep::server {

// step_seconds: time of one step on the machine that exported [s].
std::string documentation_page(const ModelDescription& description, const plugin::Instance& instance,
                               const std::vector<plugin::Variable>& variables, double step_seconds);

}  // namespace rigstep::server
