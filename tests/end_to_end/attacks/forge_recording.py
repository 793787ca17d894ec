"""Writes a copy of a recording whose header says something else, with checksums that are right.

usage: forge_recording.py RECORDING COPY EXPRESSION...   an expression changes `h`, the RecordingHeader: h.projection_passes = 65535

Needs recording_pb2 of `protoc --python_out`.
"""
import struct
import sys
import zlib

from proto import recording_pb2

MAGIC = b"\x89MCAP0\r\n"
CHUNK, MESSAGE, DATA_END, FOOTER = 0x06, 0x05, 0x0F, 0x02


def records(data):
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<BQ", data, at)
        yield kind, data[at + 9 : at + 9 + length]
        at += 9 + length


def record(kind, content):
    return struct.pack("<BQ", kind, len(content)) + content


def forged(content, expressions):
    """The content of the first chunk with a header that was changed."""
    out = b""
    changed = False
    for kind, body in records(content[40:]):
        if kind == MESSAGE and not changed:
            header = recording_pb2.RecordingHeader.FromString(body[22:])
            for expression in expressions:
                exec(expression, {"h": header})  # the caller's own
            body = body[:22] + header.SerializeToString()
            changed = True
        out += record(kind, body)
    return content[:16] + struct.pack("<QIIQ", len(out), zlib.crc32(out), 0, len(out)) + out


def main(source, target, expressions):
    with open(source, "rb") as file:
        data = file.read()
    out = MAGIC
    first = True
    for kind, content in records(data[8 : len(data) - 8]):
        if kind == CHUNK and first:
            content = forged(content, expressions)
            first = False
        if kind == DATA_END:  # zero: checksums that nobody counted; no summary
            out += record(DATA_END, bytes(4)) + record(FOOTER, bytes(20))
            break
        out += record(kind, content)
    with open(target, "wb") as file:
        file.write(out + MAGIC)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
