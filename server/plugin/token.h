// What binds description, binary and resources of a functional mock-up unit to each other. Load time.
#pragma once

#include <string>

namespace rigstep::plugin {

// The instantiation token (FMI 2.0: guid): of the text of both files in `resources` and the version.
std::string instantiation_token(const std::string& mechanism_text, const std::string& rig_text);

}  // namespace rigstep::plugin
