// What the descriptions of all force elements share.
//
// A kind is a struct E of its own file, with a `name`, the constants
//   kName      as the schema calls it
//   kPlural    as reports count it
//   kIsScalar  it acts along one scalar, and a force_element output shows its deflection, rate and effort
// and the functions, found by the type of the element:
//   void connect(E&, MechanismBuilder&, where...)          finds what it acts on by name, and checks its numbers
//   void check_numbers(const E&)                           what its numbers must be; what is allowed is a convex set
//   std::span<const Number<E>> numbers(const E&)           those that a parameter may name
//   void add(ContentHash&, const E&)                       what makes it different from another
//   std::vector<Channel> channels(const E&, const Mechanism&)  of the output that shows it
// list.h enumerates the kinds.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/mechanism/freedom.h"
#include "core/mechanism/number.h"
#include "core/mechanism/types.h"

namespace rigstep {

class Mechanism;
class MechanismBuilder;
class ContentHash;
struct Channel;

// A followed joint freedom, and the bodies of its joint.
struct AlongFreedom {
  int coordinate = -1;  // index into Mechanism::coordinates()
  int first = kGround;
  int second = kGround;
};

// Channels .deflection, .rate and .effort [m, m/s, N] or [rad, rad/s, N m].
std::vector<Channel> scalar_channels(bool along_length);
std::vector<Channel> scalar_channels(const Mechanism& mechanism, int coordinate);

// The body, which must not be the ground; `what`: "a tyre".
int require_moving(int body, const char* what);

}  // namespace rigstep
