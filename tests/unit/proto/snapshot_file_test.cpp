#include "proto/snapshot_file.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/mechanism/content_hash.h"

namespace rigstep::config {
namespace {

wire::SnapshotFile good_snapshot() {
  wire::SnapshotFile snapshot;
  snapshot.set_mechanism("cart");
  snapshot.set_mechanism_text("name: \"cart\"");
  snapshot.set_mechanism_id(0x1234567890abcdef);
  snapshot.set_dt_ns(1'000'000);
  snapshot.set_iterations(3);
  snapshot.set_relative_compliance(1e-10);
  snapshot.set_projection_passes(1);
  snapshot.set_order(2);
  for (const double value : {1.0, -0.0, 5e-324, 1e30}) snapshot.add_state(value);
  wire::SnapshotParameter& parameter = *snapshot.add_parameter();
  parameter.set_name("tip");
  parameter.set_ramp_steps(10);
  return snapshot;
}

// A file of any message: its head fits.
std::string with_head(const std::string& message) {
  ContentHash hash;
  hash.add(message.data(), message.size());
  std::string bytes = "RIGSNAP\1";
  for (const std::uint64_t number : {std::uint64_t{message.size()}, hash.value()})
    for (int k = 0; k < 8; ++k) bytes.push_back(static_cast<char>(number >> 8 * k));
  return bytes + message;
}

std::string problem_of_bytes(const std::string& bytes) {
  try {
    parse_snapshot(bytes, "file");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a snapshot file holds what was put into it, bit for bit") {
  const wire::SnapshotFile snapshot = good_snapshot();
  const std::string bytes = snapshot_bytes(snapshot);
  CHECK(is_snapshot(bytes));
  const wire::SnapshotFile back = parse_snapshot(bytes, "file");
  CHECK(!back.product_version().empty());
  CHECK(snapshot_bytes(back) == bytes);
  CHECK(std::signbit(back.state(1)));
  CHECK(back.state(2) == 5e-324);
  CHECK(back.mechanism_id() == snapshot.mechanism_id());
}

TEST_CASE("a file that is no snapshot, cut short, longer, damaged, or of another format or version says so") {
  const std::string bytes = snapshot_bytes(good_snapshot());
  CHECK(problem_of_bytes("").starts_with("file: snapshot: is no snapshot: name a file that"));
  CHECK(problem_of_bytes("name: \"cart\"").starts_with("file: snapshot: is no snapshot"));
  CHECK(problem_of_bytes("RIGSNAP\1").starts_with("file: snapshot: ends within its head"));
  CHECK(problem_of_bytes(bytes.substr(0, bytes.size() - 1)).find("bytes behind its head, not") != std::string::npos);
  CHECK(problem_of_bytes(bytes + "x").find("bytes behind its head, not") != std::string::npos);
  std::string other = bytes;
  other[7] = 9;
  CHECK(problem_of_bytes(other).find("has format 9, and this version reads 1") != std::string::npos);
  wire::SnapshotFile older = good_snapshot();
  older.set_product_version("0.0.1");
  CHECK(problem_of_bytes(with_head(older.SerializeAsString())).find("was written by Rigstep 0.0.1") !=
        std::string::npos);
}

TEST_CASE("every byte of a snapshot file that is changed is found") {
  const std::string bytes = snapshot_bytes(good_snapshot());
  for (std::size_t k = 0; k < bytes.size(); ++k)
    for (const int bit : {0, 3, 7}) {
      std::string changed = bytes;
      changed[k] = static_cast<char>(changed[k] ^ 1 << bit);
      REQUIRE(problem_of_bytes(changed) != "");
    }
}

TEST_CASE("numbers of a forged snapshot have bounds, those of its lists as well") {
  const auto problem = [](const auto& forge) {
    wire::SnapshotFile snapshot = good_snapshot();
    forge(snapshot);
    return problem_of_bytes(snapshot_bytes(snapshot));
  };
  CHECK(problem([](wire::SnapshotFile& s) { s.set_dt_ns(0); }).find("dt_ns is 0") != std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) { s.set_step(~0ull); }).find("step is ") != std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) { s.set_iterations(1000); }).find("iterations is 1000") != std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) {
          s.set_state(2, std::numeric_limits<double>::quiet_NaN());
        }).find("state is nan") != std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) { s.add_rate(INFINITY); }).find("rate is inf") != std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) { s.mutable_parameter(0)->set_value(-INFINITY); }).find("value is -inf") !=
        std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) { s.set_mechanism(std::string(5000, 'x')); }).find("mechanism its length") !=
        std::string::npos);
  CHECK(problem([](wire::SnapshotFile& s) {
          for (int k = 0; k < 200; ++k) s.add_parameter()->set_name("p");
        }).find("parameter has a length of 201") != std::string::npos);
}

TEST_CASE("any bytes behind a head that fits them end in a snapshot or a message") {
  const std::string message = snapshot_bytes(good_snapshot()).substr(24);
  std::mt19937 random(27);
  int refused = 0;
  for (int k = 0; k < 20'000; ++k) {
    std::string bytes = message;
    for (auto n = random() % 3 + 1; n > 0; --n) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    refused += !problem_of_bytes(with_head(bytes)).empty();
  }
  CHECK(refused > 10'000);
  CHECK(refused < 20'000);
}

}  // namespace rigstep::config
