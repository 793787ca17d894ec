// States of a unit in the hands of its importer: what the functions of both standards that get, set and serialise them
// do. `function` is the name that the importer has called.
#pragma once

#include <cstddef>

#include "server/plugin/unit.h"

namespace rigstep::plugin {

// state: made here and owned by the importer until free_state(); where *state is one already, it is replaced.
Status get_state(Unit& unit, const char* function, void** state);
Status set_state(Unit& unit, const char* function, const void* state);
Status free_state(void** state) noexcept;

Status get_serialised_size(Unit& unit, const char* function, const void* state, std::size_t* size);
Status serialise_state(Unit& unit, const char* function, const void* state, void* bytes, std::size_t size);
Status deserialise_state(Unit& unit, const char* function, const void* bytes, std::size_t size, void** state);

}  // namespace rigstep::plugin
