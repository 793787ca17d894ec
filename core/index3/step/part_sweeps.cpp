#include "core/index3/step/part_sweeps.h"

#include <algorithm>

#include "core/index3/step/team.h"

namespace rigstep::index3 {

namespace {

Increment larger_of(const Increment& a, const Increment& b) {
  return {std::max(a.displacement, b.displacement), std::max(a.rotation, b.rotation)};
}

void add(const StepMeasures& measures, StepMeasures& sum) {
  sum.increment = larger_of(sum.increment, measures.increment);
  sum.finite = sum.finite && measures.finite;
  sum.residuals = {std::max(sum.residuals.position, measures.residuals.position),
                   std::max(sum.residuals.velocity, measures.residuals.velocity),
                   std::max(sum.residuals.acceleration, measures.residuals.acceleration)};
}

}  // namespace

PartSweeps::PartSweeps(const Plan& plan, Workspace& w, Team* team, int part) noexcept
    : plan_(plan),
      kernels_(*plan.kernels),
      w_(w),
      team_(team),
      part_(part),
      is_divided_(w.parts.size() > 1),
      stamp_(team ? std::uint64_t{team->call()} << 32U : 0) {
  each([&](int p) { w.part_status[p] = {}; });
}

void PartSweeps::finish(bool complete) noexcept {
  each([&](int p) { w_.part_status[p].complete = complete; });
}

void PartSweeps::post(unsigned what) noexcept {
  if (what & kPoses) has_poses_ = false;
  if (team_) w_.exchange.post(w_.arrays, part_, what, ++stamp_);
}

bool PartSweeps::fetch(unsigned what) noexcept {
  if (team_) return w_.exchange.fetch(w_.arrays, part_, what, stamp_, *team_, spins_);
  if (is_divided_) w_.exchange.pass(w_.arrays, what);
  return true;
}

bool PartSweeps::fetch_poses() noexcept {
  has_poses_ = has_poses_ || fetch(kPoses);
  return has_poses_;
}

void PartSweeps::predict() noexcept {
  if (is_divided_) each([&](int p) { kernels_.predict(w_.borders[p]), kernels_.predict(w_.tops[p]); });
  post(kPoses);
  each([&](int p) { kernels_.predict(w_.parts[p]); });
}

void PartSweeps::assemble_part(const StepArrays& part, const AssemblySweep& sweep, PartStatus& status) noexcept {
  if (!kernels_.assemble(part, sweep)) status.failed = true;
}

bool PartSweeps::assemble(const AssemblySweep& sweep, unsigned more) noexcept {
  each([&](int p) { assemble_part(w_.parts[p], sweep, w_.part_status[p]); });
  if (!is_divided_) return true;
  if (sweep.constrain && !constrain_top(sweep)) return false;
  each([&](int p) { assemble_part(w_.borders[p], sweep, w_.part_status[p]); });
  if (!pass_on(more | kRightHandSides | (sweep.factorise ? kCompliances : kNothing))) return false;
  if (more & kTwists)
    each([&](int p) { kernels_.disassemble(w_.tops[p], {false, {}, DisassemblySweep::Finish::velocities}); });
  AssemblySweep top = sweep;
  top.constrain = false;  // known already
  each([&](int p) { assemble_part(w_.tops[p], top, w_.part_status[p]); });
  return true;
}

// the constraints between the parts
bool PartSweeps::constrain_top(const AssemblySweep& sweep) noexcept {
  AssemblySweep constraints;
  constraints.constrain = true;
  constraints.with_stiffness = sweep.with_stiffness;
  constraints.keep_sides = sweep.keep_sides;
  if (!fetch_poses()) return false;
  each([&](int p) { kernels_.assemble(w_.tops[p], constraints); });
  return true;
}

void PartSweeps::disassemble(const DisassemblySweep& sweep) noexcept {
  each([&](int p) {
    StepMeasures& measures = w_.part_status[p].measures;
    if (sweep.finish == DisassemblySweep::Finish::displacements) measures.increment = {};
    if (!is_divided_) return;
    // primal bodies, which constraints of the part need; the constraints of the top have not received the others yet
    measures.increment = larger_of(kernels_.disassemble(w_.tops[p], sweep).increment, measures.increment);
    add(kernels_.disassemble(w_.borders[p], sweep), measures);
  });
  if (sweep.finish == DisassemblySweep::Finish::displacements) post(kPoses);
  if (sweep.finish == DisassemblySweep::Finish::accelerations) post(kMotions);
  each([&](int p) { add(kernels_.disassemble(w_.parts[p], sweep), w_.part_status[p].measures); });
}

bool PartSweeps::find_increment(Increment& largest) noexcept {
  if (!fetch_poses() || !pass_on(kNothing)) return false;  // then all have measured theirs
  largest = {};
  for (const PartStatus& part : w_.part_status) largest = larger_of(largest, part.measures.increment);
  return true;
}

bool PartSweeps::measure_top(const DisassemblySweep& sweep) noexcept {
  if (!is_divided_ || !is_first()) return true;
  if (!fetch(kMotions)) return false;
  DisassemblySweep residuals = sweep;
  residuals.solutions = false;
  add(kernels_.disassemble(w_.tops[0], residuals), w_.part_status[0].measures);
  return true;
}

PartStatus all_of(const Workspace& w) noexcept {
  PartStatus all = w.part_status[0];
  for (std::size_t p = 1; p < w.part_status.size(); ++p) {
    all.failed = all.failed || w.part_status[p].failed;
    add(w.part_status[p].measures, all.measures);
  }
  return all;
}

}  // namespace rigstep::index3
