"""Declares what the agents need from outside, as small Protocols. `streams` implements them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from schemas.dead_letters import DeadLetter, Record, Sealing, keyless
from schemas.outcomes import Cause

if TYPE_CHECKING:
    from agents.codec import TraceFacts
    from agents.keys import Key
    from agents.newcomers import Newcomers


class StateLost(Exception):
    """The store no longer holds what this partition had put there: emptied, or replaced by an older copy.

    The records have to be read again from `resume_at`, or from the start of the lookback window where it is None.
    """

    def __init__(self, topic: str, partition: int, resume_at: int | None) -> None:
        super().__init__(f"{topic}/{partition}: state resumes at {resume_at}")
        self.topic, self.partition, self.resume_at = topic, partition, resume_at


class Unavailable(Exception):
    """A part was out of reach for all retries. Nothing was acknowledged; the caller tries again later."""


class Unauthorized(Exception):
    """Opik refuses our key. Retrying can't help and dead-lettering would drain the topic, so the worker stops."""


class Write(msgspec.Struct, gc=False, rename={"trace_id": "id", "project": "project_name", "label": "reason"}):
    """One score to put, or to delete where `value` is None.

    It encodes to the fields of Opik's API (`source` is one of Opik's closed list, `label` becomes the reason), so that
    a batch of a thousand is sent without a copy of each.
    """

    trace_id: str
    project: str
    name: str
    value: float | None
    label: str
    source: str = "sdk"


class Refusal(NamedTuple):
    """Why a write is not stored. `unsure`: a try of it got no answer, and may be applied yet."""

    cause: Cause
    detail: str
    unsure: bool = False


@dataclass(frozen=True)
class Unsure:
    """The outcome of a write that is stored, of which an earlier try got no answer: that one may be applied yet."""

    unsure: Final = True


UNSURE: Final = Unsure()
Outcome = Refusal | Unsure | None
"""Of a write: None once it is stored and nothing of it is under way any more."""


@dataclass
class Swaps:
    """Values to check and to set, in columns: key, value that was read, new value, its expiry (ms since 1970)."""

    keys: list[Key] = field(default_factory=list)
    before: list[bytes] = field(default_factory=list)
    after: list[bytes] = field(default_factory=list)
    expires: list[int] = field(default_factory=list)


@dataclass
class Pool:
    """Members to add to a sorted set that keeps its `keep` lowest; `expires` in ms since 1970."""

    expires: int
    keep: int
    members: dict[bytes, int] = field(default_factory=dict)


@dataclass
class Places:
    """Turns that take, change or leave their place in a pool of turns that keeps the `keep` lowest numbers. From its
    `edge` on, a number that only falls, turns are beyond it and counted there.

    `turns`: a turn's hash -> (whether it had a place before, its member; b"" where it leaves). A member that had a
    place is replaced where the new one is later (`evalcore.scoring.sampling.PooledTurn.later`).
    """

    edge: Key
    expires: int
    keep: int
    turns: dict[bytes, tuple[bool, bytes]] = field(default_factory=dict)


@dataclass
class Change:
    """One atomic step: applied whole if every check still holds, else not at all.

    `checks`: what was read, b"" for absent. `sets`: new value and expiry (ms since 1970). `counts`: key -> field ->
    increment, with the key's expiry. `due`: response id -> when to look at it again (ms), None to stop looking.
    `due_by`: the same, unless it is due earlier already; also after `due` stopped the looking.
    `swaps`: many keys' checks and sets at once, none of them in `checks` or `sets`. `pools`: members with their
    numbers, for sorted sets of the lowest. `places`: pool -> its turns that change.
    """

    checks: dict[Key, bytes] = field(default_factory=dict)
    sets: dict[Key, tuple[bytes, int]] = field(default_factory=dict)
    counts: dict[Key, tuple[int, dict[str, int]]] = field(default_factory=dict)
    due: dict[str, int | None] = field(default_factory=dict)
    due_by: dict[str, int] = field(default_factory=dict)
    swaps: Swaps = field(default_factory=Swaps)
    pools: dict[Key, Pool] = field(default_factory=dict)
    places: dict[Key, Places] = field(default_factory=dict)


class Seen(NamedTuple):
    """Values, counters and pools that were read in one step."""

    values: list[bytes]
    counts: list[dict[str, int]]
    pools: list[list[bytes]]
    sizes: list[int]


class Store(Protocol):
    """Reads and changes the join state. Retries within bounds and raises Unavailable after that."""

    async def read(self, keys: Sequence[Key]) -> list[bytes]:
        """Values in order, b"" for absent."""
        ...

    async def apply(self, change: Change) -> list[Key]:
        """Apply and return [], or return the keys whose check failed and change nothing."""
        ...

    async def claim_due(self, now: int, limit: int, lease_ms: int) -> list[str]:
        """Response ids due by `now`; each is hidden from others until `now + lease_ms`."""
        ...

    async def counts(self, keys: Sequence[Key]) -> list[dict[str, int]]:
        """The counters of each key."""
        ...

    async def pools(self, keys: Sequence[Key]) -> list[list[bytes]]:
        """The members of each key's pool, lowest number first."""
        ...

    async def at_once(
        self, values: Sequence[Key], counts: Sequence[Key], pools: Sequence[Key], sizes: Sequence[Key] = ()
    ) -> Seen:
        """What `read`, `counts` and `pools` return, and how many members pools have, as it stood at one moment."""
        ...

    def turns(self) -> AsyncIterator[list[tuple[str, bytes]]]:
        """All turns in pages of (response id, stored turn); one that changes meanwhile may come twice, old or new."""
        ...


class Scores(Protocol):
    async def write(self, writes: Sequence[Write]) -> Sequence[Outcome]:
        """Return each write's outcome, in order. Raises Unauthorized, and Unavailable where this process stood still
        for so long that it must not send any more."""
        ...


class DeadLetters(Protocol):
    async def put(self, letters: Sequence[DeadLetter]) -> None:
        """Return once all are durable; raises Unavailable otherwise."""
        ...


class Records(Protocol):
    async def fetch(self, places: Sequence[tuple[str, int, int]]) -> list[Record | None]:
        """The records at (topic, partition, offset); None where Kafka no longer has it."""
        ...


class Traces(Protocol):
    async def find(self, since_ms: Mapping[str, int]) -> dict[str, TraceFacts]:
        """Traces in Opik whose `metadata.response_id` is a key; `since_ms` bounds how far back to look for each."""
        ...

    async def judged(self, turns: Mapping[str, tuple[str, str, int]]) -> set[str]:
        """Return the response ids whose trace carries judge scores; `turns` maps them to (trace id, project, time)."""
        ...

    async def held(self, trace_ids: Mapping[str, str]) -> dict[str, dict[str, float]]:
        """Return the scores by name that Opik holds on these traces, by response id. Traces that Opik lacks are left
        out, and so are those that are too many to read one by one."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int: ...


@dataclass(frozen=True)
class Ports:
    store: Store
    scores: Scores
    dead_letters: DeadLetters
    records: Records
    traces: Traces
    clock: Clock
    newcomers: Newcomers
    sealing: Sealing = keyless
