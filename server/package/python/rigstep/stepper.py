"""A mechanism that this process steps itself, by librigstep.so.1: no service, no clock. Needs numpy."""

from __future__ import annotations

import ctypes
import dataclasses
import math
import os
import pathlib
from collections.abc import Iterator, Mapping
from ctypes import POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rigstep.errors import MechanismError, RigstepError, StepFailed, UnknownChannel
from rigstep.state import Channel, StepStatus

ABI = 1  # of rigstep.h
_INPUT, _OUTPUT, _PARAMETER, _BODY = range(4)
_FIRST_FAILURE = int(StepStatus.DIVERGED)
_FIRST_REFUSAL = 16


class _Parameter(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_double)]


class _Settings(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("period_ns", c_int64),
        ("iterations", c_int32),
        ("projection_passes", c_int32),
        ("relative_compliance", c_double),
        ("parameters", POINTER(_Parameter)),
        ("parameter_count", c_size_t),
        ("order", c_int32),
    ]


class _Info(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("unit", c_char_p),
        ("start", c_double),
        ("minimum", c_double),
        ("maximum", c_double),
        ("tunable", c_int32),
    ]


class _Report(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("step", c_uint64),
        ("time_ns", c_int64),
        ("state_hash", c_uint64),
        ("status", c_int32),
        ("body", c_int32),
        ("joint", c_int32),
        ("output", c_int32),
        ("last_increment", c_double),
        ("position_residual", c_double),
        ("velocity_residual", c_double),
        ("acceleration_residual", c_double),
        ("step_ns", c_int64),
        ("position_error", c_double),
        ("orientation_error", c_double),
        ("error_body", c_int32),
    ]


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A number of the mechanism that has a name. A tunable one may change between two steps."""

    name: str
    unit: str
    start: float
    minimum: float
    maximum: float
    tunable: bool


@dataclasses.dataclass(frozen=True)
class Report:
    """Of the last step. Residuals are the largest of a constraint; step_ns is the time that the step took.

    position_error [m] and orientation_error [rad] estimate the error that a step of order 4 has added, of the worst
    body; error_body is the index of that body. With order 2 they are -1.
    """

    step: int
    time_ns: int
    state_hash: int
    status: StepStatus
    body: int
    joint: int
    output: int
    last_increment: float
    position_residual: float
    velocity_residual: float
    acceleration_residual: float
    step_ns: int
    position_error: float
    orientation_error: float
    error_body: int


def _candidates() -> Iterator[str]:
    """Where the library may be: beside the installed package, in the build, where the loader looks."""
    package = pathlib.Path(__file__).resolve().parent
    for folder in ("lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"):
        yield str(package.parents[3] / folder / "librigstep.so.1")
    yield str(package.parents[1] / "server/plugin/librigstep.so.1")
    yield "librigstep.so.1"


def _load(path: str | os.PathLike[str] | None) -> ctypes.CDLL:
    reasons = []
    for name in _candidates() if path is None else [os.fspath(path)]:
        try:
            library = ctypes.CDLL(name)
        except OSError as error:
            reasons.append(str(error))
            continue
        library.rigstep_abi.restype = c_uint32
        if (abi := library.rigstep_abi()) != ABI:
            raise RigstepError(f"{name} has the interface {abi}, this package needs {ABI}: take both from one release")
        return _declare(library)
    raise RigstepError(f"librigstep.so.1 cannot be loaded ({reasons[-1]}): install Rigstep, or name it with library=")


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    double_p = POINTER(c_double)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "create_from_file": (c_void_p, [c_char_p, POINTER(_Settings), c_char_p, c_size_t]),
        "create_from_text": (c_void_p, [c_char_p, c_size_t, POINTER(_Settings), c_char_p, c_size_t]),
        "create_from_snapshot": (c_void_p, [c_char_p, c_char_p, c_size_t]),
        "destroy": (None, [c_void_p]),
        "count": (c_size_t, [c_void_p, c_int32]),
        "describe": (c_int32, [c_void_p, c_int32, c_size_t, POINTER(_Info)]),
        "period_ns": (c_int64, [c_void_p]),
        "inputs": (c_void_p, [c_void_p]),
        "outputs": (c_void_p, [c_void_p]),
        "set_parameter": (c_int32, [c_void_p, c_size_t, c_double]),
        "get_parameter": (c_int32, [c_void_p, c_size_t, double_p]),
        "get_poses": (c_int32, [c_void_p, c_void_p, c_size_t]),
        "run": (c_int32, [c_void_p, c_uint64, c_void_p, c_void_p]),
        "get_report": (c_int32, [c_void_p, POINTER(_Report)]),
        "reset": (None, [c_void_p]),
        "state_size": (c_size_t, [c_void_p]),
        "save_state": (c_int32, [c_void_p, c_void_p, c_size_t]),
        "restore_state": (c_int32, [c_void_p, c_char_p, c_size_t]),
        "last_error": (c_char_p, [c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, f"rigstep_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class _Handle:
    """Destroys the stepper of the library when nobody uses it any more, arrays included."""

    def __init__(self, library: ctypes.CDLL, address: int):
        self.library, self.address = library, address

    def __del__(self) -> None:
        self.library.rigstep_destroy(self.address)


def _view(handle: _Handle, address: int, count: int) -> NDArray[np.float64]:
    memory = (c_double * count).from_address(address)
    memory._handle = handle  # type: ignore[attr-defined]  # lives as long as the array
    return np.frombuffer(memory, dtype=np.float64) if count > 0 else np.empty(0)


class Stepper:
    """A mechanism in this process, with the bits of `rigstep serve`.

        with rigstep.Stepper("mechanism.textproto", period=0.001) as cart:
            for _ in range(3000):
                cart["force"] = 100.0 * cart["angle"] + 22.0 * cart["angle_rate"]
                cart.step()

    `inputs` and `outputs` are arrays on the stepper's own memory, in the order of `input_channels` and
    `output_channels`; nothing is copied. One thread at a time uses a stepper.

    mechanism: the name of a mechanism file. period: of a step [s]. order: of accuracy, 2 (0 as well) or 4. parameters:
    those that have other values than in the file. snapshot: instead of all these the name of a file of
    `rigstep snapshot`, to go on from. library: the path of librigstep.so.1, where it is not found by itself. Raises
    MechanismError.
    """

    def __init__(
        self,
        mechanism: str | os.PathLike[str] | None = None,
        *,
        text: str | None = None,
        snapshot: str | os.PathLike[str] | None = None,
        period: float = 0.001,
        iterations: int = 0,
        projection_passes: int = 0,
        relative_compliance: float = 0.0,
        order: int = 0,
        parameters: Mapping[str, float] | None = None,
        library: str | os.PathLike[str] | None = None,
    ):
        if [mechanism, text, snapshot].count(None) != 2:
            raise ValueError("a stepper needs the name of a mechanism file, its text or a snapshot: give one of them")
        loaded = _load(library)
        given = parameters or {}
        values = (_Parameter * len(given))(*(_Parameter(name.encode(), value) for name, value in given.items()))
        settings = _Settings(
            ctypes.sizeof(_Settings), round(period * 1e9), iterations, projection_passes, relative_compliance, values,
            len(given), order,
        )
        message = ctypes.create_string_buffer(4096)
        if snapshot is not None:
            address = loaded.rigstep_create_from_snapshot(os.fsencode(snapshot), message, len(message))
        elif text is not None:
            content = text.encode()
            address = loaded.rigstep_create_from_text(content, len(content), byref(settings), message, len(message))
        else:
            address = loaded.rigstep_create_from_file(
                os.fsencode(mechanism), byref(settings), message, len(message)  # type: ignore[arg-type]
            )
        if not address:
            raise MechanismError(message.value.decode(errors="replace"))
        self._library, self._address, self._handle = loaded, address, _Handle(loaded, address)
        self.input_channels = tuple(Channel(*names) for names in self._names(_INPUT))
        self.output_channels = tuple(Channel(*names) for names in self._names(_OUTPUT))
        self.parameters = tuple(
            Parameter(i.name.decode(), i.unit.decode(), i.start, i.minimum, i.maximum, bool(i.tunable))
            for i in self._describe(_PARAMETER)
        )
        self.bodies = tuple(name for name, _ in self._names(_BODY))
        self.inputs = _view(self._handle, loaded.rigstep_inputs(address), len(self.input_channels))
        self.outputs = _view(self._handle, loaded.rigstep_outputs(address), len(self.output_channels))
        self.outputs.flags.writeable = False
        self._input = {channel.name: i for i, channel in enumerate(self.input_channels)}
        self._output = {channel.name: i for i, channel in enumerate(self.output_channels)}
        self._parameter = {parameter.name: i for i, parameter in enumerate(self.parameters)}

    def __enter__(self) -> Stepper:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The stepper is not used any more. Its memory goes when no array of it is left."""
        self._handle = None  # type: ignore[assignment]
        self._address = 0

    def _check(self, status: int) -> None:
        if status >= _FIRST_FAILURE:
            text = self._library.rigstep_last_error(self._address).decode(errors="replace")
            raise RigstepError(text) if status >= _FIRST_REFUSAL else StepFailed(text)

    def _alive(self) -> int:
        if not self._address:
            raise RigstepError("this stepper is closed: make a new one")
        return self._address

    def _describe(self, kind: int) -> list[_Info]:
        infos = []
        for index in range(self._library.rigstep_count(self._alive(), kind)):
            info = _Info(ctypes.sizeof(_Info))
            self._check(self._library.rigstep_describe(self._address, kind, index, byref(info)))
            infos.append(info)
        return infos

    def _names(self, kind: int) -> list[tuple[str, str]]:
        return [(info.name.decode(), info.unit.decode()) for info in self._describe(kind)]

    def _index(self, names: Mapping[str, int], name: str, kind: str) -> int:
        if (index := names.get(name)) is None:
            raise UnknownChannel(f'no {kind} is named "{name}": there are {", ".join(names) or "none"}')
        return index

    def __getitem__(self, name: str) -> float:
        """An output of the state as it is [unit of the channel]."""
        self._alive()
        return float(self.outputs[self._index(self._output, name, "output")])

    def __setitem__(self, name: str, value: float) -> None:
        """An input, held from the next step on [unit of the channel]."""
        self._alive()
        if not math.isfinite(value):
            raise ValueError(f"{name}: {value} is not finite: give a finite number")
        self.inputs[self._index(self._input, name, "input")] = value

    def step(self, steps: int = 1) -> StepStatus:
        """So many steps with the inputs held. Raises StepFailed; then the last good state stands."""
        status = self._library.rigstep_run(self._alive(), steps, None, None)
        self._check(status)
        return StepStatus(status)

    def run(self, steps: int, inputs: ArrayLike | None = None) -> NDArray[np.float64]:
        """The outputs after each of `steps` steps: (steps, outputs). inputs: (steps, inputs), row k for step k.

        Raises StepFailed; then the last good state stands.
        """
        outputs = np.empty((steps, len(self.output_channels)))
        applied = None
        if inputs is not None:
            applied = np.ascontiguousarray(inputs, dtype=np.float64)
            if applied.shape != (steps, len(self.input_channels)):
                raise ValueError(f"inputs: shape {applied.shape} instead of {(steps, len(self.input_channels))}")
        self._check(
            self._library.rigstep_run(
                self._alive(), steps, None if applied is None else applied.ctypes.data, outputs.ctypes.data
            )
        )
        return outputs

    def parameter(self, name: str) -> float:
        """Its value as it acts [unit of the parameter]."""
        value = c_double()
        index = self._index(self._parameter, name, "parameter")
        self._check(self._library.rigstep_get_parameter(self._alive(), index, byref(value)))
        return value.value

    def set_parameter(self, name: str, value: float) -> None:
        """Acts from the next step on. Raises RigstepError for one that is fixed and for a value out of range."""
        index = self._index(self._parameter, name, "parameter")
        self._check(self._library.rigstep_set_parameter(self._alive(), index, value))

    def save(self) -> bytes:
        """The state with inputs, outputs and parameters, for restore() of any stepper of the same mechanism."""
        room = ctypes.create_string_buffer(self._library.rigstep_state_size(self._alive()))
        self._check(self._library.rigstep_save_state(self._address, room, len(room)))
        return room.raw

    def restore(self, saved: bytes) -> None:
        """Goes on from there with the bits of a run that never stopped. Raises RigstepError for other bytes."""
        self._check(self._library.rigstep_restore_state(self._alive(), saved, len(saved)))

    def reset(self) -> None:
        """The state and the parameters of the start; inputs become zero."""
        self._library.rigstep_reset(self._alive())

    @property
    def poses(self) -> NDArray[np.float64]:
        """(bodies, 7) mass centre x y z [m] and Euler parameters e0 e1 e2 e3 from body to world."""
        poses = np.empty((len(self.bodies), 7))
        self._check(self._library.rigstep_get_poses(self._alive(), poses.ctypes.data, poses.size))
        return poses

    @property
    def report(self) -> Report:
        report = _Report(ctypes.sizeof(_Report))
        self._check(self._library.rigstep_get_report(self._alive(), byref(report)))
        values = {field.name: getattr(report, field.name) for field in dataclasses.fields(Report)}
        values["status"] = StepStatus(report.status)
        return Report(**values)

    @property
    def period(self) -> float:
        """Of a step [s]."""
        return float(self._library.rigstep_period_ns(self._alive())) / 1e9

    @property
    def time(self) -> float:
        """Of the state [s]."""
        return self.report.time_ns / 1e9
