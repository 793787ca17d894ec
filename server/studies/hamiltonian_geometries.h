// The starting positions of [000], its figure 4, are not in its text: which shapes take the paper's evaluations, and
// what the order of the joints does. Offline.
#pragma once

#include <string>
#include <vector>

#include "server/studies/study.h"

namespace rigstep::server {

// Evaluations that ode45 takes for 10 s at 1e-6, by form: HDCA, DCA.
struct GeometryTrial {
  int number = 0;           // of the paper's case
  std::string shape;        // in words
  bool of_study = false;    // the study's mechanism of that case has it
  long as_written[2] = {};  // joints chain by chain
  Range orders[2];          // over all orders of the joints that were tried, that one included
};

// How many orders of the joints each shape is tried with.
int joint_orders();

// None in quick runs. Writes geometries.csv.
std::vector<GeometryTrial> try_geometries(const StudyRequest& study);

// The table of the page; empty if there are none.
std::string geometry_table(const std::vector<GeometryTrial>& trials);

}  // namespace rigstep::server
