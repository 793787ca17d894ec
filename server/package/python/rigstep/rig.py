"""A rig that blocks: connect(), send(), receive(), loop(), run()."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

from rigstep.errors import RigstepError
from rigstep.frame import Clock, read_key_file
from rigstep.link import Conversation, wire
from rigstep.session import Session, Turns
from rigstep.state import Channel, Parameter, State, Status, Summary

T = TypeVar("T")
Role = Literal["controller", "observer", "console"]

ROLES: Mapping[str, tuple[int, str]] = {  # of the session, and of the key that is taken from a server's file
    "controller": (wire.CONTROLLER, "controller"),
    "observer": (wire.OBSERVER, "observer"),
    "console": (wire.CONSOLE, "operator"),
}
MOST_AT_ONCE = 1000  # datagrams taken before the session looks at its time again
LARGEST_SELECT = 1024  # file descriptors from here on need poll()


def make_session(host: str, port: int, key: str | os.PathLike[str] | None, name: str, role: str, timeout: float) -> Session:
    """The session for the arguments of connect(). Raises ValueError or RigstepError."""
    if role not in ROLES:
        raise ValueError(f"role is {role!r}: give one of {', '.join(map(repr, ROLES))}")
    if not 0 < port < 65536:
        raise ValueError(f"port is {port}: give the UDP port of the server, 1 to 65535")
    if not 0.0 < timeout < 1e6:
        raise ValueError(f"timeout is {timeout}: give a positive number of seconds")
    number, key_role = ROLES[role]
    if key is None and role == "console":
        key = operator_key_file(port)
    credential = None if key is None else read_key_file(key, key_role)
    return Session(f"{host}:{port}", timeout_s=timeout, name=name, role=number, credential=credential)


def operator_key_file(port: int) -> str | None:
    """The key that a server without a key file leaves for its own user, on its machine. None: there is none."""
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    folders = (os.path.join(given, "rigstep"), f"/run/user/{os.geteuid()}/rigstep", f"/tmp/rigstep-{os.geteuid()}")
    files = (os.path.join(folder, f"operator-{port}.key") for folder in folders if os.path.isabs(folder))
    return next((file for file in files if os.path.exists(file)), None)


def no_host(host: str, error: OSError) -> RigstepError:
    """The error for a host that is not found."""
    return RigstepError(f'cannot find the host "{host}" ({error.strerror}): check the name, or give a numeric address')


def open_socket(found: Sequence[tuple[Any, ...]], server: str) -> socket.socket:
    """A socket for this server. found: of getaddrinfo(); an IPv4 address is preferred."""
    family, kind, protocol, _, address = min(found, key=lambda each: bool(each[0] != socket.AF_INET))
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setblocking(False)
        opened.connect(address)
    except OSError as error:
        opened.close()
        raise RigstepError(f"cannot send to {server} ({error.strerror}): check the network") from error
    return opened


class RigBase:
    """What the rig that blocks and the one of asyncio have in common."""

    def __init__(self, session: Session, socket: socket.socket):
        self._session = session
        self._socket = socket

    def _send_datagrams(self) -> None:
        outgoing, self._session.outgoing = self._session.outgoing, []
        for datagram in outgoing:
            for _ in range(2):  # an error may be the answer to an earlier datagram
                try:
                    self._socket.send(datagram)
                    break
                except OSError as error:
                    self._note(error)

    def _take_datagrams(self) -> None:
        for _ in range(MOST_AT_ONCE):
            try:
                datagram = self._socket.recv(2048)
            except BlockingIOError:
                return
            except OSError as error:
                self._note(error)
            else:
                self._session.take(datagram, self._session.now())

    def _note(self, error: OSError) -> None:
        if isinstance(error, ConnectionRefusedError):
            self._session.trouble = "nothing listens on this port there"
        elif not isinstance(error, BlockingIOError):
            self._session.trouble = error.strerror or str(error)

    def _leave(self, words: str) -> None:
        self._session.leave(words)
        self._send_datagrams()
        self._socket.close()

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        return self._session.mechanism

    @property
    def mechanism_id(self) -> int:
        """Hash of the mechanism's description."""
        return int(self._session.welcome.mechanism_id)

    @property
    def period(self) -> float:
        """[s] From one step to the next."""
        return self._session.period_ns * 1e-9

    @property
    def lockstep(self) -> bool:
        """The controller asks for each step. Else the server steps at its deadlines."""
        return self._session.lockstep

    @property
    def inputs(self) -> tuple[Channel, ...]:
        """Input channels of the mechanism."""
        return self._session.inputs

    @property
    def outputs(self) -> tuple[Channel, ...]:
        """Output channels that the server sends, in the order of State.values."""
        return self._session.outputs

    @property
    def clock(self) -> Clock | None:
        """The server's clock minus CLOCK_MONOTONIC of this machine. None: not known yet."""
        estimate = self._session.offset.estimate_ns(self._session.now())
        return Clock(estimate[0] * 1e-9, estimate[1] * 1e-9) if estimate else None

    @property
    def summary(self) -> Summary:
        """Figures of the newest loop() or run(), so far."""
        return self._session.figures.summary()

    def send(self, values: Mapping[str, float] | None = None, /, **named: float) -> None:
        """Sends all inputs, in the units of their channels: rig.send(force=3.0), or rig.send({"wheel speed": 3.0}).

        Inputs that are not named keep their last value, 0 at first. Does not wait. The server takes the newest inputs at its
        next deadline; inputs that are not sent again become stale, after 20 steps where the rig file does not say otherwise.
        In lockstep nothing is sent yet: the next turn of loop(), or receive(), asks for the step with these inputs.

        Raises UnknownChannel (a ValueError), ValueError for a value that is not finite, Disconnected.
        """
        self._session.send({**(values or {}), **named})
        self._send_datagrams()


class Rig(RigBase):
    """A session with a server, from connect(). One thread uses it.

    Between the calls nothing is sent: a server drops a rig that is silent for its time-out, 2 s where the rig file does not
    say otherwise. receive() and loop() send heartbeats while they wait.
    """

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave("done" if kind is None else f"ended by {kind.__name__}")

    def close(self) -> None:
        """Says Goodbye. May be called again."""
        self._leave("done")

    def _run(self, conversation: Conversation[T]) -> T:
        while True:
            try:
                until = next(conversation)
            except StopIteration as end:
                self._send_datagrams()
                result: T = end.value
                return result
            self._send_datagrams()
            self._wait(until)
            self._take_datagrams()

    def _wait(self, until_ns: int) -> None:
        left = (until_ns - self._session.now()) * 1e-9
        if left <= 0.0:
            return
        number = self._socket.fileno()
        if number < LARGEST_SELECT:
            select.select([number], [], [], left)
        else:  # in whole milliseconds
            poll = select.poll()
            poll.register(number, select.POLLIN)
            poll.poll(left * 1e3)

    @overload
    def receive(self, timeout: None = None) -> State:
        ...

    @overload
    def receive(self, timeout: float) -> State | None:
        ...

    def receive(self, timeout: float | None = None) -> State | None:
        """The newest state, where one has come since the last one was returned; else waits for it.

        timeout [s]: None is returned where none came in this time; 0 does not wait. Without a time-out, that of connect()
        holds, and NoAnswer is raised. In lockstep it makes a step where send() was called since the last one, else it asks
        for the last state again; a request that is lost is repeated. Raises NoAnswer, Disconnected.
        """
        return self._run(self._session.next_state(timeout))

    def loop(self, rate: float | None = None, duration: float | None = None) -> Iterator[State]:
        """The newest state at each turn of a loop: `for state in rig.loop(rate=500, duration=10): ...`.

        rate [Hz]: turns per second; None: those of the server, at most 1000. The turns have absolute instants: they do not
        drift, and turns that are missed are skipped. The same state comes again where no new one came. duration [s]: None
        is without end. Heartbeats are sent when nothing else was.

        In lockstep the first turn gives the state as it is. Each further turn makes one step, with the inputs of the newest
        send(). The turns then follow each other as fast as the server answers, or `rate` times a second at most; duration
        is of simulated time.

        Raises ValueError, NoAnswer after silence of the server for the time-out of connect(), Disconnected.
        """
        return self._turns(Turns(self._session, rate, duration))

    def _turns(self, turns: Turns) -> Iterator[State]:
        while (state := self._run(turns.next())) is not None:
            yield state

    def run(
        self,
        controller: Callable[[State], Mapping[str, float]],
        rate: float | None = None,
        duration: float | None = None,
    ) -> Summary:
        """A loop() that sends what `controller` returns: inputs by name, in the units of their channels."""
        for state in self.loop(rate, duration):
            self.send(controller(state))
        return self.summary

    def status(self) -> Status:
        """Asks the server how it is. Raises NoAnswer, Disconnected."""
        return self._run(self._session.status())

    def reset_fault(self) -> bool:
        """Clears the latched fault. False: none is latched. Needs a controller, or a console with an operator's key.

        Raises Refused, NoAnswer, Disconnected.
        """
        return self._run(self._session.reset_fault())

    def command(self, what: str, steps: int = 1) -> Status:
        """Asks for a transition of the run, and returns the status after it.

        what: "run", "hold", "step" (so many `steps`, then it holds), "snapshot", "reset to start" or "reset to snapshot".
        Needs a controller, or a console with an operator's key. Raises Refused where the state of the run does not permit
        it, NoAnswer, Disconnected.
        """
        return self._run(self._session.command(what, steps))

    def snapshot(self) -> bytes:
        """Has the server keep its present state, and returns the content of a snapshot file of it.

        `rigstep serve --from` and `rigstep simulate --from` go on from such a file with the same bits, and so does
        reset(). Needs a controller, or a console with an operator's key. Raises Refused, NoAnswer, Disconnected.
        """
        return self._run(self._session.snapshot())

    def reset(self, to: bytes) -> Status:
        """Sets the run back to what snapshot() returned or a file holds, and returns the status after it.

        The run must hold, be ready or faulted, and the snapshot be one of its mechanism and settings. Needs a controller,
        or a console with an operator's key. Raises Refused, NoAnswer, Disconnected; ValueError where it is no snapshot.
        """
        return self._run(self._session.reset_to_snapshot(to))

    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the mechanism with the values that act now. Raises NoAnswer, Disconnected."""
        return self._run(self._session.parameters())

    def set_parameters(self, values: Mapping[str, float], ramp_steps: int = 0) -> int:
        """Changes tunable parameters, all between the same two steps, and returns the first step that they act in.

        ramp_steps: in equal parts over so many steps; 0: at once. Needs a controller, or a console with an operator's key.
        Raises Refused where there is no such parameter, it is fixed or the value is out of its range: nothing changes
        then. NoAnswer, Disconnected.
        """
        return self._run(self._session.set_parameters(values, ramp_steps))

    def write_black_box(self) -> str:
        """Has the last seconds of the run written to a file, and returns its name on the server's machine.

        Needs a controller, or a console with an operator's key. Raises Refused where the server keeps no black box.
        """
        return self._run(self._session.write_black_box())


def connect(
    host: str = "127.0.0.1",
    port: int = 47001,
    *,
    key: str | os.PathLike[str] | None = None,
    name: str = "rigstep-python",
    role: Role = "controller",
    timeout: float = 5.0,
) -> Rig:
    """Connects to `rigstep serve`: `with rigstep.connect() as rig: ...`.

    key: path of the participant's key file of `rigstep keygen`. name: of this rig, for people. role: "controller" sends
    inputs, and there is one; "observer" receives states; "console" asks for status, resets faults, has black boxes written,
    with an operator's key: without `key` that which a server without keys leaves for its own user.
    timeout [s]: for connecting, and for silence of the server later.

    Raises Refused, NoAnswer, RigstepError (no host, key file), ValueError.
    """
    session = make_session(host, port, key, name, role, timeout)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise no_host(host, error) from error
    rig = Rig(session, open_socket(found, session.server))
    try:
        rig._run(session.connect())
    except BaseException:
        rig._leave("not connected")
        raise
    return rig
