// The runs that the study of [000] makes, and what single ones show. Offline.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/offline/solver.h"
#include "server/studies/study.h"

namespace rigstep::server {

inline constexpr int kCases = 3, kIntegrators = 3, kTolerances = 7;
inline constexpr int kAccuracy = 3;  // index of the tolerance of figures 5 to 9: 1e-6

struct IntegratorName {
  offline::Integrator integrator;
  const char* matlab;
};
inline constexpr IntegratorName kIntegratorNames[kIntegrators] = {{offline::Integrator::ode45, "ode45"},
                                                                  {offline::Integrator::ode113, "ode113"},
                                                                  {offline::Integrator::ode23, "ode23"}};
inline constexpr const char* kForms[2] = {"HDCA", "DCA"};

using Pair = std::array<offline::Trajectory, 2>;  // HDCA, DCA

struct PaperCase {
  int number = 0;
  Mechanism mechanism;
  int K_body = 0;                                               // whose point K is
  Vec3 K_point = Vec3::Zero();                                  // from its mass centre, body frame [m]
  std::array<Pair, kTolerances> accuracy;                       // with instants, by Dormand-Prince
  std::array<std::array<Pair, kTolerances>, kIntegrators> run;  // without
  std::array<double, 2> evaluation_us{};                        // median of single evaluations that take turns
  std::array<std::optional<long>, 2> instructions;              // of one; none where they cannot be counted
};

double tolerance(int index);
std::vector<int> tolerances(const StudyRequest& study);  // indices

// tell: after each run.
PaperCase run_case(const StudyRequest& study, int number, const std::function<void()>& tell);

// Of 10 s by ode45; form: 0 HDCA, 1 DCA.
long count_evaluations(int form, const Mechanism& mechanism, double tolerance);

// Height and vertical velocity of K [m] [m/s].
std::array<double, 2> height_of_K(const PaperCase& c, const offline::Instant& at);
double energy_error(const offline::Trajectory& run, std::size_t k);  // at an instant [J]
double largest_energy_error(const offline::Trajectory& run);         // [J]
double largest(const offline::Trajectory& run, double offline::Instant::*residual);
// Power of time with which a violation grows: of the running maximum, from the first fifth of the run to its end.
double growth(const offline::Trajectory& run, double offline::Instant::*residual);
double count_ratio(const Pair& run);  // evaluations of DCA / HDCA

}  // namespace rigstep::server
