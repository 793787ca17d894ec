"""The rig's end of the link: handshake and session. It does no input or output.

The contract is proto/wire.proto and proto/README.md of Rigstep. A `Link` takes datagrams by `take()` and leaves those to
send in `outgoing`. What takes time is a conversation: a generator that yields until when it waits. Whoever drives it sends
what is in `outgoing`, takes datagrams until one has come or that time is over, and resumes it. rigstep.rig drives it with a
socket that blocks, rigstep.aio with an event loop.

Times are in ns of the clock of the link, CLOCK_MONOTONIC, unless a name says otherwise.
"""

from __future__ import annotations

import enum
import secrets
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from rigstep._messages import parse, wire_pb2
from rigstep.errors import NoAnswer, RefusalReason, Refused, printable
from rigstep.frame import (
    DATAGRAM,
    HEADER,
    PROOF,
    TAG,
    VERSION,
    ClockOffset,
    Credential,
    Header,
    ReplayWindow,
    SessionKeys,
    crc_tag,
    decrypt,
    encrypt,
    fill_up,
    is_proven,
    pack_header,
    public_of,
    seal_plain,
    shared_of,
)

wire: Any = wire_pb2
T = TypeVar("T")
Conversation = Generator[int, None, T]  # yields: until when it waits for a datagram

PRODUCT = "rigstep-python"  # version of the rig's software, for people
REPEAT_NS = 100_000_000  # a request without an answer is sent again
ATTEMPT_NS = 1_000_000_000  # a handshake without an end is begun again


class _Step(enum.Enum):
    CHALLENGE = 1
    ACCEPT = 2
    WELCOME = 3
    JOINED = 4


class Link:
    """A session from Hello to Goodbye: numbers, stamps, proofs, handshake. A subclass takes the messages of the session."""

    def __init__(
        self,
        server: str,
        *,
        name: str,
        role: int,
        credential: Credential | None = None,
        now: Callable[[], int] = time.monotonic_ns,
    ):
        self.server = server  # "host:port", for messages
        self.name, self.role, self.credential, self.now = name, role, credential, now
        self.outgoing: list[bytes] = []  # datagrams to send; whoever sends them empties it
        self.trouble = ""  # what the system says about the socket, for messages
        self.session = 0
        self.keys: SessionKeys | None = None
        self.welcome: Any = None
        self.heard_ns = 0  # when the newest datagram of the session came
        self.said_ns = 0  # when one was sent
        self.dropped = 0  # datagrams that were not right
        self.offset = ClockOffset()
        self._step = _Step.CHALLENGE
        self._nonce, self._secret, self._hello = 0, b"", b""
        self._refusal: Refused | None = None
        self._refused_now = False
        self._number = 0  # of the newest datagram sent
        self._window = ReplayWindow()
        self._echo_sent = self._echo_came = 0

    # --- datagrams

    def hello(self, nonce: int, cookie: bytes = b"", secret: bytes = b"") -> bytes:
        """The datagram of a Hello. secret: of the X25519 key pair, where there is a cookie and a key."""
        message = wire.RigToServer(
            hello=wire.Hello(product_version=PRODUCT, rig_name=self.name, role=self.role, nonce=nonce, cookie=cookie)
        )
        proof_key = None
        if cookie and self.credential:
            message.hello.key_id, message.hello.public_key = self.credential.id, public_of(secret)
            message.proof, proof_key = bytes(PROOF), self.credential.proof_key
        return seal_plain(pack_header(0, 0, self.now()), fill_up(message), proof_key)

    def seal(self, message: Any) -> bytes:
        """The next datagram of the session."""
        self._number += 1
        self.said_ns = self.now()
        header = pack_header(self.session, self._number, self.said_ns, self._echo_sent, self._echo_came)
        payload = bytes(message.SerializeToString())
        if self.keys:
            return header + encrypt(self.keys.to_server, self._number, header, payload)
        return seal_plain(header, payload)

    def put(self, **content: Any) -> None:
        """Has a RigToServer with this content sent."""
        self.outgoing.append(self.seal(wire.RigToServer(**content)))

    def open(self, datagram: bytes, came: int) -> tuple[Header, Any] | None:
        """Header and ServerToRig of a datagram that is right, in the order of wire.proto. None: it is not."""
        if not HEADER.size + TAG <= len(datagram) <= DATAGRAM:
            return None
        header = Header(*HEADER.unpack_from(datagram))
        if header.magic != b"RS" or header.sender != ord("s") or header.session not in (0, self.session):
            return None
        if header.session and self.keys:
            payload = decrypt(self.keys.to_rig, header.number, datagram[: HEADER.size], datagram[HEADER.size :])
        else:
            payload = datagram[HEADER.size : -TAG] if datagram[-TAG:] == crc_tag(datagram[:-TAG]) else None
        if payload is None or (header.version != VERSION and header.session):
            return None
        if header.session and not self._take_stamps(header, came):
            return None
        message = parse(wire.ServerToRig, payload)
        return None if message is None else (header, message)

    def _take_stamps(self, header: Header, came: int) -> bool:
        newest = self._window.newest
        if not self._window.take(header.number):
            return False
        if header.number > newest:
            self._echo_sent, self._echo_came = header.sent, came
        if header.echo_sent:
            self.offset.add(header.echo_sent, header.echo_came, header.sent, came)
        self.heard_ns = came
        return True

    def take(self, datagram: bytes, came: int) -> None:
        """Takes a datagram that came at this time."""
        opened = self.open(datagram, came)
        kind = opened[1].WhichOneof("content") if opened else None
        if opened is None or kind is None:
            self.dropped += 1
        elif opened[0].session:
            self._take_in_session(kind, getattr(opened[1], kind), came)
        elif self._step in (_Step.CHALLENGE, _Step.ACCEPT):
            if opened[0].version == VERSION or kind == "refusal":
                self._take_handshake(kind, getattr(opened[1], kind), datagram, opened[0].version)

    def _take_in_session(self, kind: str, content: Any, came: int) -> None:
        if self._step is _Step.WELCOME and kind == "welcome":
            self.welcome = content
            self._step = _Step.JOINED
        elif self._step is _Step.JOINED:
            self.take_message(kind, content, came)

    def take_message(self, kind: str, content: Any, came: int) -> None:
        """Takes a message of the session after the Welcome. For a subclass."""

    # --- the handshake

    def _take_handshake(self, kind: str, content: Any, datagram: bytes, version: int) -> None:
        if kind == "refusal" and (content.nonce == self._nonce or version != VERSION):
            proven = self.credential is not None and is_proven(datagram, self.credential.proof_key)
            self._refused_now = True
            if proven or self._refusal is None or not self._refusal.proven:
                reason, text = RefusalReason(content.reason), printable(content.text)
                self._refusal = Refused(reason, text, self.server, self.credential is not None, proven)
        elif kind == "challenge" and content.nonce == self._nonce and self._step is _Step.CHALLENGE and content.cookie:
            self._hello = self.hello(self._nonce, content.cookie[:64], self._secret)
            self._step = _Step.ACCEPT
        elif kind == "accept" and content.nonce == self._nonce and self._step is _Step.ACCEPT and content.session:
            self._take_accept(content, datagram)

    def _take_accept(self, accept: Any, datagram: bytes) -> None:
        keys = None
        if self.credential:
            try:
                shared = shared_of(self._secret, accept.public_key)
            except ValueError:
                return
            keys = SessionKeys(self.credential.key, shared, self._hello, accept.session, accept.public_key)
            if not is_proven(datagram, keys.accept):
                return
        self.session, self.keys = accept.session, keys
        self._number, self._window, self._echo_sent, self._echo_came = 0, ReplayWindow(), 0, 0
        self._refusal = None
        self._step = _Step.WELCOME

    def open_session(self, timeout_s: float) -> Conversation[None]:
        """From Hello to Welcome. Raises Refused or NoAnswer.

        A refusal is raised only at the end of the time: it may be forged, or pass.
        """
        end = self.now() + round(timeout_s * 1e9)
        while (now := self.now()) < end:
            yield from self._attempt(min(now + ATTEMPT_NS, end))
            if self._step is _Step.JOINED:
                return
        raise self._refusal or self.no_answer()

    def _attempt(self, until: int) -> Conversation[None]:
        """One handshake. A request without an answer is sent again, a Hello byte for byte."""
        self.session, self.keys = 0, None
        self._nonce, self._secret = secrets.randbits(64), secrets.token_bytes(32)
        self._step, self._refused_now = _Step.CHALLENGE, False
        self._hello = self.hello(self._nonce)
        while self.now() < until:
            step = self._step
            if step is _Step.WELCOME:
                self.put(join=wire.Join())
            else:
                self.outgoing.append(self._hello)
            repeat = min(self.now() + REPEAT_NS, until)
            while self._step is step and self.now() < repeat:
                yield repeat
            if self._step is _Step.JOINED or (self._step is step and self._refused_now):
                return  # after a refusal another attempt has another nonce and cookie

    def no_answer(self) -> NoAnswer:
        """The error where nobody answered."""
        port = self.server.rpartition(":")[2]
        return NoAnswer(
            f"no answer from {self.server}{f' ({self.trouble})' if self.trouble else ''}: is `rigstep serve` running there"
            f"{', with this key' if self.credential else ''}? If so, check that its `link.address` can be reached from "
            f"here and that no firewall blocks UDP port {port}"
        )
