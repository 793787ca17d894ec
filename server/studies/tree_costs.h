// What an evaluation of the tree methods of [003] costs: table 1 of the paper, and the same in closed form for
// core/offline/tree_methods. Offline.
#pragma once

#include <vector>

#include "core/offline/tree_methods.h"

namespace rigstep::server {

// k and n of the paper; the inner body of a body comes before it.
struct TreeShape {
  std::vector<int> inner;     // (N) -1: the ground
  std::vector<int> freedoms;  // (N)
};

TreeShape chain_shape(int bodies, int freedoms);
TreeShape carousel_shape(int bodies, int freedoms);  // all on the first one
TreeShape binary_tree_shape(int bodies, int freedoms);
TreeShape chains_shape(int chains, int length, int freedoms);  // on a first body that hangs like the others

// Operations by table 1; the methods by their matrices: extended (EMH by algorithm 2), tangent (DAH), orthogonal (HZU).
// Throws std::invalid_argument for algorithm 1, which the table does not have.
double table_1(offline::TreeMatrix matrix, const TreeShape& shape);

// What offline::TreeSolver does with the same shape, exactly: what its counting scalar counts. Throws as table_1.
double closed_form_operations(offline::TreeMatrix matrix, const TreeShape& shape);

// Of (23), which table 1 does not tell apart.
double momentum_rate_operations(const TreeShape& shape);

}  // namespace rigstep::server
