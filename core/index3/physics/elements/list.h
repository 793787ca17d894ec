// How a step treats each kind of force element; see element.h.
#pragma once

#include <type_traits>

#include "core/index3/physics/elements/bushing.h"
#include "core/index3/physics/elements/drag.h"
#include "core/index3/physics/elements/effort.h"
#include "core/index3/physics/elements/friction.h"
#include "core/index3/physics/elements/motor.h"
#include "core/index3/physics/elements/rope.h"
#include "core/index3/physics/elements/spring.h"
#include "core/index3/physics/elements/stop.h"
#include "core/index3/physics/elements/tyre.h"
#include "core/mechanism/elements/list.h"

namespace rigstep::index3 {

// f.template operator()<Kind>() for each kind, in the order in which a step sums loads: this one for the four kinds
// that were first, that of the list for all others. The order decides about the last bits of a result.
template <class F>
void for_each_kind_summed(F&& f) {
  using First = KindList<Spring, AppliedEffort, JointFriction, Motor>;
  First::for_each(f);
  for_each_kind([&]<class Kind>() {
    if constexpr (!First::has<Kind>) f.template operator()<Kind>();
  });
}

// What an element of this kind keeps of the begin of a step.
struct NothingKept {
  double nothing;
};
template <class Kind>
struct StartOfKind {
  using Type = NothingKept;
};
template <ActsOverStep Kind>
struct StartOfKind<Kind> {
  using Type = typename Stepped<Kind>::Start;
};
template <class Kind>
using StartOf = typename StartOfKind<Kind>::Type;

}  // namespace rigstep::index3
