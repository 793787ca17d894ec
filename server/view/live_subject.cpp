#include "server/view/live_subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "core/mechanism/signals.h"
#include "rt/clock.h"
#include "server/live/session.h"
#include "server/network_error.h"
#include "server/output/csv.h"
#include "server/view/messages.h"

namespace rigstep::server {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSubscribeEveryNs = 1'000'000'000;
constexpr int kMostStepsAtOnce = 1'000'000, kMostRamp = 1'000'000;
constexpr auto kReplyPatience = std::chrono::milliseconds(200);
constexpr double kAnswerWithinS = 3.0;                // for what is asked of the server at the start
constexpr std::int64_t kSilentForNs = 3'000'000'000;  // then the server is looked for again
constexpr double kZeroForS = 3.0;                     // of all inputs: worth telling; simulated
constexpr double kUnseenS = 1.0;                      // between instants: what inputs did meanwhile is not known

std::string dump(const Json& json) { return json.dump(-1, ' ', true, Json::error_handler_t::replace); }

// Where the text of a fault says that it began: "... at joint NAME", "... at body NAME"; -1: it does not.
template <class Elements>
int index_in(const std::string& text, const std::string& what, const Elements& elements) {
  const std::size_t at = text.find(" at " + what + " ");
  if (at == text.npos) return -1;
  const std::string rest = text.substr(at + what.size() + 5);
  const std::string name = rest.substr(0, rest.find_first_of(" ;,:\n"));
  for (std::size_t k = 0; k < elements.size(); ++k)
    if (elements[k].name == name) return static_cast<int>(k);
  return -1;
}

std::string address_of(const StatusTarget& target) { return fmt::format("{}:{}", target.host, target.port); }

RigClientOptions observer_of(const StatusTarget& target) {
  return {.host = target.host,
          .port = target.port,
          .product_version = product_version(),
          .key_file = target.key_file,
          .observe = true};
}

// As the server tells it. Files of meshes are where the server is: those of the same name here may be other ones.
config::LoadedMechanism mechanism_told_by(RigClient& client, const std::string& source,
                                          std::vector<std::string>& problems) {
  config::LoadedMechanism loaded = parse_mechanism_text(client.mechanism_text(kAnswerWithinS), source);
  if (loaded.mechanism.id() != client.server().mechanism_id)
    throw MechanismFileError(source + ": what it tells is not the mechanism that it steps: give --mechanism");
  const auto meshes = std::erase_if(
      loaded.shapes, [](const config::DrawnShape& shape) { return shape.kind == config::DrawnShape::Kind::mesh; });
  if (meshes > 0)
    problems.push_back(
        fmt::format("{} meshes are not drawn, their files are at the server: give --mechanism with its file", meshes));
  return loaded;
}

// Beside the outputs that the server sends.
std::vector<Channel> columns_of_step(const Mechanism& m) {
  std::vector<Channel> columns;
  for (const Channel& input : m.input_channels()) columns.push_back({"input " + input.name, input.unit});
  columns.insert(columns.end(), {{"position residual", "m"}, {"wake-up", "us"}, {"step", "us"}});
  return columns;
}

}  // namespace

// What runs there, and how it looks.
struct LiveSubject::Shown {
  Shown(config::LoadedMechanism told, const std::vector<std::string>& problems)
      : loaded(std::move(told)), scene(make_scene(loaded)), singular(loaded.mechanism) {
    scene.problems.insert(scene.problems.end(), problems.begin(), problems.end());
    poses.resize(7 * loaded.mechanism.bodies().size());
    of_step.assign(loaded.mechanism.input_channels().size() + 3, std::nan(""));
  }

  const config::LoadedMechanism loaded;
  Scene scene;
  SingularPoses singular;
  const std::vector<bool> redundant = redundant_joints(loaded.mechanism, rank_of_start(loaded.mechanism));
  std::vector<float> poses;      // of the instant that is arriving
  std::vector<double> of_step;   // as columns_of_step() has them, likewise
  std::vector<int> reaction_at;  // (joints) column of the first of its six numbers; -1: the server sends none
};

LiveSubject::LiveSubject(LiveOptions options) : options_(std::move(options)) {
  if (options_.mechanism.empty()) {
    RigClient client(observer_of(options_.target), options_.stop);
    take_up(client);
  } else {
    show(std::make_unique<Shown>(load_mechanism_file(options_.mechanism), std::vector<std::string>()));
  }
  link_ = std::thread([this] { watch_link(); });
  status_ = std::thread([this] { watch_status(); });
}

LiveSubject::~LiveSubject() {
  stopping_ = true;
  link_.join();
  status_.join();
}

std::string LiveSubject::scene() {
  const std::lock_guard lock(mutex_);
  return scene_message_;
}

std::string LiveSubject::mesh(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return index < shown_->scene.meshes.size() ? mesh_message(shown_->scene.meshes[index]) : std::string();
}

// What the server steps now.
void LiveSubject::take_up(RigClient& client) {
  std::vector<std::string> problems;
  config::LoadedMechanism loaded = mechanism_told_by(client, address_of(options_.target), problems);
  show(std::make_unique<Shown>(std::move(loaded), problems));
}

// Before anything of the run is known.
void LiveSubject::show(std::unique_ptr<Shown> shown) {
  const Mechanism& m = shown->loaded.mechanism;
  {
    const std::lock_guard lock(mutex_);
    shown_ = std::move(shown);
    scene_message_ = scene_message(m, shown_->scene,
                                   {.kind = "live",
                                    .source = options_.target.host,
                                    .columns = m.output_channels(),
                                    .control = options_.control,
                                    .in_loop = shown_->singular.in_loop(),
                                    .redundant = shown_->redundant,
                                    .limits = options_.limits});
  }
  broadcast().publish(Broadcast::Kind::scene, "{}");
  broadcast().publish(Broadcast::Kind::motion, motion_message({}, poses_of(m)));
}

// For ever: a server that was restarted is found again.
void LiveSubject::watch_link() {
  while (!stopping_) {
    try {
      watch_once();
    } catch (const Error& error) {
      const std::lock_guard lock(mutex_);
      problem_ = error.what();
    }
    {
      const std::lock_guard lock(mutex_);
      connected_ = false;
    }
    publish_status();
    for (int k = 0; k < 10 && !stopping_; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// What the server sends is part of what the mechanism has.
void LiveSubject::show_server(RigClient& client) {
  const RigServer& server = client.server();
  if (server.mechanism_id != shown_->loaded.mechanism.id()) {
    if (!options_.mechanism.empty())
      throw Error(fmt::format(
          "the server steps {}, and not what {} describes: start the page anew with its file, or without --mechanism",
          server.mechanism, options_.mechanism));
    take_up(client);
  }
  Shown& shown = *shown_;
  const Mechanism& m = shown.loaded.mechanism;
  SceneContext context{.kind = "live", .source = address_of(options_.target), .columns = {}};
  for (const RigChannel& output : server.outputs) context.columns.push_back({output.name, output.unit});
  for (Channel& column : columns_of_step(m)) context.columns.push_back(std::move(column));
  context.period = exact_seconds(server.period_ns);
  shown.reaction_at.assign(m.joints().size(), -1);
  for (const Output& output : m.outputs()) {
    if (output.kind != Output::Kind::joint_reaction) continue;
    const std::string& first = m.output_channels()[static_cast<std::size_t>(output.first_channel)].name;
    for (std::size_t k = 0; k + 6 <= server.outputs.size(); ++k)
      if (server.outputs[k].name == first)
        shown.reaction_at[static_cast<std::size_t>(output.joint)] = static_cast<int>(k);
  }
  context.control = options_.control;
  context.in_loop = shown.singular.in_loop();
  context.redundant = shown.redundant;
  context.limits = options_.limits;
  {
    const std::lock_guard lock(mutex_);
    scene_message_ = scene_message(m, shown.scene, context);
    connected_ = true;
    problem_.clear();
  }
  broadcast().publish(Broadcast::Kind::scene, "{}");
}

// From one connection to its end.
void LiveSubject::watch_once() {
  RigClientOptions options = observer_of(options_.target);
  options.timeout_s = 1.0;
  RigClient client(options, &stopping_);
  if (!client.connected()) return;
  show_server(client);
  std::int64_t said_ns = 0, heard_ns = rt::MonotonicClock::now_ns();
  while (!stopping_ && rt::MonotonicClock::now_ns() - heard_ns < kSilentForNs) {
    const std::int64_t now_ns = rt::MonotonicClock::now_ns();
    if (now_ns - said_ns >= kSubscribeEveryNs) {
      said_ns = now_ns;
      broadcast().is_watched() ? client.subscribe_poses() : client.send_heartbeat();
      const auto clock = client.clock();
      const std::lock_guard lock(mutex_);
      if (clock)
        clock_ = fmt::format("server {:+.1f} us, within {:.1f} us", 1e-3 * static_cast<double>(clock->offset_ns),
                             1e-3 * static_cast<double>(clock->uncertainty_ns));
    }
    client.wait_until(now_ns + 50'000'000);
    for (auto arrival = client.receive(); arrival != RigClient::Arrival::nothing; arrival = client.receive()) {
      heard_ns = rt::MonotonicClock::now_ns();
      if (arrival == RigClient::Arrival::goodbye) throw Error("the server has ended: " + client.goodbye());
      if (arrival == RigClient::Arrival::state) {
        flags_since_ |= client.state().flags;
        const auto there = client.delay_to_server_ns(), back = client.delay_to_rig_ns();
        if (there && back) round_trip_ns_.record(*there + *back);
      }
      if (arrival == RigClient::Arrival::poses) take_poses(client.poses(), client.state());
    }
  }
}

// What outputs tell of them, as MotionInstant::forces has them; zero for the other joints.
std::vector<float> LiveSubject::reactions(const RigState& state) const {
  const std::vector<int>& at = shown_->reaction_at;
  std::vector<float> numbers(6 * at.size(), 0.0f);
  bool is_any = false;
  for (std::size_t j = 0; j < at.size(); ++j)
    for (std::size_t k = 0; at[j] >= 0 && k < 6; ++k) {
      const std::size_t column = static_cast<std::size_t>(at[j]) + k;
      if (column < state.output.size()) numbers[6 * j + k] = static_cast<float>(state.output[column]), is_any = true;
    }
  return is_any ? numbers : std::vector<float>();
}

// Comes before the bodies of its instant.
void LiveSubject::take_step(const RigPoses& poses) {
  std::vector<double>& of_step = shown_->of_step;
  const std::size_t inputs = of_step.size() - 3;
  if (poses.inputs.size() != inputs) return;
  std::copy(poses.inputs.begin(), poses.inputs.end(), of_step.begin());
  of_step[inputs] = static_cast<double>(poses.position_residual);
  of_step[inputs + 1] = static_cast<double>(poses.wake_up_us);
  of_step[inputs + 2] = static_cast<double>(poses.step_us);
  const bool is_zero = std::all_of(poses.inputs.begin(), poses.inputs.end(), [](float value) { return value == 0.0f; });
  const std::lock_guard lock(mutex_);
  const double time = exact_seconds(poses.sim_time_ns);
  const bool is_next = time >= time_ && time - time_ < kUnseenS;
  if (!is_zero || !is_next || inputs == 0) zero_since_ = time;
}

// An instant is shown once all of its bodies have come.
void LiveSubject::take_poses(const RigPoses& poses, const RigState& state) {
  Shown& shown = *shown_;
  if (7 * static_cast<std::size_t>(poses.bodies) != shown.poses.size()) return;
  if (poses.numbers.empty()) return take_step(poses);
  if (poses.step != poses_step_ || poses.first_body == 0) poses_come_ = 0;
  poses_step_ = poses.step;
  std::copy(poses.numbers.begin(), poses.numbers.end(),
            shown.poses.begin() + 7 * static_cast<std::ptrdiff_t>(poses.first_body));
  poses_come_ += poses.numbers.size() / 7;
  if (poses_come_ < poses.bodies) return;
  poses_come_ = 0;
  Poses all(poses.bodies);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float* x = &shown.poses[7 * i];
    all[i] = {Vec3(x[0], x[1], x[2]), EulerParameters(x[3], x[4], x[5], x[6])};
  }
  const double time = exact_seconds(poses.sim_time_ns);
  std::uint32_t marks = 0;
  if ((flags_since_ & kNotConverged) != 0) marks |= kMarkNotConverged;
  if ((flags_since_ & kInaccurate) != 0) marks |= kMarkInaccurate;
  if ((state.flags & kFaulted) != 0) marks |= kMarkFaulted;
  if (shown.singular.margin(all) < kNearSingular) marks |= kMarkNearSingular;
  flags_since_ = 0;
  const std::vector<float> forces = reactions(state);
  std::vector<double> values(state.output.begin(), state.output.end());
  values.insert(values.end(), shown.of_step.begin(), shown.of_step.end());
  broadcast().publish(Broadcast::Kind::motion, motion_message({time, poses.step, marks, values, forces}, all));
  const std::lock_guard lock(mutex_);
  time_ = time;
  flags_ = state.flags;
  input_age_steps_ = state.input_age_steps;
}

void LiveSubject::watch_status() {
  while (!stopping_) {
    if (broadcast().is_watched()) {
      try {
        const wire::StatusReport report = query_status(options_.target);
        const std::lock_guard lock(mutex_);
        if (!report_.mechanism().empty()) events_.compare(report_, report, time_);
        report_ = report;
      } catch (const Error& error) {
        const std::lock_guard lock(mutex_);
        if (!connected_) problem_ = error.what();
      }
      publish_status();
    }
    for (int k = 0; k < 10 && !stopping_; ++k) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void LiveSubject::publish_status() {
  const std::lock_guard lock(mutex_);
  Json counters = Json::array(), distributions = Json::array(), events = Json::array();
  for (const auto* list : {&report_.counter(), &report_.refused()})
    for (const wire::Counter& counter : *list)
      if (counter.count() > 0) counters.push_back({counter.name(), counter.count()});
  for (const wire::Distribution& d : report_.distribution())
    if (d.name().ends_with("_ns"))
      distributions.push_back(
          {{"name", d.name()},
           {"count", d.count()},
           {"p50", d.p50()},
           {"p99", d.p99()},
           {"p999", d.p999()},
           {"max", d.max()},
           {"firstQuarter", d.first_quarter()},
           {"quarters", std::vector<std::uint64_t>(d.count_of_quarter().begin(), d.count_of_quarter().end())}});
  if (round_trip_ns_.count() > 0) distributions.push_back(distribution_json("round_trip_ns", round_trip_ns_));
  Json parameters = Json::object();
  for (const wire::ParameterDescription& p : report_.parameter()) parameters[p.name()] = p.value();
  for (const LiveEvents::Event& e : events_.all()) events.push_back({{"time", e.event.time}, {"text", e.event.text}});
  const Mechanism& m = shown_->loaded.mechanism;
  const double zero_for = time_ - zero_since_;
  const bool is_silent = !report_.controller().rig_name().empty() && zero_for > kZeroForS;
  const bool is_faulted = report_.loop_state() == wire::FAULTED;
  const std::string fault = is_faulted ? report_.fault() : std::string();
  broadcast().publish(
      Broadcast::Kind::status,
      dump({{"connected", connected_},
            {"problem", connected_ ? std::string() : problem_},
            {"loop", connected_ ? to_text(report_.loop_state()) : "not connected"},
            {"fault", fault},
            {"failedJoint", index_in(fault, "joint", m.joints())},
            {"failedBody", index_in(fault, "body", m.bodies())},
            {"controller", report_.controller().rig_name()},
            {"controllerAddress", report_.controller().address()},
            {"observers", report_.observers()},
            {"recordingError", report_.recording_error()},
            {"parameters", parameters},
            {"inputAge", input_age_steps_},
            {"hint", is_silent ? fmt::format("all inputs are zero for {:.0f} s, though {} is in control", zero_for,
                                             report_.controller().rig_name())
                               : std::string()},
            {"clock", clock_},
            {"counters", counters},
            {"distributions", distributions},
            {"events", events}}));
}

// The first one takes control; so does one after control was lost. who: tells browsers apart.
void LiveSubject::drive(const std::string& who, const std::vector<double>& inputs) {
  const std::unique_lock lock(driving_, kReplyPatience);  // another one may be connecting
  if (!lock) throw Error("the inputs are being taken: try again");
  if (driver_ != nullptr && !driver_->has_ended() && who != driver_name_)
    throw Error("another browser has the inputs: let go there");
  if (driver_ == nullptr || driver_->has_ended()) {
    driver_.reset();
    driver_name_ = who;
    driver_ = std::make_unique<InputDriver>(RigClientOptions{.host = options_.target.host,
                                                             .port = options_.target.port,
                                                             .name = "page",
                                                             .product_version = product_version(),
                                                             .key_file = options_.target.key_file,
                                                             .timeout_s = 1.0},
                                            options_.limits);
  }
  driver_->set(inputs);
}

nlohmann::json LiveSubject::command(const Json& request) {
  static const std::map<std::string, wire::Command::Kind> kTransitions = {
      {"run", wire::Command::RUN},
      {"hold", wire::Command::HOLD},
      {"snapshot", wire::Command::SNAPSHOT},
      {"reset_to_start", wire::Command::RESET_TO_START},
      {"reset_to_snapshot", wire::Command::RESET_TO_SNAPSHOT}};
  const auto what = request.at("do").get<std::string>();
  const StatusTarget& target = options_.target;
  if (const auto found = kTransitions.find(what); found != kTransitions.end()) {
    request_transition(target, found->second);
  } else if (what == "step") {
    request_transition(target, wire::Command::STEP,
                       static_cast<std::uint32_t>(whole_number(request, "steps", 1, kMostStepsAtOnce)));
  } else if (what == "set") {
    const RigParameterValue value{request.at("name").get<std::string>(), request.at("value").get<double>()};
    change_parameters(target, {value}, static_cast<std::uint32_t>(whole_number(request, "ramp", 0, kMostRamp)));
  } else if (what == "drive") {
    drive(request.at("who").get<std::string>(), request.at("inputs").get<std::vector<double>>());
  } else if (what == "let_go") {
    const std::lock_guard lock(driving_);
    if (request.at("who").get<std::string>() == driver_name_) driver_.reset();
  } else if (what == "reset_fault") {
    reset_fault(target, query_status(target).fault_number());
  } else if (what == "black_box") {
    write_black_box(target, query_status(target), 5.0);
  } else {
    throw Error("there is no such command");
  }
  return Json::object();
}

}  // namespace rigstep::server
