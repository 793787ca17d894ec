// A text in which numbers may have units, as a text without them: what protobuf's parser can read. Every line stays a
// line. Load time only.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "proto/units.h"

namespace rigstep::config {

// A number with a unit, as the file has it.
struct WrittenUnit {
  std::string element;    // field of the whole file that it belongs to, "spring"
  int index = 0;          // of the element
  std::string field;      // within the element, dotted: "at_start.coordinate"
  std::string dimension;  // what belongs there: the entry of the field in proto/dimensions.h
  std::string text;       // as written: "kN/m"
  Unit unit;
  int line = 0;                          // from 1
  std::size_t begin = 0, end = 0;        // number and unit in the text of the file
  std::size_t si_begin = 0, si_end = 0;  // the number in the text without units
};

struct TextInSi {
  std::string text;
  std::vector<WrittenUnit> units;  // in the order of the text

  // The same place in the text of the file; the end of a number is that of its unit.
  std::size_t place_in_file(std::size_t place) const;
};

// Throws ConfigError for a unit that is not known, or that does not belong to its field whatever joint it is on.
// Units that depend on a joint are for the loader to check. path: for messages only.
TextInSi without_units(std::string_view text, const std::string& path, const google::protobuf::Descriptor& root);

// What is wrong with a unit in a field that takes `expected`: "is in kN/m (the stiffness of a displacement), but ..."
std::string wrong_unit(const WrittenUnit& written, const Unit& expected, const std::string& expected_text);
// Units that would do.
std::string good_units(const std::string& expected_text);

// Throws MechanismError with the field of the first of them that does not measure what `expected` does.
void require_units(const std::vector<WrittenUnit>& units, const std::string& expected);

}  // namespace rigstep::config
