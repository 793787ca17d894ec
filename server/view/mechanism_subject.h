// A mechanism file while it is being written: what it describes, what `check` finds, and how it falls. The file is read
// again whenever it changes. A thread of its own steps it, as fast as the clock goes and not for a loop thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "core/index3/stepper.h"
#include "server/view/acting_forces.h"
#include "server/view/scene.h"
#include "server/view/singular_poses.h"
#include "server/view/subject.h"

namespace rigstep::server {

class MechanismSubject : public Subject {
 public:
  // Throws MechanismFileError where the file cannot be read at all; what is wrong in it is told at the page.
  explicit MechanismSubject(std::string path);
  ~MechanismSubject() override;

  std::string scene() override;
  std::string mesh(std::size_t index) override;
  // {"do": "play" | "pause" | "step" | "reset"}, {"do": "speed", "factor"}, {"do": "drag", "body", "point", "target"},
  // {"do": "release"}: point in the body [m], target in the world [m]. {"do": "set", "name", "value"}: of a tunable
  // parameter.
  nlohmann::json command(const nlohmann::json& request) override;
  bool is_operation(const nlohmann::json&) const override { return false; }  // nothing but the page's own copy moves

 private:
  struct Drag {
    int body = 0;
    Vec3 point_b = Vec3::Zero();
    Vec3 target_0 = Vec3::Zero();
  };

  void run();
  void reload_if_changed();
  void load();
  void begin();
  void begin_drag(const Drag& drag);
  void end_drag();
  void advance(double seconds);
  bool step();
  void set_parameter(const std::string& name, double value);
  void publish_motion();
  void publish_status();

  const std::string path_;
  std::mutex mutex_;  // of all that follows
  std::optional<config::LoadedMechanism> loaded_;
  Scene scene_;
  std::string scene_message_;
  std::filesystem::file_time_type changed_{};
  std::string problem_;  // of the file as it is now, or of the step that failed
  int failed_body_ = -1, failed_joint_ = -1;
  std::unique_ptr<index3::Stepper> stepper_;  // none: the start contradicts a joint
  std::unique_ptr<ActingForces> forces_;      // likewise
  std::unique_ptr<SingularPoses> singular_;
  bool playing_ = false;
  double speed_ = 1.0, behind_ = 0.0;  // [-], simulated time that is due [s]
  std::optional<Drag> drag_;
  StepReport report_;
  Inputs inputs_;
  Outputs outputs_;

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rigstep::server
