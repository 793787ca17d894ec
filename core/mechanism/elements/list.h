// The kinds of force elements. Whoever walks over force elements walks over this list, so that a kind that is
// forgotten somewhere does not compile.
#pragma once

#include <tuple>
#include <type_traits>
#include <vector>

#include "core/mechanism/elements/bushing.h"
#include "core/mechanism/elements/drag.h"
#include "core/mechanism/elements/effort.h"
#include "core/mechanism/elements/friction.h"
#include "core/mechanism/elements/motor.h"
#include "core/mechanism/elements/rope.h"
#include "core/mechanism/elements/spring.h"
#include "core/mechanism/elements/stop.h"
#include "core/mechanism/elements/tyre.h"

namespace rigstep {

template <class... Kinds>
struct KindList {
  static constexpr int kCount = static_cast<int>(sizeof...(Kinds));
  using Vectors = std::tuple<std::vector<Kinds>...>;
  template <template <class> class Of>
  using VectorsOf = std::tuple<std::vector<Of<Kinds>>...>;

  template <class Kind>
  static constexpr bool has = (std::is_same_v<Kind, Kinds> || ...);

  // f.template operator()<Kind>() for each kind, in the order of the list.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<Kinds>(), ...);
  }

  // The kind's place in the list.
  template <class Kind>
  static constexpr int place() {
    static_assert(has<Kind>, "a kind that list.h does not name");
    int k = 0, found = -1;
    ((found = std::is_same_v<Kind, Kinds> ? k : found, ++k), ...);
    return found;
  }
};

// New kinds stand at the end: the identity of a mechanism is made in this order.
using ElementKinds = KindList<Spring, Bushing, JointFriction, Motor, AppliedEffort, Drag, Tyre, Stop, Rope>;

template <class Kind>
inline constexpr int kind_of = ElementKinds::place<Kind>();

template <class F>
constexpr void for_each_kind(F&& f) {
  ElementKinds::for_each(f);
}

// f.template operator()<Kind>() for the kind at this place of the list.
template <class F>
constexpr void visit_kind(int kind, F&& f) {
  ElementKinds::for_each([&]<class Kind>() {
    if (kind == kind_of<Kind>) f.template operator()<Kind>();
  });
}

}  // namespace rigstep
