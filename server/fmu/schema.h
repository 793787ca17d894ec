// The XML schemas of both standards: which elements and attributes there are, in which order, and of which form.
// Offline.
#pragma once

#include <pugixml.hpp>

#include "server/fmu/rules.h"

namespace rigstep::server {

// root: <fmiModelDescription>, or <fmiTerminalsAndIcons> of FMI 3.0. Tells elements that are unknown, missing, repeated
// or out of order; attributes that are unknown or missing; and values that have not the form of their type.
void check_schema(pugi::xml_node root, FmiVersion version, Rules& rules);

}  // namespace rigstep::server
