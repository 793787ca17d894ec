#include "server/view/recording_subject.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "proto/config_text.h"
#include "proto/recording_reader.h"
#include "server/live/replay.h"
#include "server/live/session.h"
#include "server/output/csv.h"
#include "server/view/messages.h"
#include "server/view/singular_poses.h"

namespace rigstep::server {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostFrames = 36'000;          // of a recording: ten minutes at 60 a second
constexpr std::size_t kMostTrackBytes = 192u << 20;  // of one recording
constexpr double kFrameRate = 120.0;                 // where the recording is short [1/s]
constexpr std::size_t kMostSteps = 1000;             // of steps(), one by one
constexpr std::size_t kMostStepBytes = 8u << 20;

// Beside the outputs.
std::vector<Channel> columns_of_recording(const Mechanism& m) {
  std::vector<Channel> columns = m.output_channels();
  for (const Channel& input : m.input_channels()) columns.push_back({"input " + input.name, input.unit});
  columns.push_back({"kinetic energy", "J"});
  columns.push_back({"potential energy", "J"});
  columns.push_back({"total energy", "J"});
  columns.push_back({"position residual", "m"});
  columns.push_back({"wake-up", "us"});
  columns.push_back({"step", "us"});
  return columns;
}

// The frames of a track as they come.
class TrackMaker {
 public:
  TrackMaker(const Mechanism& m, std::uint64_t every)
      : m_(m), every_(every), columns_(columns_of_recording(m).size()), values_(columns_), acting_(m), singular_(m) {}

  void see(const ReplayedStep& step) {
    if (step.state == nullptr) return;
    wake_up_ns_.record(step.recorded.wake_up_ns);
    step_ns_.record(step.recorded.step_ns);
    if (count_++ % every_ == 0 || step.recorded.status != StepStatus::ok) take(step);
  }

  // Of all steps that were seen.
  Json distributions() const {
    return {distribution_json("wake_up_ns", wake_up_ns_), distribution_json("step_ns", step_ns_)};
  }

  // Frames, bodies, columns and force numbers of a frame as counts; times [s], steps, marks, columns as doubles; poses
  // and forces as floats; little-endian.
  std::string message() const {
    std::string text;
    const std::size_t frames = time_.size();
    const std::uint32_t counts[4] = {static_cast<std::uint32_t>(frames), static_cast<std::uint32_t>(m_.bodies().size()),
                                     static_cast<std::uint32_t>(columns_),
                                     static_cast<std::uint32_t>(frames > 0 ? forces_.size() / frames : 0)};
    const auto append = [&text](const auto* numbers, std::size_t count) {
      text.append(reinterpret_cast<const char*>(numbers), count * sizeof *numbers);
    };
    append(counts, 4);
    for (const auto* column : {&time_, &step_, &marks_}) append(column->data(), column->size());
    for (const auto& column : values_) append(column.data(), column.size());
    append(poses_.data(), poses_.size());
    append(forces_.data(), forces_.size());
    return text;
  }

 private:
  void take(const ReplayedStep& step) {
    time_.push_back(exact_seconds(step.recorded.sim_time_ns));
    step_.push_back(static_cast<double>(step.recorded.step));
    std::uint32_t marks = 0;
    if (step.recorded.status == StepStatus::not_converged) marks |= kMarkNotConverged;
    if ((step.recorded.flags & kInaccurate) != 0) marks |= kMarkInaccurate;
    if (failed(step.recorded.status)) marks |= kMarkFaulted;
    if (singular_.margin(poses_of(*step.state)) < kNearSingular) marks |= kMarkNearSingular;
    marks_.push_back(marks);
    std::size_t column = 0;
    for (std::size_t k = 0; k < m_.output_channels().size(); ++k) values_[column++].push_back(step.outputs->value[k]);
    for (std::size_t k = 0; k < m_.input_channels().size(); ++k)
      values_[column++].push_back(step.recorded.inputs.value[k]);
    const index3::Energy energy = step.stepper->energy();
    for (const double value :
         {energy.kinetic, energy.potential, energy.kinetic + energy.potential, step.recorded.position_residual,
          1e-3 * static_cast<double>(step.recorded.wake_up_ns), 1e-3 * static_cast<double>(step.recorded.step_ns)})
      values_[column++].push_back(value);
    for (const index3::BodyState& b : step.state->body)
      for (const double x : {b.r[0], b.r[1], b.r[2], b.p[0], b.p[1], b.p[2], b.p[3]})
        poses_.push_back(static_cast<float>(x));
    const std::vector<float> forces = force_numbers(*step.stepper, step.recorded.inputs, acting_);
    forces_.insert(forces_.end(), forces.begin(), forces.end());
  }

  const Mechanism& m_;
  const std::uint64_t every_;
  const std::size_t columns_;
  std::uint64_t count_ = 0;
  std::vector<double> time_, step_, marks_;
  std::vector<std::vector<double>> values_;
  std::vector<float> poses_, forces_;
  ActingForces acting_;
  SingularPoses singular_;
  rt::Histogram wake_up_ns_, step_ns_;
};

// Of one frame of a track.
std::size_t frame_bytes(const Mechanism& m, std::size_t forces) {
  return 28 * m.bodies().size() + 8 * (columns_of_recording(m).size() + 3) + 24 * m.joints().size() + 36 * forces;
}

// Steps from one frame to the next.
std::uint64_t frame_every(const RunInfo& run, std::size_t bytes) {
  const std::size_t most = std::max<std::size_t>(1, std::min(kMostFrames, kMostTrackBytes / bytes));
  const auto by_count = (run.steps + most - 1) / most;
  const auto by_rate = static_cast<std::uint64_t>(1.0 / (kFrameRate * run.dt));
  return std::max<std::uint64_t>({1, by_count, by_rate});
}

std::string name_of(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

RecordingSubject::RecordingSubject(std::vector<std::string> paths) : paths_(std::move(paths)) {
  for (const std::string& path : paths_) {
    runs_.push_back(describe_run(path, {}));
    const wire::RecordingReader reader(path);
    loaded_.push_back(parse_mechanism_text(reader.header().mechanism_text(), path));
  }
  const Mechanism& m = loaded_[0].mechanism;
  for (std::size_t k = 1; k < loaded_.size(); ++k) {
    const Mechanism& other = loaded_[k].mechanism;
    if (other.bodies().size() != m.bodies().size() ||
        columns_of_recording(other).size() != columns_of_recording(m).size())
      throw config::ConfigError(paths_[k] + ": holds another mechanism than " + paths_[0] + ": view them one by one");
  }
  scene_ = make_scene(loaded_[0]);
  SceneContext context{.kind = "recording", .source = {}, .columns = columns_of_recording(m), .period = runs_[0].dt};
  context.in_loop = SingularPoses(m).in_loop();
  context.redundant = redundant_joints(m, rank_of_start(m));
  context.forces = ActingForces(m).list();
  frame_bytes_ = frame_bytes(m, context.forces.size());
  for (std::size_t k = 0; k < paths_.size(); ++k) {
    context.source += (k > 0 ? " and " : "") + name_of(paths_[k]);
    context.tracks.push_back(name_of(paths_[k]));
    context.events.push_back(runs_[k].events);
  }
  scene_message_ = scene_message(m, scene_, context);
  broadcast().publish(Broadcast::Kind::scene, "{}");
  thread_ = std::thread([this] { run(); });
}

RecordingSubject::~RecordingSubject() {
  stopping_ = true;
  thread_.join();
}

std::string RecordingSubject::mesh(std::size_t index) {
  return index < scene_.meshes.size() ? mesh_message(scene_.meshes[index]) : std::string();
}

std::shared_ptr<const std::string> RecordingSubject::track(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return index < tracks_.size() ? tracks_[index] : nullptr;
}

std::string RecordingSubject::steps(std::size_t index, std::uint64_t from) {
  if (index >= paths_.size()) return {};
  const std::unique_lock lock(stepping_, std::try_to_lock);
  if (!lock) throw Error("other steps are being replayed: try again");
  const std::size_t most = std::clamp<std::size_t>(kMostStepBytes / frame_bytes_, 2, kMostSteps);
  TrackMaker maker(loaded_[index].mechanism, 1);
  std::size_t taken = 0;
  replay(
      paths_[index], {},
      [&](const ReplayedStep& step) {
        if (step.recorded.step >= from && step.state != nullptr) maker.see(step), ++taken;
        return taken < most && !stopping_;
      },
      from);
  return taken > 0 ? maker.message() : std::string();
}

void RecordingSubject::publish(double progress, const std::string& problem) {
  std::size_t loaded = 0;
  Json distributions = Json::array();
  {
    const std::lock_guard lock(mutex_);
    loaded = tracks_.size();
    distributions = distributions_;
  }
  const Json status = {
      {"progress", progress}, {"loaded", loaded}, {"problem", problem}, {"distributions", distributions}};
  broadcast().publish(Broadcast::Kind::status, status.dump(-1, ' ', true, Json::error_handler_t::replace));
}

std::string RecordingSubject::replayed(const RunInfo& run, std::size_t index) {
  TrackMaker maker(loaded_[index].mechanism, frame_every(run, frame_bytes_));
  const double steps = static_cast<double>(std::max<std::uint64_t>(run.steps, 1));
  std::uint64_t seen = 0;
  const ReplayReport report = replay(paths_[index], {}, [&](const ReplayedStep& step) {
    maker.see(step);
    if (++seen % 2000 == 0) publish(static_cast<double>(seen) / steps, {});
    return !stopping_;
  });
  auto message = std::make_shared<const std::string>(maker.message());
  {
    const std::lock_guard lock(mutex_);
    tracks_.push_back(std::move(message));
    if (index == 0) distributions_ = maker.distributions();
  }
  if (!report.fault.empty()) return name_of(paths_[index]) + ": the run faulted " + report.fault;
  if (report.verdict == ReplayReport::Verdict::differs)
    return name_of(paths_[index]) + ": the replay differs from the recording: see rigstep replay";
  return report.damage.empty() ? std::string() : name_of(paths_[index]) + ": damaged at " + report.damage;
}

void RecordingSubject::run() {
  std::string problem;
  publish(0.0, problem);
  for (std::size_t k = 0; k < paths_.size() && !stopping_; ++k) {
    try {
      const std::string found = replayed(runs_[k], k);
      if (!found.empty()) problem += (problem.empty() ? "" : "\n") + found;
    } catch (const Error& error) {
      problem += (problem.empty() ? "" : "\n") + std::string(error.what());
    }
    publish(k + 1 < paths_.size() ? 0.0 : 1.0, problem);
  }
}

}  // namespace rigstep::server
