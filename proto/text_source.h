// Text files: what reads them whole, and what parses protobuf text and remembers the line of each field, so that every
// error says where the file is wrong. Load time only.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/mechanism/mechanism.h"
#include "proto/bounds.h"

namespace rigstep::config {

// A file that cannot be used as written; what() is "file:line: field: problem: remedy" (no line where there is none).
struct ConfigError : Error {
  using Error::Error;
};

ConfigError error_at(const std::string& path, int line, const std::string& field, const std::string& problem,
                     const std::string& remedy);

// "file:line"; the file alone where the line is 0.
std::string place(const std::string& path, int line);

// A whole regular file of UTF-8 text. Throws ConfigError if it cannot be read, is none, or has more than `most_bytes`.
std::string read_text_file(const std::string& path, std::size_t most_bytes = kLargestConfigFile);

// What every text in files and datagrams is.
bool is_utf8(const std::string& text);

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
