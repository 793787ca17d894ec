// An effort along a joint freedom: description, checks, identity and output channels. In SI units.
#pragma once

#include "core/mechanism/elements/element.h"
#include "core/mechanism/time_function.h"

namespace rigstep {

// An effort along a joint freedom that is given over time; positive increases the coordinate.
struct AppliedEffort {
  static constexpr const char* kName = "effort";  // in the schema
  static constexpr const char* kPlural = "efforts";
  static constexpr bool kIsScalar = true;
  std::string name;
  int coordinate = -1;  // index into Mechanism::coordinates()
  int first = -1;       // bodies of the joint
  int second = -1;
  TimeFunction function;  // [N] or [N m]
};

void connect(AppliedEffort& effort, MechanismBuilder& builder, const std::string& joint, Freedom freedom);

void check_numbers(const AppliedEffort& effort);
std::span<const Number<AppliedEffort>> numbers(const AppliedEffort& effort);
void add(ContentHash& hash, const AppliedEffort& effort);
std::vector<Channel> channels(const AppliedEffort& effort, const Mechanism& mechanism);

}  // namespace rigstep
