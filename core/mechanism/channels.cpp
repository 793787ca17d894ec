#include "core/mechanism/channels.h"

#include <algorithm>

#include "core/mechanism/checks.h"
#include "core/mechanism/nearest_names.h"

namespace rigstep {
namespace {

std::vector<std::string> names_of(const std::vector<Channel>& channels) {
  std::vector<std::string> names;
  for (const Channel& channel : channels) names.push_back(channel.name);
  return names;
}

int channel_named(const std::vector<Channel>& channels, std::string_view name, const std::string& kind) {
  const auto channel =
      std::find_if(channels.begin(), channels.end(), [name](const Channel& c) { return c.name == name; });
  if (channel != channels.end()) return static_cast<int>(channel - channels.begin());
  throw MechanismError(kind, "no " + kind + " channel is named " + checks::quoted(name),
                       channels.empty()
                           ? "add an " + kind + " to the mechanism"
                           : "the nearest names are " + quoted_list(nearest_names(names_of(channels), name)));
}

const char* effort_unit(Freedom freedom) { return is_length(freedom) ? "N" : "N m"; }

const char* coordinate_unit(Freedom freedom) { return is_length(freedom) ? "m" : "rad"; }

std::vector<Channel> components(const Output& output, const Mechanism& m) {
  using Kind = Output::Kind;
  switch (output.kind) {
    case Kind::body_pose:
      return {{".x", "m"}, {".y", "m"}, {".z", "m"}, {".e0", "-"}, {".e1", "-"}, {".e2", "-"}, {".e3", "-"}};
    case Kind::body_velocity:
      return {{".vx", "m/s"}, {".vy", "m/s"}, {".vz", "m/s"}, {".wx", "rad/s"}, {".wy", "rad/s"}, {".wz", "rad/s"}};
    case Kind::body_acceleration:
      return {{".ax", "m/s^2"},    {".ay", "m/s^2"},    {".az", "m/s^2"},
              {".alx", "rad/s^2"}, {".aly", "rad/s^2"}, {".alz", "rad/s^2"}};
    case Kind::specific_force:
      return {{".x", "m/s^2"}, {".y", "m/s^2"}, {".z", "m/s^2"}};
    case Kind::joint_coordinate:
      return {{"", coordinate_unit(m.coordinates()[output.coordinate].freedom)}};
    case Kind::joint_rate:
      return {{"", std::string(coordinate_unit(m.coordinates()[output.coordinate].freedom)) + "/s"}};
    case Kind::joint_reaction:
      return {{".fx", "N"}, {".fy", "N"}, {".fz", "N"}, {".tx", "N m"}, {".ty", "N m"}, {".tz", "N m"}};
    case Kind::energy:
      return {{".kinetic", "J"}, {".potential", "J"}, {".total", "J"}};
    case Kind::constraint_residual:
      return {{".position", "m"}, {".velocity", "m/s"}, {".acceleration", "m/s^2"}};
    case Kind::solver_status:
      return {{".status", "-"}, {".last_increment", "m"}};
    case Kind::step_error:
      return {{".position", "m"}, {".orientation", "rad"}, {".body", "-"}};
    case Kind::singularity_margin:
      return {{"", "-"}};
    case Kind::driver_effort:
      return {{"", effort_unit(m.coordinates()[m.drivers()[output.driver].coordinate].freedom)}};
    case Kind::force_element:
    case Kind::tyre:
    case Kind::bushing:
    case Kind::drag: {
      std::vector<Channel> of_element;
      visit_kind(output.element_kind, [&]<class Element>() {
        of_element = channels(m.all<Element>()[static_cast<std::size_t>(output.element)], m);
      });
      return of_element;
    }
  }
  return {};
}

}  // namespace

Channel channel_of(const Input& input) {
  switch (input.kind) {
    case Input::Kind::body_force:
      return {input.name, "N"};
    case Input::Kind::body_torque:
      return {input.name, "N m"};
    case Input::Kind::joint_effort:
      return {input.name, effort_unit(input.freedom)};
    case Input::Kind::signal:
      break;
  }
  return {input.name, input.unit};
}

std::vector<Channel> channels_of(const Driver& driver, const Mechanism& m) {
  constexpr const char* kNames[] = {".position", ".velocity", ".acceleration"};
  constexpr const char* kPer[] = {"", "/s", "/s^2"};
  const std::string unit = coordinate_unit(m.coordinates()[driver.coordinate].freedom);
  std::vector<Channel> channels;
  for (int k = 0; k < driver.channels(); ++k) channels.push_back({driver.name + kNames[k], unit + kPer[k]});
  return channels;
}

std::vector<Channel> channels_of(const Output& output, const Mechanism& m) {
  std::vector<Channel> channels = components(output, m);
  for (Channel& channel : channels) channel.name = output.name + channel.name;
  return channels;
}

int Mechanism::input_channel(std::string_view name) const { return channel_named(input_channels_, name, "input"); }
int Mechanism::output_channel(std::string_view name) const { return channel_named(output_channels_, name, "output"); }

}  // namespace rigstep
