"""What a server tells: channels, states, its status; and the figures of a loop."""

from __future__ import annotations

import difflib
import enum
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rigstep.errors import UnknownChannel, printable
from rigstep.frame import Clock
from rigstep.link import wire


@dataclass(frozen=True, slots=True)
class Channel:
    """An input or output of the mechanism."""

    name: str
    unit: str
    """Of its values, "1" without dimension."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the mechanism."""

    name: str
    unit: str
    value: float
    """That acts now."""
    minimum: float
    maximum: float
    tunable: bool
    """Else fixed: it was given before the start."""


class StepStatus(enum.IntEnum):
    """How a step ended. From DIVERGED on it failed, and the last good state is repeated."""

    OK = 0
    NOT_CONVERGED = 1
    DIVERGED = 2
    SINGULAR = 3
    NOT_FINITE = 4
    OUTPUT_NOT_FINITE = 5


class Flags(enum.IntFlag):
    """What else holds for a step."""

    STALE_INPUT = 1
    """No new inputs came for as long as the rig file allows: its rules apply."""
    OVERRUN = 2
    """A deadline was missed just before."""
    RECORD_LOST = 4
    """The recording lost a step."""
    NOT_CONVERGED = 8
    FAULTED = 16
    """A fault is latched: the last good state is repeated until the fault is reset."""
    NO_INPUT = 32
    """No input came so far."""
    INPUT_LIMITED = 64
    """An input was limited to its range or rate."""
    MISSED_TOO_OFTEN = 128
    """Faulted since too many deadlines were missed."""
    READY = 256
    """Before the first step from a start: time stands, step and state are repeated."""
    HOLDING = 512
    """Time stands, step and state are repeated."""
    CONTROL_LOST = 1024
    """Faulted since the rig in control has left or fallen silent."""
    INACCURATE = 2048
    """The estimated error of the step is above the rig file's limit; its result is used."""


def nearest_names(name: str, names: Iterable[str], most: int = 12) -> str:
    """The names that exist, the nearest first, for a message."""
    ranked = sorted(names, key=lambda each: -difflib.SequenceMatcher(None, name.lower(), each.lower()).ratio())
    more = f" and {len(ranked) - most} more" if len(ranked) > most else ""
    return ", ".join(f'"{each}"' for each in ranked[:most]) + more if ranked else "none"


@dataclass(frozen=True, slots=True)
class State:
    """The mechanism after a step. state["angle"] is the value of an output, in the unit of its channel."""

    step: int
    """Steps since the start of the server."""
    sim_time_ns: int
    """Simulated time [ns], exactly step times period."""
    status: StepStatus
    flags: Flags
    input_age_steps: int
    """Steps since the newest input came."""
    sequence: int
    """Of the newest input that was used, 0 before the first. In lockstep the number of the step."""
    values: tuple[float, ...]
    """Of the outputs, in their order and units."""
    _index: Mapping[str, int] = field(repr=False, compare=False)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.sim_time_ns / 1e9

    def __getitem__(self, name: str) -> float:
        try:
            return self.values[self._index[name]]
        except KeyError:
            raise UnknownChannel(
                f'no output is called "{name}": the outputs are {nearest_names(name, self._index)}'
            ) from None

    def as_dict(self) -> dict[str, float]:
        """The outputs by name, in their units."""
        return dict(zip(self._index, self.values))

    @property
    def faulted(self) -> bool:
        """A fault is latched: this is the last good state."""
        return bool(self.flags & Flags.FAULTED)

    @property
    def stands(self) -> bool:
        """Time stands: the run is ready, holding or faulted, and this state is repeated."""
        return bool(self.flags & (Flags.READY | Flags.HOLDING | Flags.FAULTED))

    @property
    def input_stale(self) -> bool:
        """No new inputs came for as long as the rig file allows."""
        return bool(self.flags & Flags.STALE_INPUT)

    @property
    def no_input(self) -> bool:
        """No input came so far."""
        return bool(self.flags & Flags.NO_INPUT)

    @property
    def input_limited(self) -> bool:
        """An input was limited to its range or rate."""
        return bool(self.flags & Flags.INPUT_LIMITED)

    @property
    def overrun(self) -> bool:
        """The server missed a deadline just before this step."""
        return bool(self.flags & Flags.OVERRUN)

    @property
    def not_converged(self) -> bool:
        """The step did not converge within its iterations; its result is used."""
        return bool(self.flags & Flags.NOT_CONVERGED)

    @property
    def inaccurate(self) -> bool:
        """The estimated error of the step is above the rig file's limit; its result is used."""
        return bool(self.flags & Flags.INACCURATE)


@dataclass(frozen=True, slots=True)
class Participant:
    """A rig, as the server sees it."""

    name: str
    address: str
    """Host and port."""
    product_version: str
    silent: float
    """[s] Since its last datagram."""
    key_name: str
    """Of its key in the key file; empty: without a key."""
    clock: Clock | None
    """Its clock minus the server's. None: not known yet."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Of a quantity over the run. Its name tells the unit: "step_ns"."""

    count: int
    p50: int
    p99: int
    p999: int
    max: int


@dataclass(frozen=True, slots=True)
class Status:
    """StatusReport of proto/wire.proto."""

    product_version: str
    mechanism: str
    mechanism_id: int
    period: float
    """[s]"""
    loop_state: str
    """"RUNNING", "FAULTED", "READY", "HOLDING", or what proto/wire.proto calls another one."""
    transitions: int
    """Of the run so far, from one of these to another."""
    step: int
    fault_number: int
    """Faults since the start."""
    fault: str
    """The latched fault, for people; empty: none is."""
    authenticated: bool
    """Rigs need a key."""
    timeout: float
    """[s] After which a silent rig is dropped."""
    controller: Participant | None
    observers: int
    observer: tuple[Participant, ...]
    """As many of them as fit the report."""
    counters: Mapping[str, int]
    """Of the loop and of datagrams."""
    refused: Mapping[str, int]
    """Datagrams refused, by reason."""
    distributions: Mapping[str, Distribution]
    lockstep: bool
    black_box: str
    """The newest file, or why it could not be written, for people."""
    black_boxes: int
    """Written since the start, those that failed included."""
    black_box_failed: bool
    recording_error: str
    """Why the recording ended early, for people; empty: it did not."""
    is_cut: bool
    """The report did not fit a datagram: texts are cut, entries may be missing."""

    @property
    def faulted(self) -> bool:
        """A fault is latched."""
        return self.loop_state == "FAULTED"


def _participant(message: Any) -> Participant:
    clock = Clock(message.clock.offset_ns * 1e-9, message.clock.uncertainty_ns * 1e-9) if message.HasField("clock") else None
    return Participant(
        printable(message.rig_name), printable(message.address), printable(message.product_version),
        message.silent_ns * 1e-9, printable(message.key_name), clock)  # fmt: skip


def status_of(report: Any) -> Status:
    """The Status of a StatusReport."""
    state = report.loop_state
    known = wire.LoopState.DESCRIPTOR.values_by_number
    return Status(
        product_version=printable(report.product_version),
        mechanism=printable(report.mechanism),
        mechanism_id=report.mechanism_id,
        period=report.period_ns * 1e-9,
        loop_state=known[state].name if state in known else f"UNKNOWN_{state}",
        transitions=report.transitions,
        step=report.step,
        fault_number=report.fault_number,
        fault=printable(report.fault),
        authenticated=report.authenticated,
        timeout=report.timeout_steps * report.period_ns * 1e-9,
        controller=_participant(report.controller) if report.HasField("controller") else None,
        observers=report.observers,
        observer=tuple(_participant(each) for each in report.observer),
        counters={printable(each.name): each.count for each in report.counter},
        refused={printable(each.name): each.count for each in report.refused},
        distributions={
            printable(each.name): Distribution(each.count, each.p50, each.p99, each.p999, each.max)
            for each in report.distribution
        },
        lockstep=report.lockstep,
        black_box=printable(report.black_box),
        black_boxes=report.black_boxes,
        black_box_failed=report.black_box_failed,
        recording_error=printable(report.recording_error),
        is_cut=report.is_cut,
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of a loop or run."""

    turns: int
    missed_turns: int
    """Skipped, since an earlier turn took too long."""
    states: int
    """That came."""
    lost: int
    """Steps whose states did not come."""
    round_trip_p50: float | None
    """[s] From sending an input to the state that used it first, within 1 %. None: no input was used."""
    round_trip_p99: float | None
    """[s]"""
    largest_input_age: int
    """[steps] Since the first own input was used."""
    faulted: bool
    """A fault was latched at some time."""

    def as_dict(self) -> dict[str, Any]:
        """For json.dumps()."""
        return asdict(self)


class Figures:
    """Counts what a Summary tells, in memory that does not grow with the time."""

    def __init__(self) -> None:
        self.turns = self.missed_turns = self.states = self.lost = self.largest_input_age = 0
        self.faulted = False
        self._last_step: int | None = None
        self._trips: Counter[int] = Counter()  # by the logarithm of the round trip, in hundredths

    def add_state(self, state: State) -> None:
        if self._last_step is not None and state.step > self._last_step:
            self.lost += state.step - self._last_step - 1
        self._last_step = state.step
        self.states += 1
        self.faulted = self.faulted or state.faulted

    def add_trip(self, trip_ns: int) -> None:
        self._trips[round(100.0 * math.log(max(trip_ns, 1)))] += 1

    def _trip(self, share: float) -> float | None:
        rank = math.ceil(share * self._trips.total())
        for key in sorted(self._trips):
            rank -= self._trips[key]
            if rank <= 0:
                return 1e-9 * math.exp(key / 100.0)
        return None

    def summary(self) -> Summary:
        return Summary(
            self.turns, self.missed_turns, self.states, self.lost, self._trip(0.5), self._trip(0.99),
            self.largest_input_age, self.faulted)  # fmt: skip
