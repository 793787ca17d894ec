// How independent the reference solvers are of each other: solvers of one family differ in how they solve equations,
// not in how these come about. Families count as opinions, names do not. Offline.
#pragma once

#include <span>
#include <string_view>

namespace rigstep::offline {

struct Family {
  std::string_view name;
  std::string_view own;                       // what no other family has
  std::span<const std::string_view> solvers;  // names
};

// Every solver belongs to one of them. All families share core/offline/forces: applied loads, of which the tests have
// an evaluation of their own (tests/support/applied_loads.h).
std::span<const Family> families();
const Family& family_of(std::string_view solver);  // throws std::invalid_argument for no solver

}  // namespace rigstep::offline
