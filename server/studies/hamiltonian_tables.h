// Tables 1 and 2 of [000], as printed. Offline.
#pragma once

#include "server/studies/hamiltonian_runs.h"

namespace rigstep::server {

// Table 2: wall-clock time [s] of HDCA and DCA, by case, integrator and tolerance from 1e-3 to 1e-9.
inline constexpr double kPaperSeconds[kCases][kIntegrators][kTolerances][2] = {
    {{{2.72, 2.07}, {2.91, 2.88}, {4.51, 4.23}, {6.83, 5.95}, {10.06, 9.17}, {15.49, 14.8}, {24.46, 144.94}},
     {{1.62, 1.97}, {1.86, 3}, {2.49, 3.66}, {3.16, 4.68}, {4.11, 5.41}, {4.78, 7.05}, {5.76, 34.34}},
     {{2.84, 3.22}, {4.4, 6.24}, {8.88, 13.18}, {18.85, 28.54}, {39.86, 61.85}, {85.25, 152.04}, {183.88, 498.54}}},
    {{{9.7, 8.03}, {13.06, 12.38}, {20.23, 17.91}, {31.49, 25.38}, {49.3, 38.36}, {77.72, 59.89}, {124.01, 95.72}},
     {{5.18, 8.98}, {7, 12.42}, {9.2, 16.45}, {11.84, 19.43}, {14.96, 23.96}, {17.89, 30.98}, {21.99, 63.6}},
     {{8.49, 13.3},
      {16.23, 26.31},
      {33.38, 56.68},
      {70.55, 122.22},
      {151.42, 263.58},
      {324.17, 571.81},
      {697.14, 1257.17}}},
    {{{8.43, 4.84}, {10.96, 6.8}, {16.68, 9.89}, {26.16, 14.73}, {40.47, 23.1}, {63.59, 36.41}, {99.9, 115.96}},
     {{5.23, 4.66}, {6.5, 6.54}, {8.3, 8.87}, {10.96, 10.49}, {13.2, 13.1}, {16.08, 23.33}, {18.39, 86.9}},
     {{9.55, 7.18},
      {18.38, 14.02},
      {38.02, 30.56},
      {80.01, 65.53},
      {172.23, 141.96},
      {371.33, 313.55},
      {799.48, 721.92}}}};
// Table 1: mean time of a right-hand side [ms], HDCA and DCA.
inline constexpr double kPaperMilliseconds[kCases][2] = {{5.203, 7.394}, {8.806, 13.388}, {15.278, 15.501}};

// Evaluations in 10 s: table 2 divided by table 1, as section 3.3 proposes. case_index from 0.
inline double paper_count(int case_index, int integrator, int tolerance, int form) {
  return 1e3 * kPaperSeconds[case_index][integrator][tolerance][form] / kPaperMilliseconds[case_index][form];
}

}  // namespace rigstep::server
