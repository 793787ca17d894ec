// The runs that the study of [002] makes: eight methods, three stabilisations, four tolerances, two struts. Offline.
#pragma once

#include <array>
#include <limits>
#include <vector>

#include "core/offline/natural_complement.h"
#include "server/studies/study.h"

namespace rigstep::server {

inline constexpr std::size_t kStruts = 2, kStabilisations = 3, kComplements = 8;
inline constexpr std::size_t kSimplified = 0, kRedundant = 1;  // struts
inline constexpr std::size_t kNone = 0, kBaumgarte = 1, kNewton = 2;
inline constexpr const char* kStrutFiles[kStruts] = {"mcpherson", "mcpherson_redundant"};
inline constexpr const char* kStrutNames[kStruts] = {"simplified", "redundant"};
inline constexpr const char* kStabilisationNames[kStabilisations] = {"none", "Baumgarte", "Newton-Raphson"};
inline constexpr offline::Stabilisation kStabilisation[kStabilisations] = {
    offline::Stabilisation::none, offline::Stabilisation::baumgarte, offline::Stabilisation::newton_raphson};
inline constexpr double kStrutTolerances[] = {1e-3, 1e-6, 1e-8, 1e-10};  // of section 4.1
inline constexpr double kReferenceTolerance = 1e-12;
inline constexpr int kIndependent = 26;  // constraints of both struts: 30 coordinates, 4 freedoms

struct ComplementMethod {
  offline::Complement complement;
  const char* name;
};
enum MethodIndex : std::size_t { kZero, kSchur, kPutdH, kPutdG, kSvd, kQr, kPartitioning, kWangHuston };
inline constexpr ComplementMethod kComplementList[kComplements] = {
    {offline::Complement::zero_eigenvalue, "zero eigenvalue"},
    {offline::Complement::schur, "Schur"},
    {offline::Complement::putd_householder, "PUTD-H"},
    {offline::Complement::putd_gauss, "PUTD-G"},
    {offline::Complement::svd, "SVD"},
    {offline::Complement::qr, "QR"},
    {offline::Complement::partitioning, "partitioning"},
    {offline::Complement::wang_huston, "Wang-Huston"}};

// Largest row of the constraints: positions [m, rad], velocities [m/s, rad/s], accelerations [m/s^2, rad/s^2].
inline constexpr double offline::Instant::*kLevels[] = {&offline::Instant::position_residual,
                                                        &offline::Instant::velocity_residual,
                                                        &offline::Instant::acceleration_residual};
inline constexpr std::size_t kLevelCount = std::size(kLevels);
inline constexpr const char* kLevelNames[kLevelCount] = {"positions", "velocities", "accelerations"};
inline constexpr const char* kLevelUnits[kLevelCount] = {"m, rad", "m/s, rad/s", "m/s^2, rad/s^2"};

// One method with one stabilisation at one tolerance.
struct StrutRun {
  std::size_t strut = 0, stabilisation = 0, tolerance = 0, method = 0;
  std::vector<double> seconds;  // ascending; of each timed run
  offline::ComplementRun run;   // with instants
  std::array<double, kLevelCount> drift{};
  double error = 0.0;   // largest distance of a mass centre from the reference [m]
  std::string gave_up;  // why; empty: it did not
  double median() const { return seconds[seconds.size() / 2]; }
  bool done() const { return gave_up.empty(); }
};

struct Struts {
  std::array<Mechanism, kStruts> mechanism;
  std::array<offline::Trajectory, kStruts> reference;
  std::vector<double> instants;
};

// The whole experiment, struts slowest, methods fastest.
struct Results {
  std::size_t tolerances = 0;
  std::vector<StrutRun> samples;
  const StrutRun& at(std::size_t strut, std::size_t stabilisation, std::size_t tolerance, std::size_t method) const {
    return samples[((strut * kStabilisations + stabilisation) * tolerances + tolerance) * kComplements + method];
  }
};

Struts load_struts(const StudyRequest& study);
Results simulate_all(const StudyRequest& study, const Struts& struts);

// Calls with the eight samples of every strut, stabilisation and tolerance.
template <class Call>
void for_cases(const Results& results, const Call& call) {
  for (std::size_t first = 0; first < results.samples.size(); first += kComplements) call(&results.samples[first]);
}

}  // namespace rigstep::server
