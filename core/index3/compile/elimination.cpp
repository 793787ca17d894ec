#include "core/index3/compile/elimination.h"

#include <algorithm>
#include <utility>

#include "core/index3/compile/layout/layout.h"
#include "core/index3/compile/tree/batches.h"

namespace rigstep::index3 {

namespace {

// In place of each primal body an attachment for everything that holds it, and its displacement as a constraint between
// them all. Returns the primal body of each attachment.
std::vector<int> put_attachments(std::vector<Constraint>& constraints, int bodies,
                                 const std::vector<int>& primal_bodies) {
  std::vector<int> body_of_attachment;
  const std::size_t given = constraints.size();
  for (const int primal_body : primal_bodies) {
    Constraint displacement{{6, RowFormat::kAnyRows}, {primal_body}};
    displacement.is_primal = true;
    for (std::size_t c = 0; c < given; ++c)
      for (int& body : constraints[c].bodies) {
        if (body != primal_body) continue;
        body = bodies + static_cast<int>(body_of_attachment.size());
        body_of_attachment.push_back(primal_body);
        displacement.bodies.push_back(body);
      }
    constraints.push_back(std::move(displacement));
  }
  return body_of_attachment;
}

// Runs the passes.
Elimination lay_out(Layout layout, const std::vector<int>& roots) {
  number_operations(layout, order_of_operations(layout, roots));
  for (int part = 0; part < layout.parts; ++part) reserve_part(layout, part);
  place_constraints(layout);
  place_ground(layout);
  place_ghosts(layout);
  for (int part = 0; part < layout.parts; ++part) fill_part(layout, part);
  for (int part = 0; part < layout.parts; ++part) fill_constraints(layout, part);
  pass_on_ghosts(layout);
  make_units(layout);
  make_parts(layout.tables, layout.parts);
  return std::move(layout.tables);
}

// What it costs that threads share a step, and that each receives from one more, in multiply-adds of a lane; and by how
// much sharing must shorten the step at least: an exchange takes longer on some machines than on others. Chosen;
// `rigstep bench step` shows what a second thread gains. Results do not depend on them.
constexpr double kCostOfSharing = 4000.0, kCostOfReceiving = 2000.0;
constexpr double kClearlyFaster = 0.9;

double cost_of_sharing(int parts) { return parts > 1 ? kCostOfSharing + kCostOfReceiving * (parts - 1) : 0.0; }

double time_of_step(const Elimination& e) {
  std::vector<long> part(e.parts.size(), 0);
  for (const Elimination::Unit& unit : e.units) part[unit.part] += unit.cost;
  return static_cast<double>(*std::max_element(part.begin(), part.end())) +
         cost_of_sharing(static_cast<int>(part.size()));
}

}  // namespace

LanePlaces::Pattern pattern_of(const Place* of_lane, int lanes) {
  const Place& first = of_lane[0];
  bool is_contiguous = first.base % lanes == 0, is_uniform = true;  // batches are aligned
  for (int lane = 0; lane < lanes; ++lane) {
    const auto [base, stride] = of_lane[lane];
    is_contiguous = is_contiguous && base == first.base + lane && stride == first.stride;
    is_uniform = is_uniform && base == first.base && stride == first.stride;
  }
  using Pattern = LanePlaces::Pattern;
  return is_uniform ? Pattern::uniform : is_contiguous ? Pattern::contiguous : Pattern::scattered;
}

Elimination compile(const std::vector<Constraint>& model, const std::vector<bool>& has_own_tangent, MergeOrder order,
                    int lanes, const std::vector<int>& primal_bodies, int threads) {
  std::vector<Constraint> constraints = model;
  const int bodies = static_cast<int>(has_own_tangent.size());
  const std::vector<int> body_of_attachment = put_attachments(constraints, bodies, primal_bodies);
  const CompoundTree tree = build_tree(constraints, bodies + static_cast<int>(body_of_attachment.size()), order);
  const int most_lanes = order == MergeOrder::in_lanes ? lanes : 1;
  const auto laid_out = [&](int parts) {
    const Batches laid = lay_side_by_side(tree, constraints, has_own_tangent, most_lanes, parts);
    return lay_out(Layout(constraints, has_own_tangent, laid, body_of_attachment, most_lanes), laid.roots);
  };
  Elimination result = laid_out(1);
  double best = kClearlyFaster * time_of_step(result);
  for (int parts = 2; parts <= threads && cost_of_sharing(parts) < best; ++parts) {
    Elimination divided = laid_out(parts);
    if (const double time = time_of_step(divided); time < best) {
      best = time;
      result = std::move(divided);
    }
  }
  return result;
}

}  // namespace rigstep::index3
