#include "server/view/mechanism_subject.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "rt/thread_setup.h"
#include "server/live/session.h"
#include "server/view/messages.h"

namespace rigstep::server {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr double kDt = 1e-3;  // [s]
constexpr auto kFrame = std::chrono::microseconds(16'667);
constexpr double kMostWork = 0.05;  // of a frame, else it falls behind the clock [s]
constexpr const char* kPull = "page_pull_";

// Beside the outputs of the file.
std::vector<Channel> columns_of_mechanism(const Mechanism& m) {
  std::vector<Channel> columns{
      {"kinetic energy", "J"}, {"potential energy", "J"}, {"total energy", "J"}, {"position residual", "m"}};
  columns.insert(columns.begin(), m.output_channels().begin(), m.output_channels().end());
  return columns;
}

Vec3 vector_in(const Json& json) {
  const auto numbers = json.get<std::array<double, 3>>();
  const Vec3 v(numbers[0], numbers[1], numbers[2]);
  if (!(v.cwiseAbs().maxCoeff() < 1e9)) throw Error("a point is out of bounds");
  return v;
}

// The same mechanism with three forces at the point that is pulled; its states are those of the mechanism.
std::string with_pull(const config::LoadedMechanism& loaded, int body, const Vec3& point) {
  std::string text = loaded.text;
  for (const char axis : {'x', 'y', 'z'})
    text += fmt::format(
        "\ninput {{ name: \"{}{}\" body_force {{ body: \"{}\" direction {{ {}: 1 }} point {{ x: {:.17g} y: {:.17g} z: "
        "{:.17g} }} }} }}",
        kPull, axis, loaded.mechanism.bodies()[static_cast<std::size_t>(body)].name, axis, point[0], point[1],
        point[2]);
  return text;
}

}  // namespace

MechanismSubject::MechanismSubject(std::string path) : path_(std::move(path)) {
  std::error_code error;
  changed_ = std::filesystem::last_write_time(path_, error);
  try {
    load();
  } catch (const Error& wrong) {
    if (error) throw;
    problem_ = wrong.what();
    loaded_ = parse_mechanism_text(
        "name: \"nothing_to_show_yet\" body { name: \"none\" mass: 1 inertia { xx: 1 yy: 1 zz: 1 } }", path_);
    begin();
  }
  thread_ = std::thread([this] { run(); });
}

MechanismSubject::~MechanismSubject() {
  stopping_ = true;
  thread_.join();
}

std::string MechanismSubject::scene() {
  const std::lock_guard lock(mutex_);
  return scene_message_;
}

std::string MechanismSubject::mesh(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return index < scene_.meshes.size() ? mesh_message(scene_.meshes[index]) : std::string();
}

// Throws Error and leaves what is shown.
void MechanismSubject::load() {
  config::LoadedMechanism loaded = load_mechanism_file(path_);
  loaded_ = std::move(loaded);
  problem_.clear();
  begin();
}

void MechanismSubject::begin() {
  scene_ = make_scene(*loaded_);
  SceneContext context{
      .kind = "mechanism", .source = path_, .columns = columns_of_mechanism(loaded_->mechanism), .period = kDt};
  const std::optional<index3::StartRank> rank = rank_of_start(loaded_->mechanism);
  context.findings = find_problems(loaded_->mechanism, rank ? &*rank : nullptr);
  playing_ = false;
  drag_.reset();
  behind_ = 0.0;
  failed_body_ = failed_joint_ = -1;
  report_ = StepReport();
  inputs_ = Inputs();
  stepper_.reset();
  forces_.reset();
  singular_ = std::make_unique<SingularPoses>(loaded_->mechanism);
  context.in_loop = singular_->in_loop();
  context.redundant = redundant_joints(loaded_->mechanism, rank);
  try {
    stepper_ = std::make_unique<index3::Stepper>(make_stepper(*loaded_, {}));
    stepper_->read_outputs(report_, outputs_);
    forces_ = std::make_unique<ActingForces>(loaded_->mechanism);
    context.forces = forces_->list();
  } catch (const Error& error) {
    if (problem_.empty()) problem_ = error.what();
  }
  scene_message_ = scene_message(loaded_->mechanism, scene_, context);
  broadcast().publish(Broadcast::Kind::scene, "{}");
  publish_motion();
  publish_status();
}

void MechanismSubject::reload_if_changed() {
  std::error_code error;
  const auto now = std::filesystem::last_write_time(path_, error);
  if (error || now == changed_) return;
  changed_ = now;
  const bool was_playing = playing_;
  try {
    load();
    playing_ = was_playing && stepper_ != nullptr;
    publish_status();
  } catch (const Error& wrong) {
    problem_ = wrong.what();
    publish_status();
  }
}

void MechanismSubject::run() {
  rt::set_floating_point_mode();
  auto next = Clock::now();
  for (int frame = 0; !stopping_; ++frame) {
    next += kFrame;
    std::this_thread::sleep_until(next);
    if (Clock::now() - next > std::chrono::seconds(1)) next = Clock::now();
    const std::lock_guard lock(mutex_);
    if (frame % 12 == 0) reload_if_changed();
    if (playing_) advance(speed_ * std::chrono::duration<double>(kFrame).count());
  }
}

void MechanismSubject::advance(double seconds) {
  behind_ = std::min(behind_ + seconds, kMostWork);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kMostWork));
  bool moved = false;
  for (; behind_ >= kDt && playing_ && Clock::now() < end; behind_ -= kDt) moved = step() || moved;
  if (moved) publish_motion();
}

bool MechanismSubject::step() {
  if (stepper_ == nullptr) return false;
  if (drag_) {
    // a spring and damper that move the body's mass within a fifth of a second
    const Body& body = stepper_->mechanism().bodies()[static_cast<std::size_t>(drag_->body)];
    const index3::BodyState& x = stepper_->state().body[static_cast<std::size_t>(drag_->body)];
    const Mat3 A = rotation_of(x.p);
    const Vec3 arm = A * drag_->point_b, velocity = x.v + A * x.w_b.cross(drag_->point_b);
    const double omega = 2.0 * 3.141592653589793 / 0.5;
    const Vec3 force = body.mass * omega * (omega * (drag_->target_0 - x.r - arm) - 1.4 * velocity);
    const auto first = static_cast<std::size_t>(stepper_->mechanism().input_channels().size() - 3);
    for (std::size_t k = 0; k < 3; ++k) inputs_.value[first + k] = force[static_cast<Eigen::Index>(k)];
  }
  report_ = stepper_->step(inputs_, outputs_);
  if (!failed(report_.status)) return true;
  publish_motion();
  problem_ = "the step failed: " +
             describe_fault(loaded_->mechanism, report_.status, report_.body, report_.joint, report_.output);
  failed_body_ = report_.body;
  failed_joint_ = report_.joint;
  playing_ = false;
  publish_status();
  return false;
}

void MechanismSubject::publish_motion() {
  std::vector<double> values(loaded_->mechanism.output_channels().size() + 4, std::nan(""));
  if (stepper_ == nullptr) {
    broadcast().publish(Broadcast::Kind::motion, motion_message({.values = values}, poses_of(loaded_->mechanism)));
    return;
  }
  const std::size_t outputs = values.size() - 4;
  std::copy_n(outputs_.value.begin(), outputs, values.begin());
  const index3::Energy energy = stepper_->energy();
  values[outputs] = energy.kinetic;
  values[outputs + 1] = energy.potential;
  values[outputs + 2] = energy.kinetic + energy.potential;
  values[outputs + 3] = report_.position_residual;
  const Poses poses = poses_of(stepper_->state());
  std::uint32_t marks = 0;
  if (report_.status == StepStatus::not_converged) marks |= kMarkNotConverged;
  if (failed(report_.status)) marks |= kMarkFaulted;
  if (singular_->margin(poses) < kNearSingular) marks |= kMarkNearSingular;
  const std::vector<float> forces = force_numbers(*stepper_, inputs_, *forces_);
  const std::uint64_t step = stepper_->state().step;
  broadcast().publish(Broadcast::Kind::motion,
                      motion_message({static_cast<double>(step) * kDt, step, marks, values, forces}, poses));
}

// Between two steps, as in a live run.
void MechanismSubject::set_parameter(const std::string& name, double value) {
  const int index = stepper_->mechanism().parameter(name);
  const Parameter& parameter = stepper_->mechanism().parameters()[static_cast<std::size_t>(index)];
  require_allowed(parameter, value);
  if (!stepper_->set_parameter(index, value))
    throw Error("parameter " + name + " is fixed: it changes in the file only");
}

void MechanismSubject::publish_status() {
  Json parameters = Json::object();
  if (stepper_ != nullptr)
    for (const Parameter& p : stepper_->mechanism().parameters()) parameters[p.name] = p.value;
  const Json status = {{"playing", playing_}, {"parameters", parameters},   {"problem", problem_},
                       {"speed", speed_},     {"failedBody", failed_body_}, {"failedJoint", failed_joint_}};
  broadcast().publish(Broadcast::Kind::status, status.dump(-1, ' ', true, Json::error_handler_t::replace));
}

// A stepper with the three forces goes on from the state of the one without.
void MechanismSubject::begin_drag(const Drag& drag) {
  if (drag_ && drag_->body == drag.body && drag_->point_b == drag.point_b) {
    drag_->target_0 = drag.target_0;
    return;
  }
  std::vector<double> flat(stepper_->state().flat_size());
  stepper_->state().flatten(flat);
  const config::LoadedMechanism pulled = parse_mechanism_text(with_pull(*loaded_, drag.body, drag.point_b), path_);
  auto stepper = std::make_unique<index3::Stepper>(make_stepper(pulled, {}));
  stepper->restore(flat, stepper_->state().step);
  for (int k = 0; k < static_cast<int>(stepper_->mechanism().parameters().size()); ++k)
    stepper->set_parameter(k, stepper_->parameter(k));  // fixed ones are those of the file
  stepper_ = std::move(stepper);
  drag_ = drag;
}

void MechanismSubject::end_drag() {
  drag_.reset();
  inputs_ = Inputs();
}

nlohmann::json MechanismSubject::command(const Json& request) {
  const std::lock_guard lock(mutex_);
  const auto what = request.at("do").get<std::string>();
  if (what == "speed") {
    const double factor = request.at("factor").get<double>();
    if (!(factor > 0.0 && factor <= 10.0)) throw Error("the speed is out of bounds: 0 to 10");
    speed_ = factor;
  } else if (what == "pause") {
    playing_ = false;
  } else if (what == "release") {
    end_drag();
  } else if (what == "reset") {
    begin();
  } else if (stepper_ == nullptr) {
    throw Error("it cannot move: " + problem_);
  } else if (what == "play") {
    if (!failed(report_.status)) playing_ = true;
  } else if (what == "step") {
    playing_ = false;
    if (step()) publish_motion();
  } else if (what == "set") {
    set_parameter(request.at("name").get<std::string>(), request.at("value").get<double>());
  } else if (what == "drag") {
    const int bodies = static_cast<int>(loaded_->mechanism.bodies().size());
    begin_drag({whole_number(request, "body", 0, bodies - 1), vector_in(request.at("point")),
                vector_in(request.at("target"))});
  } else {
    throw Error("there is no such command");
  }
  publish_status();
  return Json::object();
}

}  // namespace rigstep::server
