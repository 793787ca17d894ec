// Protobuf text with units, parsed, with the line of each field, so that every error says where the file is wrong. Load
// time only.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/bounds.h"
#include "proto/config_text.h"
#include "proto/written_units.h"

namespace rigstep::config {

// A text parsed into a message, with the line of each field. The messages that its functions take are that message and
// parts of it. Lines count from 1.
class TextSource {
 public:
  // Throws ConfigError where the text does not follow the message's schema. path: for messages only.
  TextSource(const std::string& text, std::string path, google::protobuf::Message& message);
  ~TextSource();

  // Runs `add` for element `index` of the repeated field, and checks the element's bounds and those of its units that
  // depend on what it acts on. A MechanismError becomes a ConfigError with the line of the element's field.
  void element(const google::protobuf::Message& message, const char* field, int index,
               const std::function<void()>& add) const;

  // Of all fields but the elements of lists of messages, which element() checks.
  void require_bounds(const google::protobuf::Message& message) const;

  int line_of(const google::protobuf::Message& message, const char* field, int index = -1) const;

  // Line of a dotted field, or of what encloses it; 0 if neither is written.
  int line_of_path(const google::protobuf::Message& message, const std::string& field) const;

  // The numbers with units in element `index` of a field of the whole file.
  std::vector<WrittenUnit> units_in(const std::string& field, int index) const;

  // The text without units that the message was read from, and where its places are in the file.
  const TextInSi& in_si() const;
  // From the first letter of a field to the end of its value; both 0 if it is not written.
  struct Span {
    std::size_t begin = 0, end = 0;
    bool is_written() const { return end > begin; }
  };
  // Of the field of a message that is reached from the whole by the steps: fields with their index, -1 of single ones.
  using Step = std::pair<const google::protobuf::FieldDescriptor*, int>;
  Span span_of(std::span<const Step> steps) const;

  [[noreturn]] void fail(const google::protobuf::Message& message, const std::string& field, const std::string& problem,
                         const std::string& remedy) const;

 private:
  void check_units(const google::protobuf::Message& whole, const google::protobuf::Message& part, const char* field,
                   int index) const;

  struct Places;  // of the fields, as protobuf's parser records them, and of units
  std::string path_;
  std::unique_ptr<Places> places_;
};

}  // namespace rigstep::config
