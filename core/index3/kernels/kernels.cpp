// The sweeps over the assembly tree. Compiled once per instruction set (RIGSTEP_ISA names it); whatever is instantiated
// here stays in that namespace, so that no function for a newer processor can be called on an older one.
#include "core/index3/kernels/sweeps.h"

#include "core/index3/kernels/actions.h"
#include "core/index3/kernels/bushings.h"
#include "core/index3/kernels/constraint_rows.h"
#include "core/index3/kernels/fronts.h"
#include "core/index3/kernels/leaf_motion.h"
#include "core/index3/kernels/scalar_forces.h"
#include "core/index3/kernels/tyres.h"

namespace rigstep::index3::RIGSTEP_ISA {

namespace {

template <class F>
RIGSTEP_INLINE void for_bodies(const StepArrays& a, F&& f) {
  for (const Run* run = a.run; run < a.run + a.runs; ++run) {
    if (run->of != Run::Of::leaves) continue;
    const Leaf* leaf = a.leaf + run->first;
    with_width(leaf->width, [&]<class T>() RIGSTEP_INLINED {
      for (const Leaf* end = leaf + run->count; leaf < end; ++leaf)
        f.template operator()<T>(BodyArrays<T>(a, a.body + leaf->record));
    });
  }
}

void carry_over_multipliers(const StepArrays& a) {
  for (int i = 0; i < a.constraints; ++i) {
    const ConstraintBatch& c = a.constraint[i];
    const double* from = a.last_lambda + c.row_position;
    double* to = a.lambda + c.row_position;
    with_width(c.width, [&]<class T>() RIGSTEP_INLINED {
      for (int k = 0; k < c.format.rows; ++k) store(to + k * kWidth<T>, load<T>(from + k * kWidth<T>));
    });
  }
}

void predict(const StepArrays& a) {
  carry_over_multipliers(a);
  for_bodies(a, [&]<class T>(const BodyArrays<T>& b) RIGSTEP_INLINED { predict_body(b, a.step); });
}

void update_rotations(const StepArrays& a) {
  for_bodies(a, [&]<class T>(const BodyArrays<T>& b) { turn_body(b, load_quaternion<T>(b.next + kP * kWidth<T>)); });
}

void pass_midpoint(const StepArrays& a, MidpointPass pass) {
  for_bodies(a, [&]<class T>(const BodyArrays<T>& b) RIGSTEP_INLINED {
    switch (pass) {
      case MidpointPass::predict:
        return predict_middle(b, a.step);
      case MidpointPass::show_end:
        return show_end(b, a.step);
      case MidpointPass::show_middle:
        return show_middle(b, a.step);
      case MidpointPass::end_velocities:
        return find_end_velocities(b, a.step);
      case MidpointPass::reach_end:
        return reach_end(b, a.step);
    }
  });
}

Increment extrapolate(const StepArrays& half_steps, const StepArrays& whole_step) {
  LargestMove moved;
  for_bodies(half_steps, [&]<class T>(const BodyArrays<T>& b) RIGSTEP_INLINED {
    const double* const whole =
        whole_step.body + (b.next - half_steps.body) + kWidth<T> * (whole_step.next - half_steps.next);
    const Motion<T> beyond = extrapolate_body(b, whole, T(kExtrapolated));
    moved.add(beyond.v, beyond.w);
  });
  Increment largest{};
  moved.add_to(largest);
  return largest;
}

bool eliminate_fronts(const StepArrays& a, const Run& run, ComplianceOf which) {
  const Front* first = a.front + run.first;
  return kEliminateFronts.of_shape[run.shape](a, first, first + run.count, which);
}

void solve_up(const StepArrays& a, const Run& run, RightHandSide side) {
  const bool restarts = side == RightHandSide::Phi_restarted;
  const double* rhs = restarts || side == RightHandSide::Phi ? a.Phi
                      : side == RightHandSide::rate          ? a.rate
                                                             : a.quadratic;
  const Front* first = a.front + run.first;
  kSolveUp.of_shape[run.shape](a, first, first + run.count, rhs, restarts);
}

void solve_down(const StepArrays& a, const Run& run, Multiplier kind) {
  const Front* first = a.front + run.first;
  kSolveDown.of_shape[run.shape](a, first, first + run.count, kind);
}

void start(const StepArrays& a, const Run& run, AssemblySweep::Start motion) {
  switch (motion) {
    case AssemblySweep::Start::nothing:
      return;
    case AssemblySweep::Start::free_motion:
      return free_motion(a, run);
    case AssemblySweep::Start::velocities:
      return start_velocities(a, run);
    case AssemblySweep::Start::accelerations:
      return start_accelerations(a, run);
    case AssemblySweep::Start::same_motion:
      return keep_motion(a, run);
    case AssemblySweep::Start::rest:
      return start_at_rest(a, run);
    case AssemblySweep::Start::loads:
      return start_with_loads(a, run, false);
    case AssemblySweep::Start::free_accelerations:
      return start_with_loads(a, run, true);
  }
}

bool assemble(const StepArrays& a, const AssemblySweep& what) {
  bool positive = true;
  for (const Run* run = a.run; run < a.run + a.runs; ++run) {
    if (run->of == Run::Of::constraints) {
      if (what.constrain) constrain(a, *run, what);
    } else if (run->of == Run::Of::leaves) {
      if (what.factorise) fill_leaves(a, *run, what.tangent);
      start(a, *run, what.start);
    } else if (run->of == Run::Of::attachments) {
      if (what.factorise) fill_attachments(a, *run);
      if (what.right_hand_sides) clear_attachments(a, *run);
    } else {
      if (what.factorise) positive = eliminate_fronts(a, *run, what.tangent.compliance) && positive;
      if (what.right_hand_sides) solve_up(a, *run, what.rhs);
    }
  }
  return positive;
}

void finish(const StepArrays& a, const Run& run, const DisassemblySweep& what, StepMeasures& found) {
  switch (what.finish) {
    case DisassemblySweep::Finish::nothing:
      return;
    case DisassemblySweep::Finish::motion:
      return close(a, run);
    case DisassemblySweep::Finish::displacements:
      return update(a, run, what.is_last_iteration, found.increment);
    case DisassemblySweep::Finish::velocities:
      return close_velocities(a, run);
    case DisassemblySweep::Finish::accelerations:
      found.finite = close_accelerations(a, run) && found.finite;
      return;
    case DisassemblySweep::Finish::corrected_poses:
      return correct_poses(a, run, found.increment);
    case DisassemblySweep::Finish::corrected_velocities:
      return correct_velocities(a, run);
    case DisassemblySweep::Finish::twists:
    case DisassemblySweep::Finish::quadratic_terms:
      return take_over_velocities(a, run);
  }
}

StepMeasures disassemble(const StepArrays& a, const DisassemblySweep& what) {
  StepMeasures found;
  for (int k = a.runs; k-- > 0;) {  // there may be none, and no array
    const Run* const run = a.run + k;
    if (run->of == Run::Of::fronts) {
      if (what.solutions) solve_down(a, *run, what.kind);
    } else if (run->of == Run::Of::leaves) {
      finish(a, *run, what, found);
    } else if (run->of == Run::Of::attachments) {
      continue;  // nothing moves there
    } else if (what.finish == DisassemblySweep::Finish::velocities ||
               what.finish == DisassemblySweep::Finish::quadratic_terms) {
      quadratic_terms(a, *run);
    } else if (what.finish == DisassemblySweep::Finish::accelerations) {
      residuals(a, *run, found.residuals);
    }
  }
  return found;
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels{RIGSTEP_ISA_NAME, kWidest,           predict,        update_rotations, evaluate_scalars,
                       evaluate_tyres,   evaluate_bushings, evaluate_drags, sum_actions,      evaluate_coordinates,
                       assemble,         disassemble,       pass_midpoint,  extrapolate};

}  // namespace rigstep::index3::RIGSTEP_ISA
