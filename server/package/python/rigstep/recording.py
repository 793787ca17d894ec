"""Recordings as arrays. Needs numpy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from numpy.typing import NDArray

from rigstep._messages import parse, recording_pb2
from rigstep.columns import Columns, decode, leaves
from rigstep.errors import UnknownChannel
from rigstep.mcap import Batch, McapReader, Topic
from rigstep.state import Flags, StepStatus, nearest_names

messages: Any = recording_pb2
Floats = NDArray[np.float64]

TYPES = {
    "/header": "rigstep.wire.RecordingHeader",
    "/steps": "rigstep.wire.RecordedStep",
    "/outputs": "rigstep.run.Outputs",
    "/bodies": "rigstep.run.Bodies",
    "/footer": "rigstep.wire.RecordingFooter",
}
FORMAT = 1  # RecordingHeader.format_version
LONGEST_STEP_NS = 1_000_000_000
MOST_STEPS = 1_000_000_000_000
MOST_INPUTS = 4096
MOST_EQUAL_NAMES = 8
MOST_NUMBERS_PER_BYTE = 8  # of the file; more are claimed, not recorded
SPARE_NUMBERS = 10_000_000
LONGEST_SEARCH = 1 << 20  # for the name in a mechanism file [characters]
TOKEN = re.compile(r"""#[^\n]*|[{}<>]|[A-Za-z_]\w*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")  # of protobuf text format
OFFSET = ""  # among columns, which are named like fields: where each message is in the file [bytes]


TRANSITIONS = ("none", "control gained", "run", "hold", "step", "steps done", "control lost", "snapshot", "reset to start",
               "reset to snapshot", "fault", "clear fault", "parameters", "reset to file")  # fmt: skip


class Event(NamedTuple):
    """What led from one state of the run to another."""

    step: int
    """The step after which it happened."""
    time: float
    """[s] of simulated time."""
    what: str
    """As in server/live/README.md: "hold", "reset to start" ..."""


class Fault(NamedTuple):
    """A fault that stopped the run."""

    step: int
    """The last good one."""
    time: float
    """[s] of simulated time."""
    status: StepStatus
    """Of the step that failed; OK where inputs or missed deadlines were the reason."""
    flags: Flags


@dataclass(frozen=True)
class Timing:
    """How each step kept its deadline."""

    wake_up_ns: NDArray[np.uint64]
    """From the deadline to the start of the step [ns]."""
    step_ns: NDArray[np.uint64]
    """From the inputs to the outputs [ns]."""
    missed_deadlines: NDArray[np.uint64]
    """Skipped just before the step."""


@dataclass(frozen=True)
class Body:
    """Motion of a mass centre and its frame, at the instants of Recording.bodies_time."""

    position: Floats
    """(n, 3) [m], world frame."""
    orientation: Floats
    """(n, 4) Euler parameters w x y z, body to world."""
    velocity: Floats
    """(n, 3) [m/s], world frame."""
    angular_velocity: Floats
    """(n, 3) [rad/s], body frame."""
    acceleration: Floats
    """(n, 3) [m/s^2], world frame."""
    angular_acceleration: Floats
    """(n, 3) [rad/s^2], body frame."""


class Recording:
    """A recorded run. Each array has a value for each step that ran. What stopped it is in `faults`, when it was held or set
    back in `events`.

    recording["angle"] is the array of an input as it was applied, or of an output after the step, in the unit of the
    channel: recording.units["angle"]. Where outputs were recorded less often than every step (outputs_every in the rig
    file), the steps between hold NaN. An output that has the name of an input is called "output.NAME".

    A file that is damaged or torn is read up to the damage, and `damage` tells where that is.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._reader = McapReader(path, TYPES)
        self.path = self._reader.path
        self.header: Any = None
        """RecordingHeader of proto/recording.proto."""
        self.footer: Any = None
        """RecordingFooter; None: the run did not end cleanly."""
        self._numbers = 0
        self._last_step = 0
        parts: dict[str, list[Columns]] = {"/steps": [], "/outputs": [], "/bodies": []}
        self._classes: dict[str, Any] = {"/steps": messages.RecordedStep}
        self._counts: dict[str, dict[str, int]] = {topic: {} for topic in parts}  # of repeated fields
        for batch in self._reader.batches():
            if self.header is None:
                self._take_header(batch)
            for topic, columns in self._decode(batch).items():
                parts[topic].append(columns)
            if self._reader.damage:
                break
        self.damage: str | None = self._reader.damage
        """Where and why reading stopped; None: all of the file was read."""
        self._take_steps(_joined(parts["/steps"], self._empty("/steps")))
        self._take_outputs(_joined(parts["/outputs"], self._empty("/outputs")))
        self._take_bodies(_joined(parts["/bodies"], self._empty("/bodies")))

    # --- load

    def _take_header(self, batch: Batch) -> None:
        found = batch.topics.get("/header")
        if found is None or batch.first != "/header":
            if self._reader.damage:
                raise self._reader.error(
                    self._reader.damage, "nothing can be read without the header; copy the file again or record again"
                )
            raise self._reader.error("no header of Rigstep at the front", "name a recording of Rigstep")
        self.header = parse(messages.RecordingHeader, batch.data[found.start[0] : found.end[0]])
        if self.header is None:
            raise self._reader.error(f"byte {found.offset[0]}: the header cannot be decoded", "copy the file again")
        if self.header.format_version != FORMAT:
            raise self._reader.error(
                f"recording format {self.header.format_version}, this version reads format {FORMAT}",
                "use the version that wrote it",
            )
        if (
            not 0 < self.header.dt_ns <= LONGEST_STEP_NS
            or len(self.header.input_channel) > MOST_INPUTS
            or self.header.start_step > MOST_STEPS
        ):
            raise self._reader.error("the header has a number that is not possible", "copy the file again")
        for topic in ("/outputs", "/bodies"):
            self._classes[topic] = self._class_of(TYPES[topic])
        self._counts["/steps"] = {"input": len(self.header.input_channel)}

    def _class_of(self, name: str) -> Any:
        """The class of a message, by the schema in the file."""
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(self._reader.schemas[name])
            pool = descriptor_pool.DescriptorPool()
            for file in files.file:
                pool.AddSerializedFile(file.SerializeToString())
            descriptor = pool.FindMessageTypeByName(name)
            if any(each.label == each.LABEL_REPEATED for each in descriptor.fields):
                raise ValueError("a field is repeated")
            if hasattr(message_factory, "GetMessageClass"):
                return message_factory.GetMessageClass(descriptor)
            return message_factory.MessageFactory(pool).GetPrototype(descriptor)
        except Exception as error:  # of any kind: the schema comes from outside
            raise self._reader.error(f"the schema of {name} cannot be used ({error})", "copy the file again") from error

    def _decode(self, batch: Batch) -> dict[str, Columns]:
        """Columns of what is whole. The first message that is not is noted as damage."""
        found: dict[str, Columns] = {}
        damage: list[tuple[int, str]] = []
        for topic, message_class in self._classes.items():
            place = batch.topics.get(topic, Topic())
            start, end = np.array(place.start, np.int64), np.array(place.end, np.int64)
            self._numbers += len(start) * leaves(message_class.DESCRIPTOR, self._counts[topic])
            if self._numbers > MOST_NUMBERS_PER_BYTE * self._reader.size + SPARE_NUMBERS:
                raise self._reader.error("claims more numbers than such a file can hold", "copy the file again")
            found[topic], bad = decode(message_class, batch.data, start, end, self._counts[topic])
            found[topic][OFFSET] = np.array(place.offset, np.int64)
            if bad is not None:
                damage.append((place.offset[bad], f"the message on {topic} cannot be decoded"))
        steps = batch.topics.get("/steps", Topic())
        impossible = self._first_impossible(found["/steps"])
        if impossible is not None:
            damage.append((steps.offset[impossible], "the time of a step is not possible there"))
        if damage:
            offset, what = min(damage)
            self._reader.stop(offset, what)
            for topic, columns in found.items():
                found[topic] = _selected(columns, np.flatnonzero(columns[OFFSET] < offset))
        self._take_footer(batch)
        if len(found["/steps"]["step"]):
            self._last_step = int(found["/steps"]["step"][-1])
        return found

    def _first_impossible(self, steps: Columns) -> int | None:
        step, dt = steps["step"], np.uint64(self.header.dt_ns)
        before = np.concatenate([np.array([self._last_step], np.uint64), step[:-1]])
        wrong = (step < before) | (step > MOST_STEPS) | (steps["sim_time_ns"] != step * dt)
        return int(np.argmax(wrong)) if wrong.any() else None

    def _take_footer(self, batch: Batch) -> None:
        place = batch.topics.get("/footer")
        if place is None or self._reader.damage:
            return
        self.footer = parse(messages.RecordingFooter, batch.data[place.start[-1] : place.end[-1]])
        if self.footer is None:
            self._reader.stop(place.offset[-1], "the message on /footer cannot be decoded")

    def _empty(self, topic: str) -> Columns:
        none = np.array([], np.int64)
        return {**decode(self._classes[topic], bytes(16), none, none, self._counts[topic])[0], OFFSET: none}

    def _take_steps(self, columns: Columns) -> None:
        flags = columns["flags"].astype(np.uint32)
        stopped = np.flatnonzero(flags & Flags.FAULTED)
        self.faults: tuple[Fault, ...] = tuple(
            Fault(
                int(columns["step"][k]),
                int(columns["sim_time_ns"][k]) / 1e9,
                _status(int(columns["status"][k])),
                Flags(int(flags[k])),
            )
            for k in stopped
        )
        transition = columns["transition"].astype(np.uint32)
        self.events: tuple[Event, ...] = tuple(
            Event(
                int(columns["step"][k]),
                int(columns["sim_time_ns"][k]) / 1e9,
                TRANSITIONS[transition[k]] if transition[k] < len(TRANSITIONS) else "unknown",
            )
            for k in np.flatnonzero(transition)
        )
        is_step = ((flags & Flags.FAULTED) == 0) & (transition == 0)
        if not is_step.all():
            columns = _selected(columns, np.flatnonzero(is_step))
        self._offset: NDArray[np.int64] = columns[OFFSET]
        self.step: NDArray[np.int64] = columns["step"].astype(np.int64)
        """Number of each step."""
        self.time: Floats = columns["sim_time_ns"].astype(np.int64) / 1e9
        """Simulated time after each step [s]."""
        self.status: NDArray[np.uint32] = columns["status"].astype(np.uint32)
        """StepStatus of each step."""
        self.flags: NDArray[np.uint32] = columns["flags"].astype(np.uint32)
        """Flags of each step: recording.flags & rigstep.Flags.STALE_INPUT."""
        self.input_age: NDArray[np.uint32] = columns["input_age_steps"].astype(np.uint32)
        """Steps since the newest input came."""
        self.timing = Timing(columns["wake_up_ns"], columns["step_ns"], columns["missed_deadlines"])
        self.units: dict[str, str] = {}
        """Of each channel, by name; "1" without dimension."""
        self._values: dict[str, Floats] = {}
        for k, title in enumerate(self.header.input_channel):
            self._add_channel(title, np.ascontiguousarray(columns["input"][:, k]))
        self.inputs: tuple[str, ...] = tuple(self._values)
        """Names of the input channels."""

    def _add_channel(self, title: str, values: Floats) -> None:
        name, unit = _split(title)
        for _ in range(MOST_EQUAL_NAMES):
            if name not in self._values and name not in ("t", "step"):
                break
            name = "output." + name
        else:
            raise self._reader.error("several channels have one name", "copy the file again")
        self.units[name] = unit
        self._values[name] = values

    def _take_outputs(self, columns: Columns) -> None:
        step = columns["step"].astype(np.int64)
        place = np.searchsorted(columns[OFFSET], self._offset) - 1  # the outputs of a step stand before it
        held = np.flatnonzero(place >= 0)
        held = held[step[place[held]] == self.step[held]]
        all_there = len(step) == len(held) == len(place) and bool(np.all(place == np.arange(len(place))))
        recorded = self._classes["/outputs"].DESCRIPTOR.fields if self.header.outputs_every else []
        for field in recorded:
            if field.number > 2 and field.type == field.TYPE_DOUBLE:
                values = columns[field.name]
                if not all_there:
                    values = np.full(len(self.step), np.nan)
                    values[held] = columns[field.name][place[held]]
                self._add_channel(field.json_name, values)
        self.outputs: tuple[str, ...] = tuple(self._values)[len(self.inputs) :]
        """Names of the output channels that were recorded."""

    def _take_bodies(self, columns: Columns) -> None:
        self.bodies_time: Floats = columns["sim_time_ns"].astype(np.int64) / 1e9
        """Simulated time of each full state [s]: full_state_every in the rig file."""
        self.bodies: dict[str, Body] = {}
        """Motion of each body, by name."""
        for field in self._classes["/bodies"].DESCRIPTOR.fields:
            if field.number > 2 and field.type == field.TYPE_MESSAGE:
                self.bodies[field.json_name] = self._body(columns[field.name])

    def _body(self, columns: Columns) -> Body:
        def stacked(name: str, axes: str = "xyz") -> Floats:
            return np.stack([columns[name][axis] for axis in axes], axis=1)

        try:
            return Body(
                stacked("position"), stacked("orientation", "wxyz"), stacked("velocity"), stacked("angular_velocity"),
                stacked("acceleration"), stacked("angular_acceleration"))  # fmt: skip
        except (KeyError, TypeError, IndexError) as error:
            raise self._reader.error(f"a body on /bodies has no {error}", "use the version that wrote it") from error

    # --- use

    @property
    def mechanism(self) -> str:
        """Name of the mechanism."""
        name = _top_level_name(self.header.mechanism_text)
        return name or os.path.splitext(os.path.basename(self.header.mechanism_file))[0]

    @property
    def dt(self) -> float:
        """The step [s]."""
        return float(self.header.dt_ns / 1e9)

    @property
    def channels(self) -> tuple[str, ...]:
        """Inputs, then outputs."""
        return tuple(self._values)

    def __len__(self) -> int:
        return len(self.step)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Floats:
        found = self._values.get(name)
        if found is None:  # perhaps with its unit
            short, unit = _split(name)
            found = self._values.get(short) if self.units.get(short) == unit else None
        if found is None:
            raise UnknownChannel(
                f'no recorded channel of {self.path} is called "{name}": there are {nearest_names(name, self._values)}; '
                "an output that was not recorded comes by `rigstep export`"
            )
        return found

    def table(self, channels: Iterable[str] | None = None) -> NDArray[np.void]:
        """A structured array with a column "time" [s] and one for each channel, all where none is named.

        pandas.DataFrame() takes it. Raises UnknownChannel.
        """
        names = list(self._values) if channels is None else list(channels)
        columns = {"time": self.time, **{name: self[name] for name in names}}
        table = np.empty(len(self), [(name, np.float64) for name in columns])
        for name, values in columns.items():
            table[name] = values
        return table

    def __repr__(self) -> str:
        span = f"{self.time[0]:g} to {self.time[-1]:g} s" if len(self) else "no time"
        return f"<Recording of {self.mechanism}: {len(self)} steps, {span}, {len(self._values)} channels>"


def _status(number: int) -> StepStatus:
    return StepStatus(number) if number in set(StepStatus) else StepStatus.DIVERGED


def _split(title: str) -> tuple[str, str]:
    """Name and unit of "name [unit]"."""
    name, bracket, unit = title.rpartition(" [")
    return (name, unit[:-1]) if bracket and unit.endswith("]") else (title, "")


def _selected(columns: Columns, rows: NDArray[np.int64]) -> Columns:
    return {
        name: _selected(column, rows) if isinstance(column, dict) else column[rows] for name, column in columns.items()
    }


def _joined(parts: list[Columns], empty: Columns) -> Columns:
    """Columns of all batches, in their order."""
    if len(parts) < 2:
        return parts[0] if parts else empty
    joined: Columns = {}
    for name, column in empty.items():
        pieces = [part.pop(name) for part in parts]  # so that memory is needed twice for one column only
        joined[name] = _joined(pieces, column) if isinstance(column, dict) else np.concatenate(pieces)
    return joined


def _top_level_name(text: str) -> str:
    """The field `name` of a message in protobuf text format, not those of its parts."""
    depth, before = 0, ""
    for token in TOKEN.findall(text[:LONGEST_SEARCH]):
        if token[0] in "\"'" and before == "name" and depth == 0:
            return str(token[1:-1])
        depth += {"{": 1, "<": 1, "}": -1, ">": -1}.get(token, 0)
        before = before if token[0] == "#" else token
    return ""
