#include "server/view/messages.h"

#include <fmt/format.h>

#include <cmath>

#include "server/view/palette.h"

namespace rigstep::server {
namespace {

using Json = nlohmann::json;

Json json(const Vec3& v) { return {v[0], v[1], v[2]}; }
Json json(const EulerParameters& p) { return {p[0], p[1], p[2], p[3]}; }

std::string hex(const Colour& c) { return fmt::format("#{:02x}{:02x}{:02x}{:02x}", c[0], c[1], c[2], c[3]); }

const char* name_of(config::DrawnShape::Kind kind) {
  using Kind = config::DrawnShape::Kind;
  switch (kind) {
    case Kind::box:
      return "box";
    case Kind::cylinder:
      return "cylinder";
    case Kind::tube:
      return "tube";
    case Kind::sphere:
      return "sphere";
    case Kind::capsule:
      return "capsule";
    case Kind::mesh:
      break;
  }
  return "mesh";
}

const char* name_of(Scene::Role role) {
  switch (role) {
    case Scene::Role::shape:
      return "shape";
    case Scene::Role::link:
      return "link";
    case Scene::Role::joint:
      return "joint";
    case Scene::Role::support:
      return "support";
    case Scene::Role::wheel:
      break;
  }
  return "wheel";
}

const char* name_of(Scene::Line::Kind kind) {
  switch (kind) {
    case Scene::Line::Kind::spring:
      return "spring";
    case Scene::Line::Kind::damper:
      return "damper";
    case Scene::Line::Kind::rope:
      return "rope";
    case Scene::Line::Kind::rod:
      break;
  }
  return "rod";
}

Json bodies_of(const Mechanism& m, const Scene& scene) {
  Json all = Json::array();
  for (std::size_t i = 0; i < m.bodies().size(); ++i) {
    const Body& b = m.bodies()[i];
    all.push_back({{"name", b.name},
                   {"mass", b.mass},
                   {"inertia", json(Vec3(b.inertia_b.diagonal()))},
                   {"colour", hex(body_colour(static_cast<int>(i)))},
                   {"sketched", static_cast<bool>(scene.is_sketched[i])}});
  }
  return all;
}

Json joints_of(const Mechanism& m, const std::vector<bool>& in_loop, const std::vector<bool>& redundant) {
  Json all = Json::array();
  for (const Joint& j : m.joints()) {
    Json free = Json::array();
    for (const Freedom freedom : freedoms(j.type))
      free.push_back(fmt::format("{} [{}]", to_string(freedom), is_length(freedom) ? "m" : "rad"));
    all.push_back({{"name", j.name},
                   {"type", to_string(j.type)},
                   {"first", j.first},
                   {"second", j.second},
                   {"point", json(j.in_first.point_b)},
                   {"axis", json(Vec3(j.in_first.axes_b.col(2)))},
                   {"secondPoint", json(j.in_second.point_b)},
                   {"inLoop", all.size() < in_loop.size() && in_loop[all.size()]},
                   {"redundant", all.size() < redundant.size() && redundant[all.size()]},
                   {"freedoms", free}});
  }
  return all;
}

Json solids_of(const Scene& scene) {
  Json all = Json::array();
  for (const Scene::Solid& solid : scene.solids)
    all.push_back({{"kind", name_of(solid.shape.kind)},
                   {"role", name_of(solid.role)},
                   {"body", solid.shape.body},
                   {"joint", solid.joint},
                   {"mesh", solid.mesh},
                   {"size", json(solid.shape.size)},
                   {"position", json(solid.shape.position_b)},
                   {"orientation", json(solid.shape.orientation)},
                   {"colour", hex(colour_of(solid))}});
  return all;
}

Json lines_of(const Scene& scene) {
  Json all = Json::array();
  for (const Scene::Line& line : scene.lines) {
    Json points = Json::array();
    for (const Scene::Point& point : line.points)
      points.push_back({{"body", point.body}, {"point", json(point.point_b)}});
    all.push_back({{"kind", name_of(line.kind)}, {"name", line.name}, {"points", points}});
  }
  return all;
}

Json tyres_of(const Mechanism& m) {
  Json all = Json::array();
  for (const Tyre& tyre : m.tyres())
    all.push_back({{"name", tyre.name},
                   {"body", tyre.body},
                   {"centre", json(tyre.centre_b)},
                   {"axis", json(tyre.axis_b)},
                   {"radius", tyre.radius},
                   {"roadPoint", json(tyre.road_point_0)},
                   {"roadNormal", json(tyre.road_normal_0)}});
  return all;
}

Json channels_of(const std::vector<Channel>& channels) {
  Json all = Json::array();
  for (const Channel& channel : channels) all.push_back({{"name", channel.name}, {"unit", channel.unit}});
  return all;
}

// Limits that are not finite are none.
Json inputs_of(const std::vector<Channel>& channels, const std::vector<InputPolicy>& limits) {
  const auto finite = [](double x) { return std::isfinite(x) ? Json(x) : Json(); };
  Json all = channels_of(channels);
  for (std::size_t k = 0; k < all.size(); ++k) {
    const InputPolicy policy = k < limits.size() ? limits[k] : InputPolicy{};
    all[k]["lower"] = finite(policy.minimum);
    all[k]["upper"] = finite(policy.maximum);
    all[k]["mostChange"] = finite(policy.most_change_per_step);
    all[k]["safe"] = policy.safe;
  }
  return all;
}

Json parameters_of(const Mechanism& m) {
  Json all = Json::array();
  for (const Parameter& p : m.parameters())
    all.push_back({{"name", p.name},
                   {"unit", p.unit},
                   {"value", p.value},
                   {"minimum", p.minimum},
                   {"maximum", p.maximum},
                   {"tunable", p.tunable}});
  return all;
}

Json forces_of(const std::vector<ActingForce>& forces) {
  Json all = Json::array();
  for (const ActingForce& force : forces) all.push_back({{"name", force.name}, {"body", force.body}});
  return all;
}

Json events_of(const std::vector<std::vector<RunEvent>>& runs) {
  Json all = Json::array();
  for (const auto& run : runs) {
    Json events = Json::array();
    for (const RunEvent& event : run) events.push_back({{"time", event.time}, {"text", event.text}});
    all.push_back(events);
  }
  return all;
}

template <class Number>
void append(std::string& text, const Number* numbers, std::size_t count) {
  text.append(reinterpret_cast<const char*>(numbers), count * sizeof(Number));
}

}  // namespace

std::string scene_message(const Mechanism& m, const Scene& scene, const SceneContext& context) {
  Json findings = Json::array();
  for (const CheckFinding& finding : context.findings)
    findings.push_back({{"severity", to_string(finding.severity)},
                        {"joint", finding.joint},
                        {"body", finding.body},
                        {"connection", finding.connection},
                        {"text", finding.text}});
  const Json message = {{"kind", context.kind},
                        {"name", m.name()},
                        {"source", context.source},
                        {"gravity", json(m.gravity_0())},
                        {"up", json(scene.up_0)},
                        {"normal", json(scene.plane_normal_0)},
                        {"centre", json(scene.centre_0)},
                        {"size", scene.size},
                        {"thickness", scene.thickness},
                        {"bodies", bodies_of(m, scene)},
                        {"joints", joints_of(m, context.in_loop, context.redundant)},
                        {"solids", solids_of(scene)},
                        {"lines", lines_of(scene)},
                        {"tyres", tyres_of(m)},
                        {"meshes", scene.meshes.size()},
                        {"columns", channels_of(context.columns)},
                        {"inputs", inputs_of(m.input_channels(), context.limits)},
                        {"parameters", parameters_of(m)},
                        {"forces", forces_of(context.forces)},
                        {"findings", findings},
                        {"problems", scene.problems},
                        {"tracks", context.tracks},
                        {"events", events_of(context.events)},
                        {"period", context.period},
                        {"control", context.control}};
  return message.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string mesh_message(const TriangleMesh& mesh) {
  std::string text;
  const std::uint32_t counts[2] = {static_cast<std::uint32_t>(mesh.vertices.size()),
                                   static_cast<std::uint32_t>(mesh.triangles.size())};
  append(text, counts, 2);
  for (const Eigen::Vector3f& vertex : mesh.vertices) append(text, vertex.data(), 3);
  for (const auto& triangle : mesh.triangles) append(text, triangle.data(), 3);
  return text;
}

std::string motion_message(const MotionInstant& instant, const Poses& poses) {
  std::string text;
  const double head[3] = {instant.time, static_cast<double>(instant.step), static_cast<double>(instant.marks)};
  const std::uint32_t counts[4] = {static_cast<std::uint32_t>(instant.values.size()),
                                   static_cast<std::uint32_t>(7 * poses.size()),
                                   static_cast<std::uint32_t>(instant.forces.size()), 0};
  append(text, head, 3);
  append(text, counts, 4);
  append(text, instant.values.data(), instant.values.size());
  for (const BodyPose& pose : poses) {
    const float numbers[7] = {static_cast<float>(pose.r[0]), static_cast<float>(pose.r[1]),
                              static_cast<float>(pose.r[2]), static_cast<float>(pose.p[0]),
                              static_cast<float>(pose.p[1]), static_cast<float>(pose.p[2]),
                              static_cast<float>(pose.p[3])};
    append(text, numbers, 7);
  }
  append(text, instant.forces.data(), instant.forces.size());
  return text;
}

std::vector<float> force_numbers(const index3::Stepper& stepper, const Inputs& inputs, ActingForces& acting) {
  std::vector<float> numbers;
  for (int j = 0; j < static_cast<int>(stepper.mechanism().joints().size()); ++j) {
    const Vec6 load = stepper.joint_reaction(j);
    for (int k = 0; k < 6; ++k) numbers.push_back(static_cast<float>(load[k]));
  }
  const std::vector<float> others = acting.read(stepper, inputs);
  numbers.insert(numbers.end(), others.begin(), others.end());
  return numbers;
}

int whole_number(const nlohmann::json& request, const char* field, int least, int most) {
  const Json& value = request.at(field);
  const double number = value.is_number() ? value.get<double>() : std::nan("");
  if (!(number >= least && number <= most) || number != std::nearbyint(number))
    throw Error(fmt::format("{} is no whole number from {} to {}", field, least, most));
  return static_cast<int>(number);
}

nlohmann::json distribution_json(const std::string& name, const rt::Histogram& histogram) {
  const auto counts = histogram.quarters();
  return {{"name", name},
          {"count", histogram.count()},
          {"p50", histogram.percentile(50.0)},
          {"p99", histogram.percentile(99.0)},
          {"p999", histogram.percentile(99.9)},
          {"max", histogram.max()},
          {"firstQuarter", 0},
          {"quarters", counts}};
}

}  // namespace rigstep::server
