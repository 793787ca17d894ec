// Recordings, one or two over each other: every pose and column, computed by replay. The recording holds inputs;
// bodies, energy and outputs that were not recorded come from stepping it again, bit for bit. A thread of its own
// replays.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/recordings/run_info.h"
#include "server/view/scene.h"
#include "server/view/subject.h"

namespace rigstep::server {

class RecordingSubject : public Subject {
 public:
  // Throws wire::RecordingError, MechanismFileError, and config::ConfigError where two recordings are of mechanisms
  // with other bodies or outputs.
  explicit RecordingSubject(std::vector<std::string> paths);
  ~RecordingSubject() override;

  std::string scene() override { return scene_message_; }
  std::string mesh(std::size_t index) override;
  std::shared_ptr<const std::string> track(std::size_t index) override;
  std::string steps(std::size_t index, std::uint64_t from) override;
  nlohmann::json command(const nlohmann::json&) override { throw Error("a recording is played by the page itself"); }
  bool is_operation(const nlohmann::json&) const override { return false; }

 private:
  void run();
  std::string replayed(const RunInfo& run, std::size_t index);
  void publish(double progress, const std::string& problem);

  const std::vector<std::string> paths_;
  std::vector<RunInfo> runs_;
  std::vector<config::LoadedMechanism> loaded_;
  Scene scene_;
  std::string scene_message_;
  std::size_t frame_bytes_ = 1;  // of a track
  std::mutex stepping_;          // of steps()
  std::mutex mutex_;             // of what follows
  std::vector<std::shared_ptr<const std::string>> tracks_;
  nlohmann::json distributions_ = nlohmann::json::array();
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace rigstep::server
