#include "proto/syntax_help.h"

#include <algorithm>
#include <regex>
#include <vector>

#include "core/mechanism/nearest_names.h"

namespace rigstep::config {

namespace {

namespace pb = google::protobuf;

constexpr std::size_t kMostNames = 24;  // of a list that somebody reads

std::vector<std::string> fields_of(const pb::Descriptor& message) {
  std::vector<std::string> names;
  for (int k = 0; k < message.field_count(); ++k) names.push_back(message.field(k)->name());
  return names;
}

std::vector<std::string> values_of(const pb::EnumDescriptor& values) {
  std::vector<std::string> names;
  for (int k = 0; k < values.value_count(); ++k)
    if (!values.value(k)->name().ends_with("UNSPECIFIED")) names.push_back(values.value(k)->name());
  return names;
}

std::string listed(std::vector<std::string> names) {
  const bool is_long = names.size() > kMostNames;
  names.resize(std::min(names.size(), kMostNames));
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return is_long ? list + ", ..." : list;
}

// "did you mean ..." where something is near, then what belongs there.
std::string suggestion(const std::vector<std::string>& names, const std::string& written, const std::string& whole) {
  const std::vector<std::string> nearest = nearest_names(names, written, 1);
  const bool is_near = !nearest.empty() && edit_distance(written, nearest.front()) <= (written.size() + 2) / 3;
  return (is_near ? "did you mean " + nearest.front() + "? " : "") + whole + listed(names);
}

// The other kind of file that has this field at its top; empty: none.
std::string other_kind_of_file(const std::string& field, const pb::Descriptor& root) {
  const auto* pool = root.file()->pool();
  const char* const kinds[][2] = {{"rigstep.wire.Mechanism", "mechanism file"}, {"rigstep.wire.Rig", "rig file"}};
  for (const auto& [type, kind] : kinds) {
    const pb::Descriptor* message = pool->FindMessageTypeByName(type);
    if (message != nullptr && message != &root && message->FindFieldByName(field) != nullptr) return kind;
  }
  return {};
}

SyntaxProblem unknown_field(const std::string& type, const std::string& field, const pb::Descriptor& root) {
  const pb::Descriptor* message = root.file()->pool()->FindMessageTypeByName(type);
  if (message == nullptr) message = &root;
  if (message == &root)
    if (const std::string kind = other_kind_of_file(field, root); !kind.empty())
      return {field, field, "belongs into a " + kind,
              kind == "rig file" ? "name the mechanism file that it runs, or give this file to rigstep serve"
                                 : "write a rig file with `mechanism: \"...\"` that names this file"};
  return {field, field, "is no field of " + message->name(),
          suggestion(fields_of(*message), field, message->name() + " has: ")};
}

// The enumerations of all fields with this name in the schema: the parser does not say of which message.
SyntaxProblem unknown_value(const std::string& value, const std::string& field, const pb::Descriptor& root) {
  std::vector<std::string> names;
  for (int m = 0; m < root.file()->message_type_count(); ++m) {
    const pb::FieldDescriptor* found = root.file()->message_type(m)->FindFieldByName(field);
    if (found == nullptr || found->enum_type() == nullptr) continue;
    for (const std::string& name : values_of(*found->enum_type()))
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return {field, value, "cannot be " + value, suggestion(names, value, "it is one of: ")};
}

}  // namespace

SyntaxProblem explain_syntax(const std::string& complaint, std::string_view line, const pb::Descriptor& root) {
  static const std::regex field_pattern("Message type \"([^\"]*)\" has no field named \"([^\"]*)\".*");
  static const std::regex value_pattern("Unknown enumeration value of \"([^\"]*)\" for field \"([^\"]*)\".*");
  static const std::regex comma_pattern("([0-9]+),([0-9]+)");
  std::smatch found;
  if (std::regex_match(complaint, found, field_pattern)) return unknown_field(found[1], found[2], root);
  if (std::regex_match(complaint, found, value_pattern)) return unknown_value(found[1], found[2], root);
  const std::string text(line);
  if (std::regex_search(text, found, comma_pattern))
    return {"syntax", found.str(0), "a number has a decimal comma: " + found.str(0),
            "write a point: " + found.str(1) + "." + found.str(2)};
  const std::string kind = root.name() == "Rig" ? "rig" : "mechanism";
  return {"syntax", "", complaint, "`rigstep schema " + kind + "` prints what may stand here"};
}

}  // namespace rigstep::config
