// What a page shows: a mechanism file, a recording, or a live run. Owned by who serves the page, which calls it from
// several threads.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "core/mechanism/mechanism.h"  // Error; and Eigen, which must come before the macros of httplib.h
#include "server/view/broadcast.h"

namespace rigstep::server {

class Subject {
 public:
  virtual ~Subject() = default;
  // All that does not move: Broadcast::Kind::scene tells that it is another one. JSON.
  virtual std::string scene() = 0;
  // Triangles of a mesh of the scene: counts of vertices and of triangles, coordinates [float], corners; little-endian.
  // Empty: there is none.
  virtual std::string mesh(std::size_t index) = 0;
  // Of a recording: every pose and column that the page plays. Null: there is none, or not yet.
  virtual std::shared_ptr<const std::string> track(std::size_t /*index*/) { return nullptr; }
  // Of a recording: every step from this one on, as many as are shown at a time, as a track. Throws Error where it
  // cannot be made now.
  virtual std::string steps(std::size_t /*index*/, std::uint64_t /*from*/) { return {}; }
  // Does what somebody at the page asks for; throws Error with the reason why not, for people.
  virtual nlohmann::json command(const nlohmann::json& request) = 0;
  // Needs the token even where looking does not.
  virtual bool is_operation(const nlohmann::json& request) const = 0;

  Broadcast& broadcast() { return broadcast_; }

 private:
  Broadcast broadcast_;
};

}  // namespace rigstep::server
