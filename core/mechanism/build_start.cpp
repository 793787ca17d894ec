// What holds at the start: kept by the builder, and brought about when everything else is known.
#include <algorithm>
#include <cmath>

#include "core/mechanism/builder.h"
#include "core/mechanism/checks.h"
#include "core/mechanism/joint_geometry.h"
#include "core/mechanism/orientation.h"
#include "core/mechanism/portable_math.h"

namespace rigstep {

namespace {

using checks::index_of;
using checks::number;
using checks::quoted;

// of the value
std::string field_of(const std::string& place, const HeldCoordinate& held) {
  return place + "." + std::string(to_string(held.freedom));
}

const char* unit_of(Freedom freedom) { return is_length(freedom) ? " m" : " rad"; }

// So that unwrapping, which begins within half a turn of the offset, begins at the held value. An angle about one axis
// counts from the start afterwards, the others from a full turn.
double offset_at(const Joint& joint, const HeldCoordinate& held) {
  if (is_length(held.freedom) || joint.type == JointType::screw) return held.offset;
  if (held.freedom == Freedom::angle) return *held.value;
  return held.offset + 2.0 * kPi * std::nearbyint((*held.value - held.offset) / (2.0 * kPi));
}

void count_from_start(Joint& joint, const HeldCoordinate& held) {
  if (held.freedom != Freedom::angle || joint.type == JointType::screw) return;
  const double turn = *held.value - held.offset;
  Mat3 R = Mat3::Identity();
  R(0, 0) = R(1, 1) = sine(turn + 0.5 * kPi);
  R(0, 1) = sine(turn);
  R(1, 0) = -R(0, 1);
  joint.in_second.axes_b = joint.in_second.axes_b * R;
}

}  // namespace

void MechanismBuilder::hold_joint(const Start& start) {
  const int j = find_joint(start.joint);
  const JointType type = mechanism_.joints_[static_cast<std::size_t>(j)].type;
  const std::vector<Freedom> all = freedoms(type);
  if (all.empty()) require_freedom(j, Freedom::angle, "joint");
  for (const Freedom freedom : start.freedom ? std::vector<Freedom>{*start.freedom} : all) {
    const std::string field = start.freedom ? std::string(to_string(freedom)) : "joint";
    const int place = require_freedom(j, freedom, field.c_str());
    if (start.value) checks::require_finite(*start.value, field.c_str());
    if (start.rate) checks::require_finite(*start.rate, "rate");
    if (type == JointType::screw && !start.freedom && freedom == Freedom::angle) continue;  // follows
    for (const HeldCoordinate& other : held_.coordinates)
      if (other.joint == j && other.freedom == freedom)
        throw MechanismError(field, "is held by another `start` of joint " + quoted(start.joint) + " already",
                             "remove one of them");
    const auto& [first_offset, second_offset] = coordinate_offsets_[static_cast<std::size_t>(j)];
    HeldCoordinate held{j, freedom,
                        place == 0   ? first_offset
                        : place == 1 ? second_offset
                                     : 0.0,
                        start.value, start.rate};
    held.holds_value = start.value.has_value() || !start.rate.has_value();
    held_.coordinates.push_back(held);
    start_places_.push_back(start.place);
  }
}

void MechanismBuilder::hold_body(const std::string& body) {
  const int i = find_body(body, "body");
  if (i == kGround) throw MechanismError("body", "is the ground, which stands still", "leave it out");
  if (std::find(held_.bodies.begin(), held_.bodies.end(), i) != held_.bodies.end())
    throw MechanismError("body", quoted(body) + " is held twice", "remove one of them");
  held_.bodies.push_back(i);
}

namespace {

// Without the k-th coordinate.
Held without(Held held, std::size_t k) {
  held.coordinates.erase(held.coordinates.begin() + static_cast<std::ptrdiff_t>(k));
  return held;
}

std::string value_text(const HeldCoordinate& held, double value) { return number(value) + unit_of(held.freedom); }

std::string rate_text(const HeldCoordinate& held, double rate) {
  return number(rate) + (is_length(held.freedom) ? " m/s" : " rad/s");
}

// Of the coordinate between the bodies as they are assembled.
double rate_between(const Mechanism& m, const std::vector<Body>& bodies, const HeldCoordinate& held) {
  const Joint& joint = m.joints()[static_cast<std::size_t>(held.joint)];
  Pose pose[2];
  Vec6 twist[2] = {Vec6::Zero(), Vec6::Zero()};  // (v_0, w_0)
  for (int side = 0; side < 2; ++side) {
    const int index = side == 0 ? joint.first : joint.second;
    if (index == kGround) continue;
    const Body& body = bodies[static_cast<std::size_t>(index)];
    pose[side] = {body.position_0, axes_of(body.orientation)};
    twist[side] << body.velocity_0, body.angular_velocity_0;
  }
  const JointScalar x = joint_freedom(joint, held.freedom, joint_at(joint, pose[0], pose[1]));
  return x.first.dot(twist[0]) + x.second.dot(twist[1]);
}

// A held rate that those before it, joints and drivers do not permit, and the one that they leave.
struct ReachableRate {
  std::size_t coordinate = 0;
  double rate = 0.0;
};

// Takes the rates one after the other, and of those that contradict what was taken before, what they would have to be.
// Empty: it is not about held rates.
std::vector<ReachableRate> reachable_rates(const Mechanism& m, const Held& held) {
  const auto with_rates = [&held](const std::vector<bool>& taken) {
    Held some{{}, held.bodies};
    for (std::size_t k = 0; k < held.coordinates.size(); ++k) {
      HeldCoordinate h = held.coordinates[k];
      if (h.rate && !taken[k]) h.rate.reset();
      const bool says_nothing = held.coordinates[k].rate && !h.rate && !h.value;
      if (!says_nothing) some.coordinates.push_back(h);
    }
    return some;
  };
  std::vector<bool> taken(held.coordinates.size(), false);
  std::vector<ReachableRate> others;
  Assembled last = assemble(m, with_rates(taken));
  if (!last.closed) return others;
  for (std::size_t k = 0; k < held.coordinates.size(); ++k) {
    if (!held.coordinates[k].rate) continue;
    taken[k] = true;
    Assembled next = assemble(m, with_rates(taken));
    if (next.closed) {
      last = std::move(next);
      continue;
    }
    taken[k] = false;
    others.push_back({k, rate_between(m, last.bodies, held.coordinates[k])});
  }
  return others;
}

MechanismError contradiction_of_rates(const Mechanism& m, const Held& held, const std::vector<std::string>& places,
                                      const Assembled& reached) {
  const std::vector<ReachableRate> others = reachable_rates(m, held);
  if (others.empty())
    return {"start",
            "the held values contradict each other or the joints: velocities differ by " + number(reached.rate_gap) +
                " of the largest one",
            "hold less: remove one `start` after another, and see which one it was"};
  const auto told = [&](const ReachableRate& other) {
    return rate_text(held.coordinates[other.coordinate], other.rate);
  };
  const HeldCoordinate& h = held.coordinates[others[0].coordinate];
  std::string more;
  for (std::size_t k = 1; k < others.size(); ++k)
    more += (k + 1 < others.size() ? ", " : " and ") + places[others[k].coordinate] + ".rate " + told(others[k]);
  return {places[others[0].coordinate] + ".rate",
          "of joint " + quoted(m.joints()[static_cast<std::size_t>(h.joint)].name) + " cannot be " +
              rate_text(h, *h.rate) + " beside the other joints, drivers and held values, which make it " +
              told(others[0]),
          "leave it out, change what it contradicts, or write " + number(others[0].rate) +
              (more.empty() ? "" : "; likewise" + more)};
}

// Which of the held coordinates stands in the way, and how far it comes.
MechanismError contradiction(const Mechanism& m, const Held& held, const std::vector<std::string>& places,
                             const Assembled& reached) {
  if (reached.poses_closed) return contradiction_of_rates(m, held, places, reached);
  for (std::size_t k = held.coordinates.size(); k-- > 0;) {
    const HeldCoordinate& h = held.coordinates[k];
    const std::string joint = quoted(m.joints()[static_cast<std::size_t>(h.joint)].name);
    if (!h.value || !assemble(m, without(held, k)).poses_closed) continue;
    return {field_of(places[k], h),
            "of joint " + joint + " cannot be " + value_text(h, *h.value) +
                " beside the other joints, drivers and held values, which stay open by " + number(reached.gap) +
                " m or rad",
            "leave it out, change what it contradicts, or write " + number(reached.coordinate[k]) +
                ": so far the joints close on the way from the bodies as they are written"};
  }
  return {"start",
          "the held values contradict each other or the joints: " + number(reached.gap) + " m or rad stay open",
          "hold less: remove one `start` after another, and see which one it was"};
}

// A driver's own value at time 0 is no more to be had than another one that is held.
void require_agreement_with_drivers(const Mechanism& m, const Held& held, const std::vector<std::string>& places) {
  for (const Driver& driver : m.drivers()) {
    const JointCoordinate& x = m.coordinates()[static_cast<std::size_t>(driver.coordinate)];
    const ValueAndRate at = at_time_zero(driver.function);
    for (std::size_t k = 0; k < held.coordinates.size(); ++k) {
      const HeldCoordinate& h = held.coordinates[k];
      if (h.joint != x.joint || h.freedom != x.freedom) continue;
      const bool from_input = driver.from_input != Driver::FromInput::nothing;
      const auto differ = [](double a, double b) { return std::abs(a - b) > 1e-9 * std::max(1.0, std::abs(b)); };
      if (h.value && !from_input && differ(*h.value, at.value))
        throw MechanismError(field_of(places[k], h),
                             "is " + value_text(h, *h.value) + ", and driver " + quoted(driver.name) + " prescribes " +
                                 value_text(h, at.value) + " at time 0",
                             "leave it out, or change the driver");
      if (h.rate && differ(*h.rate, at.rate))
        throw MechanismError(places[k] + ".rate",
                             "is " + rate_text(h, *h.rate) + ", and driver " + quoted(driver.name) + " starts with " +
                                 rate_text(h, at.rate),
                             "leave it out, or change the driver");
    }
  }
}

// Poses and velocities of bodies are what `start` makes of them, and no numbers of their own any more.
void require_no_parameter_of_a_pose(const Mechanism& m) {
  for (const Parameter& parameter : m.parameters())
    for (const Target& target : parameter.targets)
      for (const char* number : {".position", ".velocity", ".angular_velocity"})
        if (const std::size_t at = target.of.find(number);
            at != target.of.npos && index_of(m.bodies(), target.of.substr(0, at)) >= 0)
          throw MechanismError(
              "parameter", quoted(parameter.name) + " changes " + quoted(target.of) + ", but `start` places the bodies",
              "remove the parameter, or every `start`");
}

}  // namespace

void MechanismBuilder::assemble_start(Mechanism& m) const {
  require_no_parameter_of_a_pose(m);
  require_agreement_with_drivers(m, held_, start_places_);
  const Assembled assembled = assemble(m, held_);
  if (!assembled.closed) throw contradiction(m, held_, start_places_, assembled);
  m.bodies_ = assembled.bodies;
  for (std::size_t k = 0; k < held_.coordinates.size(); ++k) {
    const HeldCoordinate& h = held_.coordinates[k];
    if (!h.value) continue;
    Joint& joint = m.joints_[static_cast<std::size_t>(h.joint)];
    count_from_start(joint, h);
    for (JointCoordinate& x : m.coordinates_)
      if (x.joint == h.joint && x.freedom == h.freedom) x.offset = offset_at(joint, h);
  }
}

}  // namespace rigstep
