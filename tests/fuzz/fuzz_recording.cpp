// Any bytes as a recording, as they are and with the checksums of their chunks made right, so that what lies behind
// them is reached too: an error with words or messages, and a replay that ends. libFuzzer entry.
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "proto/recording_reader.h"
#include "server/live/replay.h"

namespace {

using namespace rigstep;

constexpr std::size_t kMagic = 8, kRecordHead = 9, kChunkHead = 40;  // [bytes]
constexpr std::uint8_t kChunk = 0x06;

void require(bool condition) {
  if (!condition) std::abort();
}

// A file in memory with a name.
class MemoryFile {
 public:
  explicit MemoryFile(const std::vector<std::uint8_t>& bytes) : descriptor_(::memfd_create("fuzz", 0)) {
    require(descriptor_ >= 0);
    require(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

std::uint64_t number(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

void repair_checksums(std::vector<std::uint8_t>& bytes) {
  for (std::size_t at = kMagic; at + kRecordHead <= bytes.size();) {
    const std::uint64_t length = number(bytes, at + 1);
    const std::size_t content = at + kRecordHead;
    if (length > bytes.size() - content) return;
    if (bytes[at] == kChunk && length >= kChunkHead) {
      const auto crc = static_cast<std::uint32_t>(
          ::crc32_z(0, &bytes[content] + kChunkHead, static_cast<std::size_t>(length) - kChunkHead));
      std::memcpy(&bytes[content + 24], &crc, sizeof crc);
    }
    at = content + static_cast<std::size_t>(length);
  }
}

// As many items as the file has room for, then an end that stays one.
void read_all(const std::string& path, std::size_t size) {
  try {
    wire::RecordingReader reader(path);
    wire::RecordedStep step;
    wire::RecordedState state;
    std::size_t items = 0;
    while (reader.next(step, state) != wire::RecordingReader::Item::end) require(++items <= size);
    require(!reader.next(step));
    if (reader.damage()) require(reader.damage()->offset <= size && !reader.damage()->what.empty());
  } catch (const wire::RecordingError& error) {
    require(!error.problem.empty());
  }
}

void replay_all(const std::string& path) {
  try {
    const server::ReplayReport report = server::replay(path, {});
    require(!report.text().empty() && !report.json().dump().empty());
  } catch (const Error&) {
  }
}

void try_file(const std::vector<std::uint8_t>& bytes) {
  const MemoryFile file(bytes);
  read_all(file.path(), bytes.size());
  replay_all(file.path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const google::protobuf::LogSilencer quiet;  // a line for every string that is not UTF-8
  std::vector<std::uint8_t> bytes(data, data + size);
  try_file(bytes);
  repair_checksums(bytes);
  if (!std::equal(bytes.begin(), bytes.end(), data)) try_file(bytes);
  return 0;
}
