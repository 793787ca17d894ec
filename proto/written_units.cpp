#include "proto/written_units.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "proto/config_text.h"
#include "proto/dimensions.h"

namespace rigstep::config {
namespace {

namespace pb = google::protobuf;

constexpr int kDeepestMessage = 32;  // messages within messages; protobuf's parser complains before

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_numeral(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
bool is_degree(std::string_view text, std::size_t at) { return text.substr(at).starts_with("\u00b0"); }

// Reads the text along its schema. What it does not understand it leaves to protobuf's parser.
class UnitReader {
 public:
  UnitReader(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  TextInSi read(const pb::Descriptor& root) {
    read_message(&root, nullptr, "", 0);
    result_.text.append(text_.substr(copied_));
    return std::move(result_);
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  char here() const { return at_end() ? '\0' : text_[at_]; }

  void skip_string() {
    const char quote = text_[at_++];
    while (!at_end() && here() != quote && here() != '\n') at_ += here() == '\\' ? 2 : 1;
    ++at_;
  }

  static std::size_t behind_space(std::string_view text, std::size_t at) {
    while (at < text.size() && (is_space(text[at]) || text[at] == '#'))
      at = text[at] == '#' ? std::min(text.find('\n', at), text.size()) : at + 1;
    return at;
  }

  void skip_space() { at_ = behind_space(text_, at_); }

  std::string_view word_at(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && (is_letter(text_[end]) || is_numeral(text_[end]))) ++end;
    return text_.substr(at, end - at);
  }

  // Up to the end of the message, whose opening bracket has been read. message: nullptr where the schema has none.
  void read_message(const pb::Descriptor* message, const pb::FieldDescriptor* parent, const std::string& prefix,
                    int depth) {
    std::map<std::string, int, std::less<>> count;
    for (skip_space(); !at_end() && here() != '}' && here() != '>' && !gave_up_; skip_space()) {
      const std::string_view word = word_at(at_);
      if (word.empty()) {
        if (here() == '"' || here() == '\'')
          skip_string();
        else
          ++at_;
        continue;
      }
      at_ += word.size();
      const std::string name(word);
      const pb::FieldDescriptor* field = message == nullptr ? nullptr : message->FindFieldByName(name);
      read_field(field, parent, prefix, name, count[name], depth);
    }
    if (!at_end()) ++at_;
  }

  // index: of the value, counts on.
  void read_field(const pb::FieldDescriptor* field, const pb::FieldDescriptor* parent, const std::string& prefix,
                  const std::string& name, int& index, int depth) {
    skip_space();
    if (here() == ':') ++at_;
    skip_space();
    if (here() != '[') return read_value(field, parent, prefix, name, index++, depth);
    ++at_;
    for (skip_space(); !at_end() && here() != ']' && !gave_up_; skip_space()) {
      if (here() == ',')
        ++at_;
      else
        read_value(field, parent, prefix, name, index++, depth);
    }
    if (!at_end()) ++at_;
  }

  void read_value(const pb::FieldDescriptor* field, const pb::FieldDescriptor* parent, const std::string& prefix,
                  const std::string& name, int index, int depth) {
    if (here() == '{' || here() == '<') {
      ++at_;
      if (depth == 0) element_ = name, index_ = index;
      gave_up_ = depth == kDeepestMessage;
      return read_message(field == nullptr ? nullptr : field->message_type(), field,
                          depth == 0 ? "" : prefix + name + ".", depth + 1);
    }
    if (here() == '"' || here() == '\'') return skip_string();
    if (here() == '-') ++at_;
    skip_space();
    if (is_numeral(here()) || here() == '.') return read_number(field, parent, prefix + name, index, depth);
    const std::string_view word = word_at(at_);
    at_ += std::max<std::size_t>(word.size(), 1);
  }

  std::string_view number_here() const {
    std::size_t end = at_;
    if (text_.substr(at_).starts_with("0x") || text_.substr(at_).starts_with("0X")) return word_at(at_);
    while (end < text_.size() && (is_numeral(text_[end]) || text_[end] == '.')) ++end;
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t digits = end + 1;
      if (digits < text_.size() && (text_[digits] == '+' || text_[digits] == '-')) ++digits;
      if (digits < text_.size() && is_numeral(text_[digits])) {
        end = digits;
        while (end < text_.size() && is_numeral(text_[end])) ++end;
      }
    }
    return text_.substr(at_, end - at_);
  }

  // The unit behind a number, on the same line: up to where the next field begins.
  std::string_view unit_at(std::size_t begin) const {
    std::size_t end = begin;
    bool wants_more = true;  // at the beginning and behind * and /
    for (std::size_t at = begin; at < text_.size();) {
      const char c = text_[at];
      if (c == ' ' || c == '\t') {
        ++at;
      } else if ((c == '*' || c == '/') && end > begin) {
        wants_more = true;
        end = ++at;
      } else if (is_degree(text_, at)) {
        end = at += 2;
        wants_more = false;
      } else if (is_letter(c)) {
        std::size_t stop = at + word_at(at).size();
        const std::size_t next = behind_space(text_, stop);
        const bool is_field = next < text_.size() &&
                              (text_[next] == ':' || text_[next] == '{' || text_[next] == '<' || text_[next] == '[');
        if (is_field && !wants_more) break;
        if (is_field && end == begin) break;
        if (stop < text_.size() && text_[stop] == '^')
          for (++stop; stop < text_.size() && is_numeral(text_[stop]);) ++stop;
        end = at = stop;
        wants_more = false;
      } else {
        break;
      }
    }
    return text_.substr(begin, end - begin);
  }

  void read_number(const pb::FieldDescriptor* field, const pb::FieldDescriptor* parent, const std::string& name,
                   int index, int depth) {
    const std::string_view number = number_here();
    const std::size_t begin = at_;
    at_ += std::max<std::size_t>(number.size(), 1);
    std::size_t unit_begin = at_;
    while (unit_begin < text_.size() && (text_[unit_begin] == ' ' || text_[unit_begin] == '\t')) ++unit_begin;
    const std::string_view unit = unit_at(unit_begin);
    const bool is_float_suffix = unit_begin == at_ && (unit == "f" || unit == "F");
    if (field == nullptr || unit.empty() || is_float_suffix) {
      at_ = unit.empty() ? at_ : unit_begin + unit.size();
      return;
    }
    const bool is_on_top = depth == 0;
    WrittenUnit written{is_on_top ? std::string() : element_,
                        is_on_top ? 0 : index_,
                        name,
                        dimension_of(*field, parent, index),
                        std::string(unit),
                        {},
                        line_at(begin),
                        begin,
                        0,
                        0,
                        0};
    at_ = written.end = unit_begin + unit.size();
    take(written, number, *field);
  }

  int line_at(std::size_t place) {
    const auto first = text_.begin() + static_cast<std::ptrdiff_t>(counted_);
    line_ += static_cast<int>(std::count(first, text_.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
    counted_ = place;
    return line_;
  }

  [[noreturn]] void fail(const WrittenUnit& written, const std::string& problem, const std::string& remedy) const {
    throw error_at(path_, written.line, label(written), problem, remedy);
  }

  static std::string label(const WrittenUnit& written) {
    return written.element.empty() ? written.field : written.element + "." + written.field;
  }

  void take(WrittenUnit& written, std::string_view number, const pb::FieldDescriptor& field) {
    const std::string expected_text = is_open(written.dimension) ? "" : written.dimension;
    const auto unit = parse_unit(written.text);
    if (!unit) {
      const UnknownUnit unknown = find_unknown(written.text);
      fail(written, "\"" + unknown.written + "\" is no unit that is known",
           "the nearest are " + unknown.nearest + "; a number without a unit is in SI");
    }
    written.unit = *unit;
    if (written.dimension.empty() || written.dimension == "-")
      fail(written, "has the unit " + written.text + ", but takes a plain number", "leave the unit out");
    const auto expected = parse_unit(is_open(written.dimension) ? "" : written.dimension);
    if (!is_open(written.dimension) && !expected->measures_as(*unit))
      fail(written, wrong_unit(written, *expected, expected_text), good_units(expected_text));
    Unit target = is_open(written.dimension) ? *unit : *expected;
    if (is_open(written.dimension)) target.exponent = 0, target.numerator = target.denominator = 1.0;
    if (number.find_first_of("xX") != number.npos)
      fail(written, "has a unit behind a hexadecimal number", "write the number with decimals");
    result_.text.append(text_.substr(copied_, written.begin - copied_));
    copied_ = written.end;
    written.si_begin = result_.text.size();
    result_.text += in_field(written, converted(number, *unit, target), field);
    written.si_end = result_.text.size();
    result_.units.push_back(written);
  }

  // Whole numbers stay whole.
  std::string in_field(const WrittenUnit& written, const std::string& number, const pb::FieldDescriptor& field) const {
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE) return number;
    const double value = decimal_number(number);
    if (value != std::nearbyint(value) || !(std::abs(value) < 1e15))
      fail(written, "is " + number + " " + written.dimension + ", but takes whole " + written.dimension,
           "write a multiple of 1 " + written.dimension);
    char text[32];
    std::snprintf(text, sizeof text, "%.0f", value);
    return text;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0, copied_ = 0;
  std::size_t counted_ = 0;  // where line_ is
  int line_ = 1;
  bool gave_up_ = false;
  std::string element_;
  int index_ = 0;
  TextInSi result_;
};

}  // namespace

std::size_t TextInSi::place_in_file(std::size_t place) const {
  std::size_t shift_from = 0, shift_to = 0;
  for (const WrittenUnit& unit : units) {
    if (place < unit.si_end) break;
    shift_from = unit.si_end, shift_to = unit.end;
  }
  return place - shift_from + shift_to;
}

TextInSi without_units(std::string_view text, const std::string& path, const pb::Descriptor& root) {
  return UnitReader(text, path).read(root);
}

std::string wrong_unit(const WrittenUnit& written, const Unit& expected, const std::string& expected_text) {
  const auto named = [](const std::string& text, const Unit& unit) {
    const std::string word = quantity(unit);
    return text + (word.empty() ? "" : ", " + word);
  };
  return "is in " + named(written.text, written.unit) + ", but takes " + named(expected_text, expected);
}

std::string good_units(const std::string& expected_text) {
  constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
      {"m", "mm, cm or m"},
      {"rad", "deg or rad"},
      {"kg", "g, kg or t"},
      {"s", "ms or s"},
      {"us", "us, ms or s"},
      {"ms", "us, ms or s"},
      {"N", "N or kN"},
      {"N m", "N m or kN m"},
      {"N/m", "N/m, N/mm or kN/m"},
      {"N m/rad", "N m/rad, N m/deg or kN m/rad"},
      {"N s/m", "N s/m or kN s/m"},
      {"N m s/rad", "N m s/rad or N m s/deg"},
      {"m/s", "mm/s or m/s"},
      {"rad/s", "deg/s, rpm or rad/s"},
      {"kg/m^3", "kg/m^3 or g/cm^3"},
      {"kg m^2", "kg m^2 or g cm^2"},
  };
  for (const auto& [text, examples] : kExamples)
    if (text == expected_text) return "write " + std::string(examples) + ", or a plain number in " + expected_text;
  return "write " + expected_text + ", or a plain number in it";
}

void require_units(const std::vector<WrittenUnit>& units, const std::string& expected) {
  const auto unit = parse_unit(expected);
  for (const WrittenUnit& written : units) {
    if (expected == "-")
      throw MechanismError(written.field, "has the unit " + written.text + ", but takes a plain number",
                           "leave the unit out");
    if (!unit || !unit->measures_as(written.unit))
      throw MechanismError(written.field, wrong_unit(written, unit.value_or(Unit{}), expected) + " here",
                           good_units(expected));
  }
}

}  // namespace rigstep::config
