// The sweeps of a step as the parts of a mechanism share them: each thread goes over its own part beside the threads of
// the others, or one thread goes over all parts. What exists only because a step is shared stands here: borders between
// parts, the top that joins them, and what they pass on to each other. The physics of a step is in newton.h and
// projections.h.
//
// Every thread makes the top by itself, once it has received what the others pass on; only what must be evaluated one
// by one (force elements, couplings) is the first one's. Where a function returns bool, false says that
// somebody was late and that the step is void. Belongs to the threads of a step, one object each, and lives for one
// step.
#pragma once

#include <cstdint>

#include "core/index3/step/workspace.h"

namespace rigstep::index3 {

class PartSweeps {
 public:
  // team: null, one thread for all parts; part: of this thread.
  PartSweeps(const Plan& plan, Workspace& w, Team* team, int part) noexcept;

  // (15) (16)
  void predict() noexcept;

  // From the leaves to the root: the parts, then the top. more: passed on by the way.
  bool assemble(const AssemblySweep& sweep, unsigned more = kNothing) noexcept;
  // From the root to the leaves: the top, then the parts; what others must know is on its way at once.
  void disassemble(const DisassemblySweep& sweep) noexcept;
  // The largest displacement and rotation that the last iteration gave any body, of whatever part.
  bool find_increment(Increment& largest) noexcept;
  // The residuals of the constraints between the parts.
  bool measure_top(const DisassemblySweep& sweep) noexcept;

  // The poses of the iterate have come from all parts.
  bool fetch_poses() noexcept;
  // f() by one thread while no other goes on.
  template <class F>
  bool one_by_one(const F& f) noexcept {
    if (!pass_on(kNothing)) return false;
    if (is_first()) f();
    return pass_on(kNothing);
  }

  // What becomes of the step; the last call.
  void finish(bool complete) noexcept;

 private:
  // f(part) on this thread's part, or on all
  template <class F>
  void each(const F& f) noexcept {
    if (team_) return f(part_);
    for (int part = 0; part < static_cast<int>(w_.parts.size()); ++part) f(part);
  }
  bool is_first() const noexcept { return team_ == nullptr || part_ == 0; }

  void post(unsigned what) noexcept;
  bool fetch(unsigned what) noexcept;  // what was posted last
  bool pass_on(unsigned what) noexcept {
    post(what);
    return fetch(what);
  }

  void assemble_part(const StepArrays& part, const AssemblySweep& sweep, PartStatus& status) noexcept;
  bool constrain_top(const AssemblySweep& sweep) noexcept;

  const Plan& plan_;
  const Kernels& kernels_;
  Workspace& w_;
  Team* team_;
  int part_;
  bool is_divided_;
  bool has_poses_ = false;  // of the iterate, from all parts
  std::uint64_t stamp_;
  int spins_ = 0;  // waited so far
};

// The part statuses of a finished step together.
PartStatus all_of(const Workspace& w) noexcept;

}  // namespace rigstep::index3
