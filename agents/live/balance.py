"""Counts what falls due to live judging, or to another reader of traces, and how it ends, for each agent version, rated
or not (promise 3).

What falls due is counted where records are handed in, and an end where it is decided. due = ended + waiting; a record
that is let go without an end, or ends twice, shows as a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from agents.judge_scores import name_of
from schemas.dead_letters import Record

UNKNOWN, OTHER = "unknown", "other"
MOST = 500
"""So many agent versions have figures of their own, those heard of first: made-up ones displace none."""
Place = tuple[str, int, int]


class End(StrEnum):
    """How a record of a trace, or of a thumbs-down, leaves live judging; after the first two it is passed over.

    `no_judge`: sampling rates chose none, or all that apply have judged the trace. `superseded`: a later record of the
    trace stands. `no_trace`: the join made it a dead letter. `handed_over`: who has the partition now reads it again.
    """

    JUDGED = "judged"
    DEAD_LETTERED = "dead_lettered"
    JUDGED_BEFORE = "judged_before"
    NO_JUDGE = "no_judge"
    NOT_ENDED = "not_ended"
    SUPERSEDED = "superseded"
    TAKEN_BACK = "taken_back"
    NO_TRACE = "no_trace"
    OWN_TRAFFIC = "own_traffic"
    OUT_OF_WINDOW = "out_of_window"
    NOT_UUID7 = "not_uuid7"
    LEFT_TO_OPIK = "left_to_opik"
    HANDED_OVER = "handed_over"


class Whose(NamedTuple):
    """Whom a figure is about; `rated`: yes where a thumb stood on the turn when the record fell due, else no."""

    agent_id: str
    agent_version: str
    rated: str


class Due(NamedTuple):
    """What fell due. `first`: it has not waited yet."""

    place: Place
    response_id: str
    whose: Whose
    first: bool = False


class Figures(Protocol):
    def due(self, whose: Whose) -> None: ...
    def ended(self, whose: Whose, end: StrEnum) -> None: ...
    def waiting(self, whose: Whose, by: int) -> None: ...


class Balance:
    """The counts of one process. What is in work counts as waiting."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._waiting: dict[Place, dict[str, Whose]] = {}
        self._known = {(UNKNOWN, UNKNOWN)}

    def came(self, record: Record, response_id: str, agent: object, version: object, rated: bool) -> Due:
        """Count a record as due, unless it waits already."""
        held = self._waiting.setdefault(_place(record), {})
        first = response_id not in held
        if first:
            whose = held[response_id] = Whose(*self._named(agent, version), "yes" if rated else "no")
            self._figures.due(whose)
            self._figures.waiting(whose, 1)
        return Due(_place(record), response_id, held[response_id], first)

    def ended(self, due: Due, end: StrEnum) -> None:
        self._figures.ended(due.whose, end)
        if self._waiting.get(due.place, {}).pop(due.response_id, None) is not None:
            self._figures.waiting(due.whose, -1)

    def left(self, handed_in: Sequence[Record], waiting: Sequence[Record]) -> None:
        """Note that of the records handed in only these are handed in again."""
        for place in {_place(record) for record in handed_in} - {_place(record) for record in waiting}:
            for whose in self._waiting.pop(place, {}).values():
                self._figures.waiting(whose, -1)

    def all_end(self, end: StrEnum, of: Sequence[Record] | None = None) -> None:
        """End alike what waits: all, or that of these records."""
        for place in [*self._waiting] if of is None else [_place(record) for record in of]:
            for response_id, whose in [*self._waiting.get(place, {}).items()]:
                self.ended(Due(place, response_id, whose), end)
            self._waiting.pop(place, None)

    def _named(self, agent: object, version: object) -> tuple[str, str]:
        named = name_of(agent) or UNKNOWN, name_of(version) or UNKNOWN
        if named not in self._known and len(self._known) >= MOST:
            return OTHER, OTHER
        self._known.add(named)
        return named


def _place(record: Record) -> Place:
    return record.topic, record.partition, record.offset
