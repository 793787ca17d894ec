#include "server/fmu/documentation_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "core/index3/outputs/diagnostics.h"
#include "server/live/session.h"

namespace rigstep::server {

namespace {

using plugin::Instance;
using plugin::Variable;
using Source = Variable::Source;

pugi::xml_node add(pugi::xml_node parent, const char* element, const std::string& text = "") {
  pugi::xml_node node = parent.append_child(element);
  if (!text.empty()) node.append_child(pugi::node_pcdata).set_value(text.c_str());
  return node;
}

void add_row(pugi::xml_node table, const char* cell, const std::vector<std::string>& texts) {
  pugi::xml_node row = table.append_child("tr");
  for (const std::string& text : texts) add(row, cell, text.empty() ? "-" : text);
}

void add_table(pugi::xml_node body, const char* title, Source source, const Mechanism& mechanism,
               const std::vector<Variable>& variables) {
  const auto is_listed = [source](const Variable& v) { return v.source == source; };
  if (std::none_of(variables.begin(), variables.end(), is_listed)) return;
  add(body, "h2", title);
  pugi::xml_node table = add(body, "table");
  const bool is_parameter = source == Source::parameter;
  add_row(table, "th",
          source == Source::output ? std::vector<std::string>{"name", "unit"}
          : is_parameter           ? std::vector<std::string>{"name", "unit", "start", "from", "to", "kind"}
                                   : std::vector<std::string>{"name", "unit", "start", "from", "to"});
  for (const Variable& variable : variables) {
    if (!is_listed(variable)) continue;
    std::vector<std::string> cells{variable.name, variable.unit};
    if (source != Source::output)
      for (const double value : {variable.start, variable.minimum, variable.maximum})
        cells.push_back(std::isfinite(value) ? fmt::format("{}", value) : "");
    if (is_parameter)
      cells.push_back(mechanism.parameters()[static_cast<std::size_t>(variable.index)].tunable
                          ? "tunable: may change between two steps"
                          : "fixed: before the start only");
    add_row(table, "td", cells);
  }
}

// The start pose, seen along the world axis of the least extent: bodies with lines to their joints.
void add_picture(pugi::xml_node body, const Instance& instance) {
  const Mechanism& m = instance.mechanism();
  std::vector<std::pair<Vec3, Vec3>> lines;
  const auto joint_point = [&m](int b, const Vec3& point_b) -> Vec3 {
    if (b == kGround) return point_b;
    const EulerParameters& p = m.bodies()[b].orientation;
    return m.bodies()[b].position_0 + Eigen::Quaterniond(p[0], p[1], p[2], p[3]) * point_b;
  };
  for (const Joint& joint : m.joints())
    for (const auto& [index, frame] :
         {std::pair(joint.first, joint.in_first), std::pair(joint.second, joint.in_second)})
      if (index != kGround) lines.emplace_back(m.bodies()[index].position_0, joint_point(index, frame.point_b));
  Vec3 low = Vec3::Constant(1e300), high = Vec3::Constant(-1e300);
  for (const Body& b : m.bodies()) low = low.cwiseMin(b.position_0), high = high.cwiseMax(b.position_0);
  for (const auto& [from, to] : lines) low = low.cwiseMin(to), high = high.cwiseMax(to);
  if (m.bodies().empty()) return;
  const Vec3 extent = high - low;
  int hidden = 1;  // seen along y unless another axis has less extent
  for (const int axis : {2, 0})
    if (extent[axis] < 0.999 * extent[hidden]) hidden = axis;
  const int across = hidden == 0 ? 1 : 0, up = hidden == 2 ? 1 : 2;
  const double scale = 380.0 / std::max({extent[across], extent[up], 1e-9});
  const auto x = [&](const Vec3& r) { return fmt::format("{:.1f}", 10.0 + scale * (r[across] - low[across])); };
  const auto y = [&](const Vec3& r) { return fmt::format("{:.1f}", 10.0 + scale * (high[up] - r[up])); };
  add(body, "h2", "At the start");
  pugi::xml_node picture = add(body, "svg");
  picture.append_attribute("viewBox").set_value("0 0 400 400");
  picture.append_attribute("width").set_value("400");
  const auto draw = [&picture](const char* element,
                               const std::vector<std::pair<const char*, std::string>>& attributes) {
    pugi::xml_node node = picture.append_child(element);
    for (const auto& [name, value] : attributes) node.append_attribute(name).set_value(value.c_str());
    return node;
  };
  for (const auto& [from, to] : lines)
    draw("line", {{"x1", x(from)}, {"y1", y(from)}, {"x2", x(to)}, {"y2", y(to)}, {"stroke", "steelblue"}});
  for (const Body& b : m.bodies())
    add(draw("circle", {{"cx", x(b.position_0)}, {"cy", y(b.position_0)}, {"r", "4"}, {"fill", "black"}}), "title",
        b.name);
  const char* const axes = "xyz";
  add(body, "p",
      fmt::format("World axes: {} to the right, {} upwards. Dots are mass centres, lines lead to joints.", axes[across],
                  axes[up]));
}

void add_facts(pugi::xml_node body, const Instance& instance, double step_seconds) {
  const Mechanism& m = instance.mechanism();
  const index3::StartRank rank = index3::start_rank(m);
  const double period = static_cast<double>(instance.settings().dt_ns) / 1e9;
  const std::vector<std::string> facts{
      fmt::format("{} bodies, {} joints, {} couplings, {} drivers; {} degrees of freedom, {} redundant constraint rows",
                  m.bodies().size(), m.joints().size(), m.couplings().size(), m.drivers().size(),
                  rank.start.degrees_of_freedom, rank.start.redundant),
      rank.singular() ? "The start pose is singular." : "The start pose is not singular.",
      fmt::format("Internal step {} s. Communication steps are multiples of it; others are refused with a message that "
                  "names those that would do.",
                  period),
      fmt::format("A step took {:.1f} us where this unit was exported, on one thread ({}).", 1e6 * step_seconds,
                  cpu_fingerprint()),
      "Inputs are held over each internal step; beyond their range the nearest value inside acts. Outputs are those of "
      "the "
      "state: they change with a step only.",
      "A step that fails is discarded: the message names joint, body or output, and the last good state stands.",
      "States can be saved, restored and serialised, multipliers of the joints included: who goes on from one gets the "
      "bits of who never stopped.",
      "The unit needs the C library alone, glibc 2.31 or newer, on the processors that the folder binaries names.",
      "bodies.NAME.position and .orientation show the pose of each body in the world frame."};
  pugi::xml_node list = add(body, "ul");
  for (const std::string& fact : facts) add(list, "li", fact);
}

}  // namespace

std::string documentation_page(const ModelDescription& d, const Instance& instance,
                               const std::vector<Variable>& variables, double step_seconds) {
  pugi::xml_document document;
  document.append_child(pugi::node_doctype).set_value("html");
  pugi::xml_node html = document.append_child("html");
  html.append_attribute("lang").set_value("en");
  pugi::xml_node head = add(html, "head");
  add(head, "meta").append_attribute("charset").set_value("utf-8");
  add(head, "title", instance.mechanism().name());
  add(head, "style",
      "body{font-family:sans-serif;max-width:50em;margin:2em auto}td,th{text-align:left;padding:0 1em 0 0}");
  pugi::xml_node body = add(html, "body");
  add(body, "h1", instance.mechanism().name());
  add(body, "p",
      fmt::format("A mechanism for co-simulation (FMI {}.0), made by Rigstep {} on {}. The mechanism is "
                  "resources/mechanism.textproto, its settings are resources/rig.textproto.",
                  static_cast<int>(d.version), product_version(), d.made_at));
  add_facts(body, instance, step_seconds);
  add_picture(body, instance);
  add_table(body, "Inputs", Source::input, instance.mechanism(), variables);
  add_table(body, "Outputs", Source::output, instance.mechanism(), variables);
  add_table(body, "Parameters", Source::parameter, instance.mechanism(), variables);
  std::ostringstream text;
  document.save(text, " ", pugi::format_indent | pugi::format_no_declaration);
  return text.str();
}

}  // namespace rigstep::server
