#include "server/view/still.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "core/index3/stepper.h"
#include "core/mechanism/nearest_names.h"
#include "proto/recording_reader.h"
#include "server/live/replay.h"
#include "server/live/session.h"
#include "server/output/csv.h"

namespace rigstep::server {
namespace {

constexpr double kMostPoints = 4000.0;  // of a trace

Scene::Point traced_point(const Mechanism& m, const std::string& text) {
  const std::string name = text.substr(0, text.find(':'));
  Scene::Point point;
  for (int i = 0; i < static_cast<int>(m.bodies().size()); ++i)
    if (m.bodies()[static_cast<std::size_t>(i)].name == name) point.body = i;
  if (point.body == kGround)
    throw config::ConfigError("--trace: " + text + ": there is no body \"" + name +
                              "\": rigstep check lists those that there are");
  if (name.size() == text.size()) return point;
  std::istringstream parts(text.substr(name.size() + 1));
  std::string part;
  int k = 0;
  for (; k < 3 && std::getline(parts, part, ','); ++k) {
    const auto value = finite_number(part);
    if (!value) break;
    point.point_b[k] = *value;
  }
  if (k < 3 || !parts.eof())
    throw config::ConfigError("--trace: " + text +
                              ": is no point: write BODY:x,y,z in metres from the mass centre, body frame");
  return point;
}

// What a picture needs of a run, kept as it goes by.
class Watcher {
 public:
  Watcher(const config::LoadedMechanism& loaded, const StillOptions& options)
      : loaded_(loaded), picture_(options.picture), interval_(options.time / kMostPoints) {
    for (const std::string& text : options.traces) traced_.push_back(traced_point(loaded.mechanism, text));
    picture_.traces.resize(traced_.size());
  }

  void see(double time, const index3::State& state) {
    poses_ = poses_of(state);
    time_ = time;
    if (time < next_trace_) return;
    next_trace_ = time + interval_;
    for (std::size_t k = 0; k < traced_.size(); ++k) picture_.traces[k].push_back(in_world(traced_[k], poses_));
  }

  std::string drawn() {
    if (picture_.caption.empty()) picture_.caption = fmt::format("{}, t = {:.6g} s", loaded_.mechanism.name(), time_);
    return draw(loaded_.mechanism, make_scene(loaded_), poses_, picture_);
  }

 private:
  const config::LoadedMechanism& loaded_;
  PictureOptions picture_;
  std::vector<Scene::Point> traced_;
  Poses poses_;
  double time_ = 0.0, next_trace_ = 0.0, interval_;  // [s]
};

std::string picture_of_recording(const StillOptions& options) {
  const wire::RecordingReader reader(options.source);
  const config::LoadedMechanism loaded = parse_mechanism_text(reader.header().mechanism_text(), options.source);
  Watcher watcher(loaded, options);
  bool seen = false, reached = false;
  const auto watch = [&](const ReplayedStep& step) {
    const double time = exact_seconds(step.recorded.sim_time_ns);
    if (step.state != nullptr) watcher.see(time, *step.state), seen = true;
    reached = time >= options.time;
    return !reached;
  };
  const ReplayReport report = replay(options.source, {}, watch);
  if (!seen) throw wire::RecordingError(options.source, "holds no step that can be replayed", "name another recording");
  if (!reached)
    throw config::ConfigError(
        fmt::format("--time: {:g} s is after the end of the recording: rigstep info tells its length", options.time));
  return watcher.drawn();
}

std::string picture_of_mechanism(const StillOptions& options) {
  const config::LoadedMechanism loaded = load_mechanism_file(options.source);
  index3::Settings settings;
  settings.dt_ns = std::llround(1e9 * options.dt);
  index3::Stepper stepper = make_stepper(loaded, settings);
  Watcher watcher(loaded, options);
  watcher.see(0.0, stepper.state());
  const Inputs inputs{};
  for (std::int64_t k = 1; static_cast<double>(k) * options.dt <= options.time + 1e-9; ++k) {
    const StepReport report = stepper.step(inputs);
    if (failed(report.status))
      throw Error(options.source + ": " +
                  describe_fault(loaded.mechanism, report.status, report.body, report.joint, report.output));
    watcher.see(static_cast<double>(k) * options.dt, stepper.state());
  }
  return watcher.drawn();
}

}  // namespace

bool is_recording(const std::string& path) { return path.ends_with(".mcap"); }

std::string still_picture(const StillOptions& options) {
  return is_recording(options.source) ? picture_of_recording(options) : picture_of_mechanism(options);
}

}  // namespace rigstep::server
