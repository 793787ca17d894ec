// What `rigstep check --assemble` does: a start that satisfies every joint, told body by body, and written.
#pragma once

#include <string>

#include "proto/load_mechanism.h"

namespace rigstep::server {

struct AssembleRequest {
  std::string write;  // path; empty: only told
  bool json = false;
};

// Returns the exit code. Throws ConfigError where `write` names something that is no mechanism, or nothing would
// change.
int assemble_start(const config::LoadedMechanism& loaded, const AssembleRequest& request);

}  // namespace rigstep::server
