#include "proto/snapshot_file.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

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

constexpr const char* kForgedSnapshot = "the file is forged: have `rigstep snapshot` write a new one";
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

std::string id_text(std::uint64_t id) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, id);
  return text;
}

void require_same_mechanism(const wire::SnapshotFile& snapshot, const std::string& path, const Mechanism& mechanism) {
  if (snapshot.mechanism_id() == mechanism.id()) return;
  const bool has_name = snapshot.mechanism() == mechanism.name();
  fail(path,
       std::string(has_name ? "is of another version of the mechanism" : "is of the mechanism") + " \"" +
           snapshot.mechanism().substr(0, 80) + "\" (" + id_text(snapshot.mechanism_id()) + "), and this is \"" +
           mechanism.name() + "\" (" + id_text(mechanism.id()) + ")",
       "use the mechanism file that it was made with, whose text it holds");
}

void check_parameter(const wire::SnapshotParameter& in, const Parameter& parameter, const std::string& path) {
  const bool is_ramp = in.ramp_done() < in.ramp_steps();
  const bool moves = is_ramp || in.value() != parameter.value;
  if (in.name() != parameter.name || !parameter.allows(in.value()) || in.ramp_done() > in.ramp_steps() ||
      (is_ramp && !(parameter.allows(in.ramp_from()) && parameter.allows(in.ramp_to()))) ||
      (moves && !parameter.tunable))
    fail(path, "the values of parameter \"" + parameter.name + "\" are none that it can have", kForgedSnapshot);
}

// So that nothing that follows from it is infinite at once. A body has 19 numbers, from the fourth on its Euler
// parameters.
void check_state(const wire::SnapshotFile& snapshot, std::size_t bodies, const std::string& path) {
  constexpr double kMost = 1e100;  // products of three of them are finite
  constexpr std::size_t kPerBody = 19;
  const auto& state = snapshot.state();
  bool sound = static_cast<std::size_t>(state.size()) >= kPerBody * bodies &&
               snapshot.state_step() <= snapshot.step() &&
               std::all_of(state.begin(), state.end(), [](double x) { return std::abs(x) <= kMost; });
  for (std::size_t k = 0; k < bodies && sound; ++k) {
    const double* const p = state.data() + k * kPerBody + 3;
    sound = std::abs(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3] - 1.0) < 1e-6;
  }
  if (!sound) fail(path, "its state is none that a stepper reaches", kForgedSnapshot);
}

}  // namespace

LoadedMechanism mechanism_of(const wire::SnapshotFile& snapshot, const std::string& path) {
  LoadedMechanism mechanism = parse_mechanism(snapshot.mechanism_text(), snapshot.mechanism_file());
  set_start_parameters(mechanism, snapshot, path);
  return mechanism;
}

void set_start_parameters(LoadedMechanism& mechanism, const wire::SnapshotFile& snapshot, const std::string& path) {
  require_same_mechanism(snapshot, path, mechanism.mechanism);
  std::vector<ParameterSetting> settings;
  for (const wire::SnapshotParameter& each : snapshot.parameter()) settings.push_back({each.name(), each.start()});
  try {
    set_parameters(mechanism, settings);
  } catch (const MechanismError& error) {
    fail(path, error.what(), kForgedSnapshot);
  }
}

void require_fit(const wire::SnapshotFile& snapshot, const std::string& path, const Mechanism& mechanism) {
  require_same_mechanism(snapshot, path, mechanism);
  const auto require_count = [&path](int count, std::size_t expected, const char* what) {
    if (static_cast<std::size_t>(count) != expected)
      fail(path, "has " + std::to_string(count) + " " + what + ", and the mechanism has " + std::to_string(expected),
           kForgedSnapshot);
  };
  for (const auto* list : {&snapshot.applied(), &snapshot.newest(), &snapshot.rate(), &snapshot.ramp_start()})
    require_count(list->size(), mechanism.input_channels().size(), "input channels");
  require_count(snapshot.parameter_size(), mechanism.parameters().size(), "parameters");
  for (int k = 0; k < snapshot.parameter_size(); ++k)
    check_parameter(snapshot.parameter(k), mechanism.parameters()[static_cast<std::size_t>(k)], path);
  check_state(snapshot, mechanism.bodies().size(), path);
}

void refuse_state(const std::string& path, std::size_t numbers, std::size_t expected) {
  if (numbers == expected) fail(path, "its state does not have the hash that stands beside it", kForgedSnapshot);
  fail(
      path,
      "its state has " + std::to_string(numbers) + " numbers, and one of the mechanism has " + std::to_string(expected),
      kForgedSnapshot);
}

std::string snapshot_bytes(wire::SnapshotFile snapshot) {
  snapshot.set_product_version(RIGSTEP_VERSION);
  const std::string message = snapshot.SerializeAsString();
  std::string bytes(kMagic);
  bytes.push_back(static_cast<char>(kFormat));
  put(bytes, message.size());
  put(bytes, hash_of(message));
  return bytes + message;
}

bool is_snapshot(std::string_view bytes) noexcept { return bytes.starts_with(kMagic); }

wire::SnapshotFile parse_snapshot(std::string_view bytes, const std::string& path) {
  const std::string_view message = message_in(bytes, path);
  wire::SnapshotFile snapshot;
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

wire::SnapshotFile read_snapshot(const std::string& path) {
  return parse_snapshot(read_file(path, kLargestSnapshot), path);
}

}  // namespace rigstep::config
