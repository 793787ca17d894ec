#include "proto/recording_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "proto/bounds.h"
#include "proto/limits.h"
#include "proto/mcap.h"

namespace rigstep::wire {
namespace {

// Text from a file as it may stand in an error message.
std::string printable_metadata(std::string_view text) {
  std::string out(text.substr(0, 40));
  for (char& c : out) c = c < ' ' || c > '~' ? '?' : c;
  return out;
}

}  // namespace

RecordingReader::RecordingReader(const std::string& path) : path_(path) {
  schema_id_.fill(-1);
  channel_id_.fill(-1);
  open();
  read_header();
}

void RecordingReader::open() {
  const int opened = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // else a FIFO is waited for
  if (opened >= 0) file_ = {::fdopen(opened, "rb"), &std::fclose};
  struct ::stat status {};
  if (!file_ || ::fstat(opened, &status) != 0) {
    throw RecordingError(path_, "cannot open the recording: " + errno_text(errno),
                         "check the path and its permissions");
  }
  if (!S_ISREG(status.st_mode)) {
    throw RecordingError(path_, "is not a regular file", "name the file of a recording");
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
  if (const auto beyond = config::find_out_of_bounds(header_))
    throw RecordingError(
        path_, "byte " + std::to_string(message->offset) + ": header." + beyond->field + " " + beyond->problem,
        beyond->remedy);
  try {
    named_ = std::make_unique<NamedMessages>(header_);
  } catch (const Error& error) {
    throw RecordingError(path_, "byte " + std::to_string(message->offset) + ": header: " + error.what(),
                         "the file is damaged: use a copy");
  }
}

RecordingReader::Item RecordingReader::next(RecordedStep& step, RecordedState& state) {
  while (const std::optional<Message> message = next_message()) {
    if (message->topic == kOutputs && !take_outputs(*message)) return Item::end;
    if (message->topic == kSteps) return take_step(*message, step) ? Item::step : Item::end;
    if (message->topic == kStates) return parse(*message, state) ? Item::state : Item::end;
    if (message->topic == kFooter && !parse(*message, footer_.emplace())) footer_.reset();
  }
  return Item::end;
}

std::string RecordingReader::damage_text() const {
  return damage_ ? "byte " + std::to_string(damage_->offset) + ": " + damage_->what : std::string();
}

bool RecordingReader::next(RecordedStep& step) {
  Item item = Item::state;
  while (item == Item::state) item = next(step, unused_state_);
  return item == Item::step;
}

bool RecordingReader::take_step(const Message& message, RecordedStep& step) {
  if (!parse(message, step)) return false;
  const bool is_possible = step.step() >= last_step_ && step.step() <= config::kMostSteps &&
                           step.sim_time_ns() == static_cast<std::int64_t>(step.step() * header_.dt_ns());
  if (!is_possible) return stop(message.offset, "the time of a step is not possible there");
  last_step_ = step.step();
  outputs_.clear();
  if (outputs_step_ == step.step()) outputs_.swap(newest_outputs_);
  return true;
}

bool RecordingReader::take_outputs(const Message& message) {
  return named_->read_outputs(message.data, message.size, outputs_step_, newest_outputs_) ||
         stop(message.offset, "the message on /outputs cannot be decoded");
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
    if (in.ok && encoding == "protobuf" && name == kTopic[topic].message) schema_id_[topic] = id;
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
  log_time_ns_ = in.number<std::uint64_t>();
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
