#include "server/live/offline_start.h"

#include <utility>

#include "rt/cycle.h"
#include "server/live/session.h"
#include "server/live/snapshot.h"

namespace rigstep::server {

namespace {

index3::Settings with_threads(index3::Settings settings, int threads) {
  settings.threads = threads;
  return settings;
}

}  // namespace

OfflineStart::OfflineStart(config::LoadedMechanism loaded, const index3::Settings& settings)
    : mechanism(std::move(loaded)), stepper(make_stepper(mechanism, settings)), ramps(mechanism.mechanism) {
  inputs.count = static_cast<int>(mechanism.mechanism.input_channels().size());
}

OfflineStart::OfflineStart(const wire::SnapshotFile& snapshot, const std::string& path, int threads)
    : OfflineStart(config::mechanism_of(snapshot, path), with_threads(settings_of(snapshot), threads)) {
  const rt::SavedRun run = run_in(snapshot, path, mechanism.mechanism, stepper.settings(), stepper.state());
  rt::Cycle(stepper, {}, {}).resume(run);
  inputs = run.numbers.applied;
  ramps.resume({run.numbers.ramp.data(), mechanism.mechanism.parameters().size()});
}

bool OfflineStart::change_parameters() {
  const auto due = ramps.due(stepper.state().step + 1, false);
  return !due.empty() && stepper.set_parameters(due);
}

}  // namespace rigstep::server
