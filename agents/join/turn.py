"""Declares a turn: what is known of one response, and which scores Opik holds. Pure; all that the join remembers
(PF-9 FR-6).

Kept small, since there is one for each turn of the lookback window. Times are milliseconds since 1970.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import astuple

from schemas.outcomes import Cause
from schemas.signals import DECLARED, REROLL, THUMBS, UserSignal


class Mark:
    """The state of the record that carried a signal's present value. Plain numbers, because they are compared often."""

    NEW: Final = 0
    PARKED: Final = 1
    WITHHELD: Final = 2
    DONE: Final = 3
    DEAD: Final = 4


class Origin:
    """Where a signal came from; `schemas.signals` has the other numbers. A derived signal has no record and is not
    counted as consumed. A swept one has a record that no consumer has reached yet; the one that does counts it."""

    DERIVED: Final = 0
    TRACES: Final = 3


CAUSES: Final = tuple(Cause)
MAYBE: Final = 3
DISTRUSTED: Final = 4
NOW: Final = -1
"""`doubt_until` of a turn whose scores have just become doubtful."""


class Signal(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """One user signal at its winning version. What is seldom set stands last, where an unset field takes no byte.

    `value`: 1, -1 or 0 (withdrawn) for thumbs, 1 for a reroll. `time`: when it occurred. `seq`: the DynamoDB sequence
    number, big-endian; empty where only time orders. `asof`: the time that orders versions, less `time`.
    `partition`, `offset`: its record, kept while it may still become a dead letter. `vertical`: as its event names it,
    kept while the turn has no trace.
    """

    value: int
    time: int
    seq: bytes = b""
    mark: int = Mark.NEW
    origin: int = Origin.DERIVED
    tie: int = 0
    asof: int = 0
    partition: int = 0
    offset: int = 0
    parked_at: int = 0
    cause: int = 0
    vertical: str = ""

    def newer_than(self, other: Signal) -> bool:
        """Order by sequence numbers where both have one; else by time, then by a tie-break that is independent of
        arrival."""
        if self.seq and other.seq:
            return (len(self.seq), self.seq) > (len(other.seq), other.seq)
        return (self.time + self.asof, self.tie) > (other.time + other.asof, other.tie)

    def same_version(self, other: Signal) -> bool:
        if self.seq and other.seq:
            return self.seq == other.seq
        return (self.time + self.asof, self.tie) == (other.time + other.asof, other.tie)


class OtherSignal(msgspec.Struct, array_like=True, gc=False):
    """A signal without a field of its own, and the code of its score in Opik."""

    wrote: int = 0
    signal: Signal | None = None


OWN_FIELDS: Final = {THUMBS.kind: "wrote_thumbs", REROLL.kind: "wrote_reroll"}
"""The signals with fields of their own in a turn, which cost fewer bytes; every other one is in `others`."""


class Turn(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """The join per turn. `trace` is the trace id's 16 bytes, empty until one is known. `versions`: the agent versions
    that it is evidence about (`agents.join.versions`).

    `wrote_thumbs`: what Opik holds, 0 for nothing, else 1 or -1. `wrote_reroll`: 0 for nothing, 1 for 0.0, 2 for 1.0.
    Either is MAYBE where Opik may hold a score that we do not know, which a withdrawal has to delete; DISTRUSTED where
    a write may still change what Opik holds, so that reading it there does not tell either.
    `rewritten` changes when scores are written again without another change: a step that read the turn before and
    writes at the same time then notices, and is the last to write. `doubt_until`: until then a write without an answer
    may still be applied; 0 where there was none, or where the scores were compared with Opik since, and NOW until the
    step that changes the turn knows the time. `left`: ids of this response's other traces, 16 bytes each, on which
    scores of ours may stand.
    """

    trace: bytes = b""
    project: str = ""
    vertical: str = ""
    sub_agent: str = ""
    category: str = ""
    time: int = 0
    versions: bytes = b""
    judged: int = 0
    wrote_thumbs: int = 0
    wrote_reroll: int = 0
    thumbs: Signal | None = None
    reroll: Signal | None = None
    rewritten: int = 0
    others: dict[str, OtherSignal] = {}
    doubt_until: int = 0
    left: bytes = b""

    def signal(self, kind: str) -> Signal | None:
        if kind in OWN_FIELDS:
            return self.thumbs if kind == "thumbs" else self.reroll
        other = self.others.get(kind)
        return other.signal if other is not None else None

    def signals(self) -> list[tuple[str, Signal]]:
        """Kind and signal of each that is known, withdrawn ones included."""
        found = [("thumbs", self.thumbs)] if self.thumbs is not None else []
        if self.reroll is not None:
            found.append(("reroll", self.reroll))
        if self.others:
            found += [(kind, other.signal) for kind, other in self.others.items() if other.signal is not None]
        return found

    def put(self, kind: str, signal: Signal) -> None:
        if kind in OWN_FIELDS:
            setattr(self, kind, signal)
        else:
            self.others.setdefault(kind, OtherSignal()).signal = signal

    def wrote(self, kind: str) -> int:
        """Return the code of the kind's score in Opik: 0 for none, MAYBE where Opik may hold one that we do not
        know."""
        if kind in OWN_FIELDS:
            return self.wrote_thumbs if kind == "thumbs" else self.wrote_reroll
        other = self.others.get(kind)
        return other.wrote if other is not None else 0

    def note(self, kind: str, code: int) -> None:
        """Note the code of the kind's score in Opik."""
        if kind in OWN_FIELDS:
            setattr(self, OWN_FIELDS[kind], code)
        elif code or kind in self.others:
            self.others.setdefault(kind, OtherSignal()).wrote = code

    @property
    def trace_id(self) -> str:
        return trace_text(self.trace)

    @property
    def left_traces(self) -> list[bytes]:
        return [self.left[at : at + 16] for at in range(0, len(self.left), 16)]

    @property
    def began(self) -> int:
        """When its trace began (ms); 0 where that is unknown."""
        return trace_began(self.trace)

    @property
    def active(self) -> bool:
        """Whether any signal holds a value that was not withdrawn."""
        return any(signal.value for _, signal in self.signals())


def trace_text(trace: bytes) -> str:
    h = trace.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def trace_began(trace: bytes) -> int:
    """When a trace of this id began (ms), since ids are UUIDs of version 7; 0 for any other id."""
    return int.from_bytes(trace[:6], "big") if len(trace) == 16 and trace[6] >> 4 == 7 else 0


def has_withheld(turn: Turn) -> bool:
    """Whether one of its signals is withheld."""
    return any(signal.mark == Mark.WITHHELD for _, signal in turn.signals())


def score_of(declared: UserSignal, code: int) -> float | None:
    """The score for a code as turns hold it; None where there is none. Codes are the signal's values, but for an
    implied signal: 1 for its absence, 2 for its presence."""
    if declared.implied_by:
        return (None, 0.0, 1.0)[code]
    return float(code) if code else None


def code_of(declared: UserSignal, score: float) -> int:
    """The code of a score that Opik holds; the inverse of `score_of`."""
    if declared.implied_by:
        return 2 if score > 0 else 1
    return 1 if score > 0 else -1


def value_of(declared: UserSignal, code: int) -> int:
    """The value of the signal behind a code, 0 for none."""
    return int(code == 2) if declared.implied_by else code


def kind_of_origin(origin: int) -> str | None:
    """The kind whose records have this origin; None for a derived or swept signal, which no record has counted."""
    return next((signal.kind for signal in DECLARED.values() if signal.origin == origin), None)


class Session(msgspec.Struct, array_like=True, gc=False):
    """One completed turn of a session, for finding rerolls: `said` is the hash of its input, `window` how long after
    its end the same input is a reroll of it."""

    said: bytes
    started: int
    ended: int
    response_id: str
    window: int


_pack = msgspec.msgpack.Encoder().encode


def encode_turn(turn: Turn) -> bytes:
    """A turn as stored: one msgpack array without the unset fields at its end, and so are its signals."""
    fields = astuple(turn)
    if turn.thumbs is not None or turn.reroll is not None:
        fields = (*fields[:10], _stored(turn.thumbs), _stored(turn.reroll), *fields[12:])
    return _pack(_trimmed(fields, 0))


def _stored(signal: Signal | None) -> tuple[object, ...] | None:
    return _trimmed(astuple(signal), 2) if signal is not None else None


def _trimmed(fields: tuple[object, ...], least: int) -> tuple[object, ...]:
    """Every default is falsy, and nothing else that is falsy differs from its default."""
    length = len(fields)
    while length > least and not fields[length - 1]:
        length -= 1
    return fields[:length]


def unsignalled(blob: bytes) -> bool:
    """Whether a stored turn has a time, but no signal and no score of ours: its array ends with `time`, `versions` or
    `judged`."""
    return blob[:1] in _UNSIGNALLED


def with_first_thumb(blob: bytes, value: int, time: int, seq: bytes, tie: int, partition: int, offset: int) -> bytes:
    """An unsignalled turn with a trace, as stored once its first thumb and the scores that follow from it are in Opik:
    the bytes `encode_turn` would make, in a third of the time."""
    missing = _UNSIGNALLED[blob[:1]]
    signal = (value, time, seq, Mark.DONE, _THUMBS, tie, 0, partition, offset)
    return b"\x9b" + blob[1:] + missing + _WROTE[value] + _pack(signal if offset else _trimmed(signal, 2))


_UNSIGNALLED: Final = {b"\x96": b"\xc4\0\0", b"\x97": b"\0", b"\x98": b""}
"""An unsignalled turn's first byte -> what of `versions` and `judged` it lacks, as stored."""
_THUMBS: Final = THUMBS.origin
_WROTE = {1: b"\x01\x01", -1: b"\xff\x01"}

decode_turn = msgspec.msgpack.Decoder(Turn).decode
