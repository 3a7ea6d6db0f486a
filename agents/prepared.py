"""Turns whose step is prepared to the last byte before their scores are written: the short way of the common case.

It holds if Opik takes every score and nobody else changed a turn meanwhile. Else the step is decided again, all of it
by the general way (`agents.work`), which ends in the same state.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.ports import Refusal, Swaps, Write

SCORES_EACH = 2
"""A turn that hears its first thumb gets `user_signal_thumbs` and `user_signal_reroll`."""


@dataclass
class Prepared:
    """One row a turn, in columns. `writes` has SCORES_EACH to a turn. `since`: when the later of signal and trace came
    (ms), for the lag. `hours`: of the records' times, for conservation; all end as done. `moves`: as in
    `agents.counting`. `written`: (vertical, sub-agent, category) -> turns. `outcomes`: of `writes`, once they are made.
    """

    ids: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    swaps: Swaps = field(default_factory=Swaps)
    since: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)
    moves: dict[tuple[str, str, int], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str], int] = field(default_factory=dict)
    outcomes: list[Refusal | None] = field(default_factory=list)
