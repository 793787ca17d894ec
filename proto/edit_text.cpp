#include "proto/edit_text.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace rigstep::config {
namespace {

namespace pb = google::protobuf;
using Step = TextSource::Step;

struct Edit {
  std::size_t begin = 0, end = 0;  // in the file; equal: an insertion
  std::string text;
};

// A single field: "name: value" or "name { ... }".
std::string printed(const pb::Message& message, const pb::FieldDescriptor& field) {
  if (field.message_type() == nullptr)
    return field.name() + ": " + shortest(message.GetReflection()->GetDouble(message, &field));
  const pb::Message& part = message.GetReflection()->GetMessage(message, &field);
  std::string inside;
  std::vector<const pb::FieldDescriptor*> set;
  part.GetReflection()->ListFields(part, &set);
  for (const auto* of : set) inside += (inside.empty() ? "" : " ") + printed(part, *of);
  return field.name() + (inside.empty() ? " {}" : " { " + inside + " }");
}

class TextEditor {
 public:
  TextEditor(const std::string& file_text, const TextSource& source) : text_(file_text), source_(source) {}

  void compare(const pb::Message& before, const pb::Message& after) {
    std::vector<std::string> added;
    std::size_t replaced_at = std::string::npos;  // where something was taken out
    for (int k = 0; k < before.GetDescriptor()->field_count(); ++k) {
      const pb::FieldDescriptor& field = *before.GetDescriptor()->field(k);
      if (field.is_repeated())
        compare_list(field, before, after);
      else
        compare_field(field, before, after, added, replaced_at);
    }
    if (added.empty()) return;
    std::string more;
    for (const std::string& part : added) more += (more.empty() ? "" : " ") + part;
    if (replaced_at != std::string::npos)
      edits_[replaced_at].text = more;
    else
      insert_at_end(more);
  }

  EditedText result() && {
    std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
    EditedText edited{{}, static_cast<int>(edits_.size())};
    std::size_t copied = 0;
    for (const Edit& edit : edits_) {
      edited.text.append(text_, copied, edit.begin - copied);
      edited.text += edit.text;
      copied = edit.end;
    }
    edited.text.append(text_, copied);
    return edited;
  }

 private:
  TextSource::Span in_file(const TextSource::Span& span) const {
    return {source_.in_si().place_in_file(span.begin), source_.in_si().place_in_file(span.end)};
  }

  void compare_list(const pb::FieldDescriptor& field, const pb::Message& before, const pb::Message& after) {
    if (field.message_type() == nullptr) return;
    const pb::Reflection& r = *before.GetReflection();
    for (int i = 0; i < r.FieldSize(before, &field); ++i) {
      path_.emplace_back(&field, i);
      compare(r.GetRepeatedMessage(before, &field, i), r.GetRepeatedMessage(after, &field, i));
      path_.pop_back();
    }
  }

  void compare_field(const pb::FieldDescriptor& field, const pb::Message& before, const pb::Message& after,
                     std::vector<std::string>& added, std::size_t& replaced_at) {
    const pb::Reflection& r = *before.GetReflection();
    const bool is_message = field.message_type() != nullptr;
    path_.emplace_back(&field, -1);
    const TextSource::Span span = source_.span_of(path_);
    const bool is_after = is_message || field.has_presence()
                              ? r.HasField(after, &field)
                              : field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE &&
                                    (span.is_written() || r.GetDouble(after, &field) != 0.0);
    const bool is_same_text = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING &&
                              r.GetString(before, &field) == r.GetString(after, &field);
    if (span.is_written() && is_message && is_after)
      compare(r.GetMessage(before, &field), r.GetMessage(after, &field));
    else if (span.is_written() && field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE && is_after)
      replace_number(span, r.GetDouble(before, &field), r.GetDouble(after, &field));
    else if (span.is_written() && !is_same_text &&
             (is_message || field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING))
      take_out(span, replaced_at);
    else if (!span.is_written() && is_after && !is_same_text)
      added.push_back(printed(after, field));
    path_.pop_back();
  }

  void replace_number(const TextSource::Span& span, double before, double after) {
    if (before == after) return;
    const std::string& si = source_.in_si().text;
    std::size_t begin = si.find(':', span.begin) + 1;
    while (begin < span.end && (si[begin] == ' ' || si[begin] == '\t')) ++begin;
    const TextSource::Span in = in_file({begin, span.end});
    for (const WrittenUnit& unit : source_.in_si().units) {
      if (unit.end != in.end) continue;
      const Unit si_unit{unit.unit.power};
      return add({in.begin, in.end, shortest(after, unit.unit, si_unit) + " " + unit.text});
    }
    add({in.begin, in.end, shortest(after)});
  }

  // With the space in front of it, unless something comes in its place.
  void take_out(const TextSource::Span& span, std::size_t& replaced_at) {
    const TextSource::Span in = in_file(span);
    if (replaced_at == std::string::npos) {
      replaced_at = edits_.size();
      return add({in.begin, in.end, ""});
    }
    std::size_t begin = in.begin;
    while (begin > 0 && (text_[begin - 1] == ' ' || text_[begin - 1] == '\t')) --begin;
    add({begin, in.end, ""});
  }

  // Of the message that the path leads to: in front of its closing bracket, on a line of its own where that stands on
  // one.
  void insert_at_end(const std::string& more) {
    const TextSource::Span span = source_.span_of(path_), in = in_file(span);
    if (!span.is_written())
      throw ConfigError(
          "--write: messages in square brackets cannot be added to: write each of them with its own name");
    std::size_t at = in.end - 1;  // the bracket
    while (at > in.begin && (text_[at - 1] == ' ' || text_[at - 1] == '\t')) --at;
    if (text_[at - 1] != '\n') return add({at, in.end - 1, " " + more + " "});
    const std::string indent = text_.substr(at, in.end - 1 - at);
    add({at, at, indent + "  " + more + "\n"});
  }

  void add(Edit edit) { edits_.push_back(std::move(edit)); }

  const std::string& text_;
  const TextSource& source_;
  std::vector<Step> path_;
  std::vector<Edit> edits_;
};

}  // namespace

EditedText edited(const std::string& file_text, const TextSource& source, const pb::Message& before,
                  const pb::Message& after) {
  TextEditor editor(file_text, source);
  editor.compare(before, after);
  return std::move(editor).result();
}

}  // namespace rigstep::config
