#include "proto/recording.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.pb.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <set>
#include <span>
#include <system_error>
#include <utility>

namespace rigstep::wire {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'M', 'C', 'A', 'P', '0', '\r', '\n'};

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

constexpr std::size_t kRecordHead = 9;                    // opcode, length
constexpr std::size_t kChunkHead = kRecordHead + 40;      // with its times, size, crc, no compression
constexpr std::size_t kChunkSize = std::size_t{1} << 20;  // a chunk this large is written
constexpr std::size_t kLargestChunk = std::size_t{64} << 20;
constexpr std::size_t kLargestMessage = kLargestChunk - 2 * kChunkSize;  // fits a chunk that is nearly full

enum Topic : int { kHeader, kSteps, kStates, kFooter };

struct TopicInfo {
  std::string_view name;
  const google::protobuf::Descriptor* (*message)();
};

constexpr std::array<TopicInfo, 4> kTopic{{{"/header", &RecordingHeader::descriptor},
                                           {"/steps", &RecordedStep::descriptor},
                                           {"/states", &RecordedState::descriptor},
                                           {"/footer", &RecordingFooter::descriptor}}};

// MCAP counts schemas from 1; ours and the channels are numbered alike.
constexpr std::uint16_t id_of(int topic) { return static_cast<std::uint16_t>(topic + 1); }

std::uint32_t crc_of(const void* data, std::size_t size, std::uint32_t before = 0) {
  return static_cast<std::uint32_t>(::crc32_z(before, static_cast<const Bytef*>(data), size));
}

std::string errno_text(int error) { return std::generic_category().message(error); }

// [ns since 1970]
std::int64_t wall_clock_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// --- writing numbers and records ---

template <class T>
void put_at(Bytes& out, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
}

template <class T>
void put(Bytes& out, T value) {
  const std::size_t at = out.size();
  out.resize(at + sizeof(T));
  put_at(out, at, value);
}

void put_bytes(Bytes& out, std::string_view bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

void put_text(Bytes& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  put_bytes(out, text);
}

void put_magic(Bytes& out) { out.insert(out.end(), kMagic.begin(), kMagic.end()); }

// Returns where the record starts, for end_record.
std::size_t begin_record(Bytes& out, Opcode opcode) {
  const std::size_t start = out.size();
  put(out, static_cast<std::uint8_t>(opcode));
  put(out, std::uint64_t{0});
  return start;
}

void end_record(Bytes& out, std::size_t start) {
  put_at(out, start + 1, static_cast<std::uint64_t>(out.size() - start - kRecordHead));
}

// A file description after everything it imports.
void add_file(const google::protobuf::FileDescriptor* file, std::set<const google::protobuf::FileDescriptor*>& done,
              google::protobuf::FileDescriptorSet& set) {
  if (!done.insert(file).second) return;
  for (int i = 0; i < file->dependency_count(); ++i) add_file(file->dependency(i), done, set);
  file->CopyTo(set.add_file());
}

void put_schema(Bytes& out, int topic) {
  const google::protobuf::Descriptor* message = kTopic[topic].message();
  google::protobuf::FileDescriptorSet files;
  std::set<const google::protobuf::FileDescriptor*> done;
  add_file(message->file(), done, files);
  const std::size_t start = begin_record(out, kSchemaRecord);
  put(out, id_of(topic));
  put_text(out, message->full_name());
  put_text(out, "protobuf");
  put_text(out, files.SerializeAsString());
  end_record(out, start);
}

void put_channel(Bytes& out, int topic) {
  const std::size_t start = begin_record(out, kChannelRecord);
  put(out, id_of(topic));
  put(out, id_of(topic));
  put_text(out, kTopic[topic].name);
  put_text(out, "protobuf");
  put(out, std::uint32_t{0});  // no metadata
  end_record(out, start);
}

std::uint64_t index_record_size(std::uint32_t messages) { return kRecordHead + 6 + std::uint64_t{16} * messages; }

// --- reading numbers ---

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

// Text from a file as it may stand in an error message.
std::string printable_metadata(std::string_view text) {
  std::string out(text.substr(0, 40));
  for (char& c : out) c = c < ' ' || c > '~' ? '?' : c;
  return out;
}

}  // namespace

RecordingError::RecordingError(std::string path_, std::string problem_, std::string remedy_)
    : Error(path_ + ": " + problem_ + "; " + remedy_),
      path(std::move(path_)),
      problem(std::move(problem_)),
      remedy(std::move(remedy_)) {}

// --- writer ---

RecordingWriter::File::~File() {
  if (descriptor >= 0) ::close(descriptor);
}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingHeader& header, Existing existing)
    : RecordingWriter(path, header, wall_clock_ns(), existing) {}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingHeader& header, std::int64_t log_time_ns,
                                 Existing existing)
    : path_(path) {
  check_header(header);
  open(existing);
  try {
    write_head(header, log_time_ns);
  } catch (const RecordingError&) {
    if (existing == Existing::refuse) ::unlink(path_.c_str());  // it is ours, and empty
    throw;
  }
}

void RecordingWriter::write_head(const RecordingHeader& header, std::int64_t log_time_ns) {
  buffer_.reserve(2 * kChunkSize);
  put_magic(buffer_);
  const std::size_t start = begin_record(buffer_, kHeaderRecord);
  put_text(buffer_, "");
  put_text(buffer_, "rigstep " + header.product_version());
  end_record(buffer_, start);
  // schemas and channels in the chunk: its crc guards them too
  begin_chunk();
  first_chunk_ = chunk_.offset;
  for (int topic = 0; topic < kTopics; ++topic) put_schema(buffer_, topic);
  for (int topic = 0; topic < kTopics; ++topic) put_channel(buffer_, topic);
  append(kHeader, header, log_time_ns);
  flush();
}

RecordingWriter::~RecordingWriter() {
  if (file_.descriptor < 0 || !failure_.empty()) return;
  try {
    flush();
  } catch (const std::exception&) {
    // nobody is left to tell; whoever wants to know calls flush() or finish()
  }
}

void RecordingWriter::check_header(const RecordingHeader& header) const {
  const std::size_t size = header.ByteSizeLong();
  if (size > kLargestMessage) {
    throw RecordingWriteError(path_, "the header has " + std::to_string(size) + " bytes, a recording takes 62 MiB",
                              "shorten the mechanism or rig file");
  }
  RecordingHeader back;
  if (!back.ParseFromString(header.SerializeAsString())) {
    throw RecordingWriteError(path_, "the header holds text that is not UTF-8 and could not be read back",
                              "store the mechanism and rig file as UTF-8");
  }
}

void RecordingWriter::open(Existing existing) {
  file_.descriptor = open_output(path_, O_RDWR, existing);
  if (file_.descriptor < 0)
    throw RecordingWriteError(path_, "cannot create the recording: " + output_error(errno),
                              "name a file in a directory that exists and may be written to");
  // two writers would destroy each other's file without a word
  if (::flock(file_.descriptor, LOCK_EX | LOCK_NB) != 0)
    throw RecordingWriteError(path_, "another process is recording to this file", "name another file");
  struct stat status {};
  if (::fstat(file_.descriptor, &status) == 0 && S_ISREG(status.st_mode) && ::ftruncate(file_.descriptor, 0) != 0)
    throw RecordingWriteError(path_, "cannot replace the file: " + errno_text(errno), "name another file");
}

void RecordingWriter::write(const RecordedStep& step, std::int64_t log_time_ns) { append(kSteps, step, log_time_ns); }

void RecordingWriter::write(const RecordedState& state, std::int64_t log_time_ns) {
  append(kStates, state, log_time_ns);
}

void RecordingWriter::append(int topic, const google::protobuf::MessageLite& message, std::int64_t log_time_ns) {
  if (!failure_.empty()) fail(failure_, failure_remedy_);
  const std::size_t size = message.ByteSizeLong();
  if (size > kLargestMessage) fail("a message of " + std::to_string(size) + " bytes", "a recording takes 62 MiB");

  const auto log_time = static_cast<std::uint64_t>(std::max<std::int64_t>(0, log_time_ns));
  index_[topic].push_back({log_time, buffer_.size() - chunk_start_ - kChunkHead});
  const std::size_t start = begin_record(buffer_, kMessageRecord);
  put(buffer_, id_of(topic));
  put(buffer_, ++sequence_[topic]);
  put(buffer_, log_time);
  put(buffer_, log_time);
  const std::size_t at = buffer_.size();
  buffer_.resize(at + size);
  message.SerializeWithCachedSizesToArray(buffer_.data() + at);
  end_record(buffer_, start);

  ++chunk_.count[topic];
  ++count_[topic];
  chunk_.first_time = std::min(chunk_.first_time, log_time);
  chunk_.last_time = std::max(chunk_.last_time, log_time);
  if (buffer_.size() - chunk_start_ >= kChunkSize) flush();
}

void RecordingWriter::flush() {
  if (!failure_.empty()) fail(failure_, failure_remedy_);
  if (std::all_of(index_.begin(), index_.end(), [](const auto& entries) { return entries.empty(); })) return;
  write_chunk_head();
  write_chunk_index();
  write_buffer();
  if (chunks_++ == 0) first_time_ = chunk_.first_time;
  first_time_ = std::min(first_time_, chunk_.first_time);
  last_time_ = std::max(last_time_, chunk_.last_time);
  begin_chunk();
}

void RecordingWriter::begin_chunk() {
  for (auto& entries : index_) entries.clear();
  chunk_ = Chunk{};
  chunk_.first_time = std::numeric_limits<std::uint64_t>::max();
  chunk_start_ = buffer_.size();
  chunk_.offset = offset_ + chunk_start_;
  // filled in when the chunk is closed
  buffer_.resize(chunk_start_ + kChunkHead);
}

void RecordingWriter::write_chunk_head() {
  const std::size_t records = chunk_start_ + kChunkHead;
  const std::uint64_t size = buffer_.size() - records;
  chunk_.size = static_cast<std::uint32_t>(size);
  std::size_t at = chunk_start_;
  const auto number = [&](auto value) {
    put_at(buffer_, at, value);
    at += sizeof(value);
  };
  number(static_cast<std::uint8_t>(kChunkRecord));
  number(size + kChunkHead - kRecordHead);
  number(chunk_.first_time);
  number(chunk_.last_time);
  number(size);
  number(crc_of(buffer_.data() + records, size));
  number(std::uint32_t{0});  // no compression
  number(size);
}

void RecordingWriter::write_chunk_index() {
  for (int topic = 0; topic < kTopics; ++topic) {
    if (index_[topic].empty()) continue;
    const std::size_t start = begin_record(buffer_, kMessageIndexRecord);
    put(buffer_, id_of(topic));
    put(buffer_, static_cast<std::uint32_t>(16 * index_[topic].size()));
    for (const IndexEntry& entry : index_[topic]) {
      put(buffer_, entry.log_time);
      put(buffer_, entry.offset);
    }
    end_record(buffer_, start);
  }
}

void RecordingWriter::finish(const RecordingFooter& footer) {
  complete(footer);
  sync();
}

void RecordingWriter::complete(const RecordingFooter& footer) {
  append(kFooter, footer, static_cast<std::int64_t>(std::max(last_time_, chunk_.last_time)));
  flush();
  data_end_ = offset_;
  buffer_.clear();  // the head of a chunk that never comes

  const std::size_t start = begin_record(buffer_, kDataEndRecord);
  put(buffer_, crc_);
  end_record(buffer_, start);
  write_buffer();
  write_summary();
}

void RecordingWriter::sync() {
  if (::fsync(file_.descriptor) != 0 && errno != EINVAL) {
    fail("cannot bring the recording to the disk: " + errno_text(errno), "check the disk and record again");
  }
  if (::close(std::exchange(file_.descriptor, -1)) != 0) {
    fail("cannot close the recording: " + errno_text(errno), "check the disk and record again");
  }
}

void RecordingWriter::write_summary() {
  Bytes offsets;  // summary offset records, one per group
  crc_ = 0;
  const std::uint64_t summary_start = offset_;
  const auto write_group = [&](Opcode opcode, auto&& put_records) {
    const std::uint64_t group_start = offset_ + buffer_.size();
    put_records();
    const std::size_t start = begin_record(offsets, kSummaryOffsetRecord);
    put(offsets, static_cast<std::uint8_t>(opcode));
    put(offsets, group_start);
    put(offsets, offset_ + buffer_.size() - group_start);
    end_record(offsets, start);
  };
  write_group(kSchemaRecord, [&] {
    for (int topic = 0; topic < kTopics; ++topic) put_schema(buffer_, topic);
  });
  write_group(kChannelRecord, [&] {
    for (int topic = 0; topic < kTopics; ++topic) put_channel(buffer_, topic);
  });
  write_group(kStatisticsRecord, [&] { write_statistics(); });
  write_group(kChunkIndexRecord, [&] { write_chunk_indexes(); });

  const std::uint64_t offsets_start = offset_ + buffer_.size();
  buffer_.insert(buffer_.end(), offsets.begin(), offsets.end());
  const std::size_t start = begin_record(buffer_, kFooterRecord);
  put_at(buffer_, start + 1, std::uint64_t{20});
  put(buffer_, summary_start);
  put(buffer_, offsets_start);
  write_buffer();
  put(buffer_, crc_);
  put_magic(buffer_);
  write_buffer();
}

void RecordingWriter::write_chunk_indexes() {
  for (std::uint64_t offset = first_chunk_; offset < data_end_;) {
    const Chunk chunk = read_back(offset);
    const std::size_t start = begin_record(buffer_, kChunkIndexRecord);
    put(buffer_, chunk.first_time);
    put(buffer_, chunk.last_time);
    put(buffer_, chunk.offset);
    put(buffer_, std::uint64_t{kChunkHead} + chunk.size);
    const auto topics = kTopics - std::count(chunk.count.begin(), chunk.count.end(), 0u);
    put(buffer_, static_cast<std::uint32_t>(10 * topics));
    const std::uint64_t first_index = chunk.offset + kChunkHead + chunk.size;
    std::uint64_t index = first_index;
    for (int topic = 0; topic < kTopics; ++topic) {
      if (chunk.count[topic] == 0) continue;
      put(buffer_, id_of(topic));
      put(buffer_, index);
      index += index_record_size(chunk.count[topic]);
    }
    put(buffer_, index - first_index);
    put_text(buffer_, "");  // no compression
    put(buffer_, std::uint64_t{chunk.size});
    put(buffer_, std::uint64_t{chunk.size});
    end_record(buffer_, start);
    if (buffer_.size() >= kChunkSize) write_buffer();
    offset = index;
  }
}

// The chunk at `offset`, from its head and from the message indexes behind it.
RecordingWriter::Chunk RecordingWriter::read_back(std::uint64_t offset) {
  const auto read = [this](std::uint64_t at, std::span<std::uint8_t> bytes) {
    if (::pread(file_.descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(bytes.size()))
      fail("cannot read back what was recorded at byte " + std::to_string(at),
           "check the disk; the steps are whole, the index is missing");
    return Cursor{bytes.data(), bytes.size()};
  };
  std::array<std::uint8_t, kChunkHead> head{};
  Cursor in = read(offset, head);
  in.number<std::uint8_t>();
  in.number<std::uint64_t>();
  Chunk chunk;
  chunk.offset = offset;
  chunk.first_time = in.number<std::uint64_t>();
  chunk.last_time = in.number<std::uint64_t>();
  chunk.size = static_cast<std::uint32_t>(in.number<std::uint64_t>());
  for (std::uint64_t at = offset + kChunkHead + chunk.size; at < data_end_;) {
    std::array<std::uint8_t, kRecordHead + 6> index{};  // channel, length of the entries
    in = read(at, index);
    if (in.number<std::uint8_t>() != kMessageIndexRecord) break;
    in.number<std::uint64_t>();
    const std::size_t topic = in.number<std::uint16_t>() - 1u;
    chunk.count.at(topic) = in.number<std::uint32_t>() / 16;
    at += index_record_size(chunk.count[topic]);
  }
  return chunk;
}

void RecordingWriter::write_statistics() {
  std::uint64_t messages = 0;
  for (const std::uint64_t count : count_) messages += count;
  const std::size_t start = begin_record(buffer_, kStatisticsRecord);
  put(buffer_, messages);
  put(buffer_, std::uint16_t{kTopics});  // schemas
  put(buffer_, std::uint32_t{kTopics});  // channels
  put(buffer_, std::uint32_t{0});        // attachments
  put(buffer_, std::uint32_t{0});        // metadata
  put(buffer_, chunks_);
  put(buffer_, first_time_);
  put(buffer_, last_time_);
  put(buffer_, std::uint32_t{10 * kTopics});
  for (int topic = 0; topic < kTopics; ++topic) {
    put(buffer_, id_of(topic));
    put(buffer_, count_[topic]);
  }
  end_record(buffer_, start);
}

void RecordingWriter::write_buffer() {
  std::size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t written = ::write(file_.descriptor, buffer_.data() + done, buffer_.size() - done);
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (written == 0 || errno != EINTR) {
      const std::string reason = written == 0 ? "nothing was taken" : errno_text(errno);
      fail("cannot write at byte " + std::to_string(offset_ + done) + ": " + reason,
           "free space or record to another disk; the file is whole up to byte " + std::to_string(offset_));
    }
  }
  crc_ = crc_of(buffer_.data(), buffer_.size(), crc_);
  offset_ += buffer_.size();
  buffer_.clear();
}

void RecordingWriter::fail(const std::string& problem, const std::string& remedy) {
  const RecordingWriteError error(path_, problem, remedy);
  failure_ = error.problem;
  failure_remedy_ = error.remedy;
  throw error;
}

// --- reader ---

RecordingReader::RecordingReader(const std::string& path) : path_(path) {
  open();
  read_header();
}

void RecordingReader::open() {
  struct ::stat status {};
  const bool found = ::stat(path_.c_str(), &status) == 0;
  if (found && !S_ISREG(status.st_mode)) {
    throw RecordingError(path_, "is not a regular file", "name the file of a recording");
  }
  if (found) file_ = {std::fopen(path_.c_str(), "rbe"), &std::fclose};
  if (!file_) {
    throw RecordingError(path_, "cannot open the recording: " + errno_text(errno),
                         "check the path and its permissions");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);

  std::array<std::uint8_t, kMagic.size()> magic{};
  if (size_ == 0) {
    throw RecordingError(path_, "byte 0: the file is empty", "its recorder was stopped at the start; record again");
  }
  if (size_ < magic.size() || !read(magic.data(), magic.size()) || magic != kMagic) {
    throw RecordingError(path_, "byte 0: not an MCAP file: its first 8 bytes are others",
                         "name a recording of Rigstep");
  }
}

void RecordingReader::read_header() {
  const std::optional<Message> message = next_message();
  const bool ours = message && message->topic == kHeader && parse(*message, header_);
  if (damage_) {
    throw RecordingError(path_, "byte " + std::to_string(damage_->offset) + ": " + damage_->what,
                         "nothing can be read without the header; copy the file again or record again");
  }
  if (!ours) {
    const std::uint64_t offset = message ? message->offset : offset_;
    throw RecordingError(path_,
                         "byte " + std::to_string(offset) +
                             ": not a recording of Rigstep: no rigstep.wire.RecordingHeader on /header at the front",
                         "name a recording of Rigstep");
  }
  if (header_.format_version() != kRecordingFormat) {
    throw RecordingError(path_,
                         "byte " + std::to_string(message->offset) + ": recording format " +
                             std::to_string(header_.format_version()) + ", this version reads format " +
                             std::to_string(kRecordingFormat),
                         "use the version that wrote it: Rigstep " + printable_metadata(header_.product_version()));
  }
}

RecordingReader::Item RecordingReader::next(RecordedStep& step, RecordedState& state) {
  while (const std::optional<Message> message = next_message()) {
    if (message->topic == kSteps) return parse(*message, step) ? Item::step : Item::end;
    if (message->topic == kStates) return parse(*message, state) ? Item::state : Item::end;
    if (message->topic == kFooter && !parse(*message, footer_.emplace())) footer_.reset();
  }
  return Item::end;
}

bool RecordingReader::next(RecordedStep& step) {
  Item item = Item::state;
  while (item == Item::state) item = next(step, unused_state_);
  return item == Item::step;
}

bool RecordingReader::parse(const Message& message, google::protobuf::MessageLite& into) {
  return into.ParseFromArray(message.data, static_cast<int>(message.size)) ||
         stop(message.offset, "the message on " + std::string(kTopic[message.topic].name) + " cannot be decoded");
}

std::optional<RecordingReader::Message> RecordingReader::next_message() {
  while (!ended_) {
    if (position_ == chunk_.size()) {
      if (!load_chunk()) break;
      continue;
    }
    Record record;
    if (!next_record_in_chunk(record)) break;
    if (record.opcode == kSchemaRecord) note_schema(record);
    if (record.opcode == kChannelRecord) note_channel(record);
    if (record.opcode != kMessageRecord) continue;
    if (const std::optional<Message> message = take_message(record)) return message;
  }
  return std::nullopt;
}

bool RecordingReader::next_record_in_chunk(Record& record) {
  record.offset = chunk_offset_ + position_;
  Cursor in{chunk_.data() + position_, chunk_.size() - position_};
  record.opcode = in.number<std::uint8_t>();
  record.length = in.number<std::uint64_t>();
  if (!in.ok || record.length > in.left) return stop(record.offset, "a record does not fit its chunk");
  record.data = in.data;
  position_ += kRecordHead + record.length;
  return true;
}

void RecordingReader::note_schema(const Record& record) {
  Cursor in{record.data, record.length};
  const int id = in.number<std::uint16_t>();
  const std::string_view name = in.text();
  const std::string_view encoding = in.text();
  for (int topic = 0; topic < kTopics; ++topic) {
    if (in.ok && encoding == "protobuf" && name == kTopic[topic].message()->full_name()) schema_id_[topic] = id;
  }
}

void RecordingReader::note_channel(const Record& record) {
  Cursor in{record.data, record.length};
  const int id = in.number<std::uint16_t>();
  const int schema = in.number<std::uint16_t>();
  const std::string_view name = in.text();
  const std::string_view encoding = in.text();
  for (int topic = 0; topic < kTopics; ++topic) {
    const bool ours = in.ok && name == kTopic[topic].name && encoding == "protobuf" && schema == schema_id_[topic];
    if (ours) channel_id_[topic] = id;
  }
}

// Nothing for a message that is not ours, and when reading stops.
std::optional<RecordingReader::Message> RecordingReader::take_message(const Record& record) {
  Cursor in{record.data, record.length};
  const int channel = in.number<std::uint16_t>();
  const auto sequence = in.number<std::uint32_t>();
  in.number<std::uint64_t>();  // log time
  in.number<std::uint64_t>();  // publish time
  if (!in.ok) {
    stop(record.offset, "a message is shorter than its own head");
    return std::nullopt;
  }
  const auto found = std::find(channel_id_.begin(), channel_id_.end(), channel);
  if (found == channel_id_.end()) return std::nullopt;
  const int topic = static_cast<int>(found - channel_id_.begin());
  // a chunk that lost its opcode is skipped like any unknown record: only the count shows it
  if (sequence != ++sequence_[topic]) {
    stop(record.offset, "messages are missing on " + std::string(kTopic[topic].name) + ": number " +
                            std::to_string(sequence) + " follows number " + std::to_string(sequence_[topic] - 1));
    return std::nullopt;
  }
  return Message{topic, record.offset, in.data, in.left};
}

// Reads records up to and including the next chunk; false at the end.
bool RecordingReader::load_chunk() {
  Record record;
  while (!ended_ && next_record(record)) {
    if (record.opcode == kChunkRecord && !data_ended_) return read_chunk(record);
    if (!handle(record)) return false;
  }
  return false;
}

bool RecordingReader::next_record(Record& record) {
  record.offset = offset_;
  record.crc_before = crc_;
  if (remaining() == 0) {
    return stop(offset_, "ends without its closing records: the writing process was stopped or is still writing");
  }
  const std::string torn = "ends inside a record: the writing process was stopped or the file was cut off";
  std::array<std::uint8_t, kRecordHead> head{};
  if (remaining() < head.size()) return stop(record.offset, torn);
  if (!read(head.data(), head.size())) return false;
  Cursor in{head.data(), head.size()};
  record.opcode = in.number<std::uint8_t>();
  record.length = in.number<std::uint64_t>();
  return record.length <= remaining() || stop(record.offset, torn);
}

// A record other than a chunk.
bool RecordingReader::handle(const Record& record) {
  switch (record.opcode) {
    case 0:
      return stop(record.offset, "no record starts here: its kind is 0");
    case kMessageRecord:
      return stop(record.offset, "a message outside a chunk has no checksum, Rigstep writes none");
    case kChunkRecord:
      return stop(record.offset, "a chunk after the end of the data");
    case kDataEndRecord:
      return check_data_end(record);
    case kFooterRecord:
      return check_footer(record);
    default:
      return skip(record.length);
  }
}

bool RecordingReader::read_chunk(const Record& record) {
  position_ = 0;
  chunk_.clear();
  if (record.length > kLargestChunk) return stop(record.offset, "a chunk of more than 64 MiB");
  chunk_.resize(record.length);
  chunk_offset_ = offset_;
  if (!read(chunk_.data(), chunk_.size())) return false;

  Cursor in{chunk_.data(), chunk_.size()};
  in.number<std::uint64_t>();  // first and last log time
  in.number<std::uint64_t>();
  const auto size = in.number<std::uint64_t>();
  const auto crc = in.number<std::uint32_t>();
  const std::string_view compression = in.text();
  const auto stored = in.number<std::uint64_t>();
  if (in.ok && (compression == "lz4" || compression == "zstd")) {
    throw RecordingError(
        path_, "byte " + std::to_string(record.offset) + ": the chunk is compressed with " + std::string(compression),
        "Rigstep reads uncompressed ones: use 'mcap decompress'");
  }
  if (!in.ok || !compression.empty() || stored != in.left || size != stored) {
    return stop(record.offset, "the chunk contradicts itself about its size");
  }
  if (crc != crc_of(in.data, in.left)) return stop(record.offset, "the checksum of the chunk is wrong");
  position_ = chunk_.size() - in.left;
  return true;
}

bool RecordingReader::check_data_end(const Record& record) {
  std::array<std::uint8_t, 4> content{};
  if (data_ended_ || record.length != content.size()) return stop(record.offset, "the end of the data is damaged");
  if (!read(content.data(), content.size())) return false;
  const auto crc = Cursor{content.data(), content.size()}.number<std::uint32_t>();
  // zero: not counted by the tool that wrote it
  if (crc != 0 && crc != record.crc_before) return stop(record.offset, "the checksum of the data is wrong");
  data_ended_ = true;
  crc_ = 0;
  return true;
}

bool RecordingReader::check_footer(const Record& record) {
  std::array<std::uint8_t, 16> starts{};
  std::array<std::uint8_t, 4 + kMagic.size()> tail{};
  const bool complete = record.length == 20 && remaining() == starts.size() + tail.size();
  if (!data_ended_ || !complete) return stop(record.offset, "the closing records are damaged");
  if (!read(starts.data(), starts.size())) return false;
  const std::uint32_t summary_crc = crc_;
  if (!read(tail.data(), tail.size())) return false;
  const auto crc = Cursor{tail.data(), 4}.number<std::uint32_t>();
  if (crc != 0 && crc != summary_crc) return stop(record.offset, "the checksum of the summary is wrong");
  if (!std::equal(kMagic.begin(), kMagic.end(), tail.begin() + 4)) return stop(offset_, "the last 8 bytes are others");
  ended_ = true;
  return true;
}

bool RecordingReader::skip(std::uint64_t size) {
  std::array<std::uint8_t, 4096> unused{};
  while (size > 0) {
    const std::size_t piece = std::min<std::uint64_t>(size, unused.size());
    if (!read(unused.data(), piece)) return false;
    size -= piece;
  }
  return true;
}

// Of bytes that the file is known to hold.
bool RecordingReader::read(void* to, std::size_t size) {
  errno = 0;
  if (std::fread(to, 1, size, file_.get()) != size) {
    return stop(offset_,
                errno == 0 ? "the file became shorter while it was read" : "cannot read: " + errno_text(errno));
  }
  crc_ = crc_of(to, size, crc_);
  offset_ += size;
  return true;
}

bool RecordingReader::stop(std::uint64_t offset, std::string what) {
  damage_ = Damage{offset, std::move(what)};
  ended_ = true;
  return false;
}

}  // namespace rigstep::wire
