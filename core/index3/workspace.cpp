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
  for (const JointCoordinate& followed : plan.mechanism.coordinates()) reference.push_back(followed.offset);
  drive = plan.start_drive;
  fill(placement, bodies);
  fill(joint, plan.mechanism.joints().size());
  fill(J_first, rows);
  fill(J_second, rows);
  fill(J_third, plan.mechanism.couplings().size());
  fill(J_fourth, plan.mechanism.couplings().size());
  fill(Phi, rows);
  fill(Q, bodies);
  fill(coordinate, plan.mechanism.coordinates().size());
  fill(M_inverse, bodies);
  fill(tangent, bodies);
  fill(geometric, bodies);
  fill(fronts, plan.elimination.matrix_doubles);
  fill(bias, bodies);
  fill(rhs_term, rows);
  fill(vectors, plan.elimination.vector_doubles);
  fill(Lambda, rows);
}

std::size_t Workspace::bytes() const noexcept {
  const auto size = [](const auto& values) { return values.size() * sizeof(values[0]); };
  return size(history) + size(reference) + size(drive) + size(placement) + size(joint) + size(J_first) +
         size(J_second) + size(J_third) + size(J_fourth) + size(Phi) + size(Q) + size(coordinate) + size(M_inverse) +
         size(tangent) + size(geometric) + size(fronts) + size(bias) + size(rhs_term) + size(vectors) + size(Lambda);
}

}  // namespace rigstep::index3
