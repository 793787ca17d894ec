"""What a rig says and hears in a session, without input or output: states, inputs, turns of a loop, requests.

rigstep.rig and rigstep.aio drive the conversations of `Session` and `Turns`; rigstep.link tells what a conversation is.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from rigstep.errors import (
    Disconnected,
    GoodbyeReason,
    NoAnswer,
    RefusalReason,
    Refused,
    RigstepError,
    UnknownChannel,
    printable,
)
from rigstep.link import REPEAT_NS, Conversation, Link, wire
from rigstep.state import Channel, Figures, Flags, Parameter, State, Status, StepStatus, nearest_names, status_of

HEARTBEATS = 25  # in the time-out of the server
MOST_CHANNELS = 4096
STEP_AGAIN_NS = 20_000_000  # lockstep: a step without an answer is asked for again; more than any step takes
FASTEST_HZ = 1000.0  # of a loop whose rate is not given
KNOWN_FLAGS = 0xFFFF  # with some to come; enum keeps each combination that it has seen
QUEUE_STEPS = 50  # states that the socket surely holds
PHASE = 0.25  # of a turn, in shares of the period, after the state that it takes
SNAPSHOT_PIECE = 1024  # bytes of a snapshot file in a datagram
SNAPSHOT_BEGIN = b"RIGSNAP"  # of a snapshot file
BLACK_BOX_S = 30.0  # that the disk of the server may take for a black box
COMMANDS = {
    "run": wire.Command.RUN,
    "hold": wire.Command.HOLD,
    "step": wire.Command.STEP,
    "snapshot": wire.Command.SNAPSHOT,
    "reset to start": wire.Command.RESET_TO_START,
    "reset to snapshot": wire.Command.RESET_TO_SNAPSHOT,
}


class Session(Link):
    """A rig's session: channels, inputs, the newest state, requests."""

    inputs: tuple[Channel, ...] = ()
    outputs: tuple[Channel, ...] = ()
    period_ns = 0
    lockstep = False

    def __init__(self, server: str, *, timeout_s: float, **link: Any):
        super().__init__(server, **link)
        self.timeout_s = timeout_s
        self.closed = False
        self.newest: State | None = None
        self.arrivals = 0  # states that came
        self.state_came_ns = 0
        self.returned = 0  # arrivals when a state was returned last
        self.figures = Figures()
        self.goodbye: tuple[GoodbyeReason, str] | None = None  # of the server, with its words
        self._refusal_in_session: Refused | None = None
        self._answers: dict[str, Any] = {}
        self._input_index: dict[str, int] = {}
        self._output_index: dict[str, int] = {}
        self._inputs: list[float] = []
        self._pending = False  # lockstep: send() was called since the last step was asked for
        self._underway: Any = None  # lockstep: the InputFrame without an answer
        self._sequence = 0  # of the newest input
        self._echoed = 0  # the newest sequence of ours that a state used
        self._last_step = 0
        self._joined_ns = 0
        self._looked_ns = self._asked_ns = 0  # for silence of a server that sends only what it is asked for

    # --- connect

    def connect(self) -> Conversation[None]:
        """From Hello to the last page of channels. Raises Refused or NoAnswer."""
        yield from self.open_session(self.timeout_s)
        welcome = self.welcome
        self._joined_ns = self.heard_ns
        self.period_ns, self.lockstep = welcome.period_ns, welcome.lockstep
        if not 0 < self.period_ns <= 10**12 or max(welcome.input_channels, welcome.output_channels) > MOST_CHANNELS:
            raise RigstepError(f"{self.server} sent a Welcome that is not possible: is Rigstep running there?")
        self._last_step = welcome.step
        self._echoed = self._sequence = welcome.step if self.lockstep else 0
        self.inputs = yield from self._read_channels(wire.INPUT, welcome.input_channels)
        self.outputs = yield from self._read_channels(wire.OUTPUT, welcome.output_channels)
        self._inputs = [0.0] * len(self.inputs)
        self._input_index = {channel.name: k for k, channel in enumerate(self.inputs)}
        self._output_index = {channel.name: k for k, channel in enumerate(self.outputs)}

    def _read_channels(self, direction: int, total: int) -> Conversation[tuple[Channel, ...]]:
        channels: list[Channel] = []
        while len(channels) < total:

            def answer() -> Any:
                page = self._answers.pop("channel_page", None)
                fits = page and page.channel and len(channels) + len(page.channel) <= total
                return page if fits and page.direction == direction and page.first == len(channels) else None

            query = {"direction": direction, "first": len(channels)}
            page = yield from self.ask(lambda: self.put(channel_query=query), answer)
            channels += [Channel(each.name, each.unit) for each in page.channel]
        return tuple(channels)

    # --- what comes

    def take_message(self, kind: str, content: Any, came: int) -> None:
        if kind == "state":
            self._take_state(content, came)
        elif kind == "goodbye":
            self.goodbye = GoodbyeReason(content.reason), printable(content.text)
        elif kind == "refusal":
            self._refusal_in_session = Refused(RefusalReason(content.reason), printable(content.text), self.server)
        else:
            self._answers[kind] = content

    def _take_state(self, frame: Any, came: int) -> None:
        values = tuple(frame.value)
        right = (
            frame.mechanism_id == self.welcome.mechanism_id
            and len(values) == self.welcome.output_channels
            and all(map(math.isfinite, values))
            and frame.step >= self._last_step
        )
        try:
            status = StepStatus(frame.status)
        except ValueError:
            right = False
        if not right:
            self.dropped += 1
            return
        flags = Flags(frame.flags & KNOWN_FLAGS)
        self.newest = State(
            frame.step, frame.sim_time_ns, status, flags, frame.input_age_steps, frame.sequence, values,
            self._output_index)  # fmt: skip
        self.figures.add_state(self.newest)
        self._last_step = frame.step
        self.arrivals += 1
        self.state_came_ns = came
        ours = frame.sequence <= self._sequence and frame.rig_time_ns >= self._joined_ns  # else an earlier rig's
        if ours and frame.sequence > self._echoed:
            self._echoed = frame.sequence
            self.figures.add_trip(came - frame.rig_time_ns)
        if ours or (self.role != wire.CONTROLLER and not self.newest.no_input):
            self.figures.largest_input_age = max(self.figures.largest_input_age, frame.input_age_steps)

    # --- what goes out

    def set_inputs(self, values: Mapping[str, float]) -> None:
        """Changes the inputs of these names. Raises UnknownChannel or ValueError, and then changes none."""
        changed: list[tuple[int, float]] = []
        for name, value in values.items():
            if name not in self._input_index:
                raise UnknownChannel(
                    f'no input of {self.mechanism} is called "{name}": the inputs are '
                    f"{nearest_names(name, self._input_index)}"
                )
            number = float(value)
            if not math.isfinite(number):
                raise ValueError(f'input "{name}" of {self.mechanism} is {number}: inputs have to be finite')
            changed.append((self._input_index[name], number))
        for index, number in changed:
            self._inputs[index] = number

    def send(self, values: Mapping[str, float]) -> None:
        """Has all inputs sent. In lockstep they are kept for the step that is asked for next."""
        self.check()
        if self.role != wire.CONTROLLER:
            raise RigstepError(f"only a controller sends inputs to {self.server}: connect with role='controller'")
        self.set_inputs(values)
        if self.lockstep:
            self._pending = True
            return
        self._sequence += 1
        self.put(input=self._input_frame(self._sequence))

    def _input_frame(self, sequence: int) -> Any:
        return wire.InputFrame(
            mechanism_id=self.welcome.mechanism_id, sequence=sequence, rig_time_ns=self.now(), value=self._inputs
        )

    # --- time

    @property
    def mechanism(self) -> str:
        """Its name."""
        return printable(self.welcome.mechanism)

    @property
    def heartbeat_ns(self) -> int:
        """From one datagram to the next."""
        return max(int(self.welcome.timeout_steps) * self.period_ns // HEARTBEATS, 1_000_000)

    def beat(self) -> None:
        """Has something sent when nothing was for a while. A server that is silent is asked, so that it answers."""
        now = self.now()
        if not self.closed and self.goodbye is None and now >= self.said_ns + self.heartbeat_ns:
            if now >= self.heard_ns + self.heartbeat_ns:
                self.put(status_query=wire.StatusQuery())
            else:
                self.put(heartbeat=wire.Heartbeat())

    def check(self) -> None:
        """Raises Disconnected after a Goodbye of the server, RigstepError after close()."""
        if self.closed:
            raise RigstepError(f"this rig has left {self.server}: connect again")
        if self.goodbye is not None:
            raise Disconnected(*self.goodbye, self.server)

    def _check_silence(self) -> None:
        """Also raises NoAnswer when nothing came for the time-out. Datagrams that wait in the socket are taken before."""
        self.check()
        now = self.now()
        if not self._sends_unasked and now - self._looked_ns > 0.5e9 * self.timeout_s:
            self._asked_ns = now  # nobody has asked since
        self._looked_ns = now
        if now - max(self.heard_ns, self._asked_ns) > self.timeout_s * 1e9:
            raise self._silence()

    @property
    def _sends_unasked(self) -> bool:
        return not self.lockstep and bool(self.role != wire.CONSOLE)

    def _silence(self) -> NoAnswer:
        return NoAnswer(
            f"{self.server} has been silent for {(self.now() - self.heard_ns) * 1e-9:.1f} s"
            f"{f' ({self.trouble})' if self.trouble else ''}: ask `rigstep status {self.server}` whether it runs, and "
            "check the network"
        )

    def wait_until(self, due: int) -> Conversation[None]:
        """Takes what comes until then, at least once; heartbeats go out. Raises when the server is gone."""
        self.check()
        while True:
            self.beat()
            yield min(due, self.said_ns + self.heartbeat_ns)
            self._check_silence()
            if self.now() >= due:
                return

    def _wait_for_state(self, until: int) -> Conversation[bool]:
        """True: one came that was not returned yet."""
        begin = self.now()
        self.check()
        if begin - self.heard_ns > QUEUE_STEPS * self.period_ns:  # what waits in the socket may be old
            yield from self.wait_until(begin)
            self.returned = self.arrivals
        while True:
            self.beat()
            yield min(until, self.said_ns + self.heartbeat_ns)
            self._check_silence()
            if self.arrivals > self.returned:
                return True
            if self.now() >= until:
                return False

    def next_state(self, timeout_s: float | None) -> Conversation[State | None]:
        """The newest state that was not returned yet. None: none came in this time; without a time NoAnswer."""
        self.require_states()
        until = self.now() + round((self.timeout_s if timeout_s is None else timeout_s) * 1e9)
        if self.asks_for_steps:
            came = yield from self._ask_for_step(make=self._pending or self._underway is not None, until=until)
        else:
            came = yield from self._wait_for_state(until)
        if came:
            self.returned = self.arrivals
            return self.newest
        if timeout_s is None:
            raise self._silence() if self.asks_for_steps else self._no_state()
        return None

    def fresh_state(self) -> Conversation[None]:
        """Waits for a state that comes from now on."""
        yield from self.wait_until(self.now())
        self.returned = self.arrivals
        if not (yield from self._wait_for_state(self.now() + round(self.timeout_s * 1e9))):
            raise self._no_state()

    def _no_state(self) -> NoAnswer:
        why = "it runs in lockstep, and its controller asks for no step" if self.lockstep else "look at `rigstep status`"
        return NoAnswer(f"no state came from {self.server} within {self.timeout_s:g} s: {why}")

    def require_states(self) -> None:
        """Raises RigstepError for a console, which receives none."""
        self.check()
        if self.role == wire.CONSOLE:
            raise RigstepError(f"{self.server} sends no states to a console: connect with role='observer'")

    # --- lockstep

    def _ask_for_step(self, make: bool, until: int) -> Conversation[bool]:
        """Asks for the next step, or (make: False) for the last state again, until it is answered.

        The inputs of a request stay as they are until it is answered, so that what was sent is what was applied.
        """
        self.check()
        if make and self._underway is None:
            self._sequence = self._last_step + 1
            self._underway, self._pending = self._input_frame(self._sequence), False
        frame = self._underway if make else self._input_frame(self._last_step)
        arrived = self.arrivals
        self._refusal_in_session = None
        while True:
            self.put(input=frame)
            repeat = min(self.now() + STEP_AGAIN_NS, until)
            while True:
                yield repeat
                self.check()
                if self._refusal_in_session is not None:
                    raise self._refusal_in_session
                if self.newest is not None and self.arrivals > arrived:
                    if not make or self.newest.step == frame.sequence or self.newest.stands:
                        self._underway = None if make else self._underway
                        return True
                if self.now() >= repeat:
                    break
            if self.now() >= until:
                return False

    @property
    def asks_for_steps(self) -> bool:
        """Lockstep, and this rig has the clock."""
        return self.lockstep and bool(self.role == wire.CONTROLLER)

    def make_step(self) -> Conversation[None]:
        """Makes one step."""
        if not (yield from self._ask_for_step(make=True, until=self.now() + round(self.timeout_s * 1e9))):
            raise self._silence()

    def forget_request(self) -> None:
        """No step is made because of a send() before: its inputs are those of the next step that is asked for."""
        self._pending = False

    def present_state(self) -> Conversation[None]:
        """The state as it is, after the step that is under way if one is."""
        until = self.now() + round(self.timeout_s * 1e9)
        if not (yield from self._ask_for_step(make=self._underway is not None, until=until)):
            raise self._silence()

    # --- requests

    def ask(
        self, request: Callable[[], None], answer: Callable[[], Any], timeout_s: float | None = None
    ) -> Conversation[Any]:
        """Sends a request until `answer` gives what it asked for, not None. Raises Refused or NoAnswer."""
        self.check()
        until = self.now() + round((self.timeout_s if timeout_s is None else timeout_s) * 1e9)
        self._refusal_in_session = None
        while self.now() < until:
            request()
            repeat = min(self.now() + REPEAT_NS, until)
            while self.now() < repeat:
                yield repeat
                self.check()
                if (got := answer()) is not None:
                    return got
                if self._refusal_in_session is not None:
                    raise self._refusal_in_session
        raise self.no_answer()

    def _report(self) -> Any:
        return self._answers.pop("status", None)

    def _query(self) -> None:
        self.put(status_query=wire.StatusQuery())

    def status(self) -> Conversation[Status]:
        """The server's report."""
        self._answers.pop("status", None)
        report = yield from self.ask(self._query, self._report)
        return status_of(report)

    def reset_fault(self) -> Conversation[bool]:
        """False: no fault is latched."""
        self._answers.pop("status", None)
        before = yield from self.ask(self._query, self._report)
        if before.loop_state != wire.FAULTED:
            return False

        def cleared() -> Any:  # the loop clears it at its next step
            report = self._report()
            same = report and report.loop_state == wire.FAULTED and report.fault_number == before.fault_number
            return None if same else report

        yield from self.ask(lambda: self.put(reset_fault={"fault_number": before.fault_number}), cleared)
        return True

    def command(self, what: str, steps: int) -> Conversation[Status]:
        """The report after the transition."""
        if what not in COMMANDS:
            raise ValueError(f'"{what}" is no command: give one of {", ".join(COMMANDS)}')
        return (yield from self._transition(COMMANDS[what], steps, 0))

    def _transition(self, kind: int, steps: int, transfer: int) -> Conversation[Status]:
        self._answers.pop("status", None)
        before = yield from self.ask(self._query, self._report)
        request = {"kind": kind, "steps": steps, "transitions": before.transitions, "transfer": transfer}

        def made() -> Any:  # the loop makes it at its next step
            report = self._report()
            return report if report and report.transitions != before.transitions else None

        return status_of((yield from self.ask(lambda: self.put(command=request), made)))

    def snapshot(self) -> Conversation[bytes]:
        """The bytes of a snapshot file."""
        transfer = int.from_bytes(os.urandom(8), "little") | 1
        found = b""
        total = 1
        while len(found) < total:
            query = {"transfer": transfer, "offset": len(found)}

            def came() -> Any:  # without data: the loop makes it at its next step
                piece = self._answers.pop("snapshot_piece", None)
                fits = piece and piece.transfer == transfer and piece.offset == len(found) and piece.data
                return piece if fits else None

            piece = yield from self.ask(lambda: self.put(snapshot_query=query), came)
            total = piece.total
            found += piece.data
        return found

    def reset_to_snapshot(self, data: bytes) -> Conversation[Status]:
        """The report after the reset to a snapshot file."""
        data = bytes(data)
        if not data.startswith(SNAPSHOT_BEGIN):
            raise ValueError(f"{len(data)} bytes that are no snapshot: give what snapshot() returned, or a file of `rigstep snapshot`")
        transfer = int.from_bytes(os.urandom(8), "little") | 1
        offset = 0
        while offset < len(data):
            end = min(offset + SNAPSHOT_PIECE, len(data))
            request = {"transfer": transfer, "offset": offset, "total": len(data), "data": data[offset:end]}

            def arrived() -> Any:
                receipt = self._answers.pop("snapshot_piece", None)
                return receipt if receipt and receipt.transfer == transfer and receipt.offset == end else None

            yield from self.ask(lambda: self.put(snapshot_piece=request), arrived)
            offset = end
        return (yield from self._transition(wire.Command.RESET_TO_FILE, 0, transfer))

    def parameters(self) -> Conversation[tuple[Parameter, ...]]:
        """All of them, with the values that act now."""
        found: list[Parameter] = []
        total = 1
        while len(found) < total:
            query = {"first": len(found)}

            def answer() -> Any:
                page = self._answers.pop("parameters", None)
                fits = page and page.first == len(found) and (page.parameter or page.total <= len(found))
                return page if fits else None

            page = yield from self.ask(lambda: self.put(parameter_query=query), answer)
            total = page.total
            found += [
                Parameter(each.name, each.unit, each.value, each.minimum, each.maximum, each.tunable)
                for each in page.parameter
            ]
        return tuple(found)

    def set_parameters(self, values: Mapping[str, float], ramp_steps: int) -> Conversation[int]:
        """The first step that they act in."""
        request = int.from_bytes(os.urandom(8), "little") | 1
        setting = [{"name": name, "value": float(value)} for name, value in values.items()]

        def acts() -> Any:  # the loop takes it at its next step
            report = self._answers.pop("parameters", None)
            return report.acts_from if report and report.request == request and report.acts_from else None

        message = {"request": request, "setting": setting, "ramp_steps": ramp_steps}
        return (yield from self.ask(lambda: self.put(parameter_set=message), acts))

    def write_black_box(self) -> Conversation[str]:
        """The name of the file, on the server's machine."""
        self._answers.pop("status", None)
        before = yield from self.ask(self._query, self._report)
        request = {"black_boxes": before.black_boxes}
        yield from self.ask(lambda: self.put(write_black_box=request), self._report)

        def written() -> Any:
            report = self._report()
            return report if report and report.black_boxes > before.black_boxes and report.black_box else None

        report = yield from self.ask(self._query, written, self.timeout_s + BLACK_BOX_S)
        if report.black_box_failed:
            raise RigstepError(f"{self.server} could not write its black box: {printable(report.black_box)}")
        return printable(report.black_box)

    def leave(self, words: str) -> None:
        """Says Goodbye, where a session is."""
        if not self.closed and self.welcome is not None and self.goodbye is None:
            self.put(goodbye={"text": words})
        self.closed = True


class Turns:
    """The turns of a loop at absolute instants. Those that are missed are skipped. In lockstep each makes one step."""

    def __init__(self, session: Session, rate: float | None, duration: float | None):
        session.require_states()
        for what, number in (("rate", rate), ("duration", duration)):
            if number is not None and not (math.isfinite(number) and number > 0.0):
                raise ValueError(f"{what} is {number}: give a positive number, or None")
        self._session = session
        self._steps = session.asks_for_steps
        period = session.period_ns * 1e-9
        if rate is None and not self._steps:
            rate = min(1.0 / period, FASTEST_HZ)
        self._interval_ns = 1e9 / rate if rate else 0.0
        turn = period if self._steps else self._interval_ns * 1e-9
        self._last = math.inf if duration is None else max(round(duration / turn), 1)
        self._begun = False
        self._turn = 0  # at its instant; those that were skipped are counted
        self._steps_made = 0
        self._start = 0
        session.figures = Figures()

    def next(self) -> Conversation[State | None]:
        """The newest state at the next turn. None: the duration is over."""
        session = self._session
        if not self._begun:
            yield from self._begin()
        elif self._steps:
            if self._steps_made >= self._last:
                session.forget_request()
                return None
            if self._interval_ns:
                yield from session.wait_until(self._next_due())
            yield from session.make_step()
            self._steps_made += 1
        else:
            due = self._next_due()
            yield from session.wait_until(min(due, self._due(self._last)))
            if self._turn >= self._last:
                return None
        session.returned = session.arrivals
        session.figures.turns += 1
        return session.newest

    def _begin(self) -> Conversation[None]:
        session = self._session
        if self._steps:
            yield from session.present_state()
            self._start = session.now()
        else:
            yield from session.fresh_state()
            # a while after the states, so that none comes just too late
            self._start = session.state_came_ns + round(PHASE * min(session.period_ns, self._interval_ns))
            yield from session.wait_until(self._start)
        self._begun = True

    def _due(self, turn: float) -> int:
        return self._start + round(turn * self._interval_ns) if turn < math.inf else 2**62

    def _next_due(self) -> int:
        """Goes to the next turn that is not over, and tells when it begins."""
        self._turn += 1
        behind = int((self._session.now() - self._start) // self._interval_ns) - self._turn
        behind = behind if self._steps else min(behind, int(min(self._last, 2**62)) - self._turn)
        if behind > 0:
            self._turn += behind
            self._session.figures.missed_turns += 0 if self._steps else behind
        return self._due(self._turn)
