"""The one way through: turns as read, changed by a merge, written to Opik, then recorded in one atomic step.

State is read before a decision and written after it. What others changed meanwhile makes the record fail its checks;
then everything is read and decided again, and only what Opik may hold wrongly is written again.

Turns whose step is prepared to the last byte before their scores are written: the short way of the common case.

It holds if Opik takes every score and nobody else changed a turn meanwhile. Else the step is decided again, all of it
by the general way (`agents.join.work`), which ends in the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.join.counting import HOUR, NOWHERE, carried_by, count_moves, count_tallies, field_of, move, standing
from agents.join.join import Wanted
from agents.join.turn import Mark, Signal, Turn, decode_turn, encode_turn
from agents.keys import turn_ids, turn_key
from agents.policy import Policy
from agents.ports import Change, Ports, Refusal, Swaps, Unavailable, Write
from schemas.outcomes import Kind, State

SCORES_EACH = 2
"""A turn that hears its first thumb gets `user_signal_thumbs` and `user_signal_reroll`."""


@dataclass
class Prepared:
    """One row a turn, in columns. `writes` has SCORES_EACH to a turn. `since`: when the later of signal and trace came
    (ms), for the lag. `hours`: of the records' times, for conservation; all end as done. `moves`: as in
    `agents.join.counting`. `written`: (vertical, sub-agent, category) -> turns. `outcomes`: of `writes`,
    once they are made.
    """

    ids: list[str] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    swaps: Swaps = field(default_factory=Swaps)
    since: list[int] = field(default_factory=list)
    hours: list[int] = field(default_factory=list)
    moves: dict[tuple[str, str, int], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str], int] = field(default_factory=dict)
    outcomes: list[Refusal | None] = field(default_factory=list)


ATTEMPTS = 50


@dataclass
class Report:
    """What one step did, for metrics. `counts`: (kind, field) -> n, exactly as recorded in the state."""

    counts: dict[tuple[Kind, str], int] = field(default_factory=dict)
    written: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    lags_ms: list[int] = field(default_factory=list)
    retries: int = 0


class Loaded:
    """A turn in hand: as it was (`blob`, its signals and where they stood), and as it is becoming (`turn`)."""

    __slots__ = ("before", "blob", "reroll", "reroll_stood", "thumbs", "thumbs_stood", "touched", "turn")

    def __init__(self, blob: bytes, touched: bool) -> None:
        self.blob = blob
        self.touched = touched
        self.turn = turn = decode_turn(blob) if blob else Turn()
        self.thumbs = thumbs = turn.thumbs
        self.reroll = reroll = turn.reroll
        self.thumbs_stood = (thumbs.mark, thumbs.cause) if thumbs is not None else (0, 0)
        self.reroll_stood = (reroll.mark, reroll.cause) if reroll is not None else (0, 0)
        self.before = standing(turn) if blob else NOWHERE


Plan = list[tuple[str, Loaded, list[Wanted]]]
"""What is to be written: response id, its turn, and the scores wanted for it."""


@dataclass
class Memory:
    """What survives a repetition: scores that Opik took or refused already, turns whose score Opik may hold wrongly,
    and letters already sent. `read`: the turns as the last attempt read them."""

    outcomes: dict[tuple[str, str, float | None], Refusal | None] = field(default_factory=dict)
    forced: set[str] = field(default_factory=set)
    read: dict[str, bytes] = field(default_factory=dict)
    lettered: set[tuple[str, int, int, bytes | None]] = field(default_factory=set)

    def overtaken(self, response_ids: set[str]) -> None:
        """Others changed these turns since: what we wrote for them may have landed on top of theirs."""
        for response_id, name, value in [key for key in self.outcomes if key[0] in response_ids]:
            if self.outcomes.pop((response_id, name, value)) is None:
                self.forced.add(response_id)


@dataclass
class Work:
    """The turns of one step. `now` in ms. `replaying`: its records were settled once before the state was lost, so a
    later one may overrule what they ask for; writes wait until they all have been read (see `write_scores`)."""

    now: int
    policy: Policy
    memory: Memory = field(default_factory=Memory)
    replaying: bool = False
    turns: dict[str, Loaded] = field(default_factory=dict)
    change: Change = field(default_factory=Change)
    report: Report = field(default_factory=Report)
    tallies: dict[tuple[Kind, int, str], int] = field(default_factory=dict)
    plan: Plan = field(default_factory=list)
    outcomes: list[Refusal | None] = field(default_factory=list)
    prepared: Prepared | None = None

    @property
    def plain(self) -> bool:
        """Whether this is a first attempt that may write: only then can a turn be prepared."""
        fresh = not (self.memory.outcomes or self.memory.read)
        return fresh and self.policy.write and not self.policy.mirror_legacy_names and not self.replaying

    def load(self, response_ids: Sequence[str], blobs: Sequence[bytes]) -> None:
        turns, forced, read = self.turns, self.memory.forced, self.memory.read
        if read:
            pairs = zip(response_ids, blobs, strict=True)
            self.memory.overtaken({rid for rid, blob in pairs if read.get(rid, blob) != blob})
        for response_id, blob in zip(response_ids, blobs, strict=True):
            turns[response_id] = Loaded(blob, response_id in forced)

    def count(self, kind: Kind, time: int, name: str, by: int = 1) -> None:
        """Count records of that time into (or out of) a state of conservation."""
        key = (kind, time // HOUR, name)
        self.tallies[key] = self.tallies.get(key, 0) + by


async def record(work: Work, ports: Ports) -> bool:
    """The atomic step. False if something had changed since it was read: then decide again, with the same memory."""
    change, now, policy = work.change, work.now, work.policy
    lookback = policy.lookback
    prepared = work.prepared
    moves: dict[tuple[str, str, int], int] = {}
    if prepared is not None:
        moves, change.swaps = dict(prepared.moves), prepared.swaps
    checks, sets, forced = change.checks, change.sets, work.memory.forced
    for response_id, loaded in work.turns.items():
        if not loaded.touched:
            continue
        turn = loaded.turn
        thumbs, reroll = turn.thumbs, turn.reroll
        if loaded.thumbs is not None:
            account(work, loaded.thumbs, loaded.thumbs_stood, thumbs)
        if loaded.reroll is not None:
            account(work, loaded.reroll, loaded.reroll_stood, reroll)
        blob = encode_turn(turn)
        if blob == loaded.blob:
            if response_id not in forced or not turn.trace:
                continue
            turn.rewritten = (turn.rewritten + 1) % 100
            blob = encode_turn(turn)
        move(moves, loaded.before, standing(turn))
        key = turn_key(response_id)
        checks[key] = loaded.blob
        last = turn.time
        if thumbs is not None and thumbs.time > last:
            last = thumbs.time
        if reroll is not None and reroll.time > last:
            last = reroll.time
        sets[key] = (blob, max(last + lookback, now) + HOUR)
    count_moves(change, moves, now, lookback)
    count_tallies(change, work.tallies, now, lookback)
    stale = await ports.store.apply(change)
    if not stale:
        counts = work.report.counts
        for (kind, _, name), by in work.tallies.items():
            counts[kind, name] = counts.get((kind, name), 0) + by
        return True
    remember(work, turn_ids(stale))
    return False


def remember(work: Work, stale: set[str]) -> None:
    """What was written need not be written again, but for turns that others changed: there it may be wrong by now."""
    memory = work.memory
    outcomes = iter(work.outcomes)
    for response_id, _, pending in work.plan:
        for want in pending:
            memory.outcomes[response_id, want.name, want.value] = next(outcomes)
    read = {response_id: loaded.blob for response_id, loaded in work.turns.items()}
    if (prepared := work.prepared) is not None:
        for at, (write, outcome) in enumerate(zip(prepared.writes, prepared.outcomes, strict=True)):
            memory.outcomes[prepared.ids[at // SCORES_EACH], write.name, write.value] = outcome
        read.update(zip(prepared.ids, prepared.swaps.before, strict=True))
    memory.overtaken(stale)
    memory.read = read


def account(work: Work, was: Signal, stood: tuple[int, int], signal: Signal | None) -> None:
    """Move an earlier record's count when its signal was settled or overtaken. A step counts its own new records."""
    kind = carried_by(was)
    if kind is None:
        return
    if signal is was:
        if stood == (was.mark, was.cause):
            return
        name = field_of(was.mark, was.cause)
    elif stood[0] in (Mark.PARKED, Mark.WITHHELD):
        name = State.SUPERSEDED
    else:
        return
    work.count(kind, was.time, field_of(*stood), -1)
    work.count(kind, was.time, name, 1)


def exhausted() -> Unavailable:
    return Unavailable(f"state kept changing under {ATTEMPTS} attempts at one step; is the clock or Redis unwell?")
