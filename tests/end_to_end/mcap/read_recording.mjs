// Reads a recording with the reference MCAP implementation, once through its index and once from front to back, and
// compares the two. Prints one line of JSON; exits with 1 and a message when something is wrong.
// usage: node read_recording.mjs FILE [--torn|--last]
//   --torn   the writer was killed, no index is expected
//   --last   prints also the schema and the last message of each topic, in base64
import { open, readFile } from "node:fs/promises";
import { McapIndexedReader, McapStreamReader } from "@mcap/core";

const schemas = {
  "/header": "rigstep.wire.RecordingHeader",
  "/steps": "rigstep.wire.RecordedStep",
  "/states": "rigstep.wire.RecordedState",
  "/footer": "rigstep.wire.RecordingFooter",
  "/outputs": "rigstep.run.Outputs",
  "/bodies": "rigstep.run.Bodies",
};

function check(condition, message) {
  if (!condition) throw new Error(message);
}

class FileReadable {
  constructor(handle) {
    this.handle = handle;
  }
  async size() {
    return BigInt((await this.handle.stat()).size);
  }
  async read(offset, size) {
    const buffer = new Uint8Array(Number(size));
    const { bytesRead } = await this.handle.read(buffer, 0, buffer.length, Number(offset));
    check(bytesRead === buffer.length, `only ${bytesRead} of ${size} bytes at ${offset}`);
    return buffer;
  }
}

// every channel of ours, with its protobuf schema
function check_channels(channels, schemas_by_id) {
  const topics = [...channels.values()].map((channel) => channel.topic).sort();
  check(topics.join() === Object.keys(schemas).sort().join(), `topics are ${topics.join(", ")}`);
  for (const channel of channels.values()) {
    const schema = schemas_by_id.get(channel.schemaId);
    check(channel.messageEncoding === "protobuf", `${channel.topic}: messages are ${channel.messageEncoding}`);
    check(schema?.encoding === "protobuf", `${channel.topic}: schema is ${schema?.encoding}`);
    check(schema.name === schemas[channel.topic], `${channel.topic}: schema is called ${schema.name}`);
    check(schema.data.length > 0, `${channel.topic}: schema is empty`);
  }
}

function count(counts, channels, message) {
  const topic = channels.get(message.channelId)?.topic;
  check(topic !== undefined, `message on channel ${message.channelId}, which is not declared`);
  counts[topic] = (counts[topic] ?? 0) + 1;
}

// from front to back; a torn file just ends
function read_stream(bytes) {
  const channels = new Map();
  const schemas_by_id = new Map();
  const result = { topics: {}, bytes: {}, last: {}, library: "", chunks_end: 0, closed: false };
  const base64 = (data) => Buffer.from(data).toString("base64");
  const reader = new McapStreamReader({ validateCrcs: true });
  reader.append(bytes);
  for (let record = reader.nextRecord(); record; record = reader.nextRecord()) {
    if (record.type === "Header") result.library = record.library;
    if (record.type === "Schema") schemas_by_id.set(record.id, record);
    if (record.type === "Channel") channels.set(record.id, record);
    if (record.type === "DataEnd") result.data_crc = record.dataSectionCrc;
    if (record.type === "Footer") result.footer = record;
    if (record.type === "Message") {
      count(result.topics, channels, record);
      result.bytes[record.channelId] = (result.bytes[record.channelId] ?? 0) + record.data.length;
      const { topic, schemaId } = channels.get(record.channelId);
      const { name, data } = schemas_by_id.get(schemaId);
      result.last[topic] = { name, schema: base64(data), message: base64(record.data) };
    }
  }
  result.closed = reader.done();
  check_channels(channels, schemas_by_id);
  return result;
}

async function read_index(handle) {
  const reader = await McapIndexedReader.Initialize({ readable: new FileReadable(handle) });
  check_channels(reader.channelsById, reader.schemasById);
  const result = { topics: {}, bytes: {}, chunks: reader.chunkIndexes.length };
  let last = 0n;
  for await (const message of reader.readMessages({ validateCrcs: true })) {
    check(message.logTime >= last, "messages are not in the order of their log times");
    last = message.logTime;
    count(result.topics, reader.channelsById, message);
    result.bytes[message.channelId] = (result.bytes[message.channelId] ?? 0) + message.data.length;
  }
  const { statistics } = reader;
  const total = Object.values(result.topics).reduce((sum, n) => sum + n, 0);
  check(statistics?.messageCount === BigInt(total), `statistics count ${statistics?.messageCount}, read ${total}`);
  check(statistics.chunkCount === result.chunks, `statistics count ${statistics.chunkCount} chunks`);
  for (const [id, messages] of statistics.channelMessageCounts) {
    const { topic } = reader.channelsById.get(id);
    check(messages === BigInt(result.topics[topic] ?? 0), `statistics count ${messages} on ${topic}`);
  }
  for (const group of reader.summaryOffsetsByOpcode.values()) check(group.groupLength > 0n, "an empty summary group");
  return result;
}

// the readers of @mcap/core check the chunks and the summary, not this one
function check_data_crc(bytes, footer, expected) {
  const end = Number(footer.summaryStart) - 13;
  let crc = ~0;
  for (let i = 0; i < end; ++i) {
    crc ^= bytes[i];
    for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  check(~crc >>> 0 === expected, `data checksum is ${expected}, should be ${~crc >>> 0}`);
}

async function main(path, option) {
  check(path, "usage: node read_recording.mjs FILE [--torn|--last]");
  const torn = option === "--torn";
  const bytes = await readFile(path);
  const stream = read_stream(bytes);
  check(stream.topics["/header"] === 1, `${stream.topics["/header"] ?? 0} messages on /header`);
  check(stream.closed !== torn, torn ? "the file is closed properly" : "the file ends without its closing records");
  const result = { topics: stream.topics, indexed: !torn, library: stream.library };
  if (!torn) {
    const handle = await open(path);
    const index = await read_index(handle).finally(() => handle.close());
    const same = (a, b) => Object.keys({ ...a, ...b }).every((key) => a[key] === b[key]);
    check(same(stream.topics, index.topics) && same(stream.bytes, index.bytes), "index and stream disagree");
    check(index.topics["/footer"] === 1, `${index.topics["/footer"] ?? 0} messages on /footer`);
    check_data_crc(bytes, stream.footer, stream.data_crc);
    result.chunks = index.chunks;
  }
  if (option === "--last") result.last = stream.last;
  console.log(JSON.stringify(result));
}

try {
  await main(process.argv[2], process.argv[3]);
} catch (error) {
  console.error(`${process.argv[2] ?? "read_recording"}: ${error.message}`);
  process.exit(1);
}
