// The rules of rigstep commission are those that its page and its help show.
#include "server/machine/commission.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <set>

namespace rigstep::server {

TEST_CASE("the page shows every rule with its limit, and the rules that are applied are those") {
  std::ifstream file(RIGSTEP_SOURCE_DIR "/server/machine/README.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  std::set<std::string> known;
  std::string table = "| rule | at most |\n|---|---|\n";
  for (const CommissionLimit& limit : commission_limits()) {
    known.insert(limit.what);
    table += "| " + limit.what + " | " + limit.most + " |\n";
  }
  CHECK(page.find(table + "\n") != std::string::npos);
  LiveSummary live;
  live.recording = "run.mcap";
  std::set<std::string> applied;
  config::RigConfig rig;
  rig.error_limit.position = 1e-3;
  for (const CommissionRule& rule : commission_rules(rig, 1.0, live, RigReport())) applied.insert(rule.what);
  CHECK(applied == known);
}

}  // namespace rigstep::server
