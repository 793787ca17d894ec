// A loaded mechanism as the text of a mechanism file.
#pragma once

#include <string>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "proto/edit_text.h"
#include "proto/load_mechanism.h"

namespace rigstep::config {

// The mechanism file with the start poses and velocities of `bodies` in place of its own. Joints placed at_start are
// written as they are built into the bodies, so that they stay the same joints. Only what differs is replaced:
// comments, layout and units stay, and so does `start`, which holds what is written then.
EditedText with_start(const LoadedMechanism& loaded, const std::vector<Body>& bodies);

}  // namespace rigstep::config
