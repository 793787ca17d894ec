// What the plan must know of each force element, at the plan's choice of rows. Load time.
#pragma once

#include "core/index3/compile/plan.h"
#include "core/index3/compile/tuned.h"

namespace rigstep::index3 {

// f(kind, index, connects) of every force element; what stands in the row of a joint has nothing of its own
template <class F>
void for_each_connectivity(const Plan& plan, const F& f) {
  for_each_kind([&]<class Kind>() {
    const std::vector<Kind>& elements = plan.mechanism.all<Kind>();
    for (int k = 0; k < static_cast<int>(elements.size()); ++k) {
      Connectivity connects = connectivity(elements[k], plan.constants<Kind>()[k]);
      if (plan.is_in_coordinate_row(elements[k])) connects.rows = 0, connects.own_tangent.clear();
      if (Stepped<Kind>::kMostRows > 1 && is_tuned<Kind>(plan.mechanism, k)) connects.rows = Stepped<Kind>::kMostRows;
      f(kind_of<Kind>, k, connects);
    }
  });
}

}  // namespace rigstep::index3
