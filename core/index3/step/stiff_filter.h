// What keeps an extrapolated step stable where force elements are stiff. Extrapolation alone, (4 f - c) / 3 of half
// steps f and a whole step c, multiplies by 5/3 what is infinitely stiff, and lets any oscillation grow. Of the third
// of their difference, delta = (f - c) / 3, the stiff part is taken out:
//
//   delta - (I - P)^2 delta,   P = (I - h/2 A)^-1,   A = [0 I; -M^-1 K  -M^-1 C] with the joints closed
//
// (I - P)^2 is of order h^2 where nothing is stiff, so that the step stays of order 4, and I where everything is. A
// step of the test equation y' = lambda y is then bounded by 1 for every lambda with a real part of 0 or less.
//
// (I - P) w of a change w = (w_q, w_v) of the state is (-h/2 (w_v - x), x), where x solves
//
//   (M + h/2 C + h^2/4 K) x + J' mu = h/2 (K w_q + C w_v) + h^2/4 K w_v,   J x = 0
//
// The matrix is that of a Newton iteration; the right-hand side comes from differences of the forces. Sized at load
// time, called in the loop.
#pragma once

#include <vector>

#include "core/index3/step/newton.h"

namespace rigstep::index3 {

class StiffFilter {
 public:
  explicit StiffFilter(const Plan& plan);

  // Before the extrapolation: what is to be taken out, from the half steps in step.w and the whole step. false:
  // something could not be eliminated. Leaves factor and Jacobians of the half steps' end.
  bool find_stiff_part(const StepProblem& step, const Workspace& whole_step) noexcept;
  // After the extrapolation.
  void take_out_stiff_part(const StepProblem& step) noexcept;

  std::size_t bytes() const noexcept;

 private:
  void enter_right_hand_side(const StepProblem& step) noexcept;
  void evaluate_forces(const StepProblem& step, double displaced_by_w_q, double displaced_by_w_v,
                       double twisted_by_w_v) noexcept;

  std::vector<Vec6> w_q_, w_v_;       // (bodies) displacement and turn, velocities; world frame
  std::vector<Placement> placement_;  // (bodies) at the end of the half steps
  std::vector<Vec6> Q_, Q_changed_;   // (bodies) loads there, and with one of the changes
};

}  // namespace rigstep::index3
