#include "server/fmu/forms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <sstream>
#include <vector>

namespace rigstep::server {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_all_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

// from_chars() takes no plus.
std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <class T>
bool is_whole_number(std::string_view text) {
  text = without_plus(text);
  if (text.starts_with('-') && text.size() > 1 && text.find_first_not_of('0', 1) == text.npos) return true;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_natural_number(std::string_view text) { return is_all_digits(without_plus(text)); }

bool is_float(std::string_view text) {
  if (text == "INF" || text == "-INF" || text == "NaN") return true;
  if (text.find_first_not_of("0123456789+-.eE") != text.npos) return false;  // from_chars takes "inf" and more
  text = without_plus(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

int number_at(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  std::from_chars(text.data() + at, text.data() + at + digits, value);
  return value;
}

// "11-24" in a year
bool is_day(int year, int month, int day) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (month < 1 || month > 12) return false;
  const bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return day >= 1 && day <= kDays[month - 1] + (month == 2 && is_leap ? 1 : 0);
}

// "", "Z", "+01:30"
bool is_zone(std::string_view text) {
  if (text.empty() || text == "Z") return true;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return false;
  if (!is_all_digits(text.substr(1, 2)) || !is_all_digits(text.substr(4, 2))) return false;
  const int hours = number_at(text, 1, 2), minutes = number_at(text, 4, 2);
  return minutes <= 59 && (hours < 14 || (hours == 14 && minutes == 0));
}

// "2026-11-24T22:00:00Z", with a fraction or another zone where there is one; years may have a sign and more digits
bool is_date_time(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t digits = std::min(text.find('-'), text.size());
  const std::string_view year = text.substr(0, digits);
  if (digits < 4 || !is_all_digits(year) || (digits > 4 && year[0] == '0') || year == "0000") return false;
  text.remove_prefix(digits - 4);  // leap years follow from the last four digits
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() < kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? !is_digit(text[i]) : text[i] != kForm[i]) return false;
  const int hour = number_at(text, 11, 2);
  if (!is_day(number_at(text, 0, 4), number_at(text, 5, 2), number_at(text, 8, 2))) return false;
  if (hour > 24 || number_at(text, 14, 2) > 59 || number_at(text, 17, 2) > 59) return false;
  std::string_view rest = text.substr(kForm.size());
  std::string_view fraction;
  if (rest.starts_with('.')) {
    fraction = rest.substr(1, std::min(rest.find_first_not_of("0123456789", 1), rest.size()) - 1);
    if (fraction.empty()) return false;
    rest.remove_prefix(fraction.size() + 1);
  }
  const bool is_full_hour = text.substr(14, 5) == "00:00" && fraction.find_first_not_of('0') == fraction.npos;
  return is_zone(rest) && (hour < 24 || is_full_hour);
}

bool is_hexadecimal(std::string_view text) {
  return text.size() % 2 == 0 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

using Form = bool (*)(std::string_view);

Form form_of(std::string_view type) {
  static const std::map<std::string_view, Form> kForms{
      {"boolean",
       [](std::string_view text) { return text == "true" || text == "false" || text == "1" || text == "0"; }},
      {"float", is_float},
      {"double", is_float},
      {"byte", is_whole_number<std::int8_t>},
      {"short", is_whole_number<std::int16_t>},
      {"int", is_whole_number<std::int32_t>},
      {"long", is_whole_number<std::int64_t>},
      {"unsignedByte", is_whole_number<std::uint8_t>},
      {"unsignedShort", is_whole_number<std::uint16_t>},
      {"unsignedInt", is_whole_number<std::uint32_t>},
      {"unsignedLong", is_whole_number<std::uint64_t>},
      {"nonNegativeInteger", is_natural_number},
      {"dateTime", is_date_time},
      {"hexBinary", is_hexadecimal}};
  const auto found = kForms.find(type);
  return found == kForms.end() ? nullptr : found->second;
}

// without the spaces at both ends, which XML Schema ignores
std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
}

std::vector<std::string> alternatives_of(std::string_view type) {
  std::vector<std::string> all;
  std::istringstream stream{std::string(type)};
  for (std::string each; std::getline(stream, each, '|');) all.push_back(each);
  return all;
}

// Names by the grammar of FMI 2.0, 2.2.9, and FMI 3.0, 2.4.7.5.1. Each of these takes a piece from the front of `text`.

// 'motor #234'
bool take_quoted_name(std::string_view& text) {
  constexpr std::string_view kOthers = "!#$%&()*+,-./:;<>=?@[]^{}|~ ", kEscaped = "'\"?\\abfnrtv";
  std::size_t end = 1;
  for (; end < text.size() && text[end] != '\''; ++end) {
    if (text[end] == '\\') {
      if (++end == text.size() || kEscaped.find(text[end]) == kEscaped.npos) return false;
    } else if (!is_name_character(text[end]) && kOthers.find(text[end]) == kOthers.npos) {
      return false;
    }
  }
  if (end >= text.size() || end == 1) return false;
  text.remove_prefix(end + 1);
  return true;
}

bool take_plain_name(std::string_view& text) {
  if (text.empty() || is_digit(text[0]) || !is_name_character(text[0])) return false;
  while (!text.empty() && is_name_character(text[0])) text.remove_prefix(1);
  return true;
}

// [3,4]
bool take_indices(std::string_view& text) {
  const std::size_t end = text.find(']');
  if (end == text.npos) return false;
  for (std::string_view rest = text.substr(1, end - 1);;) {
    const std::size_t comma = rest.find(',');
    if (!is_all_digits(rest.substr(0, comma))) return false;
    if (comma == rest.npos) break;
    rest.remove_prefix(comma + 1);
  }
  text.remove_prefix(end + 1);
  return true;
}

// robot.axis[2].'motor #234'
bool take_identifier(std::string_view& text) {
  for (;;) {
    if (!(text.starts_with('\'') ? take_quoted_name(text) : take_plain_name(text))) return false;
    if (text.starts_with('[') && !take_indices(text)) return false;
    if (!text.starts_with('.')) return true;
    text.remove_prefix(1);
  }
}

}  // namespace

bool has_form(std::string_view value, std::string_view type) {
  if (type.empty()) return true;
  if (type.front() == '*') {
    std::istringstream members{std::string(value)};
    for (std::string each; members >> each;)
      if (!has_form(each, type.substr(1))) return false;
    return true;
  }
  if (const Form form = form_of(type)) return form(trimmed(value));
  return std::ranges::count(alternatives_of(type), value) > 0;
}

std::string form_in_words(std::string_view type) {
  if (type.starts_with('*')) return "a list of " + form_in_words(type.substr(1));
  const std::vector<std::string> all = alternatives_of(type);
  return all.size() > 1 ? fmt::format("one of {}", fmt::join(all, ", ")) : std::string(type);
}

std::optional<double> number_of(std::string_view text) {
  text = without_plus(trimmed(text));
  double value = 0.0;
  if (!is_float(text)) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

bool is_version_3(std::string_view text) {
  const auto take_number = [&text] {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const bool is_good = digits == 1 || (digits > 1 && text[0] != '0');
    text.remove_prefix(digits);
    return is_good;
  };
  if (!text.starts_with("3.")) return false;
  text.remove_prefix(2);
  if (!take_number()) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_number()) return false;
  }
  return text.empty() || (text.size() > 1 && text[0] == '-');
}

bool is_name_character(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c); }

bool is_structured_name(std::string_view name) {
  const bool is_derivative = name.starts_with("der(") && name.ends_with(')');
  if (is_derivative) {
    name.remove_prefix(4);
    name.remove_suffix(1);
  }
  if (!take_identifier(name)) return false;
  if (name.empty()) return true;
  return is_derivative && name[0] == ',' && is_all_digits(name.substr(1));  // "der(x,2)"
}

bool is_c_name(std::string_view name) {
  return !name.empty() && !is_digit(name[0]) && std::ranges::all_of(name, is_name_character);
}

}  // namespace rigstep::server
