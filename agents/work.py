"""The one way through: turns as read, changed by a merge, written to Opik, then recorded in one atomic step.

State is read before a decision and written after it. What others changed meanwhile makes the record fail its checks;
then everything is read and decided again, and only what Opik may hold wrongly is written again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agents.counting import CONSUMED, HOUR, Held, Standing, held, move, standing, tally
from agents.policy import Policy
from agents.ports import Change, Ports, Refusal, Unavailable
from agents.turn import Signal, Turn, decode_turn, encode_turn
from schemas.outcomes import Kind, State

ATTEMPTS = 50


@dataclass
class Report:
    """What one step did, for metrics. `counts`: (kind, field) -> n, exactly as recorded in the state."""

    counts: dict[tuple[Kind, str], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    lags_ms: list[int] = field(default_factory=list)
    retries: int = 0

    def add(self, kind: Kind, name: str, by: int = 1) -> None:
        self.counts[kind, name] = self.counts.get((kind, name), 0) + by


@dataclass
class Loaded:
    """A turn in hand: as it was (`blob`, its signals, what was counted of them), and as it is becoming (`turn`)."""

    blob: bytes
    turn: Turn
    before: Standing
    thumbs: Signal | None
    reroll: Signal | None
    thumbs_held: Held | None
    reroll_held: Held | None
    touched: bool = False


@dataclass
class Work:
    """The turns of one step. `now` in ms. `replaying`: its records were settled once before the state was lost, so a
    later one may overrule what they ask for; writes wait until they all have been read (see `write_scores`)."""

    now: int
    policy: Policy
    replaying: bool = False
    turns: dict[str, Loaded] = field(default_factory=dict)
    change: Change = field(default_factory=Change)
    report: Report = field(default_factory=Report)

    def load(self, response_ids: Sequence[str], blobs: Sequence[bytes]) -> None:
        turns = self.turns
        for response_id, blob in zip(response_ids, blobs, strict=True):
            turn = decode_turn(blob) if blob else Turn()
            turns[response_id] = Loaded(
                blob, turn, standing(turn), turn.thumbs, turn.reroll, held(turn.thumbs), held(turn.reroll)
            )

    def count(self, kind: Kind, time: int, name: str, by: int = 1) -> None:
        tally(self.change, kind, time, name, by, self.now, self.policy.lookback)
        self.report.add(kind, name, by)

    def consumed(self, kind: Kind, time: int, name: str) -> None:
        """Count a record that ends here, in the state `name`."""
        self.count(kind, time, CONSUMED)
        self.count(kind, time, name)


@dataclass
class Memory:
    """What survives a repetition: scores that Opik took or refused already, and letters already sent."""

    outcomes: dict[tuple[str, str, float | None], Refusal | None] = field(default_factory=dict)
    forced: set[str] = field(default_factory=set)
    lettered: set[tuple[str, int, int, bytes | None]] = field(default_factory=set)


def turn_cells(response_ids: Iterable[str]) -> list[str]:
    return ["t:" + response_id for response_id in response_ids]


async def record(work: Work, ports: Ports, memory: Memory) -> bool:
    """The atomic step. False if something had changed since it was read: then decide again, with the same memory."""
    change, now, lookback = work.change, work.now, work.policy.lookback
    for response_id, loaded in work.turns.items():
        if not loaded.touched:
            continue
        turn = loaded.turn
        account(work, loaded.thumbs, loaded.thumbs_held, turn.thumbs)
        account(work, loaded.reroll, loaded.reroll_held, turn.reroll)
        blob = encode_turn(turn)
        if blob == loaded.blob:
            continue
        move(change, loaded.before, standing(turn), now, lookback)
        cell = "t:" + response_id
        change.checks[cell] = loaded.blob
        last = max(turn.time, turn.thumbs.time if turn.thumbs else 0, turn.reroll.time if turn.reroll else 0)
        change.sets[cell] = (blob, max(last + lookback, now) + HOUR)
    stale = await ports.store.apply(change)
    if not stale:
        return True
    work.report.retries += 1
    for cell in stale:
        if cell.startswith("t:"):
            response_id = cell[2:]
            for key in [key for key in memory.outcomes if key[0] == response_id]:
                if memory.outcomes.pop(key) is None:
                    memory.forced.add(response_id)
    return False


def account(work: Work, was: Signal | None, held_before: Held | None, signal: Signal | None) -> None:
    """Move an earlier record's count when its signal was settled or overtaken. A step counts its own new records."""
    if held_before is None:
        return
    kind, time, field_before = held_before
    if signal is was:
        now = held(signal)
        field_now = now.field if now is not None else field_before
    else:
        field_now = State.SUPERSEDED if field_before.startswith(State.PARKED) else field_before
    if field_now != field_before:
        work.count(kind, time, field_before, -1)
        work.count(kind, time, field_now, 1)


def exhausted() -> Unavailable:
    return Unavailable(f"state kept changing under {ATTEMPTS} attempts at one step; is the clock or Redis unwell?")
