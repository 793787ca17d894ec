"""The messages of proto/wire.proto and proto/recording.proto. protoc makes wire_pb2.py and recording_pb2.py."""

from __future__ import annotations

from typing import Any


def parse(message_class: Any, data: bytes) -> Any:
    """The message that these bytes are, or None."""
    message = message_class()
    try:
        consumed = message.MergeFromString(data)
    except Exception:  # the DecodeError of the implementation of protobuf that is installed
        return None
    return message if consumed in (None, len(data)) else None
