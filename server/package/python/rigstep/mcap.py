"""Reads the messages of a recording, an MCAP file (https://mcap.dev/spec) with uncompressed chunks, in batches.

Every size in the file is checked before it is used. What comes before the first damage is delivered: a message comes only
from a chunk whose checksum is right, and no message is missing before it.
"""

from __future__ import annotations

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from rigstep.errors import RecordingError, printable

MAGIC = b"\x89MCAP0\r\n"
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 0x02, 0x03, 0x04, 0x05, 0x06, 0x0F  # kinds of records
LARGEST_CHUNK = 64 << 20  # [bytes]
BATCH = 8 << 20  # chunks are collected up to this size [bytes]
SPARE = b"\0" * 16  # behind a batch, so that the decoder may look beyond the last message
STOPPED = "the writing process was stopped"
HEAD = struct.Struct("<BQ")  # of a record: kind, length
MESSAGE_HEAD = struct.Struct("<BQHIQQ")  # ... of a message: channel, number, two times
CHUNK_HEAD = struct.Struct("<QQQII")  # first and last time, size, checksum, length of the compression's name


class _Damage(Exception):
    def __init__(self, offset: int, what: str):
        super().__init__(what)
        self.offset = offset


@dataclass(slots=True)
class Topic:
    """Messages of one topic in a batch."""

    start: list[int] = field(default_factory=list)
    """In the batch [bytes]."""
    end: list[int] = field(default_factory=list)
    offset: list[int] = field(default_factory=list)
    """In the file [bytes]."""


@dataclass(slots=True)
class Batch:
    """Messages of some chunks."""

    data: bytes
    topics: dict[str, Topic]
    first: str
    """Topic of the first message."""


class McapReader:
    """Reads a file from front to back. types: of each topic that is read, the name of its message."""

    def __init__(self, path: str | os.PathLike[str], types: dict[str, str]):
        self.path = os.fspath(path)
        self.schemas: dict[str, bytes] = {}  # of a type, as in the file
        self.damage: str | None = None
        self._types = types
        self._schema_type: dict[int, str] = {}  # by the id of the schema
        self._channel_topic: dict[int, str] = {}
        self._newest: dict[str, int] = dict.fromkeys(types, 0)  # number of the newest message
        self._data = bytearray()
        self._topics: dict[str, Topic] = {}
        self._first = ""
        self._crc = self._offset = 0
        try:
            opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
            self._file = os.fdopen(opened, "rb")
            status = os.fstat(opened)
        except OSError as error:
            raise self.error(f"cannot open the recording: {error.strerror}", "check the path and its permissions") from error
        self.size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            self._file.close()
            raise self.error("is not a regular file", "name the file of a recording")

    def error(self, problem: str, remedy: str) -> RecordingError:
        """The error of this file."""
        return RecordingError(f"{self.path}: {problem}; {remedy}")

    def stop(self, offset: int, what: str) -> None:
        """Notes where the recording stops to be one, unless that was noted before."""
        self.damage = self.damage or f"byte {offset}: {what}"

    def batches(self) -> Iterator[Batch]:
        """The messages, in the order of the file. At the end `damage` tells whether all of it was read."""
        with self._file:
            if self.size == 0:
                raise self.error("byte 0: the file is empty", "its recorder was stopped at the start; record again")
            try:
                if self._read(min(len(MAGIC), self.size)) != MAGIC:
                    raise self.error("byte 0: not an MCAP file: its first 8 bytes are others", "name a recording of Rigstep")
                for offset, records in self._chunks():
                    self._scan(records, offset)
                    if len(self._data) >= BATCH:
                        yield self._batch()
            except _Damage as damage:
                self.stop(damage.offset, str(damage))
            yield self._batch()

    def _batch(self) -> Batch:
        batch = Batch(bytes(self._data + SPARE), self._topics, self._first)
        self._data, self._topics, self._first = bytearray(), {}, ""
        return batch

    # --- the records of the file

    def _read(self, size: int) -> bytes:
        """Bytes that the file had when it was opened."""
        try:
            data = self._file.read(size)
        except OSError as error:
            raise _Damage(self._offset, f"cannot read: {error.strerror}") from error
        if len(data) != size:
            raise _Damage(self._offset, "the file became shorter while it was read")
        self._crc = zlib.crc32(data, self._crc)
        self._offset += size
        return data

    def _chunks(self) -> Iterator[tuple[int, bytes]]:
        """Offset and content of each chunk's records."""
        data_ended = False
        while True:
            offset, crc_before, left = self._offset, self._crc, self.size - self._offset
            if left == 0:
                raise _Damage(offset, f"ends without its closing records: {STOPPED} or is still writing")
            torn = f"ends inside a record: {STOPPED} or the file was cut off"
            if left < HEAD.size:
                raise _Damage(offset, torn)
            kind, length = HEAD.unpack(self._read(HEAD.size))
            if length > self.size - self._offset:
                raise _Damage(offset, torn)
            if kind == CHUNK and not data_ended:
                yield self._chunk(offset, length)
            elif kind == DATA_END and not data_ended and length == 4:
                crc = int.from_bytes(self._read(4), "little")
                if crc not in (0, crc_before):  # 0: not counted by the tool that wrote it
                    raise _Damage(offset, "the checksum of the data is wrong")
                data_ended, self._crc = True, 0
            elif kind == FOOTER and data_ended and length == 20 and self.size - self._offset == 20 + len(MAGIC):
                self._check_footer(offset)
                return
            elif kind in (0, MESSAGE, CHUNK, DATA_END, FOOTER):
                raise _Damage(offset, f"a record of kind {kind} where none belongs")
            else:
                while length > 0:
                    piece = min(length, 1 << 20)
                    self._read(piece)
                    length -= piece

    def _check_footer(self, offset: int) -> None:
        self._read(16)  # where the parts of the summary begin
        summary_crc = self._crc
        tail = self._read(4 + len(MAGIC))
        if int.from_bytes(tail[:4], "little") not in (0, summary_crc):
            raise _Damage(offset, "the checksum of the summary is wrong")
        if tail[4:] != MAGIC:
            raise _Damage(offset, "the last 8 bytes are others")

    def _chunk(self, offset: int, length: int) -> tuple[int, bytes]:
        if length > LARGEST_CHUNK:
            raise _Damage(offset, "a chunk of more than 64 MiB")
        begin, chunk = self._offset, self._read(length)
        contradiction = _Damage(offset, "the chunk contradicts itself about its size")
        if length < CHUNK_HEAD.size:
            raise contradiction
        _, _, size, crc, name_size = CHUNK_HEAD.unpack_from(chunk)
        at = CHUNK_HEAD.size + name_size + 8
        if at > length:
            raise contradiction
        if name_size:
            name = printable(chunk[CHUNK_HEAD.size : at - 8].decode("ascii", "replace"), 20)
            raise self.error(f"byte {offset}: the chunk is compressed with {name}", "decompress it: mcap decompress")
        if int.from_bytes(chunk[at - 8 : at], "little") != length - at or size != length - at:
            raise contradiction
        records = chunk[at:]
        if zlib.crc32(records) != crc:
            raise _Damage(offset, "the checksum of the chunk is wrong")
        return begin + at, records

    # --- the records of a chunk

    def _scan(self, records: bytes, offset: int) -> None:
        base, at, size = len(self._data), 0, len(records)
        self._data += records
        while at < size:
            if size - at < HEAD.size:
                raise _Damage(offset + at, "a record does not fit its chunk")
            kind, length = HEAD.unpack_from(records, at)
            end = at + HEAD.size + length
            if end > size:
                raise _Damage(offset + at, "a record does not fit its chunk")
            if kind == MESSAGE:
                if end - at < MESSAGE_HEAD.size:
                    raise _Damage(offset + at, "a message is shorter than its own head")
                _, _, channel, number, _, _ = MESSAGE_HEAD.unpack_from(records, at)
                topic = self._channel_topic.get(channel)
                if topic is not None:
                    self._note(topic, number, base + at + MESSAGE_HEAD.size, base + end, offset + at)
            elif kind == SCHEMA:
                self._note_schema(records[at + HEAD.size : end])
            elif kind == CHANNEL:
                self._note_channel(records[at + HEAD.size : end])
            at = end

    def _note(self, name: str, number: int, start: int, end: int, offset: int) -> None:
        expected = (self._newest[name] + 1) & 0xFFFFFFFF
        if number != expected:
            raise _Damage(offset, f"messages are missing on {name}: number {number} follows number {self._newest[name]}")
        self._newest[name] = number
        self._first = self._first or name
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic()
        topic.start.append(start)
        topic.end.append(end)
        topic.offset.append(offset)

    def _note_schema(self, record: bytes) -> None:
        texts = _texts(record, 2, 3)
        if texts is not None and texts[1] == b"protobuf":
            name = texts[0].decode("utf-8", "replace")
            if name in self._types.values():
                self._schema_type[int.from_bytes(record[:2], "little")] = name
                self.schemas[name] = texts[2]

    def _note_channel(self, record: bytes) -> None:
        texts = _texts(record, 4, 2)
        if texts is not None and texts[1] == b"protobuf":
            topic = texts[0].decode("utf-8", "replace")
            schema = self._schema_type.get(int.from_bytes(record[2:4], "little"))
            if topic in self._types and schema == self._types[topic]:
                self._channel_topic[int.from_bytes(record[:2], "little")] = topic


def _texts(record: bytes, at: int, count: int) -> list[bytes] | None:
    """Texts with their lengths before them, from `at` on. None: they do not fit the record."""
    texts = []
    for _ in range(count):
        if at + 4 > len(record):
            return None
        end = at + 4 + int.from_bytes(record[at : at + 4], "little")
        if end > len(record):
            return None
        texts.append(record[at + 4 : end])
        at = end
    return texts
