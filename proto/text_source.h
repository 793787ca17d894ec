// Protobuf text, parsed, with the line of each field, so that every error says where the file is wrong. Load time only.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "proto/bounds.h"
#include "proto/config_text.h"

namespace rigstep::config {

// A text parsed into a message, with the line of each field. The messages that its functions take are that message and
// parts of it. Lines count from 1.
class TextSource {
 public:
  // Throws ConfigError where the text does not follow the message's schema. path: for messages only.
  TextSource(const std::string& text, std::string path, google::protobuf::Message& message);
  ~TextSource();

  // Runs `add` for element `index` of the repeated field, and checks the element's bounds. A MechanismError becomes a
  // ConfigError with the line of the element's field.
  void element(const google::protobuf::Message& message, const char* field, int index,
               const std::function<void()>& add) const;

  // Of all fields but the elements of lists of messages, which element() checks.
  void require_bounds(const google::protobuf::Message& message) const;

  int line_of(const google::protobuf::Message& message, const char* field, int index = -1) const;

  // Line of a dotted field, or of what encloses it; 0 if neither is written.
  int line_of_path(const google::protobuf::Message& message, const std::string& field) const;

  [[noreturn]] void fail(const google::protobuf::Message& message, const std::string& field, const std::string& problem,
                         const std::string& remedy) const;

 private:
  struct Places;  // of the fields, as protobuf's parser records them
  std::string path_;
  std::unique_ptr<Places> places_;
};

}  // namespace rigstep::config
