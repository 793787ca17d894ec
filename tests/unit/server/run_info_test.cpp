// What `rigstep info` finds in a recording.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "proto/config_text.h"
#include "proto/recording_writer.h"
#include "server/recordings/run_info.h"
#include "tests/support/reference.h"

using namespace rigstep;
using namespace rigstep::server;

TEST_CASE("run info: each missed deadline was lost in the wait, in a step or beside it") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("rigstep_info_" + std::to_string(::getpid()) + ".mcap")).string();
  wire::RecordingHeader header;
  header.set_format_version(wire::kRecordingFormat);
  header.set_mechanism_text(config::read_text_file(test::source_path("config/mechanisms/four_bar.textproto")));
  header.set_dt_ns(1'000'000);
  header.set_iterations(3);
  header.set_projection_passes(2);
  {
    wire::RecordingWriter writer(path, header, 0);
    for (std::uint32_t k = 1; k <= 12; ++k) {
      if (k == 10) continue;  // not recorded
      wire::RecordedStep step;
      step.set_step(k);
      step.set_sim_time_ns(1'000'000LL * k);
      step.set_wake_up_ns(k == 3 ? 3'200'000 : k == 8 ? 900'000 : 10'000);
      step.set_step_ns(k == 4 ? 2'400'000 : k == 8 ? 200'000 : 6'000);
      step.set_missed_deadlines(k == 3 ? 3 : k == 5 ? 2 : k == 7 || k == 9 || k == 11 ? 1 : 0);
      writer.write(step, {}, 1'000'000LL * k);
    }
    writer.finish({});
  }
  const RunInfo info = describe_run(path, [](std::uint64_t) {});
  std::filesystem::remove(path);
  CHECK(info.missed_deadlines == 8);
  CHECK(info.missed_waiting.deadlines == 4);  // three of step 3, and that of step 8, which came 0.9 of a period late
  CHECK(info.missed_waiting.longest_us == doctest::Approx(3200.0));
  CHECK(info.missed_in_step.deadlines == 2);
  CHECK(info.missed_in_step.longest_us == doctest::Approx(2400.0));
  CHECK(info.missed_beside_step.deadlines == 1);
  CHECK(info.missed_beside_step.longest_us == doctest::Approx(1000.0 - 10.0 - 6.0));
  CHECK(info.missed_unplaced == 1);
  CHECK(info.text().find("4 of them where the loop waited and woke up late, 3200 us at most") != std::string::npos);
}
