// How near poses that are shown are to a singular one: the output singularity_margin of any mechanism, also where its
// file declares none. Load time and display rate, never the loop.
#pragma once

#include <memory>
#include <vector>

#include "core/index3/outputs/loop_closure.h"
#include "server/view/scene.h"

namespace rigstep::server {

class SingularPoses {
 public:
  explicit SingularPoses(const Mechanism& mechanism);

  // 0: singular, 1: far from it. 1 also without loops, for more bodies than are looked at at display rate, and where
  // the start is none.
  double margin(const Poses& poses);

  // (joints) that loops go through.
  const std::vector<bool>& in_loop() const { return in_loop_; }

 private:
  std::vector<bool> in_loop_;
  std::unique_ptr<index3::Plan> plan_;  // none: there is nothing to look at
  std::unique_ptr<index3::LoopClosure> closure_;
  std::unique_ptr<index3::Workspace> workspace_;
  index3::State state_;
};

inline constexpr double kNearSingular = 0.02;  // margin from which it is marked

}  // namespace rigstep::server
