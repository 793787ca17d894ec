// The bound of every number, list and text that a rig file, a mechanism file or the header of a recording may hold: one
// table for all who read them, so that no file asks one command for what another refuses. Load time only.
#pragma once

#include <optional>
#include <string>

#include "proto/limits.h"

namespace google::protobuf {
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace rigstep::config {

// What is wrong with a field. field: dotted, as it is written: solver.iterations
struct OutOfBounds {
  std::string field;
  std::string problem;  // with the value and its bound
  std::string remedy;
};

// The first field of the message that is out of its bounds. Goes down into single messages, not into the elements of
// lists, which are messages of their own for whoever reads them one by one.
std::optional<OutOfBounds> find_out_of_bounds(const google::protobuf::Message& message);

// Whether the table has a line for the field. Fields without one have the bound of their kind; whole numbers and lists
// need a line.
bool has_own_bound(const google::protobuf::FieldDescriptor& field);

}  // namespace rigstep::config
