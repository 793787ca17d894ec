// Recordings: MCAP files (https://mcap.dev/spec) with protobuf messages on the topics /header, /steps, /states and
// /footer, so that every MCAP tool opens them. Chunks are uncompressed and carry a CRC: a killed process leaves a
// file that is whole up to its last flush.
// A writer or a reader is owned and used by one thread, never by the loop; replay and offline tools read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/mechanism/mechanism.h"
#include "proto/output_file.h"
#include "proto/recording.pb.h"

namespace rigstep::wire {

// A recording that cannot be written or read. what() is "path: problem; remedy".
struct RecordingError : Error {
  RecordingError(std::string path, std::string problem, std::string remedy);
  std::string path;
  std::string problem;  // for a reader it begins with the byte offset, where there is one
  std::string remedy;
};

// A recording that cannot be written.
struct RecordingWriteError : RecordingError {
  using RecordingError::RecordingError;
};

inline constexpr std::uint32_t kRecordingFormat = 1;  // RecordingHeader.format_version that this code reads

// Writes one recording. Every method throws RecordingError when the file takes no more (disk full, file limit) and
// does so again on each later call: what came after the last successful flush is then not in the file.
class RecordingWriter {
 public:
  // Creates or, where that is allowed, replaces the file and writes `header` to it at once. log_time_ns: of the header
  // [ns since 1970], the wall clock if not given. A new file that takes no header is removed. Throws RecordingError if
  // the file cannot be made, or if the header could not be read back (text that is not UTF-8, more than 62 MiB).
  RecordingWriter(const std::string& path, const RecordingHeader& header, Existing existing = Existing::replace);
  RecordingWriter(const std::string& path, const RecordingHeader& header, std::int64_t log_time_ns,
                  Existing existing = Existing::replace);
  RecordingWriter(const RecordingWriter&) = delete;
  RecordingWriter& operator=(const RecordingWriter&) = delete;
  // Without finish(): flushes what it can, errors unseen, and leaves the file as a killed process would.
  ~RecordingWriter();

  // Adds to the current chunk; a chunk of 1 MiB is flushed. No allocation once the buffers have grown.
  // log_time_ns: [ns since 1970]; MCAP knows no time before that, earlier ones are stored as 0.
  void write(const RecordedStep& step, std::int64_t log_time_ns);
  void write(const RecordedState& state, std::int64_t log_time_ns);

  // Hands the current chunk to the operating system: it survives the process, though not a power failure.
  void flush();

  // Writes the footer, the index and the closing records. Only sync() may follow.
  void complete(const RecordingFooter& footer);
  // Waits for the disk and closes.
  void sync();
  // Both.
  void finish(const RecordingFooter& footer);

  // Handed to the operating system so far.
  std::uint64_t bytes() const noexcept { return offset_; }

 private:
  static constexpr int kTopics = 4;
  struct File {
    int descriptor = -1;
    ~File();
  };
  struct IndexEntry {
    std::uint64_t log_time = 0;  // [ns]
    std::uint64_t offset = 0;    // from the first record of the chunk [bytes]
  };
  // what the summary says of a chunk; read back from the file then, since a long run has many
  struct Chunk {
    std::uint64_t offset = 0;                    // in the file [bytes]
    std::uint64_t first_time = 0;                // earliest log time [ns]
    std::uint64_t last_time = 0;                 // latest log time [ns]
    std::uint32_t size = 0;                      // of its records [bytes]
    std::array<std::uint32_t, kTopics> count{};  // messages per topic
  };

  void open(Existing existing);
  void write_head(const RecordingHeader& header, std::int64_t log_time_ns);
  void check_header(const RecordingHeader& header) const;
  void begin_chunk();
  void append(int topic, const google::protobuf::MessageLite& message, std::int64_t log_time_ns);
  void write_chunk_head();
  void write_chunk_index();
  void write_summary();
  void write_chunk_indexes();
  Chunk read_back(std::uint64_t offset);
  void write_statistics();
  void write_buffer();
  [[noreturn]] void fail(const std::string& problem, const std::string& remedy);

  std::string path_;
  File file_;
  std::uint64_t offset_ = 0;          // bytes in the file so far
  std::uint32_t crc_ = 0;             // of all of them
  std::vector<std::uint8_t> buffer_;  // what the next write(2) takes
  std::size_t chunk_start_ = 0;       // in buffer_
  Chunk chunk_;                       // the open one
  std::array<std::vector<IndexEntry>, kTopics> index_;
  std::array<std::uint32_t, kTopics> sequence_{};
  std::array<std::uint64_t, kTopics> count_{};
  std::uint64_t first_chunk_ = 0, data_end_ = 0;  // in the file [bytes]
  std::uint32_t chunks_ = 0;                      // in the file
  std::uint64_t first_time_ = 0, last_time_ = 0;  // of all of them
  std::string failure_;                           // problem of the first failed write, empty while all is well
  std::string failure_remedy_;
};

// Where a recording stops being one. Everything before was whole and has been delivered.
struct Damage {
  std::uint64_t offset = 0;  // in the file [bytes]
  std::string what;
};

// Reads a recording from front to back, one chunk in memory (64 MiB at most, never more than the file holds).
// Safe on any bytes: a message is delivered only from a chunk whose CRC is right and whose count has no gap.
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

  // After the end: absent if the run did not end cleanly.
  const std::optional<RecordingFooter>& footer() const { return footer_; }

  // After the end: why reading stopped before the end of a whole file; absent if all of it was read.
  const std::optional<Damage>& damage() const { return damage_; }

 private:
  static constexpr int kTopics = 4;
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
  std::uint64_t chunk_offset_ = 0;  // of chunk_[0] in the file
  std::size_t position_ = 0;        // in chunk_
  std::array<int, kTopics> schema_id_{-1, -1, -1, -1};
  std::array<int, kTopics> channel_id_{-1, -1, -1, -1};
  std::array<std::uint32_t, kTopics> sequence_{};

  RecordingHeader header_;
  RecordedState unused_state_;
  std::optional<RecordingFooter> footer_;
  std::optional<Damage> damage_;
};

}  // namespace rigstep::wire
