#include "server/studies/complement_runs.h"

#include <algorithm>
#include <ctime>

#include "core/offline/compare.h"
#include "core/offline/featherstone_dca.h"
#include "proto/load_mechanism.h"

namespace rigstep::server {

namespace {

// What else the machine does is not counted.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

offline::Scenario scenario(const Mechanism& mechanism, std::vector<double> instants) {
  offline::Scenario of;
  of.mechanism = &mechanism;
  of.instants = std::move(instants);
  return of;
}

offline::ComplementSettings settings_of(const StrutRun& sample) {
  offline::ComplementSettings settings;
  settings.method = kComplementList[sample.method].complement;
  settings.stabilisation = kStabilisation[sample.stabilisation];
  settings.velocity_tolerance = std::numeric_limits<double>::infinity();  // the paper corrects positions alone
  return settings;
}

offline::Options options_of(const StrutRun& sample) {
  offline::Options options;
  options.relative_tolerance = options.absolute_tolerance = kStrutTolerances[sample.tolerance];
  return options;
}

void simulate(const Struts& struts, StrutRun& sample) {
  const Mechanism& mechanism = struts.mechanism[sample.strut];
  try {
    sample.run =
        offline::natural_complement(scenario(mechanism, struts.instants), options_of(sample), settings_of(sample));
  } catch (const offline::SolverError& failed) {
    sample.gave_up = failed.what();
    return;
  }
  for (std::size_t level = 0; level < kLevelCount; ++level)
    for (const offline::Instant& at : sample.run.trajectory.instants)
      sample.drift[level] = std::max(sample.drift[level], at.*kLevels[level]);
  sample.error =
      offline::compare(mechanism, struts.reference[sample.strut].instants, sample.run.trajectory.instants, {})
          .largest(offline::Quantity::position);
}

void time_once(const Struts& struts, StrutRun& sample) {
  const offline::Scenario whole = scenario(struts.mechanism[sample.strut], {0.0, struts.instants.back()});
  const double begin = processor_seconds();
  offline::natural_complement(whole, options_of(sample), settings_of(sample));
  sample.seconds.push_back(processor_seconds() - begin);
}

// All methods in one case: they take turns, so that what else the machine does hits all of them.
void simulate_case(const Struts& struts, int timed_runs, std::span<StrutRun> methods,
                   const std::function<void()>& tell) {
  for (StrutRun& sample : methods) {
    simulate(struts, sample);
    tell();
  }
  for (int k = 0; k < timed_runs; ++k)
    for (StrutRun& sample : methods) {
      if (sample.done()) time_once(struts, sample);
      tell();
    }
  for (StrutRun& sample : methods) std::sort(sample.seconds.begin(), sample.seconds.end());
}

}  // namespace

Struts load_struts(const StudyRequest& study) {
  const double duration = study.quick ? 0.2 : 10.0;
  const int intervals = study.quick ? 20 : 100;
  Struts struts;
  for (int k = 0; k <= intervals; ++k) struts.instants.push_back(duration * k / intervals);
  offline::Options fine;
  fine.relative_tolerance = fine.absolute_tolerance = kReferenceTolerance;
  for (std::size_t s = 0; s < kStruts; ++s) {
    struts.mechanism[s] = config::load_mechanism(study.mechanism_file(kStrutFiles[s])).mechanism;
    struts.reference[s] = offline::featherstone_dca(scenario(struts.mechanism[s], struts.instants), fine);
  }
  return struts;
}

Results simulate_all(const StudyRequest& study, const Struts& struts) {
  const int timed_runs = study.brief_times ? 1 : 3;
  Results results;
  results.tolerances = study.quick ? 2 : std::size(kStrutTolerances);
  const double all =
      static_cast<double>(kStruts * kStabilisations * results.tolerances * kComplements) * (1.0 + timed_runs);
  double done = 0.0;
  for (std::size_t s = 0; s < kStruts; ++s)
    for (std::size_t stabilisation = 0; stabilisation < kStabilisations; ++stabilisation)
      for (std::size_t t = 0; t < results.tolerances; ++t) {
        std::vector<StrutRun> methods(kComplements);
        for (std::size_t m = 0; m < kComplements; ++m) {
          methods[m].strut = s, methods[m].stabilisation = stabilisation, methods[m].tolerance = t,
          methods[m].method = m;
        }
        simulate_case(struts, timed_runs, methods, [&] { study.progress(++done / all); });
        for (StrutRun& sample : methods) results.samples.push_back(std::move(sample));
      }
  return results;
}

}  // namespace rigstep::server
