#include "proto/text_source.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/dimensions.h"
#include "proto/syntax_help.h"

namespace rigstep::config {
namespace {

namespace pb = google::protobuf;
using Tree = pb::TextFormat::ParseInfoTree;

// Keeps the first complaint of the text format parser.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int at_line, pb::io::ColumnNumber, const std::string& what) override {
    if (!message.empty()) return;
    line = at_line + 1;
    message = what;
  }
  int line = 0;
  std::string message;
};

constexpr int kDeepest = 16;  // messages within messages; the schemas need 4

int line_in_part(const pb::Message& message, const Tree* tree, const std::string& field, int otherwise);

// As line_of_path; `otherwise` if neither is written. "point[2]" is the third of a repeated field, "point" the first.
int line_in(const pb::Message& message, const Tree* tree, const std::string& field, int otherwise) {
  if (tree == nullptr) return otherwise;
  const std::string head = field.substr(0, field.find('.')), name = head.substr(0, head.find('['));
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(name);
  if (descriptor == nullptr) return line_in_part(message, tree, field, otherwise);
  const int index = !descriptor->is_repeated() ? -1 : head == name ? 0 : std::stoi(head.substr(name.size() + 1));
  const int line = tree->GetLocation(descriptor, index).line;
  const int found = line >= 0 ? line + 1 : otherwise;
  const bool has_parts = descriptor->message_type() != nullptr && (index < 0 || head != name);
  if (head.size() == field.size() || !has_parts) return found;
  const pb::Reflection& reflection = *message.GetReflection();
  return line_in(index < 0 ? reflection.GetMessage(message, descriptor)
                           : reflection.GetRepeatedMessage(message, descriptor, index),
                 tree->GetTreeForNested(descriptor, index), field.substr(head.size() + 1), found);
}

// Line of a field that belongs to a part such as `joint_effort`.
int line_in_part(const pb::Message& message, const Tree* tree, const std::string& field, int otherwise) {
  std::vector<const pb::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  for (const auto* part : set)
    if (part->message_type() != nullptr && !part->is_repeated() &&
        part->message_type()->FindFieldByName(field) != nullptr)
      return line_in(message.GetReflection()->GetMessage(message, part), tree->GetTreeForNested(part, -1), field,
                     otherwise);
  return otherwise;
}

// Of the message that is `part`: the whole, or one that its single fields lead to; nullptr: nothing of it is written.
const Tree* tree_of(const pb::Message& part, const pb::Message& whole, const Tree* tree) {
  if (&part == &whole || tree == nullptr) return tree;
  std::vector<const pb::FieldDescriptor*> set;
  whole.GetReflection()->ListFields(whole, &set);
  for (const auto* field : set) {
    if (field->message_type() == nullptr || field->is_repeated()) continue;
    const pb::Message& nested = whole.GetReflection()->GetMessage(whole, field);
    if (const Tree* found = tree_of(part, nested, tree->GetTreeForNested(field, -1))) return found;
  }
  return nullptr;
}

// Lines count from 1.
std::string_view line_at(std::string_view text, int line) {
  std::size_t begin = 0;
  for (int k = 1; k < line && begin < text.size(); ++k) begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

struct TextSource::Places {
  const pb::Message* whole;
  Tree tree;
  TextInSi in_si;
  std::map<std::pair<std::string, int>, std::vector<std::size_t>> units;  // by element
  std::vector<std::size_t> line_begins;                                   // in the text without units
};

TextSource::TextSource(const std::string& text, std::string path, pb::Message& message)
    : path_(std::move(path)), places_(std::make_unique<Places>()) {
  places_->whole = &message;
  places_->in_si = without_units(text, path_, *message.GetDescriptor());
  const std::string& si = places_->in_si.text;
  for (std::size_t k = 0; k < places_->in_si.units.size(); ++k) {
    const WrittenUnit& unit = places_->in_si.units[k];
    places_->units[{unit.element, unit.index}].push_back(k);
  }
  places_->line_begins.push_back(0);
  for (std::size_t k = 0; k < si.size(); ++k)
    if (si[k] == '\n') places_->line_begins.push_back(k + 1);
  FirstError first;
  pb::TextFormat::Parser parser;
  parser.SetRecursionLimit(kDeepest);
  parser.RecordErrorsTo(&first);
  parser.WriteLocationsTo(&places_->tree);
  pb::io::ArrayInputStream stream(si.data(), static_cast<int>(si.size()));
  if (parser.Parse(&stream, &message)) return;
  const SyntaxProblem found = explain_syntax(first.message, line_at(text, first.line), *message.GetDescriptor());
  int line = first.line;  // the parser may have read on
  while (line > 1 && line > first.line - 3 && line_at(text, line).find(found.written) == std::string_view::npos) --line;
  throw error_at(path_, line, found.field, found.problem, found.remedy);
}

TextSource::~TextSource() = default;

void TextSource::element(const pb::Message& message, const char* field, int index,
                         const std::function<void()>& add) const {
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
  const pb::Message& part = message.GetReflection()->GetRepeatedMessage(message, descriptor, index);
  const Tree* whole = tree_of(message, *places_->whole, &places_->tree);
  try {
    add();
    if (const auto beyond = find_out_of_bounds(part))
      throw MechanismError(beyond->field, beyond->problem, beyond->remedy);
    check_units(message, part, field, index);
  } catch (const MechanismError& error) {
    const pb::FieldDescriptor* name = nullptr;  // of what the element is, or is about
    for (const char* called : {"name", "channel", "joint"})
      if (name == nullptr) name = part.GetDescriptor()->FindFieldByName(called);
    const std::string label = part.GetReflection()->GetString(part, name);
    const Tree* tree = whole == nullptr ? nullptr : whole->GetTreeForNested(descriptor, index);
    const int line = line_in(part, tree, error.field, line_of(message, field, index));
    const std::string element = label.empty() ? field : std::string(field) + " \"" + label + "\"";
    throw error_at(path_, line, element + "." + error.field, error.problem, error.remedy);
  }
}

void TextSource::check_units(const pb::Message& whole, const pb::Message& part, const char* field, int index) const {
  for (const WrittenUnit& written : units_in(field, index)) {
    if (!is_open(written.dimension)) continue;
    const auto dimension = closed_dimension(written.dimension, part, whole);
    const auto expected = dimension ? parse_unit(*dimension) : std::nullopt;
    if (expected && !expected->measures_as(written.unit))
      throw MechanismError(written.field, wrong_unit(written, *expected, *dimension) + " here", good_units(*dimension));
  }
}

std::vector<WrittenUnit> TextSource::units_in(const std::string& field, int index) const {
  std::vector<WrittenUnit> units;
  if (const auto found = places_->units.find({field, index}); found != places_->units.end())
    for (const std::size_t k : found->second) units.push_back(places_->in_si.units[k]);
  return units;
}

const TextInSi& TextSource::in_si() const { return places_->in_si; }

TextSource::Span TextSource::span_of(std::span<const Step> steps) const {
  const Tree* tree = &places_->tree;
  for (std::size_t k = 0; k + 1 < steps.size() && tree != nullptr; ++k)
    tree = tree->GetTreeForNested(steps[k].first, steps[k].second);
  if (tree == nullptr || steps.empty()) return {};
  const auto range = tree->GetLocationRange(steps.back().first, steps.back().second);
  if (range.start.line < 0) return {};
  const auto place =
      [this](const pb::TextFormat::ParseLocation& at) {  // a tabulator counts up to the next eighth column
        const std::string& text = places_->in_si.text;
        std::size_t k = places_->line_begins[static_cast<std::size_t>(at.line)];
        for (int column = 0; column < at.column && k < text.size(); ++k) column += text[k] == '\t' ? 8 - column % 8 : 1;
        return k;
      };
  return {place(range.start), place(range.end)};
}

void TextSource::require_bounds(const pb::Message& message) const {
  if (const auto beyond = find_out_of_bounds(message)) fail(message, beyond->field, beyond->problem, beyond->remedy);
}

int TextSource::line_of(const pb::Message& message, const char* field, int index) const {
  const Tree* tree = tree_of(message, *places_->whole, &places_->tree);
  return tree == nullptr ? 0 : tree->GetLocation(message.GetDescriptor()->FindFieldByName(field), index).line + 1;
}

int TextSource::line_of_path(const pb::Message& message, const std::string& field) const {
  return line_in(message, &places_->tree, field, 0);
}

void TextSource::fail(const pb::Message& message, const std::string& field, const std::string& problem,
                      const std::string& remedy) const {
  throw error_at(path_, line_of_path(message, field), field, problem, remedy);
}

}  // namespace rigstep::config
