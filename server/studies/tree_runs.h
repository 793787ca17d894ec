// The runs and counts that the study of [003] makes. Offline.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/offline/tree_hamiltonian.h"
#include "server/studies/study.h"
#include "server/studies/tree.h"

namespace rigstep::server {

struct MatrixMethod {
  offline::TreeMatrix matrix;
  const char* name;
};
inline constexpr MatrixMethod kMethods[] = {{offline::TreeMatrix::extended_ltdl, "EMH"},
                                            {offline::TreeMatrix::tangent, "DAH"},
                                            {offline::TreeMatrix::orthogonal, "HZU"}};
inline constexpr std::size_t kMethodCount = std::size(kMethods);

struct Structure {
  const char* name;
  TreeShape (*shape)(int bodies, int freedoms);
  offline::TreeMatrix cubic;  // of the method that suffers
};
inline constexpr Structure kStructures[] = {{"chain", chain_shape, offline::TreeMatrix::tangent},
                                            {"carousel", carousel_shape, offline::TreeMatrix::orthogonal},
                                            {"binary tree", binary_tree_shape, offline::TreeMatrix::extended_ltdl}};
inline constexpr std::size_t kStructureCount = std::size(kStructures);
inline constexpr int kHinges = 3;           // of figures 6 to 8: one, two and three freedoms
inline constexpr int kMostFreedoms = 5;     // of the diagrams
inline constexpr double kStepperDt = 0.01;  // [s]

// One mechanism of figures 6 to 8.
struct TreeSample {
  std::size_t structure = 0;
  int freedoms = 0, bodies = 0;
  struct Of {
    offline::TreeOperations operations;
    double table = 0.0, solve_us = 0.0, evaluate_us = 0.0;
  } method[kMethodCount];
  long sweep_lu = 0;        // operations of algorithm 1
  long momentum_rates = 0;  // operations of (23)
  double stepper_us = 0.0;
};

// The pipelayer by every method.
struct Pipelayer {
  struct Run {
    std::string name;
    offline::Trajectory trajectory;
    double apart = 0.0;          // largest distance from the first run [m]
    double energy_change = 0.0;  // [J]
  };
  std::vector<Run> runs;
  double stepper_us = 0.0;
  TreeShape shape;
  long counted[kMethodCount] = {};
};

// Which method takes the fewest operations for chains on a body.
struct Selection {
  int freedoms = 0;
  std::vector<int> table, counted;  // (chains x lengths) index of the method
};

// Operations of one solution of (22), (30) or (37).
offline::TreeOperations count_operations(offline::TreeMatrix matrix, const offline::TreeSystem<double>& system);
// ... for a tree of some shape at its start.
double count_operations(offline::TreeMatrix matrix, const TreeShape& shape);

std::vector<TreeSample> measure_trees(const StudyRequest& study, const std::function<void()>& tell);
std::size_t tree_sample_count(const StudyRequest& study);
Pipelayer run_pipelayer(const StudyRequest& study, const std::function<void()>& tell);

}  // namespace rigstep::server
