// Writes a recording. Owned and used by one thread, never by the loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/named_messages.h"
#include "proto/output_file.h"
#include "proto/recording.h"

namespace rigstep::wire {

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
  // outputs: (output channels of the header) after the step, or none.
  void write(const RecordedStep& step, std::span<const double> outputs, std::int64_t log_time_ns);
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
  static constexpr int kTopics = 6;
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
  void put_schemas();
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
  NamedMessages named_;
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

}  // namespace rigstep::wire
