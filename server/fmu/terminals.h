// terminalsAndIcons/terminalsAndIcons.xml of a unit for FMI 3.0: which of its variables belong together where another
// model is connected. Offline.
#pragma once

#include <string>
#include <vector>

#include "server/plugin/variables.h"

namespace rigstep::server {

inline constexpr const char* kTerminalsFile = "terminalsAndIcons/terminalsAndIcons.xml";

// A terminal for each joint effort that an input gives, with what is measured of the same freedom, and for each driver
// that follows inputs, with its effort, where that makes two members at least. Members are called as at the flanges of
// Modelica's mechanics: phi w a tau of a rotation, s v a f of a translation; an effort is positive where it increases
// the coordinate, which is inwards. Empty: there is none.
std::string terminals_description(const Mechanism& mechanism, const std::vector<plugin::Variable>& variables);

}  // namespace rigstep::server
