// Drives of the rig in software: formulas and tables.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>

#include "proto/config_text.h"
#include "server/rig/rig.h"

namespace rigstep::server {
namespace {

TEST_CASE("drives follow their formula or their table") {
  const std::vector<Channel> inputs = {{"a", "N"}, {"b", "N"}};
  const Drive sine = Drive::parse("b=sine:2,0.25", inputs).at(0);
  CHECK(sine.channel() == 1);
  CHECK(sine.value(0.0) == doctest::Approx(0.0));
  CHECK(sine.value(1.0) == doctest::Approx(2.0));
  const Drive step = Drive::parse("a=step:-3,0.5", inputs).at(0);
  CHECK(step.channel() == 0);
  CHECK(step.value(0.49) == 0.0);
  CHECK(step.value(0.5) == -3.0);
  CHECK(Drive::parse("a=step:4", inputs).at(0).value(0.0) == 4.0);
}

TEST_CASE("a table drives the channels that it names, with their units") {
  const std::vector<Channel> inputs = {{"a", "N"}, {"b", "N m"}, {"c", "N"}};
  const std::string path = "/tmp/rigstep_drive_" + std::to_string(::getpid()) + ".csv";
  const auto write = [&path](const char* text) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    std::fputs(text, file);
    std::fclose(file);
  };
  write("# measured\nt [s],b [N m],a\n1, 10,-1\r\n\n2,20,-2\n4,0,-4\n");
  const std::vector<Drive> all = Drive::parse(path, inputs);
  REQUIRE(all.size() == 2);
  CHECK(all[0].channel() == 1);
  CHECK(all[1].channel() == 0);
  CHECK(all[0].value(0.0) == 10.0);
  CHECK(all[0].value(1.5) == doctest::Approx(15.0));
  CHECK(all[0].value(3.0) == doctest::Approx(10.0));
  CHECK(all[1].value(9.0) == -4.0);
  const std::vector<Drive> one = Drive::parse("b=" + path, inputs);
  REQUIRE(one.size() == 1);
  CHECK(one[0].channel() == 1);
  CHECK_THROWS_WITH_AS(Drive::parse("c=" + path, inputs), doctest::Contains("no column \"c\" or \"c [N]\""),
                       config::ConfigError);
  write("t,b [N]\n1,10\n");
  CHECK_THROWS_WITH_AS(Drive::parse(path, inputs), doctest::Contains("b: is in [N], its channel in [N m]"),
                       config::ConfigError);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace rigstep::server
