"""The rig for asyncio: `async with rigstep.aio.connect() as rig`.

Timers of asyncio are as coarse as a millisecond. A loop at more than some 200 Hz keeps its instants better in a thread of
its own, with rigstep.connect().
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from types import TracebackType
from typing import Any, TypeVar, overload

from rigstep.link import Conversation
from rigstep.rig import RigBase, Role, make_session, no_host, open_socket
from rigstep.session import Session, Turns
from rigstep.state import Parameter, State, Status, Summary

T = TypeVar("T")


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Rig(RigBase):
    """A session with a server, from connect(). One event loop uses it, and keeps it alive by heartbeats.

    rigstep.Rig has the contract of each function; here those that wait are awaited.
    """

    def __init__(self, session: Session, socket: socket.socket):
        super().__init__(session, socket)
        self._loop = asyncio.get_running_loop()
        self._waiters: set[asyncio.Future[None]] = set()
        self._heartbeat: asyncio.TimerHandle | None = None
        self._loop.add_reader(socket, self._on_datagram)

    def _on_datagram(self) -> None:
        self._take_datagrams()
        for waiter in self._waiters:
            _release(waiter)

    def _beat(self) -> None:
        self._session.beat()
        self._send_datagrams()
        self._heartbeat = self._loop.call_later(self._session.heartbeat_ns * 1e-9, self._beat)

    def _leave(self, words: str) -> None:
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
        super()._leave(words)

    async def _run(self, conversation: Conversation[T]) -> T:
        while True:
            try:
                until = next(conversation)
            except StopIteration as end:
                self._send_datagrams()
                result: T = end.value
                return result
            self._send_datagrams()
            await self._wait(until)

    async def _wait(self, until_ns: int) -> None:
        left = (until_ns - self._session.now()) * 1e-9
        if left <= 0.0:
            self._take_datagrams()
            await asyncio.sleep(0)  # others have their turn
            return
        waiter = self._loop.create_future()
        self._waiters.add(waiter)
        timer = self._loop.call_later(left, _release, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave("done" if kind is None else f"ended by {kind.__name__}")

    async def close(self) -> None:
        """Says Goodbye. May be called again."""
        self._leave("done")

    @overload
    async def receive(self, timeout: None = None) -> State:
        ...

    @overload
    async def receive(self, timeout: float) -> State | None:
        ...

    async def receive(self, timeout: float | None = None) -> State | None:
        """The newest state; see rigstep.Rig.receive()."""
        return await self._run(self._session.next_state(timeout))

    def loop(self, rate: float | None = None, duration: float | None = None) -> AsyncIterator[State]:
        """`async for state in rig.loop(rate=100): ...`; see rigstep.Rig.loop()."""
        return self._turns(Turns(self._session, rate, duration))

    async def _turns(self, turns: Turns) -> AsyncIterator[State]:
        while (state := await self._run(turns.next())) is not None:
            yield state

    async def run(
        self,
        controller: Callable[[State], Mapping[str, float] | Awaitable[Mapping[str, float]]],
        rate: float | None = None,
        duration: float | None = None,
    ) -> Summary:
        """A loop() that sends what `controller`, a function or coroutine function, returns: inputs by name."""
        async for state in self.loop(rate, duration):
            values = controller(state)
            self.send(await values if isinstance(values, Awaitable) else values)
        return self.summary

    async def status(self) -> Status:
        """Asks the server how it is; see rigstep.Rig.status()."""
        return await self._run(self._session.status())

    async def reset_fault(self) -> bool:
        """Clears the latched fault; see rigstep.Rig.reset_fault()."""
        return await self._run(self._session.reset_fault())

    async def snapshot(self) -> bytes:
        """The content of a snapshot file of the run; see rigstep.Rig.snapshot()."""
        return await self._run(self._session.snapshot())

    async def reset(self, to: bytes) -> Status:
        """Sets the run back to a snapshot; see rigstep.Rig.reset()."""
        return await self._run(self._session.reset_to_snapshot(to))

    async def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of the mechanism; see rigstep.Rig.parameters()."""
        return await self._run(self._session.parameters())

    async def set_parameters(self, values: Mapping[str, float], ramp_steps: int = 0) -> int:
        """Changes tunable parameters; see rigstep.Rig.set_parameters()."""
        return await self._run(self._session.set_parameters(values, ramp_steps))

    async def command(self, what: str, steps: int = 1) -> Status:
        """Asks for a transition of the run; see rigstep.Rig.command()."""
        return await self._run(self._session.command(what, steps))

    async def write_black_box(self) -> str:
        """Has the last seconds of the run written to a file; see rigstep.Rig.write_black_box()."""
        return await self._run(self._session.write_black_box())


class Connecting:
    """A rig to be: `async with` or `await` it."""

    def __init__(self, host: str, port: int, session: Session):
        self._host, self._port, self._session = host, port, session
        self._rig: Rig | None = None

    async def _connect(self) -> Rig:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_DGRAM)
        except OSError as error:
            raise no_host(self._host, error) from error
        self._rig = rig = Rig(self._session, open_socket(found, self._session.server))
        try:
            await rig._run(self._session.connect())
        except BaseException:
            rig._leave("not connected")
            raise
        rig._beat()
        return rig

    def __await__(self) -> Generator[Any, None, Rig]:
        return self._connect().__await__()

    async def __aenter__(self) -> Rig:
        return await self._connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._rig is not None:
            await self._rig.__aexit__(kind, error, trace)


def connect(
    host: str = "127.0.0.1",
    port: int = 47001,
    *,
    key: str | os.PathLike[str] | None = None,
    name: str = "rigstep-python",
    role: Role = "controller",
    timeout: float = 5.0,
) -> Connecting:
    """Connects to `rigstep serve`; the arguments and errors are those of rigstep.connect()."""
    return Connecting(host, port, make_session(host, port, key, name, role, timeout))
