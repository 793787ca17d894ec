#include "core/index3/step/workspace.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "core/index3/step/forces_in_lanes.h"

namespace rigstep::index3 {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class T>
void fill(std::vector<T>& values, std::size_t count) {
  static_assert(sizeof(T) % sizeof(double) == 0, "made of doubles");
  values.resize(count);
  for (T& value : values)
    for (std::size_t k = 0; k < sizeof(T) / sizeof(double); ++k)
      std::memcpy(reinterpret_cast<char*>(&value) + k * sizeof(double), &kNaN, sizeof(double));
}

// The arrays of the step, one behind the other, each on a cache line.
class Carver {
 public:
  explicit Carver(double* block) : block_(block) {}
  double* take(std::size_t doubles) {
    double* at = block_ == nullptr ? nullptr : block_ + used_;
    used_ += (doubles + 7) / 8 * 8;
    return at;
  }
  std::size_t used() const { return used_; }

 private:
  double* block_;
  std::size_t used_ = 0;
};

constexpr std::size_t kLineDoubles = 8;  // of a cache line: each part writes to one of its own

std::size_t scratch_of_part(const Elimination& e) {
  return (e.scratch_doubles + 7) / 8 * 8 + (e.parts.size() > 1 ? kPageDoubles : 0);
}

std::size_t carve(const Elimination& e, double* block, StepArrays& a) {
  Carver carver(block);
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  const auto rows = [&] { return carver.take(size(e.rows)); };
  a.body = carver.take(size(kBodyFields * e.positions));
  a.last = kStatesField;
  a.next = kStatesField + kStateFields;
  a.tangent = carver.take(e.dense_doubles);
  a.mass_inverse = carver.take(e.dense_doubles);
  a.has_forces = carver.take(kLineDoubles * e.parts.size());
  a.constraint_fields = carver.take(size(kConstraintFields * e.constraint_positions));
  a.handles = carver.take(e.handle_doubles);
  for (double** each : {&a.Phi, &a.closed_at, &a.closed_acceleration, &a.elasticity, &a.rate, &a.quadratic,
                        &a.last_lambda, &a.last_kappa, &a.lambda, &a.kappa, &a.sigma})
    *each = rows();
  a.arena = carver.take(e.arena_doubles);
  a.scratch = carver.take(scratch_of_part(e) * e.parts.size());
  return carver.used();
}

void take_over(const Part& part, StepArrays& a) {
  a.run = part.runs.data();
  a.runs = static_cast<int>(part.runs.size());
  a.constraint = part.constraints.data();
  a.constraints = static_cast<int>(part.constraints.size());
}

void rest_on_ground(StepArrays& a, const BodyPlace& place) {
  for (int lane = 0; lane < place.width; ++lane) {
    const Place record = BodyPlace{place.position, place.width, lane}.of(0);
    for (int k = 0; k < kBodyFields; ++k) a.body[record.base + k * record.stride] = 0.0;
    for (const int k : {0, 4, 8}) a.body[record.base + (kRotationField + k) * record.stride] = 1.0;
  }
}

// The derivative of the joints' torque by the body's rotation has, in body axes, the antisymmetric part [torque x]/2. A
// symmetric tangent cannot hold it; each entry pair gets the mean of +x and -x weighted by the squares of the other
// axis's principal moment, so that a small moment is not disturbed by a large one: a rod does not spin because it
// swings. Returned: twice that symmetric matrix for a unit torque about each axis.
std::array<Mat3, 3> symmetrised_torque_tangent(const Mat3& inertia_b) {
  const Eigen::SelfAdjointEigenSolver<Mat3> principal(inertia_b);
  const Mat3& P = principal.eigenvectors();
  const Vec3& J = principal.eigenvalues();
  std::array<Mat3, 3> tangent;
  for (int axis = 0; axis < 3; ++axis) {
    const Mat3 twice_antisymmetric = P.transpose() * skew(Vec3::Unit(axis)) * P;
    Mat3 mean = Mat3::Zero();
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        if (i != j) mean(i, j) = twice_antisymmetric(i, j) * (J[j] * J[j] - J[i] * J[i]) / (J[j] * J[j] + J[i] * J[i]);
    tangent[axis] = P * mean * P.transpose();
  }
  return tangent;
}

std::array<double, 6> inverse_roots(const Body& body) {
  const Mat3& J = body.inertia_b;
  const double minors = (J(0, 0) * J(1, 1) - J(1, 0) * J(1, 0)) + (J(0, 0) * J(2, 2) - J(2, 0) * J(2, 0)) +
                        (J(1, 1) * J(2, 2) - J(2, 1) * J(2, 1));
  const double of_mass = 1.0 / std::sqrt(body.mass), of_inertia = std::sqrt(minors / J.determinant());
  return {of_mass, of_mass, of_mass, of_inertia, of_inertia, of_inertia};
}

void write_constants(const Body& body, const BodyPlace& place, StepArrays& a) {
  const Mat3& J = body.inertia_b;
  const Place at = place.of(kConstantsField);
  int k = 0;
  const auto write = [&](double value) { a.body[at.base + at.stride * k++] = value; };
  write(1.0 / body.mass), write(body.mass);
  const auto write_symmetric = [&](const Mat3& S) {
    for (const double value : {S(0, 0), S(1, 1), S(2, 2), S(1, 0), S(2, 0), S(2, 1)}) write(value);
  };
  write_symmetric(J);
  for (const Mat3& tangent : symmetrised_torque_tangent(J)) write_symmetric(tangent);
  const double of_rotation = inverse_roots(body)[3];
  write(of_rotation / std::sqrt(body.mass)), write(of_rotation * of_rotation);
}

}  // namespace

Workspace::Workspace(const Plan& plan) : arrays{}, exchange(plan.elimination) {
  const Elimination& e = plan.elimination;
  arrays.leaf = e.leaves.data();
  arrays.attachment = e.attachments.data();
  arrays.handle = e.handles.data();
  arrays.signs = e.signs.data();
  arrays.front = e.fronts.data();
  arrays.pending = e.pending.data();
  arrays.copy = e.copies.data();
  arrays.scattered_child = e.scattered_children.data();
  arrays.scattered_side = e.scattered_sides.data();
  arrays.chosen_side = e.chosen_sides.data();
  take_over(e.parts[0], arrays);
  arrays.constraint_constants = plan.constraint_constants.data();
  compliance = AlignedDoubles(plan.compliance_in_lanes.size(), 0.0);
  carried = AlignedDoubles(plan.carried.size(), 0.0);
  arrays.compliance[static_cast<int>(ComplianceOf::iterations)] = compliance.data();
  arrays.compliance[static_cast<int>(ComplianceOf::projections)] = compliance.data() + e.rows;
  arrays.compliance[static_cast<int>(ComplianceOf::midpoint_projection)] = compliance.data() + 2 * e.rows;
  arrays.multiplier_scale = plan.multiplier_scale.data();
  arrays.carried = carried.data();
  arrays.step = plan.settings.order_of_accuracy == 4 ? midpoint_step_size(plan.dt()) : step_size(plan.dt());
  arrays.rows = e.rows;
  block = AlignedDoubles(carve(e, nullptr, arrays), kNaN);
  carve(e, block.data(), arrays);
  parts.assign(e.parts.size(), arrays);
  part_status.resize(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts[p].scratch += p * scratch_of_part(e);
    parts[p].has_forces += p * kLineDoubles;
  }
  borders = tops = parts;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    take_over(e.parts[p], parts[p]);
    take_over(e.borders[p], borders[p]);
    take_over(e.tops[p], tops[p]);
  }
  for (const BodyPlace& ground : e.ground) rest_on_ground(arrays, ground);
  const std::size_t bodies = plan.mechanism.bodies().size();
  Q.resize(bodies);
  inverse_root.resize(bodies);
  for (std::size_t i = 0; i < bodies; ++i) follow_body(plan, static_cast<int>(i));

  make_room_in_lanes(plan, *this);
  follow_parameters(plan);
  coordinates_found = AlignedDoubles(static_cast<std::size_t>(kCoordinateNumbers * plan.lanes_of_coordinates), kNaN);
  const std::size_t rows = static_cast<std::size_t>(plan.rows());
  for (const JointCoordinate& followed : plan.mechanism.coordinates()) reference.push_back(followed.offset);
  drive = plan.start_drive;
  fill(placement, bodies);
  fill(joint, plan.mechanism.joints().size());
  fill(J_first, rows);
  fill(J_second, rows);
  fill(J_third, plan.mechanism.couplings().size());
  fill(J_fourth, plan.mechanism.couplings().size());
  fill(Phi, rows);
  fill(along_joint, plan.mechanism.joints().size());
  fill(coordinate, plan.mechanism.coordinates().size());
  fill(tangent, bodies);
  for_each_kind([&]<class Kind>() {
    fill(reading<Kind>(), plan.mechanism.all<Kind>().size());
    fill(evaluated<Kind>(), plan.mechanism.all<Kind>().size());
    if constexpr (ActsOverStep<Kind>) fill(start<Kind>(), plan.mechanism.all<Kind>().size());
  });
  if (plan.acts_over_step()) fill(Q_over_step, bodies);
  std::size_t most_bodies = 0;
  for (const Element& element : plan.elements) most_bodies = std::max(most_bodies, element.bodies.size());
  fill(element_rows, most_bodies);
  fill(input, plan.mechanism.inputs().size());
}

void Workspace::follow_parameters(const Plan& plan) noexcept {
  std::copy_n(plan.compliance_in_lanes.data(), compliance.size(), compliance.data());
  std::copy_n(plan.carried.data(), carried.size(), carried.data());
  follow_elements_in_lanes(plan, *this);
}

void Workspace::follow_body(const Plan& plan, int index) noexcept {
  const Body& body = plan.mechanism.bodies()[index];
  plan.elimination.at_all_places(index, [&](const BodyPlace& place) { write_constants(body, place, arrays); });
  Q[index] << body.mass * plan.mechanism.gravity_0(), Vec3::Zero();
  inverse_root[index] = inverse_roots(body);
}

void Workspace::advance() noexcept {
  const auto swap_instants = [](StepArrays& a) {
    std::swap(a.last, a.next);
    std::swap(a.last_lambda, a.lambda);
    std::swap(a.last_kappa, a.kappa);
  };
  swap_instants(arrays);
  for (std::size_t p = 0; p < parts.size(); ++p)
    swap_instants(parts[p]), swap_instants(borders[p]), swap_instants(tops[p]);
}

std::size_t Workspace::bytes() const noexcept {
  const auto size = [](const auto& values) { return values.size() * sizeof(values[0]); };
  std::size_t of_elements = 0, in_lanes = 0;
  for (const AlignedDoubles& of_kind : element_numbers) in_lanes += size(of_kind);
  for_each_kind(
      [&]<class Kind>() { of_elements += size(reading<Kind>()) + size(evaluated<Kind>()) + size(start<Kind>()); });
  return size(block) + size(compliance) + size(carried) + size(inverse_root) + exchange.bytes() + size(reference) +
         size(drive) + size(placement) + size(joint) + size(J_first) + size(J_second) + size(J_third) + size(J_fourth) +
         size(Phi) + size(Q) + size(held_along_scalars) + size(law_numbers) + size(found) + in_lanes +
         size(coordinates_found) + size(along_joint) + size(coordinate) + size(tangent) + of_elements +
         size(Q_over_step) + size(element_rows) + size(input);
}

namespace {

// a joint coordinate at the pose in w, with its angle unwrapped
Coordinate coordinate_at(const Plan& plan, const Workspace& w, int k) {
  const JointCoordinate& c = plan.mechanism.coordinates()[k];
  const Joint& joint = plan.mechanism.joints()[c.joint];
  Coordinate x = coordinate(c.freedom, w.joint[c.joint], placement(w, joint.first), placement(w, joint.second));
  x.value = followed(c.freedom, w.joint[c.joint], x.value + c.offset, w.reference[k]);
  return x;
}

const Joint& joint_of(const Plan& plan, int coordinate) {
  return plan.mechanism.joints()[plan.mechanism.coordinates()[coordinate].joint];
}

void evaluate_coupling(const Plan& plan, int k, Workspace& w) {
  const Coupling& coupling = plan.mechanism.couplings()[k];
  const int constraint = plan.first_coupling() + k, row = plan.first_row[constraint];
  const Coordinate first = coordinate_at(plan, w, coupling.first), second = coordinate_at(plan, w, coupling.second);
  w.Phi[row] = first.value + coupling.ratio * second.value - plan.coupling_constant[k];
  const CoupledJacobians J = coupled_jacobians(plan.bodies_of_constraint[constraint], joint_of(plan, coupling.first),
                                               first, joint_of(plan, coupling.second), second, coupling.ratio);
  w.J_first[row] = J[0];
  w.J_second[row] = J[1];
  w.J_third[k] = J[2];
  w.J_fourth[k] = J[3];
}

void evaluate_driver(const Plan& plan, int k, Workspace& w) {
  const JointCoordinate& driven = plan.mechanism.coordinates()[plan.mechanism.drivers()[k].coordinate];
  const Joint& joint = plan.mechanism.joints()[driven.joint];
  const int row = plan.first_row[plan.first_driver() + k];
  const Coordinate x =
      coordinate(driven.freedom, w.joint[driven.joint], placement(w, joint.first), placement(w, joint.second));
  w.Phi[row] = driver_gap(driven.freedom, x.value + driven.offset, w.drive[k].value);
  w.J_first[row] = x.first;
  w.J_second[row] = x.second;
}

double quadratic_of(const Plan& plan, const Workspace& w, int k) {
  const JointCoordinate& c = plan.mechanism.coordinates()[k];
  const Joint& joint = plan.mechanism.joints()[c.joint];
  return coordinate_quadratic(c.freedom, w.joint[c.joint], placement(w, joint.first), placement(w, joint.second));
}

void evaluate_constraint(const Plan& plan, int constraint, Workspace& w) {
  if (constraint >= plan.first_driver()) return evaluate_driver(plan, constraint - plan.first_driver(), w);
  if (constraint >= plan.first_coupling()) return evaluate_coupling(plan, constraint - plan.first_coupling(), w);
  int row = plan.first_row[constraint];
  for (const Row& r : rows_of(plan.mechanism.joints()[constraint].type)) {
    const RowValue value = evaluate(r, w.joint[constraint]);
    w.Phi[row] = value.Phi;
    w.J_first[row] = value.J_first;
    w.J_second[row] = value.J_second;
    ++row;
  }
}

}  // namespace

void evaluate_constraints(const Plan& plan, Workspace& w) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    w.joint[j] = place_joint(joint, placement(w, joint.first), placement(w, joint.second));
  }
  for (int c = 0; c < plan.mechanism.constraints(); ++c) evaluate_constraint(plan, c, w);
}

RowTerms row_terms(const Plan& plan, const Workspace& w, int constraint) noexcept {
  const int driver = constraint - plan.first_driver();
  if (driver < 0) {
    const Coupling& coupling = plan.mechanism.couplings()[constraint - plan.first_coupling()];
    return {0.0, quadratic_of(plan, w, coupling.first) + coupling.ratio * quadratic_of(plan, w, coupling.second)};
  }
  const Prescribed& drive = w.drive[driver];
  return {-drive.rate, quadratic_of(plan, w, plan.mechanism.drivers()[driver].coordinate) - drive.acceleration};
}

void evaluate_velocity_terms(const Plan& plan, const Workspace& w, std::vector<double>& rates) noexcept {
  std::fill(rates.begin(), rates.end(), 0.0);
  for (int c = plan.first_driver(); c < plan.mechanism.constraints(); ++c)
    rates[plan.first_row[c]] = row_terms(plan, w, c).velocity;
}

void evaluate_quadratic_terms(const Plan& plan, const Workspace& w, std::vector<double>& terms) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type))
      terms[row++] = quadratic(r, w.joint[j], placement(w, joint.first), placement(w, joint.second));
  }
  for (int c = plan.first_coupling(); c < plan.mechanism.constraints(); ++c)
    terms[plan.first_row[c]] = row_terms(plan, w, c).acceleration;
}

}  // namespace rigstep::index3
