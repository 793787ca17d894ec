#include "core/mechanism/builder.h"

#include <algorithm>
#include <cmath>

#include "core/mechanism/channels.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"
#include "core/mechanism/numbers.h"

namespace rigstep {

namespace {

using checks::index_of;
using checks::kUnitTolerance;
using checks::names_of;
using checks::number;
using checks::quoted;
using checks::require_finite;
using checks::require_new_name;

}  // namespace

void MechanismBuilder::check_name(const std::string& name, const char* kind) const {
  if (name.empty()) throw MechanismError("name", "is missing", std::string("give the ") + kind + " a name");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (!std::all_of(name.begin(), name.end(), plain))
    throw MechanismError("name", quoted(name) + " has a character that column and channel names cannot carry",
                         "use letters, digits, '_' and '-'");
}

int MechanismBuilder::find_body(const std::string& name, const char* field) const {
  if (name == "ground") return kGround;
  for (std::size_t i = 0; i < mechanism_.bodies_.size(); ++i)
    if (mechanism_.bodies_[i].name == name) return static_cast<int>(i);
  throw MechanismError(field, name.empty() ? "is missing" : "no body is named " + quoted(name),
                       "use \"ground\" or one of: " + names_of(mechanism_.bodies_));
}

int MechanismBuilder::find_joint(const std::string& name, const char* field) const {
  for (std::size_t i = 0; i < mechanism_.joints_.size(); ++i)
    if (mechanism_.joints_[i].name == name) return static_cast<int>(i);
  throw MechanismError(field, name.empty() ? "is missing" : "no joint is named " + quoted(name),
                       "use one of: " + names_of(mechanism_.joints_));
}

void MechanismBuilder::set_gravity(const Vec3& gravity_0) {
  check_numbers(gravity_0);
  mechanism_.gravity_0_ = gravity_0;
}

void MechanismBuilder::add_body(Body body) {
  check_name(body.name, "body");
  if (body.name == "ground") throw MechanismError("name", "\"ground\" is the world itself", "choose another name");
  require_new_name(mechanism_.bodies_, body.name, "body");
  check_numbers(body);
  require_finite(body.orientation, "orientation");
  const double norm = body.orientation.norm();
  if (std::abs(norm - 1.0) > kUnitTolerance)
    throw MechanismError("orientation", "Euler parameters have norm " + number(norm), "they must have norm 1");
  body.orientation /= norm;
  mechanism_.bodies_.push_back(std::move(body));
}

void MechanismBuilder::add_load(AppliedLoad load, const std::string& body) {
  check_name(load.name, "load");
  require_new_name(mechanism_.loads_, load.name, "load");
  load.body = require_moving(find_body(body, "body"), "a load");
  check_numbers(load);
  mechanism_.loads_.push_back(std::move(load));
}

void MechanismBuilder::require_new_element(const std::string& name, const char* kind) const {
  for_each_kind([&]<class Element>() {
    if (index_of(mechanism_.all<Element>(), name) >= 0)
      throw MechanismError("name",
                           std::string(kind == std::string(Element::kName) ? "another " : "a ") + Element::kName +
                               " is named " + quoted(name),
                           "rename one of them");
  });
}

AlongFreedom MechanismBuilder::along(const std::string& joint, Freedom freedom) {
  const int j = find_joint(joint);
  return {follow_coordinate(j, freedom), mechanism_.joints_[j].first, mechanism_.joints_[j].second};
}

void MechanismBuilder::add_coupling(Coupling coupling, const std::string& first_joint, Freedom first_freedom,
                                    const std::string& second_joint, Freedom second_freedom) {
  check_name(coupling.name, "coupling");
  require_new_name(mechanism_.couplings_, coupling.name, "coupling");
  check_numbers(coupling);
  const int first = find_joint(first_joint, "first_joint"), second = find_joint(second_joint, "second_joint");
  if (first == second && first_freedom == second_freedom)
    throw MechanismError("second_freedom", "is the first one again", "couple two different joint coordinates");
  require_freedom(first, first_freedom, "first_freedom");
  require_freedom(second, second_freedom, "second_freedom");
  coupling.first = follow_coordinate(first, first_freedom);
  coupling.second = follow_coordinate(second, second_freedom);
  mechanism_.couplings_.push_back(std::move(coupling));
}

void MechanismBuilder::add_driver(Driver driver, const std::string& joint, Freedom freedom) {
  check_name(driver.name, "driver");
  require_new_name(mechanism_.drivers_, driver.name, "driver");
  if (driver.from_input == Driver::FromInput::nothing && driver.function.terms.empty())
    throw MechanismError("sum", "has no terms", "give one at least");
  check_numbers(driver);
  const int j = find_joint(joint);
  require_freedom(j, freedom, "freedom");
  for (const Driver& other : mechanism_.drivers_) {
    const JointCoordinate& driven = mechanism_.coordinates_[other.coordinate];
    if (driven.joint == j && driven.freedom == freedom)
      throw MechanismError("freedom", "is driven by " + quoted(other.name) + " already", "remove one of the drivers");
  }
  driver.coordinate = follow_coordinate(j, freedom);
  mechanism_.drivers_.push_back(std::move(driver));
}

Mechanism MechanismBuilder::build() {
  Mechanism m = build_as_added();
  if (held_.empty()) return m;
  assemble_start(m);
  m.id_ = content_hash(m);
  return m;
}

Mechanism MechanismBuilder::build_as_added() {
  check_name(mechanism_.name_, "mechanism");
  if (mechanism_.bodies_.empty()) throw MechanismError("body", "there is none", "describe at least one body");
  require_possible_ranges();
  Mechanism m = mechanism_;
  for (const Input& input : m.inputs_) m.input_channels_.push_back(channel_of(input));
  const auto append = [](std::vector<Channel>& all, const std::vector<Channel>& more) {
    const int first = static_cast<int>(all.size());
    all.insert(all.end(), more.begin(), more.end());
    return first;
  };
  for (Driver& driver : m.drivers_) driver.first_channel = append(m.input_channels_, channels_of(driver, m));
  for (Output& output : m.outputs_) output.first_channel = append(m.output_channels_, channels_of(output, m));
  const auto check_count = [](std::size_t count, const char* field) {
    if (count > static_cast<std::size_t>(kMaxChannels))
      throw MechanismError(field, "make " + std::to_string(count) + " channels",
                           "a mechanism has at most " + std::to_string(kMaxChannels) + "; remove some");
  };
  check_count(m.input_channels_.size(), "input");
  check_count(m.output_channels_.size(), "output");
  m.id_ = content_hash(m);
  return m;
}

}  // namespace rigstep
