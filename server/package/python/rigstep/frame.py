"""Frames, keys, replay window and clock offset: proto/README.md and proto/wire.proto of Rigstep have the bytes.

Plain functions and values. libsodium is loaded with the first key. Times are in ns.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import hashlib
import hmac
import os
import stat
import struct
import zlib
from typing import Any, NamedTuple

from rigstep.errors import RigstepError

VERSION = 3
DATAGRAM = 1200  # the largest one [bytes]
TAG = 16  # [bytes]
PROOF = 32  # [bytes]
PROOF_FIELD = b"\x82\x01\x20"  # tag and length of the field `proof`, number 16, 32 bytes
HEADER = struct.Struct("<2sBBQQqqq")  # magic, version, sender, session, number, sent, echoed sent, echoed came
SODIUM = "libsodium.so.23"
MOST_KEY_FILE = 16384  # [bytes]

# --- cryptography: libsodium, loaded with the first key


def blake2b(key: bytes, data: bytes, size: int = 32) -> bytes:
    """The keyed hash of `size` bytes."""
    return hashlib.blake2b(data, key=key, digest_size=size).digest()


_sodium: ctypes.CDLL | None = None


def sodium() -> ctypes.CDLL:
    """libsodium. Raises RigstepError where it is not installed."""
    global _sodium
    if _sodium is None:
        try:
            library = ctypes.CDLL(SODIUM)
        except OSError:
            try:
                library = ctypes.CDLL(ctypes.util.find_library("sodium") or SODIUM)
            except OSError as error:
                raise RigstepError(f"a key needs libsodium, and there is none ({error}): install libsodium23") from error
        if library.sodium_init() < 0:
            raise RigstepError("libsodium has no random numbers of the system: a key cannot be used")
        _sodium = library
    return _sodium


def public_of(secret: bytes) -> bytes:
    """The public key of an X25519 secret of 32 bytes."""
    out = ctypes.create_string_buffer(32)
    sodium().crypto_scalarmult_base(out, secret)
    return out.raw


def shared_of(secret: bytes, public: bytes) -> bytes:
    """X25519. Raises ValueError for bytes that are no public key."""
    out = ctypes.create_string_buffer(32)
    if len(public) != 32 or sodium().crypto_scalarmult(out, secret, public) != 0:
        raise ValueError("not a public key, or one of low order")
    return out.raw


def encrypt(key: bytes, number: int, header: bytes, plain: bytes) -> bytes:
    """Ciphertext and tag of a payload."""
    out = ctypes.create_string_buffer(len(plain) + TAG)
    size = ctypes.c_ulonglong()
    sodium().crypto_aead_chacha20poly1305_ietf_encrypt(
        out, ctypes.byref(size), plain, ctypes.c_ulonglong(len(plain)), header, ctypes.c_ulonglong(len(header)), None,
        struct.pack("<4xQ", number), key)  # fmt: skip
    return out.raw


def decrypt(key: bytes, number: int, header: bytes, sealed: bytes) -> bytes | None:
    """The payload. None: the tag is wrong."""
    if len(sealed) < TAG:
        return None
    out = ctypes.create_string_buffer(max(len(sealed) - TAG, 1))
    size = ctypes.c_ulonglong()
    wrong = sodium().crypto_aead_chacha20poly1305_ietf_decrypt(
        out, ctypes.byref(size), None, sealed, ctypes.c_ulonglong(len(sealed)), header, ctypes.c_ulonglong(len(header)),
        struct.pack("<4xQ", number), key)  # fmt: skip
    return None if wrong else out.raw[: size.value]


class Credential:
    """A participant's key, and what follows from it."""

    def __init__(self, key: bytes, name: str = "", role: str = ""):
        self.key, self.name, self.role = key, name, role
        self.id = blake2b(key, b"rigstep 3 key id", 16)
        self.proof_key = blake2b(key, b"rigstep 3 proof")


def read_key_file(path: str | os.PathLike[str], role: str = "controller") -> Credential:
    """The key in a participant's file of `rigstep keygen`. Of a server's file: the first key of this role, else the first.

    Raises RigstepError.
    """

    def refuse(problem: str, remedy: str) -> RigstepError:
        return RigstepError(f"key file {os.fspath(path)}: {problem}: {remedy}")

    try:
        opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        with os.fdopen(opened, "rb") as file:
            status = os.fstat(file.fileno())
            text = file.read(MOST_KEY_FILE + 1) if stat.S_ISREG(status.st_mode) else b""
    except OSError as error:
        raise refuse(error.strerror, "name the file that `rigstep keygen` wrote") from error
    if not stat.S_ISREG(status.st_mode) or len(text) > MOST_KEY_FILE:
        raise refuse("is no key file", "name the file that `rigstep keygen` wrote")
    if status.st_mode & 0o077:
        raise refuse("others than its owner may use it", f"chmod 600 {os.fspath(path)}, and make a new key")
    if status.st_uid not in (0, os.geteuid()):
        raise refuse("belongs to another user", "copy it to a file of the user who runs this")
    found: list[Credential] = []
    for line in text.decode("ascii", "replace").splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 3 or len(words[2]) != 64 or set(words[2]) - set("0123456789abcdefABCDEF"):
            raise refuse("a line is not a name, a role and 64 hexadecimal digits", "copy the file again")
        found.append(Credential(bytes.fromhex(words[2]), words[0], words[1]))
    if not found:
        raise refuse("has no key", "name the file that `rigstep keygen` wrote")
    return next((each for each in found if each.role == role), found[0])


class SessionKeys:
    """The keys of one session."""

    def __init__(self, key: bytes, shared: bytes, hello: bytes, session: int, server_public: bytes):
        self.transcript = hashlib.blake2b(hello + struct.pack("<Q", session) + server_public).digest()
        self.master = blake2b(key, shared + self.transcript, 64)
        self.to_server = blake2b(self.master, b"rigstep 3 rig to server")
        self.to_rig = blake2b(self.master, b"rigstep 3 server to rig")
        self.accept = blake2b(self.master, b"rigstep 3 accept")


# --- frames


class Header(NamedTuple):
    """Of a frame. Stamps in ns: `sent` of its sender's clock, the echo as the sender has it of the other side."""

    magic: bytes
    version: int
    sender: int
    session: int
    number: int
    sent: int
    echo_sent: int
    echo_came: int


def crc_tag(data: bytes) -> bytes:
    """The tag of a frame without a key."""
    return zlib.crc32(data).to_bytes(4, "little") + bytes(TAG - 4)


def pack_header(
    session: int, number: int, sent: int, echo_sent: int = 0, echo_came: int = 0, sender: str = "r"
) -> bytes:
    """The 44 bytes in front of a payload."""
    return HEADER.pack(b"RS", VERSION, ord(sender), session, number, sent, echo_sent, echo_came)


def seal_plain(header: bytes, payload: bytes, proof_key: bytes | None = None) -> bytes:
    """A frame with a checksum. With a proof key the payload ends with the field `proof`, which is filled in."""
    data = header + payload
    if proof_key is not None:
        if data[-PROOF - 3 : -PROOF] != PROOF_FIELD:
            raise ValueError("the payload does not end with the field `proof`")
        data = data[:-PROOF] + blake2b(proof_key, data[:-PROOF])
    return data + crc_tag(data)


def is_proven(datagram: bytes, proof_key: bytes) -> bool:
    """Whether a frame of a message that ends with the field `proof` was made with this key."""
    data = datagram[:-TAG]
    right = blake2b(proof_key, data[:-PROOF])
    return data[-PROOF - 3 : -PROOF] == PROOF_FIELD and hmac.compare_digest(right, data[-PROOF:])


def fill_up(message: Any, size: int = DATAGRAM) -> bytes:
    """The payload of a RigToServer with as much padding as makes a datagram of `size` bytes."""
    message.padding = b""
    message.padding = bytes(size - HEADER.size - TAG - message.ByteSize() - 3)
    return bytes(message.SerializeToString())


class ReplayWindow:
    """Takes each number once, and none that is older than the newest by 1024 or more."""

    SIZE = 1024

    def __init__(self) -> None:
        self.newest = 0
        self._taken = 0  # bit k: newest - k was taken

    def take(self, number: int) -> bool:
        """False: came before, or is too old to tell."""
        ahead = number - self.newest
        if ahead > 0:
            self._taken = (self._taken << min(ahead, self.SIZE) | 1) & ((1 << self.SIZE) - 1)
            self.newest = number
            return True
        if number < 1 or -ahead >= self.SIZE or self._taken >> -ahead & 1:
            return False
        self._taken |= 1 << -ahead
        return True


class Clock(NamedTuple):
    """The other side's clock minus one's own."""

    offset: float
    """[s]"""
    uncertainty: float
    """[s] The true offset lies within this: half a round trip, and the drift since."""


class ClockOffset:
    """The other side's clock. The exchange with the shortest round trip of the last 10 to 20 s counts."""

    SPAN_NS = 10_000_000_000
    NS_PER_DRIFT_NS = 10_000  # 100 ppm: two quartz clocks of 50 ppm each

    def __init__(self) -> None:
        self._best: tuple[int, int, int] | None = None  # offset, round trip, when, of this span
        self._best_before: tuple[int, int, int] | None = None  # of the one before
        self._span_start = 0

    def _bound(self, exchange: tuple[int, int, int], now: int) -> int:
        return (exchange[1] + 1) // 2 + (now - exchange[2]) // self.NS_PER_DRIFT_NS

    def estimate_ns(self, now: int) -> tuple[int, int] | None:
        """Offset and uncertainty."""
        known = [each for each in (self._best, self._best_before) if each is not None]
        if not known:
            return None
        best = min(known, key=lambda exchange: self._bound(exchange, now))
        return best[0], self._bound(best, now)

    def add(self, sent: int, there_came: int, there_sent: int, came: int) -> None:
        """Takes the four stamps of an exchange. Impossible ones are left out."""
        round_trip = (came - sent) - (there_sent - there_came)
        if sent > came or there_came > there_sent or round_trip < 0:
            return
        exchange = ((there_came - sent + there_sent - came) // 2, round_trip, came)
        known = self.estimate_ns(came)
        if known and abs(known[0] - exchange[0]) > known[1] + self._bound(exchange, came):
            self._best = self._best_before = None  # a clock was set
        if came - self._span_start >= self.SPAN_NS:
            self._best_before = self._best if came - self._span_start < 2 * self.SPAN_NS else None
            self._best, self._span_start = None, came
        if self._best is None or self._bound(exchange, came) <= self._bound(self._best, came):
            self._best = exchange
