#include "proto/snapshot_file.h"

#include <google/protobuf/stubs/logging.h>

#include <cstdint>

#include "core/mechanism/content_hash.h"
#include "proto/bounds.h"

namespace rigstep::config {
namespace {

constexpr std::string_view kMagic = "RIGSNAP";
constexpr unsigned char kFormat = 1;
constexpr std::size_t kHeadBytes = 24;  // magic, format, size and hash of the message

void put(std::string& bytes, std::uint64_t number) {
  for (int k = 0; k < 8; ++k) bytes.push_back(static_cast<char>(number >> 8 * k));
}

std::uint64_t number_at(std::string_view bytes, std::size_t place) {
  std::uint64_t number = 0;
  for (std::size_t k = 0; k < 8; ++k) number |= std::uint64_t{static_cast<unsigned char>(bytes[place + k])} << 8 * k;
  return number;
}

std::uint64_t hash_of(std::string_view message) {
  ContentHash hash;
  hash.add(message.data(), message.size());
  return hash.value();
}

[[noreturn]] void fail(const std::string& path, const std::string& problem, const std::string& remedy) {
  throw ConfigError(path + ": snapshot: " + problem + ": " + remedy);
}

constexpr const char* kUseCopy = "the file is damaged: use a copy, or have `rigstep snapshot` write a new one";

// The message behind a head that fits it.
std::string_view message_in(std::string_view bytes, const std::string& path) {
  if (!is_snapshot(bytes)) fail(path, "is no snapshot", "name a file that `rigstep snapshot` wrote");
  if (bytes.size() < kHeadBytes) fail(path, "ends within its head", kUseCopy);
  if (const auto format = static_cast<unsigned char>(bytes[kMagic.size()]); format != kFormat)
    fail(path, "has format " + std::to_string(format) + ", and this version reads " + std::to_string(kFormat),
         "use the version of Rigstep that wrote it");
  const std::uint64_t size = number_at(bytes, 8);
  const std::string_view message = bytes.substr(kHeadBytes);
  if (message.size() != size)
    fail(path, "has " + std::to_string(message.size()) + " bytes behind its head, not " + std::to_string(size),
         kUseCopy);
  if (hash_of(message) != number_at(bytes, 16)) fail(path, "its bytes do not have the hash in its head", kUseCopy);
  return message;
}

// The elements of lists, which find_out_of_bounds() leaves out.
template <class Message>
void check_bounds(const Message& message, const std::string& path) {
  if (const auto out = find_out_of_bounds(message)) fail(path, out->field + " " + out->problem, out->remedy);
}

}  // namespace

std::string snapshot_bytes(const wire::Snapshot& snapshot) {
  const std::string message = snapshot.SerializeAsString();
  std::string bytes(kMagic);
  bytes.push_back(static_cast<char>(kFormat));
  put(bytes, message.size());
  put(bytes, hash_of(message));
  return bytes + message;
}

bool is_snapshot(std::string_view bytes) noexcept { return bytes.starts_with(kMagic); }

wire::Snapshot parse_snapshot(std::string_view bytes, const std::string& path) {
  const std::string_view message = message_in(bytes, path);
  wire::Snapshot snapshot;
  const google::protobuf::LogSilencer quiet;
  if (!snapshot.ParseFromArray(message.data(), static_cast<int>(message.size())))
    fail(path, "holds no message of proto/snapshot.proto", kUseCopy);
  if (snapshot.product_version() != RIGSTEP_VERSION)
    fail(path, "was written by Rigstep " + snapshot.product_version().substr(0, 40) + ", and this is " RIGSTEP_VERSION,
         "the same bits are promised within a version: use that one");
  check_bounds(snapshot, path);
  for (const wire::SnapshotParameter& parameter : snapshot.parameter()) check_bounds(parameter, path);
  return snapshot;
}

wire::Snapshot read_snapshot(const std::string& path) {
  return parse_snapshot(read_file(path, kLargestSnapshot), path);
}

}  // namespace rigstep::config
