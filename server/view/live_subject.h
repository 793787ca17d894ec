// A live run: an observer of the link like any other, with poses of all bodies; and, where it is permitted, an
// operator. Two threads of its own, one for the link and one that asks for the status; neither knows the loop thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proto/load_mechanism.h"
#include "proto/wire.pb.h"
#include "rt/histogram.h"
#include "server/rig/rig_client.h"
#include "server/rig/status.h"
#include "server/view/input_driver.h"
#include "server/view/live_events.h"
#include "server/view/scene.h"
#include "server/view/singular_poses.h"
#include "server/view/subject.h"

namespace rigstep::server {

struct LiveOptions {
  StatusTarget target;                      // with the key file, where the server has keys
  std::string mechanism = {};               // file of what runs there; empty: the server is asked for it
  bool control = false;                     // the page may be permitted to operate
  std::vector<InputPolicy> limits = {};     // (input channels) of the rig file; empty: not known
  const std::atomic<bool>* stop = nullptr;  // the server is asked for its mechanism no longer when it becomes true
};

class LiveSubject : public Subject {
 public:
  // Throws MechanismFileError; without a file NetworkError, too, and either where it was stopped. With one, a server
  // that does not answer is waited for, and that is told at the page.
  explicit LiveSubject(LiveOptions options);
  ~LiveSubject() override;

  std::string scene() override;
  std::string mesh(std::size_t index) override;
  // {"do": "run" | "hold" | "snapshot" | "reset_to_start" | "reset_to_snapshot" | "reset_fault" | "black_box"},
  // {"do": "step", "steps"}, {"do": "set", "name", "value", "ramp"}: a parameter, over so many steps; {"do": "drive",
  // "who", "inputs"}: all of them, again within four seconds; {"do": "let_go", "who"}: who tells browsers apart.
  nlohmann::json command(const nlohmann::json& request) override;
  bool is_operation(const nlohmann::json&) const override { return true; }

 private:
  struct Shown;
  void show(std::unique_ptr<Shown> shown);
  void take_up(RigClient& client);
  void watch_link();
  void watch_once();
  void take_poses(const RigPoses& poses, const RigState& state);
  void take_step(const RigPoses& poses);
  void show_server(RigClient& client);
  std::vector<float> reactions(const RigState& state) const;
  void watch_status();
  void drive(const std::string& who, const std::vector<double>& inputs);
  void publish_status();

  const LiveOptions options_;
  std::uint64_t poses_step_ = 0;   // link thread: of the instant that is arriving
  std::size_t poses_come_ = 0;     // bodies, likewise
  std::uint32_t flags_since_ = 0;  // of all states since the last instant, likewise
  rt::Histogram round_trip_ns_;    // written by the link thread
  std::timed_mutex driving_;       // of what follows
  std::string driver_name_;        // of the browser that has the inputs
  std::unique_ptr<InputDriver> driver_;
  std::mutex mutex_;              // of what follows
  std::unique_ptr<Shown> shown_;  // the link thread alone changes it, and what is in it
  std::string scene_message_;
  wire::StatusReport report_;
  bool connected_ = false;
  std::string problem_, clock_;
  std::uint32_t flags_ = 0, input_age_steps_ = 0;
  LiveEvents events_;
  double time_ = 0.0, zero_since_ = 0.0;  // of the newest instant; since when all inputs are zero; simulated [s]

  std::atomic<bool> stopping_{false};
  std::thread link_, status_;
};

}  // namespace rigstep::server
