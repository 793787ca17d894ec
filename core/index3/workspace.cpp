#include "core/index3/workspace.h"

#include <cstring>
#include <limits>

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

std::size_t carve(const Elimination& e, double* block, StepArrays& a) {
  Carver carver(block);
  const auto bodies = [&](int fields) { return carver.take(static_cast<std::size_t>(fields * e.positions)); };
  const auto rows = [&] { return carver.take(static_cast<std::size_t>(e.rows)); };
  a.last = bodies(kStateFields);
  a.next = bodies(kStateFields);
  a.history = bodies(kHistoryFields);
  a.rotation = bodies(9);
  a.twist = bodies(6);
  a.load = bodies(6);
  a.motion = bodies(6);
  a.inertia_inverse = bodies(6);
  a.tangent = carver.take(e.dense_doubles);
  a.mass_inverse = carver.take(e.dense_doubles);
  a.constraint_fields = carver.take(static_cast<std::size_t>(kConstraintFields * e.constraint_positions));
  a.handles = carver.take(e.handle_doubles);
  for (double** each : {&a.Phi, &a.rate, &a.quadratic, &a.last_lambda, &a.last_kappa, &a.lambda, &a.kappa, &a.Lambda})
    *each = rows();
  a.arena = carver.take(e.arena_doubles);
  a.scratch = carver.take(e.scratch_doubles);
  return carver.used();
}

void rest_on_ground(StepArrays& a, const BodyPlace& place) {
  for (int lane = 0; lane < place.width; ++lane) {
    const auto clear = [&](double* array, int fields) {
      for (int k = 0; k < fields; ++k) array[fields * place.position + k * place.width + lane] = 0.0;
    };
    clear(a.last, kStateFields), clear(a.next, kStateFields), clear(a.rotation, 9);
    clear(a.twist, 6), clear(a.motion, 6);
    for (const int k : {0, 4, 8}) a.rotation[9 * place.position + k * place.width + lane] = 1.0;
  }
}

}  // namespace

Workspace::Workspace(const Plan& plan) : lanes{} {
  const Elimination& e = plan.elimination;
  lanes.leaf = e.leaves.data();
  lanes.leaves = static_cast<int>(e.leaves.size());
  lanes.handle = e.handles.data();
  lanes.front = e.fronts.data();
  lanes.fronts = static_cast<int>(e.fronts.size());
  lanes.run = e.runs.data();
  lanes.runs = static_cast<int>(e.runs.size());
  lanes.pending = e.pending.data();
  lanes.copy = e.copies.data();
  lanes.scattered_child = e.scattered_children.data();
  lanes.scattered_side = e.scattered_sides.data();
  lanes.constraint = e.batches.data();
  lanes.constraints = static_cast<int>(e.batches.size());
  lanes.body_constants = plan.body_constants.data();
  lanes.constraint_constants = plan.constraint_constants.data();
  lanes.compliance[0] = plan.compliance_in_lanes.data();
  lanes.compliance[1] = plan.compliance_in_lanes.data() + e.rows;
  lanes.gain = plan.gain.data();
  lanes.dt = plan.dt();
  lanes.rows = e.rows;
  block = AlignedDoubles(carve(e, nullptr, lanes), kNaN);
  carve(e, block.data(), lanes);
  rest_on_ground(lanes, e.ground_single);
  rest_on_ground(lanes, e.ground_lanes);

  const std::size_t bodies = plan.mechanism.bodies().size();
  const std::size_t rows = static_cast<std::size_t>(plan.rows());
  fill(placement, bodies);
  fill(joint, plan.mechanism.joints().size());
  fill(J_first, rows);
  fill(J_second, rows);
  fill(Phi, rows);
  for (const Body& body : plan.mechanism.bodies()) {
    Q.emplace_back();
    Q.back() << body.mass * plan.mechanism.gravity_0(), Vec3::Zero();
  }
  fill(coordinate, plan.mechanism.coordinates().size());
  fill(tangent, bodies);
}

std::size_t Workspace::bytes() const noexcept {
  const auto size = [](const auto& values) { return values.size() * sizeof(values[0]); };
  return size(block) + size(placement) + size(joint) + size(J_first) + size(J_second) + size(Phi) + size(Q) +
         size(coordinate) + size(tangent);
}

void evaluate_constraints(const Plan& plan, Workspace& w) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    w.joint[j] = place(joint, placement(w, joint.first), placement(w, joint.second));
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type)) {
      const RowValue value = evaluate(r, w.joint[j]);
      w.Phi[row] = value.Phi;
      w.J_first[row] = value.J_first;
      w.J_second[row] = value.J_second;
      ++row;
    }
  }
}

void evaluate_quadratic_terms(const Plan& plan, const Workspace& w, std::vector<double>& terms) noexcept {
  for (std::size_t j = 0; j < w.joint.size(); ++j) {
    const Joint& joint = plan.mechanism.joints()[j];
    int row = plan.first_row[j];
    for (const Row& r : rows_of(joint.type))
      terms[row++] = quadratic(r, w.joint[j], placement(w, joint.first), placement(w, joint.second));
  }
}

}  // namespace rigstep::index3
