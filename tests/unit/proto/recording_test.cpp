#include "proto/recording.h"

#include <doctest/doctest.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "proto/named_messages.h"
#include "proto/recording_reader.h"
#include "proto/recording_writer.h"

namespace {

namespace fs = std::filesystem;
using namespace rigstep::wire;

constexpr int kSteps = 12;

// A file name of its own, removed at the end of the test.
struct TemporaryFile {
  TemporaryFile() {
    static int count = 0;
    path = (fs::temp_directory_path() /
            ("rigstep_" + std::to_string(::getpid()) + "_" + std::to_string(++count) + ".mcap"))
               .string();
  }
  ~TemporaryFile() { fs::remove(path); }
  std::string path;
};

RecordingHeader some_header() {
  RecordingHeader header;
  header.set_format_version(kRecordingFormat);
  header.set_product_version("1.2.3");
  header.set_mechanism_text("name: \"m\"");
  header.set_mechanism_id(0x0123456789abcdefULL);
  header.set_dt_ns(1'000'000);
  header.set_iterations(3);
  header.set_projection_passes(1);
  for (int i = 0; i < 3; ++i) header.add_start_state(0.5 * i);
  header.add_output_channel("wheel speed [rad/s]");
  header.add_output_channel("gap [m]");
  return header;
}

RecordedStep step_number(int k) {
  RecordedStep step;
  step.set_step(k);
  step.set_sim_time_ns(1'000'000LL * k);
  step.add_input(0.125 * k);
  step.add_input(-3.0);
  step.set_sequence(7 + k);
  step.set_state_hash(0x9e3779b97f4a7c15ULL * (k + 1));
  return step;
}

// of every second step
std::vector<double> outputs_number(int k) {
  return k % 2 == 0 ? std::vector<double>{1.0 / (k + 3), -0.0} : std::vector<double>{};
}

RecordedState state_number(int k) {
  RecordedState state;
  state.set_step(k);
  for (int i = 0; i < 4; ++i) state.add_state(k + 0.25 * i);
  return state;
}

RecordingFooter some_footer() {
  RecordingFooter footer;
  footer.set_steps(kSteps);
  footer.set_reason("stopped");
  return footer;
}

std::int64_t log_time(int k) { return 1'700'000'000'000'000'000LL + 1'000'000LL * k; }

// Twelve steps, a flush after every fourth, a state with every fifth.
void write_steps(RecordingWriter& writer) {
  for (int k = 0; k < kSteps; ++k) {
    writer.write(step_number(k), outputs_number(k), log_time(k));
    if (k % 5 == 0) writer.write(state_number(k), log_time(k));
    if (k % 4 == 3) writer.flush();
  }
}

std::string read_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Overwrites one byte in place: far quicker than a new file for each of some ten thousand.
void patch_byte(const std::string& path, std::size_t at, char value) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(value);
}

std::string finished_recording() {
  const TemporaryFile file;
  RecordingWriter writer(file.path, some_header(), log_time(0));
  write_steps(writer);
  writer.finish(some_footer());
  return read_bytes(file.path);
}

std::string unfinished_recording() {
  const TemporaryFile file;
  {
    RecordingWriter writer(file.path, some_header(), log_time(0));
    write_steps(writer);
  }
  return read_bytes(file.path);
}

struct Outcome {
  bool refused = false;  // by the constructor
  bool damaged = false;
  bool all_true = true;  // whatever was delivered is what was written, in order from the first
  int steps = 0;
  int states = 0;
  std::uint64_t damage_offset = 0;
  std::string what;
};

bool same_bits(std::span<const double> a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

Outcome read_all(const std::string& path) {
  Outcome outcome;
  try {
    RecordingReader reader(path);
    outcome.all_true = reader.header().SerializeAsString() == some_header().SerializeAsString();
    RecordedStep step;
    RecordedState state;
    for (auto item = reader.next(step, state); item != RecordingReader::Item::end; item = reader.next(step, state)) {
      const bool is_step = item == RecordingReader::Item::step;
      if (is_step) outcome.all_true = outcome.all_true && same_bits(reader.outputs(), outputs_number(outcome.steps));
      const bool same = is_step ? step.SerializeAsString() == step_number(outcome.steps++).SerializeAsString()
                                : state.SerializeAsString() == state_number(5 * outcome.states++).SerializeAsString();
      outcome.all_true = outcome.all_true && same;
    }
    outcome.damaged = reader.damage().has_value();
    if (outcome.damaged) {
      outcome.what = reader.damage()->what;
      outcome.damage_offset = reader.damage()->offset;
    }
  } catch (const RecordingError& error) {
    outcome.refused = true;
    outcome.what = error.what();
  }
  return outcome;
}

Outcome read_all_of(const std::string& bytes) {
  const TemporaryFile file;
  write_bytes(file.path, bytes);
  return read_all(file.path);
}

// The CRC of MCAP, bit by bit.
std::uint32_t crc32_of(const std::string& bytes, std::size_t from, std::size_t to) {
  std::uint32_t crc = ~0u;
  for (std::size_t i = from; i < to; ++i) {
    crc ^= static_cast<unsigned char>(bytes[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1u ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

std::uint64_t number_at(const std::string& bytes, std::size_t at, int size) {
  std::uint64_t value = 0;
  for (int i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

void set_number_at(std::string& bytes, std::size_t at, int size, std::uint64_t value) {
  for (int i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

struct Place {
  std::size_t offset;  // of the opcode
  std::size_t end;
};

// Top-level records of one kind.
std::vector<Place> records(const std::string& bytes, int opcode) {
  std::vector<Place> found;
  std::size_t at = 8;
  while (at + 9 < bytes.size() - 8) {
    const std::size_t end = at + 9 + number_at(bytes, at + 1, 8);
    if (bytes[at] == opcode) found.push_back({at, end});
    at = end;
  }
  return found;
}

constexpr std::size_t kChunkHead = 49;  // bytes before the records of an uncompressed chunk
constexpr std::size_t kChunkCrc = 33;   // where its checksum stands

}  // namespace

TEST_CASE("a finished recording gives back every message in order and its footer") {
  const TemporaryFile file;
  {
    RecordingWriter writer(file.path, some_header());
    write_steps(writer);
    writer.finish(some_footer());
  }
  const Outcome outcome = read_all(file.path);
  CHECK_FALSE(outcome.refused);
  CHECK_FALSE(outcome.damaged);
  CHECK(outcome.all_true);
  CHECK(outcome.steps == kSteps);
  CHECK(outcome.states == 3);

  RecordingReader reader(file.path);
  RecordedStep step;
  int steps = 0;
  while (reader.next(step)) CHECK(step.step() == steps++);
  CHECK(steps == kSteps);
  REQUIRE(reader.footer().has_value());
  CHECK(reader.footer()->reason() == "stopped");
  CHECK_FALSE(reader.next(step));
}

TEST_CASE("outputs and bodies stand in messages whose fields have their names and units") {
  CHECK(field_name_of_channel("wheel speed [rad/s]") == "wheel_speed_rad_per_s");
  CHECK(field_name_of_channel("a.b [m/s^2]") == "a_b_m_per_s2");
  CHECK(field_name_of_channel("2nd [1]") == "_2nd");
  CHECK(field_name_of_channel("torque [N m]") == "torque_N_m");
  CHECK(field_name_of_channel("energy") == "energy");

  RecordingHeader header = some_header();
  header.add_output_channel("Gap_ [m]");  // would be the same name in JSON
  header.add_output_channel("step [1]");
  header.add_body("crank");
  header.add_body("2 rods");
  NamedMessages named(header);
  const auto* outputs = named.outputs_type();
  REQUIRE(outputs->field_count() == 6);
  CHECK(outputs->field(2)->name() == "wheel_speed_rad_per_s");
  CHECK(outputs->field(2)->json_name() == "wheel speed [rad/s]");
  CHECK(outputs->field(3)->name() == "gap_m");
  CHECK(outputs->field(4)->name() == "Gap__m_n2");
  CHECK(outputs->field(5)->name() == "step_n2");
  const auto* bodies = named.bodies_type();
  REQUIRE(bodies->field_count() == 4);
  CHECK(bodies->field(2)->name() == "crank");
  CHECK(bodies->field(3)->name() == "_2_rods");

  RecordedState state;
  state.set_step(7);
  for (int k = 0; k < 2 * 19 + 5; ++k) state.add_state(k);
  const google::protobuf::Message& message = named.bodies(state);
  const auto& rods = static_cast<const RecordedBody&>(message.GetReflection()->GetMessage(message, bodies->field(3)));
  CHECK(rods.position().x() == 19.0);
  CHECK(rods.orientation().w() == 22.0);
  CHECK(rods.velocity().y() == 27.0);
  CHECK(rods.angular_velocity().z() == 31.0);
  CHECK(rods.acceleration().x() == 32.0);
  CHECK(rods.angular_acceleration().z() == 37.0);
}

TEST_CASE("more channels than protobuf leaves numbers for in a row keep their order") {
  RecordingHeader header;
  for (int k = 0; k < 20'000; ++k) header.add_body("b" + std::to_string(k));
  const NamedMessages named(header);
  CHECK(named.bodies_type()->field(2 + 18'996)->number() == 18'999);
  CHECK(named.bodies_type()->field(2 + 18'997)->number() == 20'000);
}

TEST_CASE("flushed steps survive a writer that never finishes") {
  const TemporaryFile file;
  RecordingWriter writer(file.path, some_header());
  write_steps(writer);
  writer.write(step_number(kSteps), {}, log_time(kSteps));  // not flushed
  RecordingReader reader(file.path);
  RecordedStep step;
  int steps = 0;
  while (reader.next(step)) ++steps;
  CHECK(steps == kSteps);
  CHECK_FALSE(reader.footer().has_value());
  REQUIRE(reader.damage().has_value());
  CHECK(reader.damage()->what.find("without its closing records") != std::string::npos);
  CHECK(reader.damage()->offset == fs::file_size(file.path));
}

TEST_CASE("the destructor flushes what is left") { CHECK(read_all_of(unfinished_recording()).steps == kSteps); }

TEST_CASE("a date that is set back, or forth, while it is recorded costs nothing and changes no order") {
  constexpr std::int64_t kDay = 86'400'000'000'000;
  const TemporaryFile file;
  RecordingWriter writer(file.path, some_header(), log_time(0));
  for (int k = 0; k < kSteps; ++k) {
    const std::int64_t date = log_time(k) + (k < 3 ? 0 : k < 6 ? -kDay : kDay);
    writer.write(step_number(k), outputs_number(k), date);
    if (k % 5 == 0) writer.write(state_number(k), date);
    if (k % 4 == 3) writer.flush();
  }
  writer.finish(some_footer());
  const Outcome outcome = read_all(file.path);
  CHECK(outcome.steps == kSteps);
  CHECK(outcome.all_true);
  CHECK_FALSE(outcome.damaged);
}

TEST_CASE("a chunk closes by itself at one mebibyte") {
  const TemporaryFile file;
  RecordingWriter writer(file.path, some_header());
  RecordedState state;
  for (int i = 0; i < 2400; ++i) state.add_state(i);
  const auto before = fs::file_size(file.path);
  for (int k = 0; k < 54; ++k) writer.write(state, log_time(k));
  CHECK(fs::file_size(file.path) == before);
  writer.write(state, log_time(54));
  CHECK(fs::file_size(file.path) > before + 1'048'576);
}

TEST_CASE("equal runs give equal files when the log times are equal") {
  CHECK(finished_recording() == finished_recording());
}

TEST_CASE("a file cut at any byte gives its whole part and says that it is cut") {
  const std::string whole = finished_recording();
  const std::size_t first_chunk_end = records(whole, 0x06).at(0).end;
  const TemporaryFile file;
  write_bytes(file.path, whole);
  int steps = kSteps;
  int wrong = 0;
  for (std::size_t size = whole.size(); size-- > 0;) {
    fs::resize_file(file.path, size);
    const Outcome outcome = read_all(file.path);
    const bool told = size < first_chunk_end ? outcome.refused : outcome.damaged && outcome.damage_offset <= size;
    if (!told || !outcome.all_true || outcome.steps > steps) ++wrong;
    steps = outcome.steps;
  }
  CHECK(wrong == 0);
  CHECK(steps == 0);
}

TEST_CASE("no flipped byte goes unnoticed or gives a wrong message") {
  for (const std::string& whole : {finished_recording(), unfinished_recording()}) {
    const TemporaryFile file;
    write_bytes(file.path, whole);
    std::vector<std::size_t> wrong;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      const int mask = at % 9 == 8 ? 0xFF : 1 << (at % 9);
      patch_byte(file.path, at, static_cast<char>(whole[at] ^ mask));
      const Outcome outcome = read_all(file.path);
      if (!(outcome.refused || outcome.damaged) || !outcome.all_true) wrong.push_back(at);
      patch_byte(file.path, at, whole[at]);
    }
    CHECK(wrong == std::vector<std::size_t>{});
  }
}

TEST_CASE("lies inside a chunk whose checksum is right do no harm") {
  const google::protobuf::LogSilencer quiet;
  const std::string whole = finished_recording();
  const TemporaryFile file;
  int noticed = 0;
  for (const Place& chunk : records(whole, 0x06)) {
    for (std::size_t at = chunk.offset + kChunkHead; at < chunk.end; ++at) {
      std::string bytes = whole.substr(0, chunk.end);
      bytes[at] = static_cast<char>(bytes[at] ^ (at % 2 == 0 ? 0xFF : 0x80));
      set_number_at(bytes, chunk.offset + kChunkCrc, 4, crc32_of(bytes, chunk.offset + kChunkHead, chunk.end));
      write_bytes(file.path, bytes);
      const Outcome outcome = read_all(file.path);
      noticed += outcome.refused || outcome.damaged;
    }
  }
  CHECK(noticed > 0);
}

TEST_CASE("garbage of any kind ends in an error or a damage report") {
  const std::string whole = finished_recording();
  std::mt19937 random(1);
  int unnoticed = 0;
  for (int trial = 0; trial < 500; ++trial) {
    std::string bytes = whole;
    const std::size_t from = 8 + random() % (bytes.size() - 8);
    const std::size_t to = std::min(bytes.size(), from + 1 + random() % 200);
    for (std::size_t i = from; i < to; ++i) bytes[i] = static_cast<char>(random());
    if (bytes == whole) continue;
    const Outcome outcome = read_all_of(bytes);
    unnoticed += !(outcome.refused || outcome.damaged) || !outcome.all_true;
  }
  CHECK(unnoticed == 0);
}

TEST_CASE("a chunk that lost its kind shows as a gap in the count") {
  std::string bytes = unfinished_recording();
  const Place second_of_steps = records(bytes, 0x06).at(2);
  bytes[second_of_steps.offset] = 0x40;
  const Outcome outcome = read_all_of(bytes);
  CHECK(outcome.steps == 4);
  CHECK(outcome.what.find("messages are missing on /outputs") != std::string::npos);
}

TEST_CASE("records of unknown kind are skipped") {
  std::string bytes = unfinished_recording();
  const std::string unknown{"\x90\x03\0\0\0\0\0\0\0abc", 12};
  bytes.insert(records(bytes, 0x06).at(2).offset, unknown);
  CHECK(read_all_of(bytes).steps == kSteps);
}

TEST_CASE("a length beyond the file or the limit is refused without taking memory for it") {
  const std::string whole = unfinished_recording();
  const std::size_t last_chunk = records(whole, 0x06).back().offset;
  for (const std::uint64_t length : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    std::string bytes = whole;
    set_number_at(bytes, last_chunk + 1, 8, length);
    const Outcome outcome = read_all_of(bytes);
    CHECK(outcome.damaged);
    CHECK(outcome.damage_offset == last_chunk);
    CHECK(outcome.all_true);
  }
  // a file that does hold as much as the chunk claims
  const TemporaryFile file;
  std::string bytes = whole;
  set_number_at(bytes, last_chunk + 1, 8, std::uint64_t{65} << 20);
  write_bytes(file.path, bytes);
  fs::resize_file(file.path, std::uintmax_t{80} << 20);
  CHECK(read_all(file.path).what.find("more than 64 MiB") != std::string::npos);
}

TEST_CASE("a compressed chunk is named as the reason") {
  std::string bytes = unfinished_recording();
  const Place chunk = records(bytes, 0x06).at(0);
  set_number_at(bytes, chunk.offset + 37, 4, 3);
  bytes.insert(chunk.offset + 41, "lz4");
  set_number_at(bytes, chunk.offset + 1, 8, chunk.end - chunk.offset - 9 + 3);
  const Outcome outcome = read_all_of(bytes);
  CHECK(outcome.refused);
  CHECK(outcome.what.find("compressed with lz4; Rigstep reads uncompressed ones") != std::string::npos);
}

TEST_CASE("files that are no recordings of ours are refused with the reason") {
  CHECK_THROWS_WITH_AS(RecordingReader("/nonexistent/a.mcap"),
                       "/nonexistent/a.mcap: cannot open the recording: No such file or directory; check the path and "
                       "its permissions",
                       RecordingError);
  CHECK(read_all("/tmp").what.find("not a regular file") != std::string::npos);
  CHECK(read_all_of("").what.find("byte 0: the file is empty") != std::string::npos);
  CHECK(read_all_of("time,x\n0,1\n2,3\n").what.find("not an MCAP file") != std::string::npos);

  // an MCAP file without chunks or messages, as another tool would write it
  std::string other = finished_recording();
  const Place first = records(other, 0x06).at(0);
  other.erase(first.offset, records(other, 0x0F).at(0).offset - first.offset);
  set_number_at(other, records(other, 0x0F).at(0).offset + 9, 4, 0);
  CHECK(read_all_of(other).what.find("not a recording of Rigstep") != std::string::npos);
}

TEST_CASE("a recording of another format is refused with the version that wrote it") {
  const TemporaryFile file;
  RecordingHeader header = some_header();
  header.set_format_version(2);
  RecordingWriter(file.path, header).finish(some_footer());
  const Outcome outcome = read_all(file.path);
  CHECK(outcome.refused);
  CHECK(outcome.what.find("recording format 2, this version reads format 1; use the version that wrote it: Rigstep "
                          "1.2.3") != std::string::npos);
}

TEST_CASE("a header that could not be read back is refused at the start") {
  const google::protobuf::LogSilencer quiet;
  const TemporaryFile file;
  RecordingHeader header = some_header();
  header.set_mechanism_text("Tr\xe4ger");
  CHECK_THROWS_AS(RecordingWriter(file.path, header), RecordingError);
}

TEST_CASE("a file that cannot be made and a full disk name path and reason") {
  CHECK_THROWS_WITH_AS(RecordingWriter("/nonexistent/a.mcap", some_header()),
                       "/nonexistent/a.mcap: cannot create the recording: No such file or directory; name a file in a "
                       "directory that exists and may be written to",
                       RecordingError);
  CHECK_THROWS_WITH_AS(RecordingWriter("/dev/full", some_header()),
                       "/dev/full: cannot write at byte 0: No space left on device; free space or record to another "
                       "disk; the file is whole up to byte 0",
                       RecordingError);
}

TEST_CASE("a disk that fills up later is told on every call and leaves a readable file") {
  const TemporaryFile file;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  RecordingWriter writer(file.path, some_header());
  write_steps(writer);
  const rlimit now{fs::file_size(file.path) + 50, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  writer.write(step_number(kSteps), {}, log_time(kSteps));
  CHECK_THROWS_AS(writer.flush(), RecordingError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  CHECK_THROWS_AS(writer.write(step_number(kSteps), {}, log_time(kSteps)), RecordingError);
  CHECK_THROWS_AS(writer.flush(), RecordingError);
  CHECK_THROWS_AS(writer.finish(some_footer()), RecordingError);
  const Outcome outcome = read_all(file.path);
  CHECK(outcome.steps == kSteps);
  CHECK(outcome.what.find("ends inside a record") != std::string::npos);
}
