#include "server/plugin/unit_states.h"

#include <algorithm>
#include <memory>
#include <string>

namespace rigstep::plugin {

namespace {

using SavedState = std::vector<std::byte>;

Status refuse(Unit& unit, const char* function, const char* why) {
  return unit.fail(Status::error, (std::string(function) + ": " + why).c_str());
}

}  // namespace

Status get_state(Unit& unit, const char* function, void** state) {
  if (state == nullptr) return refuse(unit, function, "the place for the state is NULL");
  if (*state != nullptr)
    *static_cast<SavedState*>(*state) = unit.save();
  else
    *state = std::make_unique<SavedState>(unit.save()).release();
  return Status::ok;
}

Status set_state(Unit& unit, const char* function, const void* state) {
  if (state == nullptr) return refuse(unit, function, "the state is NULL");
  return unit.restore(*static_cast<const SavedState*>(state));
}

Status free_state(void** state) noexcept {
  if (state == nullptr) return Status::ok;
  delete static_cast<SavedState*>(*state);
  *state = nullptr;
  return Status::ok;
}

Status get_serialised_size(Unit& unit, const char* function, const void* state, std::size_t* size) {
  if (state == nullptr || size == nullptr) return refuse(unit, function, "NULL was given");
  *size = static_cast<const SavedState*>(state)->size();
  return Status::ok;
}

Status serialise_state(Unit& unit, const char* function, const void* state, void* bytes, std::size_t size) {
  if (state == nullptr || bytes == nullptr || size != static_cast<const SavedState*>(state)->size())
    return refuse(unit, function, "NULL or another size was given: ask for the size before");
  const SavedState& saved = *static_cast<const SavedState*>(state);
  std::copy(saved.begin(), saved.end(), static_cast<std::byte*>(bytes));
  return Status::ok;
}

Status deserialise_state(Unit& unit, const char* function, const void* bytes, std::size_t size, void** state) {
  if (bytes == nullptr || state == nullptr || size != unit.save().size())
    return refuse(unit, function, "these bytes are no state of this unit, or NULL");
  const auto* const first = static_cast<const std::byte*>(bytes);
  *state = std::make_unique<SavedState>(first, first + size).release();
  return Status::ok;
}

}  // namespace rigstep::plugin
