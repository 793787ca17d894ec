// What `rigstep check` finds out about a mechanism: freedoms, redundancy, start, layout, cost. Load time.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/index3/compile/plan.h"
#include "core/index3/start/initial_state.h"
#include "core/index3/start/make_plan.h"
#include "core/mechanism/signals.h"
#include "proto/load_mechanism.h"
#include "proto/load_rig.h"
#include "server/view/findings.h"

namespace rigstep::server {

// Median durations [us].
struct MeasuredCost {
  double step = 0.0, outputs = 0.0;  // reading every output channel
};

// What the layout makes of a mechanism: its share in lanes, how many threads it is worth, and what it leaves out.
struct LayoutReport {
  explicit LayoutReport(const index3::Plan& plan);
  int planar = 0;          // bodies that never leave a plane
  int left_out = 0;        // rows that could only hold them there
  int in_lanes = 0;        // bodies that ride beside others
  int widest = 1;          // lanes of their batches
  std::vector<int> parts;  // threads that take part where 1, 2 and 4 are offered
};

struct MechanismReport {
  const config::LoadedMechanism& loaded;
  const Mechanism& m;
  const config::RigConfig* rig;       // nullptr: a mechanism file
  std::vector<InputPolicy> policies;  // (input channels) of the rig
  std::vector<SafeOutput> safe;
  std::vector<index3::JointGap> gaps;
  index3::Plan plan;
  index3::StartRank rank;
  std::vector<CheckFinding> findings;
  LayoutReport layout;
  double margin;  // as the output singularity_margin tells it in the loop
  std::size_t memory_bytes;
  MeasuredCost cost;  // measured, some tens of milliseconds long
  StepReport start;   // residuals of the start state

  // mechanism, of: outlive this. Throws what make_stepper() throws.
  MechanismReport(const config::LoadedMechanism& mechanism, const config::RigConfig* of);

  // Accelerations leave constraints open, and no singular pose excuses it.
  bool is_open_at_start() const;
  // No accelerations satisfy all constraints: one of the redundant ones rules out what another prescribes.
  bool contradicts_itself() const { return is_open_at_start() && rank.start.redundant > 0; }
  // Joints beyond those that hang every body, or group of bodies, on the ground or on each other.
  int loop_count() const;
  double bytes_per_body() const { return static_cast<double>(memory_bytes) / static_cast<double>(m.bodies().size()); }
  double largest_gap(double index3::JointGap::*member) const;
};

// Where is_open_at_start(): why, and what to do, for people.
std::string complaint(const MechanismReport& report);

// A joint by its name alone, couplings and drivers with their kind.
std::string short_name(const Mechanism& m, int constraint);

// Whether the load of a constraint is not unique at the start or nearby.
bool is_open(const MechanismReport& report, int constraint);

// Components of a constraint's load that the motion leaves open at a pose: "fx", ..., "tz", "effort".
std::vector<std::string> open_components(const MechanismReport& report, const index3::Rank& rank, int constraint);

nlohmann::json to_json(const MechanismReport& report);

}  // namespace rigstep::server
