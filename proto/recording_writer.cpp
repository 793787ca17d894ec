#include "proto/recording_writer.h"

#include <fcntl.h>
#include <google/protobuf/descriptor.pb.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "proto/bounds.h"
#include "proto/mcap.h"

namespace rigstep::wire {
namespace {

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

void put_schema(Bytes& out, int topic, const google::protobuf::Descriptor* message) {
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

}  // namespace

RecordingError::RecordingError(std::string path_, std::string problem_, std::string remedy_)
    : Error(path_ + ": " + problem_ + "; " + remedy_),
      path(std::move(path_)),
      problem(std::move(problem_)),
      remedy(std::move(remedy_)) {}

RecordingWriter::File::~File() {
  if (descriptor >= 0) ::close(descriptor);
}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingHeader& header, Existing existing)
    : RecordingWriter(path, header, wall_clock_ns(), existing) {}

RecordingWriter::RecordingWriter(const std::string& path, const RecordingHeader& header, std::int64_t log_time_ns,
                                 Existing existing)
    : path_(path), named_(header) {
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
  put_schemas();
  for (int topic = 0; topic < kTopics; ++topic) put_channel(buffer_, topic);
  append(kHeader, header, log_time_ns);
  flush();
}

void RecordingWriter::put_schemas() {
  const google::protobuf::Descriptor* const types[kTopics] = {
      RecordingHeader::descriptor(), RecordedStep::descriptor(), RecordedState::descriptor(),
      RecordingFooter::descriptor(), named_.outputs_type(),      named_.bodies_type()};
  for (int topic = 0; topic < kTopics; ++topic) put_schema(buffer_, topic, types[topic]);
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
  if (const auto beyond = config::find_out_of_bounds(header))
    throw RecordingWriteError(path_,
                              "header." + beyond->field + " " + beyond->problem + ", and no reader would take it",
                              "change what it comes from");
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

// Outputs and step belong together: they stand in one chunk.
void RecordingWriter::write(const RecordedStep& step, std::span<const double> outputs, std::int64_t log_time_ns) {
  if (!outputs.empty()) append(kOutputs, named_.outputs(step.step(), step.sim_time_ns(), outputs), log_time_ns);
  append(kSteps, step, log_time_ns);
  if (buffer_.size() - chunk_start_ >= kChunkSize) flush();
}

void RecordingWriter::write(const RecordedState& state, std::int64_t log_time_ns) {
  append(kStates, state, log_time_ns);
  if (named_.has_bodies()) append(kBodies, named_.bodies(state), log_time_ns);
  if (buffer_.size() - chunk_start_ >= kChunkSize) flush();
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
  write_group(kSchemaRecord, [&] { put_schemas(); });
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

}  // namespace rigstep::wire
