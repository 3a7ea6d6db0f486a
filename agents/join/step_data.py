"""Declares a step's report, its prepared turns, and the state that survives its repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.join.counting import Counted
from agents.join.turn import Signal
from agents.ports import Outcome, Refusal, Swaps, Write

Refused = tuple[str, Signal, Refusal]
"""(response id, the signal that asked for the score, why Opik has not got it)."""


@dataclass
class Report:
    """What one step did, for metrics. `counts`: (kind, field) -> n, exactly as recorded in the state. `written`:
    (vertical, sub-agent, category, kind) -> scores. `lags_ms`: kind -> from the last input, the user's signal or the
    trace's arrival, to Opik's confirmation (PF-9 NFR-1). `late`: kind -> scores that Opik was found to hold otherwise
    than it had confirmed. `unreadable`: vertical -> traces of which judges can't read question or answer; `forged`:
    those with fields that only we write, without our seal."""

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    lags_ms: dict[str, list[int]] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    unreadable: dict[str, int] = field(default_factory=dict)
    forged: dict[str, int] = field(default_factory=dict)


@dataclass
class PreparedTurns:
    """The fast path's turns, in columns, one row a turn: prepared to the last byte before their scores are written.

    They hold if Opik takes every score and no other worker changes a turn meanwhile. Else the whole step goes the
    general way, which ends in the same state.

    `kinds`: of the signals scored, first the one that was heard; `writes` has one score of each for every turn.
    `since`: when the later of signal and trace came (ms), for the lag. `hours`: of the records' times, for
    conservation; all end as done. `moves`: as in `agents.join.counting`. `written`: (vertical, sub-agent, category) ->
    turns. `outcomes`: of `writes`, once they are made.
    """

    ids: list[str] = field(default_factory=list)
    kinds: tuple[str, ...] = ()
    writes: list[Write] = field(default_factory=list)
    swaps: Swaps = field(default_factory=Swaps)
    since: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)
    moves: dict[Counted, int] = field(default_factory=dict)
    written: dict[tuple[str, str, str], int] = field(default_factory=dict)
    outcomes: Sequence[Outcome] = ()


@dataclass
class RetryState:
    """What survives a repetition of a step.

    `outcomes`: (response id, kind, score) -> what Opik said. `forced`: turns whose score Opik may hold wrongly.
    `unsure`: turns for which an earlier attempt sent what is not wanted any more and may be applied yet. `doubtful`: so
    may a worker that died have done for any turn. `read`: the turns as the last attempt read them. `lettered`: the
    places of dead letters that were sent.
    """

    outcomes: dict[tuple[str, str, float | None], Outcome] = field(default_factory=dict)
    forced: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    doubtful: bool = False
    read: dict[str, bytes] = field(default_factory=dict)
    lettered: set[tuple[str, int, int, bytes | None]] = field(default_factory=set)

    def overtaken(self, response_ids: set[str]) -> None:
        """Note that others changed these turns: what we wrote for them may have replaced what they wrote."""
        for key in [key for key in self.outcomes if key[0] in response_ids]:
            outcome = self.outcomes.pop(key)
            unsure = outcome is not None and outcome.unsure
            if unsure:
                self.unsure.add(key[0])
            if unsure or not isinstance(outcome, Refusal):
                self.forced.add(key[0])
