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

}  // namespace

Workspace::Workspace(const Plan& plan)
    : last_move(kNaN), last_turn(kNaN), last_moved_body(-1), failed_body(-1), failed_row(-1) {
  const std::size_t bodies = plan.mechanism.bodies().size();
  const std::size_t rows = static_cast<std::size_t>(plan.rows());
  fill(history, bodies);
  fill(placement, bodies);
  fill(joint, plan.mechanism.joints().size());
  const std::size_t all_rows = static_cast<std::size_t>(plan.all_rows());
  fill(J_first, all_rows);
  fill(J_second, all_rows);
  fill(Phi, rows);
  fill(Q, bodies);
  fill(coordinate, plan.mechanism.coordinates().size());
  fill(spring, plan.mechanism.springs().size());
  fill(friction, plan.mechanism.frictions().size());
  fill(motor, plan.mechanism.motors().size());
  fill(bushing, plan.mechanism.bushings().size());
  fill(tyre, plan.mechanism.tyres().size());
  fill(input, plan.mechanism.inputs().size());
  fill(M_inverse, bodies);
  fill(tangent, bodies);
  fill(geometric, bodies);
  fill(fronts, plan.elimination.matrix_doubles);
  fill(bias, bodies);
  fill(rhs_term, all_rows);
  fill(vectors, plan.elimination.vector_doubles);
  fill(Lambda, all_rows);
  for (std::size_t row = rows; row < all_rows; ++row) {  // elements: no position error; idle until the first tangent
    J_first[row].setZero();
    J_second[row].setZero();
    rhs_term[row] = 0.0;
  }
}

std::size_t Workspace::bytes() const noexcept {
  const auto size = [](const auto& values) { return values.size() * sizeof(values[0]); };
  return size(history) + size(placement) + size(joint) + size(J_first) + size(J_second) + size(Phi) + size(Q) +
         size(coordinate) + size(M_inverse) + size(tangent) + size(geometric) + size(fronts) + size(bias) +
         size(rhs_term) + size(vectors) + size(Lambda) + size(spring) + size(friction) + size(motor) + size(bushing) +
         size(tyre) + size(input);
}

}  // namespace rigstep::index3
