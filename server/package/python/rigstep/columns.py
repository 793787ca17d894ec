"""Decodes many protobuf messages of one type at once, into an array for each field.

The fields are taken in the order of their numbers, as all implementations write them: one pass over all messages for each
field. A message that is laid out otherwise is decoded by its class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rigstep._messages import parse

Columns = dict[str, Any]  # by field: an array with a value for each message, or Columns of a message in it
Positions = NDArray[np.int64]

VARINT, FIXED64, LENGTH = 0, 1, 2  # of the encoding
LONGEST_VARINT = 10  # [bytes]
NOWHERE = 1 << 60  # behind the end of any message


def leaves(descriptor: Any, counts: dict[str, int]) -> int:
    """Numbers for each message."""
    total = 0
    for each in descriptor.fields:
        if each.type == each.TYPE_MESSAGE:
            total += leaves(each.message_type, counts)
        else:
            total += counts.get(each.name, 1)
    return total


class _Views:
    """The bytes of a batch as numbers at any byte. There are at least 16 bytes behind the last message."""

    def __init__(self, data: bytes):
        size = len(data) - 7
        self.bytes = np.frombuffer(data, np.uint8)
        self.words: NDArray[np.uint64] = np.ndarray((size,), "<u8", data, strides=(1,))
        self.doubles: NDArray[np.float64] = np.ndarray((size,), "<f8", data, strides=(1,))


class _Cursor:
    """Where each message is read next. A message that does not fit what is expected stays where it is, and is not whole."""

    def __init__(self, views: _Views, at: Positions, end: Positions):
        self.views, self.at, self.end = views, at.copy(), end
        self.right = np.ones(len(at), bool)

    def whole(self) -> NDArray[np.bool_]:
        """Messages that were read to their end."""
        at_end: NDArray[np.bool_] = self.right & (self.at == self.end)
        return at_end

    def enter(self, number: int, encoding: int) -> tuple[Positions, Positions]:
        """The messages whose next field has this number, and where its value begins."""
        key, tag, size = number << 3 | encoding, 0, 0
        while True:
            more = key > 0x7F
            tag |= (key & 0x7F | (0x80 if more else 0)) << 8 * size
            size, key = size + 1, key >> 7
            if not more:
                break
        here = self.views.words[self.at] & np.uint64((1 << 8 * size) - 1)
        rows = np.flatnonzero((here == np.uint64(tag)) & (self.at < self.end))
        return rows, self.at[rows] + size

    def leave(self, rows: Positions, at: Positions) -> NDArray[np.bool_]:
        """Goes on behind values; tells which of them fit."""
        fit = at <= self.end[rows]
        self.at[rows[fit]] = at[fit]
        return fit

    def varints(self, at: Positions) -> tuple[NDArray[np.uint64], Positions]:
        """Values, and where they end. One that does not end gets an end beyond its message."""
        values, at = np.zeros(len(at), np.uint64), at.copy()
        open_ = np.arange(len(at))
        for k in range(LONGEST_VARINT):
            byte = self.views.bytes[at[open_]]
            values[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * k)
            at[open_] += 1
            open_ = open_[byte > 0x7F]
            if len(open_) == 0:
                break
        at[open_] = NOWHERE
        return values, at


def _decode_fields(descriptor: Any, cursor: _Cursor, counts: dict[str, int]) -> Columns:
    columns: Columns = {}
    for each in sorted(descriptor.fields, key=lambda each: int(each.number)):
        size = len(cursor.at)
        if each.label == each.LABEL_REPEATED:
            columns[each.name] = _packed_doubles(cursor, each.number, size, counts.get(each.name, 0))
        elif each.type == each.TYPE_DOUBLE:
            rows, at = cursor.enter(each.number, FIXED64)
            fit = cursor.leave(rows, at + 8)
            columns[each.name] = np.zeros(size)
            columns[each.name][rows[fit]] = cursor.views.doubles[at[fit]]
        elif each.type == each.TYPE_FIXED64:
            rows, at = cursor.enter(each.number, FIXED64)
            fit = cursor.leave(rows, at + 8)
            columns[each.name] = np.zeros(size, np.uint64)
            columns[each.name][rows[fit]] = cursor.views.words[at[fit]]
        elif each.type == each.TYPE_MESSAGE:
            columns[each.name] = _decode_inner(each, cursor, counts)
        else:
            rows, at = cursor.enter(each.number, VARINT)
            values, at = cursor.varints(at)
            fit = cursor.leave(rows, at)
            columns[each.name] = np.zeros(size, np.uint64)
            columns[each.name][rows[fit]] = values[fit]
    return columns


def _lengths(cursor: _Cursor, number: int) -> tuple[Positions, Positions, Positions]:
    """Messages with a field of this number, and where its content begins and ends."""
    rows, at = cursor.enter(number, LENGTH)
    values, at = cursor.varints(at)
    end = at + np.minimum(values, np.uint64(NOWHERE)).astype(np.int64)
    fit = cursor.leave(rows, end)
    return rows[fit], at[fit], end[fit]


def _packed_doubles(cursor: _Cursor, number: int, size: int, count: int) -> NDArray[np.float64]:
    columns = np.full((size, count), np.nan)
    rows, at, end = _lengths(cursor, number)
    fit = end - at == 8 * count
    cursor.right[rows[~fit]] = False
    for k in range(count):
        columns[rows[fit], k] = cursor.views.doubles[at[fit] + 8 * k]
    return columns


def _decode_inner(each: Any, cursor: _Cursor, counts: dict[str, int]) -> Columns:
    rows, at, end = _lengths(cursor, each.number)
    inner = _Cursor(cursor.views, at, end)
    found = _decode_fields(each.message_type, inner, counts)
    cursor.right[rows[~inner.whole()]] = False
    return _spread(found, rows, len(cursor.at))


def _spread(columns: Columns, rows: Positions, size: int) -> Columns:
    """Columns of some messages as columns of all of them."""
    if len(rows) == size:
        return columns
    spread: Columns = {}
    for name, column in columns.items():
        if isinstance(column, dict):
            spread[name] = _spread(column, rows, size)
        else:
            spread[name] = np.zeros((size, *column.shape[1:]), column.dtype)
            spread[name][rows] = column
    return spread


def _fill(columns: Columns, row: int, message: Any) -> None:
    """Writes the fields of a message into a row."""
    for name, column in columns.items():
        value = getattr(message, name)
        if isinstance(column, dict):
            _fill(column, row, value)
        elif column.ndim == 2:
            known = min(column.shape[1], len(value))
            column[row] = np.nan
            column[row, :known] = value[:known]
        else:
            column[row] = value if value >= 0 else value + 2**64 if column.dtype == np.uint64 else value


def decode(
    message_class: Any, data: bytes, start: Positions, end: Positions, counts: dict[str, int]
) -> tuple[Columns, int | None]:
    """Columns of the messages in data[start[k]:end[k]]; and which of them is the first that is no message, if one is.

    counts: of the repeated fields, which are of doubles. Integers are columns of uint64, negative ones as in two's
    complement. A field that is absent is 0. There are at least 16 bytes behind the last message.
    """
    cursor = _Cursor(_Views(data), start, end)
    columns = _decode_fields(message_class.DESCRIPTOR, cursor, counts)
    for row in np.flatnonzero(~cursor.whole()):
        message = parse(message_class, data[start[row] : end[row]])
        if message is None:
            return columns, int(row)
        _fill(columns, int(row), message)
    return columns, None
