// What the writer and the reader of recordings know of the MCAP format (https://mcap.dev/spec). Included by them only.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "proto/named_messages.h"

namespace rigstep::wire {

using Bytes = std::vector<std::uint8_t>;

inline constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'M', 'C', 'A', 'P', '0', '\r', '\n'};

enum Opcode : std::uint8_t {
  kHeaderRecord = 0x01,
  kFooterRecord = 0x02,
  kSchemaRecord = 0x03,
  kChannelRecord = 0x04,
  kMessageRecord = 0x05,
  kChunkRecord = 0x06,
  kMessageIndexRecord = 0x07,
  kChunkIndexRecord = 0x08,
  kStatisticsRecord = 0x0B,
  kSummaryOffsetRecord = 0x0E,
  kDataEndRecord = 0x0F,
};

inline constexpr std::size_t kRecordHead = 9;                    // opcode, length
inline constexpr std::size_t kChunkHead = kRecordHead + 40;      // with its times, size, crc, no compression
inline constexpr std::size_t kChunkSize = std::size_t{1} << 20;  // a chunk this large is written
inline constexpr std::size_t kLargestChunk = std::size_t{64} << 20;
inline constexpr std::size_t kLargestMessage = kLargestChunk - 2 * kChunkSize;  // fits a chunk that is nearly full

enum Topic : int { kHeader, kSteps, kStates, kFooter, kOutputs, kBodies };

struct TopicInfo {
  std::string_view name, message;
};

inline constexpr std::array<TopicInfo, 6> kTopic{{{"/header", "rigstep.wire.RecordingHeader"},
                                                  {"/steps", "rigstep.wire.RecordedStep"},
                                                  {"/states", "rigstep.wire.RecordedState"},
                                                  {"/footer", "rigstep.wire.RecordingFooter"},
                                                  {"/outputs", kOutputsMessage},
                                                  {"/bodies", kBodiesMessage}}};

// MCAP counts schemas from 1; ours and the channels are numbered alike.
constexpr std::uint16_t id_of(int topic) { return static_cast<std::uint16_t>(topic + 1); }

inline std::uint32_t crc_of(const void* data, std::size_t size, std::uint32_t before = 0) {
  return static_cast<std::uint32_t>(::crc32_z(before, static_cast<const Bytef*>(data), size));
}

inline std::string errno_text(int error) { return std::generic_category().message(error); }

// Takes little-endian numbers and texts from bytes that may be too few: then `ok` is false and all else zero.
struct Cursor {
  const std::uint8_t* data = nullptr;
  std::size_t left = 0;
  bool ok = true;

  bool take(std::size_t size) {
    ok = ok && size <= left;
    if (ok) left -= size;
    return ok;
  }

  template <class T>
  T number() {
    if (!take(sizeof(T))) return 0;
    T value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value | (static_cast<T>(data[i]) << (8 * i)));
    data += sizeof(T);
    return value;
  }

  std::string_view text() {
    const auto size = number<std::uint32_t>();
    if (!take(size)) return {};
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    data += size;
    return text;
  }
};

}  // namespace rigstep::wire
