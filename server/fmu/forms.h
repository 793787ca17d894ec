// The forms of values and names in descriptions of units: simple types of XML Schema, names. Offline.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rigstep::server {

// type: "double", "unsignedInt", "dateTime" ..., or its values with bars between them; with a star in front: a list,
// with spaces between its members. Empty: a text, which may be anything.
bool has_form(std::string_view value, std::string_view type);
std::string form_in_words(std::string_view type);  // "a list of unsignedInt", "one of fixed, tunable"

// A double, with spaces around it and a plus in front where it has them. Empty: it is none, or not finite.
std::optional<double> number_of(std::string_view text);

// A version of FMI by the pattern of the schema of FMI 3.0: "3.0", "3.0.2", "3.1-beta.1".
bool is_version_3(std::string_view text);

bool is_name_character(char c);  // a letter, a digit or "_"
// Whether it is one identifier, which a function of C may be called.
bool is_c_name(std::string_view name);
// Whether it follows the convention "structured": identifiers with dots between them, indices in brackets, "der("
// around a derivative.
bool is_structured_name(std::string_view name);

}  // namespace rigstep::server
