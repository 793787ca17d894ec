// Load-time compiler: from a mechanism's topology to a flat list of operations over one arena.
//
// A compound body is a set of bodies with joints still pending to the outside; it stores only the compliance between
// those. An operation (front) makes one compound: a leaf from one body, or a merge of two compounds that eliminates
// the joints between them, which is block elimination of the dual system (compliance + J M^-1 J') Lambda = b in the
// order of the tree. The ground is a partner without compliance: its joints are eliminated with the body's own leaf.
// Any topology: a loop closes when two compounds share several joints.
#pragma once

#include <cstddef>
#include <vector>

#include "core/index3/stepper.h"
#include "core/mechanism/mechanism.h"

namespace rigstep::index3 {

// Two bodies, or a body and the ground, with rows between them: a joint, or an element that is eliminated like one.
struct Connection {
  enum class Kind { joint, bushing, spring, friction, motor } kind;
  int index;  // among the mechanism's elements of this kind
  int first, second;
};
// Joints, then bushings, then springs, frictions and motors between two moving bodies.
std::vector<Connection> connections(const Mechanism& mechanism);

struct Front {
  int body = -1;              // leaf: its body
  int left = -1, right = -1;  // merge: the two compounds, as indices of earlier fronts
  int eliminated = 0;         // rows eliminated here; they come first
  int pending = 0;            // rows left open for later
  int first_row = 0;          // into Elimination::row: the front's rows as global constraint rows
  int left_place = 0;         // into Elimination::place: where each pending row of `left` goes in this front
  int right_place = 0;
  std::size_t matrix = 0;  // offset of its (size x size) matrix, column-major, lower half used
  std::size_t vector = 0;  // offset of its right-hand side
  int size() const { return eliminated + pending; }
};

struct Elimination {
  std::vector<Front> fronts;  // children before parents
  std::vector<int> row;
  std::vector<int> place;
  std::size_t matrix_doubles = 0;  // of all fronts together
  std::size_t vector_doubles = 0;
  int largest_front = 0;   // rows
  int levels = 0;          // longest chain of operations
  long multiply_adds = 0;  // per factorisation, leaves included
};

// first_row[c]: global row where connection c begins; one more entry at the end.
Elimination compile(const Mechanism& mechanism, const std::vector<int>& first_row, MergeOrder order);

}  // namespace rigstep::index3
