#include "core/mechanism/mechanism.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/mechanism/checks.h"
#include "core/mechanism/content_hash.h"

namespace rigstep {

namespace {

constexpr double kUnitTolerance = 1e-6;  // how far a direction or quaternion read from a file may be from unit norm

using checks::number;
using checks::quoted;
using checks::require_finite;
using checks::unit;

Mat3 rotation(const EulerParameters& p) { return Eigen::Quaterniond(p[0], p[1], p[2], p[3]).toRotationMatrix(); }

// Any unit vector perpendicular to a unit vector: crosses it with the world axis that is farthest from it.
Vec3 any_normal(const Vec3& axis) {
  Eigen::Index smallest = 0;
  axis.cwiseAbs().minCoeff(&smallest);
  return axis.cross(Vec3::Unit(smallest)).normalized();
}

// `normal` as a unit vector, which must be perpendicular to a unit `axis`.
Vec3 normal_to(const Vec3& axis, const Vec3& normal, const std::string& field) {
  const Vec3 n = unit(normal, (field + ".normal").c_str());
  if (std::abs(axis.dot(n)) > kUnitTolerance)
    throw MechanismError(field + ".normal", "is not perpendicular to axis (cosine " + number(axis.dot(n)) + ")",
                         "give a direction perpendicular to axis");
  return (n - axis * axis.dot(n)).normalized();
}

Mat3 axes_from(const Vec3& axis, const Vec3& normal) {
  Mat3 axes;
  axes << normal, axis.cross(normal), axis;
  return axes;
}

bool has_axis(JointType type) {
  return type != JointType::spherical && type != JointType::point_on_point && type != JointType::distance;
}

// Three freedoms or more: too many for a coordinate at the start.
bool measures_from_start(JointType type) { return freedoms(type).size() > 2; }

bool has_second_axis(JointType type) { return type == JointType::universal || type == JointType::perpendicular_axes; }

void add_structure(ContentHash& hash, const Mechanism& m) {
  hash.add(m.name());
  hash.add(m.gravity_0());
  for (const Body& b : m.bodies()) {
    hash.add(b.name);
    hash.add(b.mass);
    hash.add(b.inertia_b);
    hash.add(b.position_0);
    hash.add(b.orientation);
    hash.add(b.velocity_0);
    hash.add(b.angular_velocity_0);
  }
  for (const Joint& j : m.joints()) {
    hash.add(j.name);
    hash.add(j.type);
    hash.add(static_cast<std::int64_t>(j.first));
    hash.add(static_cast<std::int64_t>(j.second));
    for (const JointFrame* side : {&j.in_first, &j.in_second}) {
      hash.add(side->point_b);
      hash.add(side->axes_b);
    }
    if (j.type == JointType::screw) hash.add(j.lead);
    if (j.type == JointType::distance) hash.add(j.length);
  }
  for (const JointCoordinate& c : m.coordinates()) {
    hash.add(static_cast<std::int64_t>(c.joint));
    hash.add(c.freedom);
    hash.add(c.offset);
  }
}

// A number for each way of moving: 0 to 2 the kind of a single term, 3 and 4 an input alone, 5 to 7 sums.
void add_motion(ContentHash& hash, const Driver& d) {
  const bool from_time = d.from_input == Driver::FromInput::nothing;
  const bool is_sum = from_time ? d.function.terms.size() > 1 : !d.function.terms.empty();
  if (is_sum) {
    hash.add(static_cast<std::int64_t>(5 + static_cast<int>(d.from_input)));
    hash.add(d.time_constant);
    add_function(hash, d.function);
    return;
  }
  const TimeFunction::Term term = from_time ? d.function.terms.front() : TimeFunction::Term();
  hash.add(static_cast<std::int64_t>(from_time ? static_cast<int>(term.kind) : 2 + static_cast<int>(d.from_input)));
  add_term(hash, term, d.time_constant);
}

void add_couplings_and_drivers(ContentHash& hash, const Mechanism& m) {
  for (const Coupling& c : m.couplings()) {
    hash.add(c.name);
    for (const int i : {c.first, c.second}) hash.add(static_cast<std::int64_t>(i));
    hash.add(c.ratio);
  }
  for (const Driver& d : m.drivers()) {
    hash.add(d.name);
    hash.add(static_cast<std::int64_t>(d.coordinate));
    add_motion(hash, d);
  }
}

// Place of the element's kind among those that a force_element output can show; 0 for other outputs.
int number_of_scalar(const Output& output) {
  int number = 0;
  if (output.kind != Output::Kind::force_element) return number;
  for_each_kind([&]<class Kind>() {
    if (Kind::kIsScalar && kind_of<Kind> < output.element_kind) ++number;
  });
  return number;
}

void add_loads_and_channels(ContentHash& hash, const Mechanism& m) {
  for (const AppliedLoad& l : m.loads()) {
    hash.add(l.name);
    hash.add(static_cast<std::int64_t>(l.body));
    hash.add(l.frame);
    for (const Vec3* v : {&l.force, &l.torque, &l.point_b}) hash.add(*v);
    for (const double x : {l.constant, l.amplitude, l.angular_frequency, l.phase}) hash.add(x);
  }
  // before the inputs, the other kinds after the outputs: identities of before this was a list remain
  for (const Spring& spring : m.springs()) add(hash, spring);
  for (const Input& i : m.inputs()) {
    hash.add(i.name);
    hash.add(i.kind);
    hash.add(i.frame);
    hash.add(i.freedom);
    hash.add(i.unit);
    for (const int k : {i.body, i.joint}) hash.add(static_cast<std::int64_t>(k));
    for (const Vec3* v : {&i.direction, &i.point_b}) hash.add(*v);
  }
  for (const Output& o : m.outputs()) {
    hash.add(o.name);
    hash.add(o.kind);
    hash.add(static_cast<std::int64_t>(number_of_scalar(o)));
    for (const int k : {o.body, o.joint, o.coordinate, o.element}) hash.add(static_cast<std::int64_t>(k));
    hash.add(o.point_b);
    if (o.driver >= 0) hash.add(static_cast<std::int64_t>(o.driver));
  }
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

MechanismError::MechanismError(std::string field_, std::string problem_, std::string remedy_)
    : Error(field_ + ": " + problem_ + ": " + remedy_),
      field(std::move(field_)),
      problem(std::move(problem_)),
      remedy(std::move(remedy_)) {}

std::string_view Mechanism::body_name(int body) const {
  return body == kGround ? std::string_view("ground") : std::string_view(bodies_[body].name);
}

std::string Mechanism::constraint_name(int constraint) const {
  const int coupling = constraint - static_cast<int>(joints_.size());
  const int driver = coupling - static_cast<int>(couplings_.size());
  if (coupling < 0) return "joint " + quoted(joints_[constraint].name);
  if (driver < 0) return "coupling " + quoted(couplings_[coupling].name);
  return "driver " + quoted(drivers_[driver].name);
}

std::vector<Freedom> freedoms(JointType type) {
  switch (type) {
    case JointType::revolute:
    case JointType::parallel_axes:
      return {Freedom::angle};
    case JointType::prismatic:
    case JointType::point_on_line:
      return {Freedom::displacement};
    case JointType::cylindrical:
      return {Freedom::displacement, Freedom::angle};
    case JointType::universal:
      return {Freedom::first_angle, Freedom::second_angle};
    case JointType::planar:
      return {Freedom::displacement_x, Freedom::displacement_y, Freedom::angle};
    case JointType::gimbal:
      return {Freedom::first_angle, Freedom::second_angle, Freedom::third_angle};
    case JointType::screw:
      return {Freedom::displacement, Freedom::angle};
    case JointType::point_on_plane:
      return {Freedom::displacement_x, Freedom::displacement_y};
    case JointType::floating:
      return {Freedom::displacement_x, Freedom::displacement_y, Freedom::displacement_z,
              Freedom::first_angle,    Freedom::second_angle,   Freedom::third_angle};
    default:
      return {};
  }
}

std::string_view to_string(JointType type) {
  switch (type) {
    case JointType::spherical:
      return "spherical";
    case JointType::revolute:
      return "revolute";
    case JointType::prismatic:
      return "prismatic";
    case JointType::cylindrical:
      return "cylindrical";
    case JointType::universal:
      return "universal";
    case JointType::fixed:
      return "fixed";
    case JointType::point_on_point:
      return "point on point";
    case JointType::point_on_line:
      return "point on line";
    case JointType::perpendicular_axes:
      return "perpendicular axes";
    case JointType::parallel_axes:
      return "parallel axes";
    case JointType::planar:
      return "planar";
    case JointType::gimbal:
      return "gimbal";
    case JointType::screw:
      return "screw";
    case JointType::point_on_plane:
      return "point on plane";
    case JointType::distance:
      return "distance";
    case JointType::floating:
      return "floating";
  }
  return "unknown";
}

std::string_view to_string(Freedom freedom) {
  switch (freedom) {
    case Freedom::displacement:
      return "displacement";
    case Freedom::angle:
      return "angle";
    case Freedom::first_angle:
      return "first_angle";
    case Freedom::second_angle:
      return "second_angle";
    case Freedom::third_angle:
      return "third_angle";
    case Freedom::displacement_x:
      return "displacement_x";
    case Freedom::displacement_y:
      return "displacement_y";
    case Freedom::displacement_z:
      return "displacement_z";
  }
  return "unknown";
}

void MechanismBuilder::check_name(const std::string& name, const char* kind) const {
  if (name.empty()) throw MechanismError("name", "is missing", std::string("give the ") + kind + " a name");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (!std::all_of(name.begin(), name.end(), plain))
    throw MechanismError("name", quoted(name) + " has a character that column and channel names cannot carry",
                         "use letters, digits, '_' and '-'");
}

namespace {

template <class Element>
void require_new_name(const std::vector<Element>& elements, const std::string& name, const char* kind) {
  for (const Element& element : elements)
    if (element.name == name)
      throw MechanismError("name", std::string("another ") + kind + " is named " + quoted(name), "rename one of them");
}

template <class Element>
std::string names_of(const std::vector<Element>& elements) {
  std::string names;
  for (std::size_t i = 0; i < elements.size() && i < 12; ++i) names += (i ? ", " : "") + elements[i].name;
  return elements.size() > 12 ? names + ", ..." : names;
}

}  // namespace

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
  require_finite(gravity_0, "gravity");
  mechanism_.gravity_0_ = gravity_0;
}

void MechanismBuilder::add_body(Body body) {
  check_name(body.name, "body");
  if (body.name == "ground") throw MechanismError("name", "\"ground\" is the world itself", "choose another name");
  require_new_name(mechanism_.bodies_, body.name, "body");
  if (!(body.mass > 0.0) || !std::isfinite(body.mass))
    throw MechanismError("mass", "is " + number(body.mass) + " kg", "give a finite mass above zero");
  require_finite(body.inertia_b, "inertia");
  require_finite(body.position_0, "position");
  require_finite(body.orientation, "orientation");
  require_finite(body.velocity_0, "velocity");
  require_finite(body.angular_velocity_0, "angular_velocity");
  const Vec3 moments = Eigen::SelfAdjointEigenSolver<Mat3>(body.inertia_b).eigenvalues();
  if (!(moments[0] > 0.0))
    throw MechanismError("inertia", "has the principal moment " + number(moments[0]) + " kg m^2",
                         "every principal moment must be above zero; give a thin rod a small one about its axis");
  if (moments[2] > (moments[0] + moments[1]) * (1.0 + 1e-6))
    throw MechanismError("inertia",
                         "no body has principal moments " + number(moments[0]) + ", " + number(moments[1]) + " and " +
                             number(moments[2]) + " kg m^2",
                         "the largest is at most the sum of the others; check the axes and the signs of xy, xz, yz");
  const double norm = body.orientation.norm();
  if (std::abs(norm - 1.0) > kUnitTolerance)
    throw MechanismError("orientation", "Euler parameters have norm " + number(norm), "they must have norm 1");
  body.orientation /= norm;
  mechanism_.bodies_.push_back(std::move(body));
}

void MechanismBuilder::push_joint(Joint joint, double offset, double second_offset) {
  if (joint.type == JointType::screw && (joint.lead == 0.0 || !std::isfinite(joint.lead)))
    throw MechanismError("lead", "is " + number(joint.lead) + " m",
                         "give the displacement per turn, positive for a right-handed thread");
  if (joint.type == JointType::distance && (!(joint.length > 0.0) || !std::isfinite(joint.length)))
    throw MechanismError("length", "is " + number(joint.length) + " m", "the two points must be apart");
  if (joint.first == joint.second)
    throw MechanismError("second", "a joint stands between two different bodies",
                         "name another body than " + quoted(mechanism_.body_name(joint.first)));
  mechanism_.joints_.push_back(std::move(joint));
  coordinate_offsets_.emplace_back(offset, second_offset);
}

namespace {

Mat3 body_rotation(const Mechanism& m, int body) {
  return body == kGround ? Mat3::Identity() : rotation(m.bodies()[body].orientation);
}

// A joint frame given in the world at the start pose, in body coordinates.
JointFrame into_body(const Mechanism& m, int body, const Vec3& point_0, const Mat3& axes_0) {
  const Mat3 A = body_rotation(m, body);
  const Vec3 r = body == kGround ? Vec3::Zero() : m.bodies()[body].position_0;
  return {A.transpose() * (point_0 - r), A.transpose() * axes_0};
}

}  // namespace

void MechanismBuilder::add_joint(const JointAtStart& joint) {
  check_name(joint.name, "joint");
  require_new_name(mechanism_.joints_, joint.name, "joint");
  const int first = find_body(joint.first, "first");
  const int second = find_body(joint.second, "second");
  require_finite(joint.point, "at_start.point");
  require_finite(joint.coordinate_at_start, "at_start.coordinate");
  require_finite(joint.second_coordinate_at_start, "at_start.second_coordinate");
  require_finite(joint.second_point, "at_start.second_point");
  if (measures_from_start(joint.type) && (joint.coordinate_at_start != 0.0 || joint.second_coordinate_at_start != 0.0))
    throw MechanismError("at_start.coordinate",
                         "is not zero, but a " + std::string(to_string(joint.type)) + " joint measures from the start",
                         "leave it out, or place the joint by in_first and in_second");
  if (joint.type == JointType::screw && joint.second_coordinate_at_start != 0.0)
    throw MechanismError("at_start.second_coordinate", "is the angle of a screw, which follows from its displacement",
                         "leave it out");
  Mat3 first_axes = Mat3::Identity(), second_axes = Mat3::Identity();
  if (has_second_axis(joint.type)) {
    const Vec3 axis = unit(joint.axis, "at_start.axis");
    const Vec3 second_axis = unit(joint.second_axis, "at_start.second_axis");
    if (std::abs(axis.dot(second_axis)) > kUnitTolerance)
      throw MechanismError("at_start.second_axis",
                           "is not perpendicular to axis (cosine " + number(axis.dot(second_axis)) + ")",
                           "the two axes of this joint are perpendicular");
    first_axes = axes_from(axis, second_axis);  // the second axis is the zero direction of the first angle
    second_axes = axes_from(second_axis, axis);
  } else if (has_axis(joint.type) && joint.type != JointType::fixed) {
    const Vec3 axis = unit(joint.axis, "at_start.axis");
    require_finite(joint.normal, "at_start.normal");
    first_axes = second_axes =
        axes_from(axis, joint.normal.isZero(0.0) ? any_normal(axis) : normal_to(axis, joint.normal, "at_start"));
  }
  Joint made{
      joint.name,
      joint.type,
      first,
      second,
      into_body(mechanism_, first, joint.point, first_axes),
      into_body(mechanism_, second, joint.type == JointType::distance ? joint.second_point : joint.point, second_axes)};
  double second_offset = joint.second_coordinate_at_start;
  if (joint.type == JointType::distance) made.length = (joint.second_point - joint.point).norm();
  if (joint.type == JointType::screw) {
    made.lead = joint.lead;
    second_offset = joint.coordinate_at_start * (2.0 * 3.14159265358979323846 / joint.lead);
  }
  push_joint(std::move(made), joint.coordinate_at_start, second_offset);
}

void MechanismBuilder::add_joint(std::string name, JointType type, const std::string& first, const std::string& second,
                                 const SideInBody& in_first, const SideInBody& in_second, double size) {
  check_name(name, "joint");
  require_new_name(mechanism_.joints_, name, "joint");
  Joint joint{std::move(name), type, find_body(first, "first"), find_body(second, "second"), {}, {}};
  joint.lead = type == JointType::screw ? size : 0.0;
  joint.length = type == JointType::distance ? size : 0.0;
  const bool measures_angle =
      !freedoms(type).empty() && type != JointType::point_on_line && type != JointType::point_on_plane;
  const bool needs_normal = measures_angle || type == JointType::fixed;
  const auto side = [&](const SideInBody& in, const std::string& field) {
    require_finite(in.point, (field + ".point").c_str());
    JointFrame frame{in.point, Mat3::Identity()};
    if (!has_axis(type)) return frame;
    const Vec3 axis = unit(in.axis, (field + ".axis").c_str());
    require_finite(in.normal, (field + ".normal").c_str());
    if (in.normal.isZero(0.0)) {
      if (needs_normal || (type == JointType::point_on_plane && field == "in_first"))
        throw MechanismError(field + ".normal", "is missing", "give the direction from which the angle is measured");
      frame.axes_b = axes_from(axis, any_normal(axis));
      return frame;
    }
    frame.axes_b = axes_from(axis, normal_to(axis, in.normal, field));
    return frame;
  };
  joint.in_first = side(in_first, "in_first");
  joint.in_second = side(in_second, "in_second");
  push_joint(std::move(joint), 0.0, 0.0);  // coordinates are what the frames measure
}

int MechanismBuilder::require_freedom(int joint, Freedom freedom, const char* field) const {
  const Joint& j = mechanism_.joints_[joint];
  const std::vector<Freedom> open = freedoms(j.type);
  const auto found = std::find(open.begin(), open.end(), freedom);
  if (found == open.end()) {
    std::string list;
    for (const Freedom f : open) list += (list.empty() ? "" : ", ") + std::string(to_string(f));
    throw MechanismError(
        field, "a " + std::string(to_string(j.type)) + " joint has no freedom " + std::string(to_string(freedom)),
        open.empty() ? "use a joint with a scalar freedom, or act on its bodies" : "use: " + list);
  }
  return static_cast<int>(found - open.begin());
}

int MechanismBuilder::follow_coordinate(int joint, Freedom freedom) {
  const int place = require_freedom(joint, freedom, "freedom");
  for (std::size_t i = 0; i < mechanism_.coordinates_.size(); ++i)
    if (mechanism_.coordinates_[i].joint == joint && mechanism_.coordinates_[i].freedom == freedom)
      return static_cast<int>(i);
  const auto& [first_offset, second_offset] = coordinate_offsets_[joint];
  mechanism_.coordinates_.push_back({joint, freedom, place == 0 ? first_offset : place == 1 ? second_offset : 0.0});
  return static_cast<int>(mechanism_.coordinates_.size()) - 1;
}

Vec3 MechanismBuilder::point_in_body(const std::string& body, const Vec3& point_0, const char* field) const {
  return into_body(mechanism_, find_body(body, field), point_0, Mat3::Identity()).point_b;
}

Vec3 MechanismBuilder::direction_in_body(const std::string& body, const Vec3& direction_0, const char* field) const {
  return body_rotation(mechanism_, find_body(body, field)).transpose() * direction_0;
}

void MechanismBuilder::add_load(AppliedLoad load, const std::string& body) {
  check_name(load.name, "load");
  require_new_name(mechanism_.loads_, load.name, "load");
  load.body = require_moving(find_body(body, "body"), "a load");
  require_finite(load.force, "force");
  require_finite(load.torque, "torque");
  require_finite(load.point_b, "point");
  require_finite(load.constant, "constant");
  require_finite(load.amplitude, "amplitude");
  require_finite(load.angular_frequency, "angular_frequency");
  require_finite(load.phase, "phase");
  mechanism_.loads_.push_back(std::move(load));
}

namespace {

template <class Element>
int index_of(const std::vector<Element>& elements, const std::string& name) {
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (elements[i].name == name) return static_cast<int>(i);
  return -1;
}

template <class Element>
void append_names(const std::vector<Element>& elements, std::string& list) {
  for (const Element& element : elements) list += (list.empty() ? "" : ", ") + element.name;
}

// The output that shows elements of this kind.
template <class Kind>
constexpr Output::Kind shown_by() {
  if constexpr (std::is_same_v<Kind, Bushing>)
    return Output::Kind::bushing;
  else if constexpr (std::is_same_v<Kind, Drag>)
    return Output::Kind::drag;
  else if constexpr (std::is_same_v<Kind, Tyre>)
    return Output::Kind::tyre;
  else {
    static_assert(Kind::kIsScalar, "an element that is not scalar needs an output of its own");
    return Output::Kind::force_element;
  }
}

}  // namespace

void MechanismBuilder::require_new_element(const std::string& name, const char* kind) const {
  for_each_kind([&]<class Element>() {
    if (index_of(mechanism_.all<Element>(), name) >= 0)
      throw MechanismError("name",
                           std::string(kind == std::string(Element::kName) ? "another " : "a ") + Element::kName +
                               " is named " + quoted(name),
                           "rename one of them");
  });
}

int MechanismBuilder::find_input(const std::string& name, const char* field) const {
  if (name.empty()) return -1;
  const int found = index_of(mechanism_.inputs_, name);
  std::string list;
  append_names(mechanism_.inputs_, list);
  if (found < 0)
    throw MechanismError(field, "no input is named " + quoted(name),
                         list.empty() ? "add `input { name: " + quoted(name) + " signal {} }`" : "use one of: " + list);
  if (mechanism_.inputs_[found].kind != Input::Kind::signal)
    throw MechanismError(field, "input " + quoted(name) + " is a load of its own already",
                         "give the input `signal {}` instead of its load");
  return found;
}

void MechanismBuilder::add_signal_input(Input input) {
  check_name(input.name, "input");
  if (index_of(mechanism_.inputs_, input.name) >= 0)
    throw MechanismError("name", "another input is named " + quoted(input.name), "rename one of them");
  input.kind = Input::Kind::signal;
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::add_element_output(Output output, const std::string& element) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  std::string list;
  for_each_kind([&]<class Element>() {
    if (shown_by<Element>() != output.kind) return;
    append_names(mechanism_.all<Element>(), list);
    const int index = index_of(mechanism_.all<Element>(), element);
    if (index < 0) return;
    output.element_kind = kind_of<Element>;
    output.element = index;
  });
  if (output.element < 0)
    throw MechanismError("element", element.empty() ? "is missing" : "no such element is named " + quoted(element),
                         list.empty() ? "add one" : "use one of: " + list);
  push_output(std::move(output));
}

AlongFreedom MechanismBuilder::along(const std::string& joint, Freedom freedom) {
  const int j = find_joint(joint);
  return {follow_coordinate(j, freedom), mechanism_.joints_[j].first, mechanism_.joints_[j].second};
}

JointFrame MechanismBuilder::frame_in_body(int body, const Vec3& point_0, const Mat3& axes_0) const {
  return into_body(mechanism_, body, point_0, axes_0);
}

void MechanismBuilder::add_body_input(Input input, const std::string& body) {
  check_name(input.name, "input");
  require_new_name(mechanism_.inputs_, input.name, "input");
  input.body = require_moving(find_body(body, "body"), "an input");
  input.direction = unit(input.direction, "direction");
  require_finite(input.point_b, "point");
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::add_joint_input(Input input, const std::string& joint, Freedom freedom) {
  check_name(input.name, "input");
  require_new_name(mechanism_.inputs_, input.name, "input");
  input.kind = Input::Kind::joint_effort;
  input.joint = find_joint(joint);
  input.freedom = freedom;
  require_freedom(input.joint, freedom, "freedom");
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::add_coupling(Coupling coupling, const std::string& first_joint, Freedom first_freedom,
                                    const std::string& second_joint, Freedom second_freedom) {
  check_name(coupling.name, "coupling");
  require_new_name(mechanism_.couplings_, coupling.name, "coupling");
  if (coupling.ratio == 0.0 || !std::isfinite(coupling.ratio))
    throw MechanismError("ratio", "is " + number(coupling.ratio), "give a finite number that is not zero");
  const int first = find_joint(first_joint, "first_joint"), second = find_joint(second_joint, "second_joint");
  if (first == second && first_freedom == second_freedom)
    throw MechanismError("second_freedom", "is the first one again", "couple two different joint coordinates");
  require_freedom(first, first_freedom, "first_freedom");
  require_freedom(second, second_freedom, "second_freedom");
  coupling.first = follow_coordinate(first, first_freedom);
  coupling.second = follow_coordinate(second, second_freedom);
  mechanism_.couplings_.push_back(std::move(coupling));
}

namespace {

void check_motion(const Driver& driver) {
  checks::check_time_function(driver.function);
  if (driver.from_input == Driver::FromInput::nothing && driver.function.terms.empty())
    throw MechanismError("sum", "has no terms", "give one at least");
  if (driver.from_input == Driver::FromInput::filtered &&
      (!(driver.time_constant > 0.0) || !std::isfinite(driver.time_constant)))
    throw MechanismError("time_constant", "is " + number(driver.time_constant) + " s", "give a finite time above zero");
}

}  // namespace

void MechanismBuilder::add_driver(Driver driver, const std::string& joint, Freedom freedom) {
  check_name(driver.name, "driver");
  require_new_name(mechanism_.drivers_, driver.name, "driver");
  check_motion(driver);
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

void MechanismBuilder::add_driver_output(Output output, const std::string& driver) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  for (std::size_t i = 0; i < mechanism_.drivers_.size(); ++i)
    if (mechanism_.drivers_[i].name == driver) output.driver = static_cast<int>(i);
  if (output.driver < 0)
    throw MechanismError(
        "driver", driver.empty() ? "is missing" : "no driver is named " + quoted(driver),
        mechanism_.drivers_.empty() ? "describe a driver first" : "use one of: " + names_of(mechanism_.drivers_));
  push_output(std::move(output));
}

void MechanismBuilder::push_output(Output output) { mechanism_.outputs_.push_back(std::move(output)); }

void MechanismBuilder::add_body_output(Output output, const std::string& body) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  output.body = require_moving(find_body(body, "body"), "a sensor");
  require_finite(output.point_b, "point");
  push_output(std::move(output));
}

void MechanismBuilder::add_joint_output(Output output, const std::string& joint, Freedom freedom) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  output.joint = find_joint(joint);
  if (output.kind != Output::Kind::joint_reaction) output.coordinate = follow_coordinate(output.joint, freedom);
  push_output(std::move(output));
}

void MechanismBuilder::add_output(Output output) {
  check_name(output.name, "output");
  require_new_name(mechanism_.outputs_, output.name, "output");
  push_output(std::move(output));
}

namespace {

void add_driver_channels(const std::vector<JointCoordinate>& coordinates, std::vector<Driver>& drivers,
                         std::vector<Channel>& channels) {
  constexpr const char* kNames[] = {".position", ".velocity", ".acceleration"};
  constexpr const char* kPer[] = {"", "/s", "/s^2"};
  for (Driver& driver : drivers) {
    driver.first_channel = static_cast<int>(channels.size());
    const std::string unit = coordinate_unit(coordinates[driver.coordinate].freedom);
    for (int k = 0; k < driver.channels(); ++k) channels.push_back({driver.name + kNames[k], unit + kPer[k]});
  }
}

}  // namespace

Mechanism MechanismBuilder::build() {
  check_name(mechanism_.name_, "mechanism");
  if (mechanism_.bodies_.empty()) throw MechanismError("body", "there is none", "describe at least one body");
  Mechanism m = mechanism_;
  for (const Input& input : m.inputs_)
    m.input_channels_.push_back({input.name, input.kind == Input::Kind::body_force    ? "N"
                                             : input.kind == Input::Kind::body_torque ? "N m"
                                             : input.kind == Input::Kind::signal
                                                 ? input.unit
                                                 : std::string(effort_unit(input.freedom))});
  add_driver_channels(m.coordinates_, m.drivers_, m.input_channels_);
  for (Output& output : m.outputs_) {
    output.first_channel = static_cast<int>(m.output_channels_.size());
    for (const Channel& part : components(output, m))
      m.output_channels_.push_back({output.name + part.name, part.unit});
  }
  const auto check_count = [](std::size_t count, const char* field) {
    if (count > static_cast<std::size_t>(kMaxChannels))
      throw MechanismError(field, "make " + std::to_string(count) + " channels",
                           "a mechanism has at most " + std::to_string(kMaxChannels) + "; remove some");
  };
  check_count(m.input_channels_.size(), "input");
  check_count(m.output_channels_.size(), "output");
  ContentHash hash;
  add_structure(hash, m);
  add_couplings_and_drivers(hash, m);
  add_loads_and_channels(hash, m);
  for_each_kind([&]<class Element>() {
    if constexpr (!std::is_same_v<Element, Spring>)
      for (const Element& element : m.all<Element>()) add(hash, element);
  });
  m.id_ = hash.value();
  return m;
}

}  // namespace rigstep
