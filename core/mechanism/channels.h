// The channels that inputs, drivers and outputs make. Load time.
#pragma once

#include "core/mechanism/mechanism.h"

namespace rigstep {

Channel channel_of(const Input& input);
// Of a driver that follows inputs; none otherwise.
std::vector<Channel> channels_of(const Driver& driver, const Mechanism& mechanism);
std::vector<Channel> channels_of(const Output& output, const Mechanism& mechanism);

}  // namespace rigstep
