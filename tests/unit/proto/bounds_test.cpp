#include "proto/bounds.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "proto/load_rig.h"
#include "proto/mechanism.pb.h"
#include "proto/recording.pb.h"
#include "proto/rig.pb.h"
#include "proto/snapshot.pb.h"

namespace {

namespace pb = google::protobuf;
using namespace rigstep;
using namespace rigstep::config;

// Every field of the message and of those in it that holds a whole number or a list.
void collect(const pb::Descriptor& message, std::set<const pb::FieldDescriptor*>& fields) {
  for (int k = 0; k < message.field_count(); ++k) {
    const pb::FieldDescriptor& field = *message.field(k);
    const auto type = field.cpp_type();
    const bool is_whole = type == pb::FieldDescriptor::CPPTYPE_UINT32 || type == pb::FieldDescriptor::CPPTYPE_UINT64 ||
                          type == pb::FieldDescriptor::CPPTYPE_INT32 || type == pb::FieldDescriptor::CPPTYPE_INT64;
    if (is_whole || field.is_repeated()) fields.insert(&field);
    if (field.message_type() != nullptr) collect(*field.message_type(), fields);
  }
}

wire::RecordingHeader good_header() {
  wire::RecordingHeader header;
  header.set_dt_ns(1'000'000);
  header.set_iterations(3);
  header.set_projection_passes(2);
  header.set_relative_compliance(1e-7);
  return header;
}

std::string problem_of(const pb::Message& message) {
  const auto beyond = find_out_of_bounds(message);
  return beyond ? beyond->field + " " + beyond->problem + ": " + beyond->remedy : "";
}

std::string complaint_about_rig(const std::string& lines) {
  try {
    parse_rig("mechanism: \"m\"\n" + lines, "rig.textproto");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("every whole number and every list of a rig file, a mechanism file, a snapshot and a header has a bound") {
  std::set<const pb::FieldDescriptor*> fields;
  collect(*wire::Rig::descriptor(), fields);
  collect(*wire::Mechanism::descriptor(), fields);
  collect(*wire::RecordingHeader::descriptor(), fields);
  collect(*wire::SnapshotFile::descriptor(), fields);
  CHECK(fields.size() > 40);
  for (const pb::FieldDescriptor* field : fields) {
    INFO(field->full_name());
    CHECK(has_own_bound(*field));
  }
}

TEST_CASE("a header's numbers are bounded from below and above, and no number is one that is none") {
  CHECK(problem_of(good_header()).empty());
  wire::RecordingHeader header = good_header();
  header.set_projection_passes(65535);
  CHECK(problem_of(header) == "projection_passes is 65535, the most is 50: the file is damaged or forged: use a copy");
  header = good_header();
  header.set_iterations(0);
  CHECK(problem_of(header).starts_with("iterations is 0, the least is 1"));
  header = good_header();
  header.set_relative_compliance(std::numeric_limits<double>::quiet_NaN());
  CHECK(problem_of(header).starts_with("relative_compliance is nan"));
  header = good_header();
  header.set_dt_ns(~0ull);
  CHECK(problem_of(header).starts_with("dt_ns is 1.844674407e+19, the most is 1000000000"));
  header = good_header();
  header.add_start_state(INFINITY);
  CHECK(problem_of(header).starts_with("start_state is inf"));
  header = good_header();
  header.set_commissioning(std::string(kLargestVerdict + 1, ' '));
  CHECK(problem_of(header).starts_with("commissioning its length in bytes is 1048577, the most is 1048576"));
  header = good_header();
  header.set_cpu(std::string(5000, 'x'));
  CHECK(problem_of(header).starts_with("cpu its length in bytes is 5000, the most is 4096"));
}

TEST_CASE("a rig file's numbers are bounded, and the complaint has line, value, bound and remedy") {
  CHECK(complaint_about_rig("solver { projection_passes: 65535 }") ==
        "rig.textproto:2: solver.projection_passes: is 65535, the most is 50: leave it out");
  CHECK(
      complaint_about_rig("solver {\n  iterations: 51\n}").starts_with("rig.textproto:3: solver.iterations: is 51, "));
  CHECK(complaint_about_rig("realtime { threads: 65 }").starts_with("rig.textproto:2: realtime.threads: is 65, "));
  CHECK(complaint_about_rig("realtime { priority: 100 }").find("1 to 99") != std::string::npos);
  CHECK(complaint_about_rig("link { port: 65536 }").find("UDP port") != std::string::npos);
  CHECK(complaint_about_rig("recording { full_state_every: 4294967295 }").find("the most is 1000000000") !=
        std::string::npos);
  CHECK(complaint_about_rig("black_box { folder: \".\" seconds: inf }").find("black_box.seconds: is inf") !=
        std::string::npos);
}
