// Reads a recording. Owned and used by one thread, never by the loop; replay and offline tools read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proto/named_messages.h"
#include "proto/recording.h"

namespace rigstep::wire {

// Where a recording stops being one. Everything before was whole and has been delivered.
struct Damage {
  std::uint64_t offset = 0;  // in the file [bytes]
  std::string what;
};

// Reads a recording from front to back, one chunk in memory (64 MiB at most, never more than the file holds).
// Safe on any bytes: a message is delivered only from a chunk whose CRC is right and whose count has no gap. The times
// of steps never fall; only the record of a fault repeats one.
class RecordingReader {
 public:
  enum class Item { step, state, end };

  // Throws RecordingError when the file is missing, not MCAP, not a Rigstep recording, of a newer format, compressed,
  // or damaged before its header ends.
  explicit RecordingReader(const std::string& path);

  const RecordingHeader& header() const { return header_; }

  // Fills the message that belongs to the item returned, in file order; the other one stays as it was. Damage is an
  // end too. Reusing the messages saves allocations. Throws RecordingError only for a compressed chunk.
  Item next(RecordedStep& step, RecordedState& state);

  // The same for steps only: false at the end.
  bool next(RecordedStep& step);

  // (output channels of the header) after the step that was read last; empty: they were not recorded.
  std::span<const double> outputs() const { return outputs_; }

  // Of the message that was read last [ns since 1970]; of the header before the first.
  std::int64_t log_time_ns() const { return static_cast<std::int64_t>(log_time_ns_); }

  // After the end: absent if the run did not end cleanly.
  const std::optional<RecordingFooter>& footer() const { return footer_; }

  // After the end: why reading stopped before the end of a whole file; absent if all of it was read.
  const std::optional<Damage>& damage() const { return damage_; }
  // The same for people: "byte 1234: what", or nothing.
  std::string damage_text() const;

 private:
  static constexpr int kTopics = 6;
  struct Record {
    std::uint8_t opcode = 0;
    std::uint64_t offset = 0;            // in the file [bytes]
    std::uint64_t length = 0;            // of its content [bytes]
    std::uint32_t crc_before = 0;        // of everything counted before it
    const std::uint8_t* data = nullptr;  // in a chunk: its content
  };
  struct Message {
    int topic = 0;
    std::uint64_t offset = 0;  // in the file [bytes]
    const std::uint8_t* data = nullptr;
    std::size_t size = 0;
  };

  void open();
  void read_header();
  std::optional<Message> next_message();
  std::optional<Message> take_message(const Record& record);
  bool next_record_in_chunk(Record& record);
  bool load_chunk();
  bool read_chunk(const Record& record);
  bool next_record(Record& record);
  bool handle(const Record& record);
  bool check_data_end(const Record& record);
  bool check_footer(const Record& record);
  bool skip(std::uint64_t size);
  bool read(void* to, std::size_t size);
  bool parse(const Message& message, google::protobuf::MessageLite& into);
  bool take_step(const Message& message, RecordedStep& step);
  bool take_outputs(const Message& message);
  void note_schema(const Record& record);
  void note_channel(const Record& record);
  bool stop(std::uint64_t offset, std::string what);
  std::uint64_t remaining() const { return size_ - offset_; }

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, nullptr};
  std::uint64_t size_ = 0;    // of the file when it was opened [bytes]
  std::uint64_t offset_ = 0;  // bytes read so far
  std::uint32_t crc_ = 0;     // of the section being read
  bool data_ended_ = false;
  bool ended_ = false;

  std::vector<std::uint8_t> chunk_;
  std::uint64_t chunk_offset_ = 0;                   // of chunk_[0] in the file
  std::size_t position_ = 0;                         // in chunk_
  std::array<int, kTopics> schema_id_, channel_id_;  // -1: not there
  std::array<std::uint32_t, kTopics> sequence_{};

  std::uint64_t log_time_ns_ = 0;
  RecordingHeader header_;
  RecordedState unused_state_;
  std::unique_ptr<NamedMessages> named_;  // once the header is known
  std::vector<double> newest_outputs_, outputs_;
  std::uint64_t outputs_step_ = 0;  // of newest_outputs_
  std::uint64_t last_step_ = 0;
  std::optional<RecordingFooter> footer_;
  std::optional<Damage> damage_;
};

}  // namespace rigstep::wire
