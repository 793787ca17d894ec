"""Rigstep for Python: drive a mechanism that `rigstep serve` steps, step one yourself, and read recordings.

    import rigstep

    with rigstep.connect() as rig:
        summary = rig.run(lambda state: {"force": -80.0 * state["x"]}, duration=10.0)

    recording = rigstep.open("run.mcap")
    print(recording.time, recording["x"])

    with rigstep.Stepper("mechanism.textproto") as stepper:
        trajectory = stepper.run(1000)

rigstep.aio has the same rig for asyncio. Units are those of the channels; times are in seconds unless a name says otherwise.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from rigstep.errors import (
    Disconnected,
    GoodbyeReason,
    MechanismError,
    NoAnswer,
    RecordingError,
    RefusalReason,
    Refused,
    RigstepError,
    StepFailed,
    UnknownChannel,
)
from rigstep.frame import Clock
from rigstep.rig import Rig, connect
from rigstep.state import Channel, Distribution, Flags, Parameter, Participant, State, Status, StepStatus, Summary

if TYPE_CHECKING:
    from rigstep import aio
    from rigstep.recording import Recording
    from rigstep.stepper import Stepper

# what `from rigstep import *` takes: not `open`, which is one of Python, nor what is loaded when it is asked for
__all__ = [
    "Channel",
    "Clock",
    "Disconnected",
    "Distribution",
    "Flags",
    "GoodbyeReason",
    "MechanismError",
    "NoAnswer",
    "Parameter",
    "Participant",
    "RecordingError",
    "RefusalReason",
    "Refused",
    "Rig",
    "RigstepError",
    "State",
    "Status",
    "StepFailed",
    "StepStatus",
    "Summary",
    "UnknownChannel",
    "connect",
]


def open(path: str | os.PathLike[str]) -> Recording:
    """Reads a recording into arrays. Raises RecordingError, and RigstepError where numpy is not installed."""
    recording: Recording = __getattr__("Recording")(path)
    return recording


def __getattr__(name: str) -> Any:
    """What is loaded when it is asked for: asyncio takes a while, Recording and Stepper need numpy."""
    if name == "aio":
        return importlib.import_module("rigstep.aio")
    if name not in ("Recording", "Stepper"):
        raise AttributeError(f"module 'rigstep' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(f"rigstep.{name.lower()}"), name)
    except ImportError as error:
        raise RigstepError(f"rigstep.{name} needs numpy ({error}): install python3-numpy") from error
