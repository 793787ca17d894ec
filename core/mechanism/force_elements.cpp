// Characteristics, and the builder's part for force elements: what each one must satisfy.
#include "core/mechanism/force_elements.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/mechanism/checks.h"
#include "core/mechanism/mechanism.h"

namespace rigstep {

namespace {

using checks::number;
using checks::quoted;
using checks::require_finite;
using checks::require_not_negative;
using checks::require_positive;

// index of the piece that holds `at`; the outer pieces go on outside
std::size_t piece(const std::vector<double>& x, double at) noexcept {
  std::size_t k = 0;
  while (k + 2 < x.size() && at >= x[k + 1]) ++k;
  return k;
}

}  // namespace

double Characteristic::slope(double at) const noexcept {
  if (empty()) return 0.0;
  const std::size_t k = piece(x, at);
  return (y[k + 1] - y[k]) / (x[k + 1] - x[k]);
}

double Characteristic::value(double at) const noexcept {
  if (empty()) return 0.0;
  return y[piece(x, at)] + slope(at) * (at - x[piece(x, at)]);
}

double Characteristic::integral(double at) const noexcept {
  if (empty()) return 0.0;
  // trapezia over whole pieces are exact; from 0 to `at`, backwards if `at` is negative
  const double low = std::min(0.0, at), high = std::max(0.0, at);
  double sum = 0.0, from = low;
  while (from < high) {
    const std::size_t k = piece(x, from);
    const double to = k + 2 < x.size() ? std::min(high, x[k + 1]) : high;
    sum += 0.5 * (value(from) + y[k] + (y[k + 1] - y[k]) / (x[k + 1] - x[k]) * (to - x[k])) * (to - from);
    from = to;
  }
  return at < 0.0 ? -sum : sum;
}

namespace checks {

void check_characteristic(const Characteristic& table, const std::string& field, const char* abscissa) {
  if (table.x.size() != table.y.size())
    throw MechanismError(field,
                         "has " + std::to_string(table.x.size()) + " values of " + abscissa + " and " +
                             std::to_string(table.y.size()) + " of effort",
                         "give as many of each");
  if (table.x.size() == 1) throw MechanismError(field, "has one point", "give two at least");
  for (std::size_t k = 0; k < table.x.size(); ++k) {
    if (!std::isfinite(table.x[k]) || !std::isfinite(table.y[k]))
      throw MechanismError(field, "has a value that is not finite", "write finite numbers");
    if (k > 0 && !(table.x[k] > table.x[k - 1]))
      throw MechanismError(field + "." + abscissa,
                           std::string(abscissa) + " " + number(table.x[k]) + " follows " + number(table.x[k - 1]),
                           "sort the points so that it grows, and keep one of those that are equal");
  }
}

Mat3 frame_axes(const Vec3& axis, const Vec3& normal, const std::string& field) {
  if (axis.isZero(0.0) && normal.isZero(0.0)) return Mat3::Identity();
  const Vec3 z = unit(axis, (field + ".axis").c_str()), x = unit(normal, (field + ".normal").c_str());
  if (std::abs(z.dot(x)) > 1e-6)
    throw MechanismError(field + ".normal", "is not perpendicular to axis (cosine " + number(z.dot(x)) + ")",
                         "give a direction perpendicular to axis");
  Mat3 axes;
  axes.col(2) = z;
  axes.col(0) = (x - z * z.dot(x)).normalized();
  axes.col(1) = z.cross(axes.col(0));
  return axes;
}

}  // namespace checks

namespace {

// Symmetric and positive semidefinite up to rounding, judged after scaling the diagonal to 1: rows have different
// units.
void require_positive_semidefinite(Mat6& matrix, const char* field) {
  require_finite(matrix, field);
  Eigen::Matrix<double, 6, 1> scale;
  for (int i = 0; i < 6; ++i) {
    if (matrix(i, i) < 0.0)
      throw MechanismError(field, "has the diagonal element " + number(matrix(i, i)), "give zero or above");
    scale[i] = matrix(i, i) > 0.0 ? 1.0 / std::sqrt(matrix(i, i)) : 1.0;
  }
  const Eigen::Matrix<double, 6, 6> scaled = scale.asDiagonal() * matrix * scale.asDiagonal();
  Eigen::Index row = 0, column = 0;
  if ((scaled - scaled.transpose()).cwiseAbs().maxCoeff(&row, &column) > 1e-9)
    throw MechanismError(field,
                         "is not symmetric: element (" + std::to_string(row + 1) + ", " + std::to_string(column + 1) +
                             ") is " + number(matrix(row, column)) + ", its mirror " + number(matrix(column, row)),
                         "give a symmetric matrix");
  const Eigen::Matrix<double, 6, 6> lifted =
      0.5 * (scaled + scaled.transpose()) + 1e-9 * Eigen::Matrix<double, 6, 6>::Identity();
  if (!lifted.ldlt().isPositive())
    throw MechanismError(field, "would release energy along some deflection",
                         "give a positive semidefinite matrix; check the signs of the couplings");
  matrix = Mat6(0.5 * (matrix + matrix.transpose()));
}

int require_moving(int body, const char* what) {
  if (body == kGround)
    throw MechanismError("body", std::string("the ground cannot carry ") + what, "name a moving body");
  return body;
}

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

}  // namespace

void MechanismBuilder::require_new_element(const std::string& name, const char* kind) const {
  const auto check = [&](const auto& elements, const char* other) {
    if (index_of(elements, name) >= 0)
      throw MechanismError(
          "name", std::string(kind == std::string(other) ? "another " : "a ") + other + " is named " + quoted(name),
          "rename one of them");
  };
  check(mechanism_.springs_, "spring");
  check(mechanism_.bushings_, "bushing");
  check(mechanism_.frictions_, "joint_friction");
  check(mechanism_.motors_, "motor");
  check(mechanism_.efforts_, "effort");
  check(mechanism_.drags_, "drag");
  check(mechanism_.tyres_, "tyre");
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

void MechanismBuilder::push_bushing(Bushing bushing) {
  if (bushing.first == bushing.second)
    throw MechanismError("second", "a bushing stands between two different bodies",
                         "name another body than " + quoted(mechanism_.body_name(bushing.first)));
  require_positive_semidefinite(bushing.stiffness, "stiffness");
  require_positive_semidefinite(bushing.damping, "damping");
  mechanism_.bushings_.push_back(std::move(bushing));
}

void MechanismBuilder::add_bushing(Bushing bushing, const std::string& first, const std::string& second,
                                   const SideInBody& at_start) {
  check_name(bushing.name, "bushing");
  require_new_element(bushing.name, "bushing");
  bushing.first = find_body(first, "first");
  bushing.second = find_body(second, "second");
  require_finite(at_start.point, "at_start.point");
  const Mat3 axes = checks::frame_axes(at_start.axis, at_start.normal, "at_start");
  const auto into_body = [&](int body) {
    if (body == kGround) return JointFrame{at_start.point, axes};
    const EulerParameters& p = mechanism_.bodies_[body].orientation;
    const Mat3 A = Eigen::Quaterniond(p[0], p[1], p[2], p[3]).toRotationMatrix();
    return JointFrame{A.transpose() * (at_start.point - mechanism_.bodies_[body].position_0), A.transpose() * axes};
  };
  bushing.in_first = into_body(bushing.first);
  bushing.in_second = into_body(bushing.second);
  push_bushing(std::move(bushing));
}

void MechanismBuilder::add_bushing(Bushing bushing, const std::string& first, const std::string& second,
                                   const SideInBody& in_first, const SideInBody& in_second) {
  check_name(bushing.name, "bushing");
  require_new_element(bushing.name, "bushing");
  bushing.first = find_body(first, "first");
  bushing.second = find_body(second, "second");
  require_finite(in_first.point, "in_first.point");
  require_finite(in_second.point, "in_second.point");
  bushing.in_first = {in_first.point, checks::frame_axes(in_first.axis, in_first.normal, "in_first")};
  bushing.in_second = {in_second.point, checks::frame_axes(in_second.axis, in_second.normal, "in_second")};
  push_bushing(std::move(bushing));
}

void MechanismBuilder::add_friction(JointFriction friction, const std::string& joint, Freedom freedom) {
  check_name(friction.name, "joint_friction");
  require_new_element(friction.name, "joint_friction");
  require_not_negative(friction.coulomb, "coulomb");
  require_not_negative(friction.viscous, "viscous");
  require_positive(friction.regularisation_speed, "regularisation_speed");
  const int j = find_joint(joint);
  friction.coordinate = follow_coordinate(j, freedom);
  friction.first = mechanism_.joints_[j].first;
  friction.second = mechanism_.joints_[j].second;
  mechanism_.frictions_.push_back(std::move(friction));
}

void MechanismBuilder::add_signal_input(Input input) {
  check_name(input.name, "input");
  if (index_of(mechanism_.inputs_, input.name) >= 0)
    throw MechanismError("name", "another input is named " + quoted(input.name), "rename one of them");
  input.kind = Input::Kind::signal;
  mechanism_.inputs_.push_back(std::move(input));
}

void MechanismBuilder::add_motor(Motor motor, const std::string& joint, Freedom freedom, const MotorInputs& inputs) {
  check_name(motor.name, "motor");
  require_new_element(motor.name, "motor");
  require_finite(motor.constant, "constant");
  require_not_negative(motor.position_gain, "position_gain");
  require_not_negative(motor.rate_gain, "rate_gain");
  require_not_negative(motor.effort_limit, "effort_limit");
  require_not_negative(motor.no_load_speed, "no_load_speed");
  if (motor.no_load_speed > 0.0 && motor.effort_limit == 0.0)
    throw MechanismError("no_load_speed", "stands without effort_limit", "give the effort at standstill, effort_limit");
  motor.effort_input = find_input(inputs.effort, "effort_input");
  motor.position_input = find_input(inputs.position, "position_input");
  motor.rate_input = find_input(inputs.rate, "rate_input");
  if (motor.position_input >= 0 && motor.position_gain == 0.0)
    throw MechanismError("position_input", "has no effect without position_gain", "give position_gain");
  if (motor.rate_input >= 0 && motor.rate_gain == 0.0)
    throw MechanismError("rate_input", "has no effect without rate_gain", "give rate_gain");
  const int j = find_joint(joint);
  motor.coordinate = follow_coordinate(j, freedom);
  motor.first = mechanism_.joints_[j].first;
  motor.second = mechanism_.joints_[j].second;
  mechanism_.motors_.push_back(std::move(motor));
}

void MechanismBuilder::add_effort(AppliedEffort effort, const std::string& joint, Freedom freedom) {
  check_name(effort.name, "effort");
  require_new_element(effort.name, "effort");
  if (effort.function.terms.empty()) throw MechanismError("sum", "has no terms", "give one at least");
  checks::check_time_function(effort.function);
  const int j = find_joint(joint);
  effort.coordinate = follow_coordinate(j, freedom);
  effort.first = mechanism_.joints_[j].first;
  effort.second = mechanism_.joints_[j].second;
  mechanism_.efforts_.push_back(std::move(effort));
}

void MechanismBuilder::add_drag(Drag drag, const std::string& body) {
  check_name(drag.name, "drag");
  require_new_element(drag.name, "drag");
  drag.body = require_moving(find_body(body, "body"), "drag");
  require_finite(drag.point_b, "point");
  require_not_negative(drag.density, "density");
  require_not_negative(drag.drag_area, "drag_area");
  require_finite(drag.wind_0, "wind");
  mechanism_.drags_.push_back(std::move(drag));
}

namespace {

void check_curve(const SlipCurve& curve, const std::string& field) {
  require_positive(curve.B, (field + ".b").c_str());
  if (!(curve.C > 0.0 && curve.C <= 2.0))
    throw MechanismError(field + ".c", "is " + number(curve.C), "give a shape factor above 0, at most 2");
  if (!(curve.E <= 1.0) || !std::isfinite(curve.E))
    throw MechanismError(field + ".e", "is " + number(curve.E), "give a curvature factor of at most 1");
  require_not_negative(curve.friction, (field + ".friction").c_str());
}

}  // namespace

void MechanismBuilder::add_tyre(Tyre tyre, const std::string& body, const std::string& height_input,
                                const std::string& height_rate_input) {
  check_name(tyre.name, "tyre");
  require_new_element(tyre.name, "tyre");
  tyre.body = require_moving(find_body(body, "body"), "a tyre");
  require_finite(tyre.centre_b, "centre");
  tyre.axis_b = checks::unit(tyre.axis_b, "axis");
  require_positive(tyre.radius, "radius");
  require_positive(tyre.stiffness, "stiffness");
  require_not_negative(tyre.damping, "damping");
  require_positive(tyre.low_speed, "low_speed");
  require_finite(tyre.road_point_0, "road_point");
  tyre.road_normal_0 = checks::unit(tyre.road_normal_0, "road_normal");
  check_curve(tyre.longitudinal, "longitudinal");
  check_curve(tyre.lateral, "lateral");
  tyre.height_input = find_input(height_input, "height_input");
  tyre.height_rate_input = find_input(height_rate_input, "height_rate_input");
  mechanism_.tyres_.push_back(std::move(tyre));
}

void MechanismBuilder::add_element_output(Output output, const std::string& element) {
  check_name(output.name, "output");
  if (index_of(mechanism_.outputs_, output.name) >= 0)
    throw MechanismError("name", "another output is named " + quoted(output.name), "rename one of them");
  std::string list;
  if (output.kind == Output::Kind::tyre) {
    output.element = index_of(mechanism_.tyres_, element);
    append_names(mechanism_.tyres_, list);
  } else if (output.kind == Output::Kind::bushing) {
    output.element = index_of(mechanism_.bushings_, element);
    append_names(mechanism_.bushings_, list);
  } else if (output.kind == Output::Kind::drag) {
    output.element = index_of(mechanism_.drags_, element);
    append_names(mechanism_.drags_, list);
  } else {
    const std::pair<Output::Element, int> candidates[] = {
        {Output::Element::spring, index_of(mechanism_.springs_, element)},
        {Output::Element::friction, index_of(mechanism_.frictions_, element)},
        {Output::Element::motor, index_of(mechanism_.motors_, element)},
        {Output::Element::effort, index_of(mechanism_.efforts_, element)}};
    for (const auto& [kind, index] : candidates)
      if (index >= 0) {
        output.element_kind = kind;
        output.element = index;
      }
    append_names(mechanism_.springs_, list);
    append_names(mechanism_.frictions_, list);
    append_names(mechanism_.motors_, list);
    append_names(mechanism_.efforts_, list);
  }
  if (output.element < 0)
    throw MechanismError("element", element.empty() ? "is missing" : "no such element is named " + quoted(element),
                         list.empty() ? "add one" : "use one of: " + list);
  push_output(std::move(output));
}

}  // namespace rigstep
