// The unit of every field of a mechanism or rig file that has one: one table. Load time only.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <optional>
#include <string>

namespace rigstep::config {

// What a field takes, as a unit: "kg", "N m", "us" of a whole number of microseconds. Where that depends on what the
// element acts on, x, x1 and x2 stand for the unit of a coordinate (of its first and second freedom or joint), E for
// the effort that goes with x, `channel` and `parameter` for the unit of a channel or a parameter, and [k] behind it
// for its k-th value. "-": a plain number. parent: of a Vector or another message that says nothing by itself, the
// field that holds it. Empty: no entry.
std::string dimension_of(const google::protobuf::FieldDescriptor& field,
                         const google::protobuf::FieldDescriptor* parent, int index);

// Whether a dimension depends on a joint, a channel or a parameter.
bool is_open(const std::string& dimension);

// The dimension of a field of this element of a mechanism file with the letters filled in; absent: the element says
// too little, for which there are other errors.
std::optional<std::string> closed_dimension(const std::string& dimension, const google::protobuf::Message& element,
                                            const google::protobuf::Message& root);

}  // namespace rigstep::config
