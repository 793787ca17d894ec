"""What this package raises. Each text says what, where, and what to do."""

from __future__ import annotations

import enum

MOST_TEXT = 1000  # of the server, in a message for people [characters]


class RigstepError(Exception):
    """Base of all errors of this package. The text says what, where, and what to do."""


class UnknownChannel(RigstepError, KeyError, ValueError):
    """A name that no channel has. The text has the names that exist, the nearest first."""

    __str__ = Exception.__str__


class RecordingError(RigstepError):
    """A file that is no recording, or one that cannot be read."""


class MechanismError(RigstepError):
    """A mechanism that cannot be stepped as described."""


class StepFailed(RigstepError):
    """A step that was not made: the last good state stands. The text names the joint, body or output."""


class NoAnswer(RigstepError):
    """The server did not answer in time."""


class RefusalReason(enum.IntEnum):
    """Why the server refuses. UNSPECIFIED also stands for a reason that this version does not know."""

    UNSPECIFIED = 0
    VERSION = 1
    CONTROL_TAKEN = 2
    NOT_IN_CONTROL = 3
    FULL = 4
    AUTHENTICATION = 5
    SEQUENCE = 6
    NO_BLACK_BOX = 7
    DISPLACED = 8
    NOT_PERMITTED = 9
    STATE = 10
    PARAMETER = 11
    SNAPSHOT_FILE = 12

    @classmethod
    def _missing_(cls, value: object) -> RefusalReason:
        return cls.UNSPECIFIED


class Refused(RigstepError):
    """The server refuses. `text` has its words, `proven` tells whether they were proven by the key."""

    def __init__(self, reason: RefusalReason, text: str, server: str, keyed: bool = False, proven: bool = False):
        self.reason, self.text, self.proven = reason, text, proven
        if keyed and not proven:
            super().__init__(f"no answer from {server} that the key proves; what came without proof says: {text}")
        else:
            super().__init__(f"{server} refuses: {text}")


class GoodbyeReason(enum.IntEnum):
    """Why the server ended the session. ENDED also stands for a reason that this version does not know."""

    ENDED = 0
    TAKEN_OVER = 1
    TIMED_OUT = 2
    KEY_REMOVED = 3

    @classmethod
    def _missing_(cls, value: object) -> GoodbyeReason:
        return cls.ENDED


class Disconnected(RigstepError):
    """The server said Goodbye. `text` has its words."""

    _REMEDY = {
        GoodbyeReason.ENDED: "start the server again, then connect again",
        GoodbyeReason.TAKEN_OVER: "another rig with the same key took this one's place: stop one of the two",
        GoodbyeReason.TIMED_OUT: "call receive() or use loop() more often than that, then connect again",
        GoodbyeReason.KEY_REMOVED: "the key is not in the server's key file any more: get a new key",
    }

    def __init__(self, reason: GoodbyeReason, text: str, server: str):
        self.reason, self.text = reason, text
        super().__init__(f"{server} ended the session: {text or reason.name}; {self._REMEDY[reason]}")


def printable(text: str, most: int = MOST_TEXT) -> str:
    """Text from outside as it may stand in a message: one line without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text[:most])
