#include "server/view/singular_poses.h"

#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/index3/step/evaluate_state.h"
#include "core/mechanism/joint_paths.h"

namespace rigstep::server {
namespace {

constexpr std::size_t kMostBodiesOfMargin = 150;  // the margin takes some 100 us then

// A joint that is no edge of the tree closes a loop.
std::vector<bool> joints_in_loops(const Mechanism& m) {
  std::vector<bool> in_loop(m.joints().size(), true);
  const JointPaths paths(m, std::vector<bool>(m.bodies().size()));
  for (const JointPaths::Edge& edge : paths.edges()) in_loop[static_cast<std::size_t>(edge.joint)] = edge.is_in_loop;
  for (std::size_t j = 0; j < in_loop.size(); ++j)
    if (m.joints()[j].type == JointType::floating) in_loop[j] = false;
  return in_loop;
}

}  // namespace

SingularPoses::SingularPoses(const Mechanism& m) : in_loop_(joints_in_loops(m)) {
  if (m.bodies().size() > kMostBodiesOfMargin) return;
  try {
    auto plan = std::make_unique<index3::Plan>(index3::make_plan(m, {}));
    if (!plan->has_loops) return;
    state_ = index3::start_pose(*plan);
    closure_ = std::make_unique<index3::LoopClosure>(*plan, state_);
    workspace_ = std::make_unique<index3::Workspace>(*plan);
    plan_ = std::move(plan);
  } catch (const MechanismError&) {
    closure_.reset();  // the findings tell what is wrong with the start
  }
}

double SingularPoses::margin(const Poses& poses) {
  if (plan_ == nullptr || poses.size() != state_.body.size()) return 1.0;
  for (std::size_t i = 0; i < poses.size(); ++i) {
    state_.body[i].r = poses[i].r;
    state_.body[i].p = poses[i].p.normalized();
  }
  index3::evaluate_pose(*plan_, state_, *workspace_);
  return closure_->margin(*workspace_);
}

}  // namespace rigstep::server
