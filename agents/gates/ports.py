"""Declares what gates need from outside, as small Protocols. Each may raise Unavailable."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from evalcore.gates.history import Line, Stand
from evalcore.gates.limits import Past
from evalcore.gates.requests import InvalidRequest, RampRequest
from evalcore.gates.skips import Skips
from evalcore.registry.registry import Judge, Registry
from evalcore.scoring.answers import Answer
from evalcore.scoring.items import Item
from schemas.judges import Milestone
from schemas.verdicts import SampleFacts


@dataclass(frozen=True)
class Sample:
    """A gate's sample, frozen: the same until the request is decided, also after a restart. `shortage` says where
    missing items were looked for."""

    items: Sequence[Item]
    facts: SampleFacts
    mismatches: tuple[str, ...] = ()
    shortage: str = ""


@dataclass(frozen=True)
class AskingGate:
    """The gate that has items scored: of which request, and about which agent version. `vertical` is the one whose
    limits hold."""

    request_id: str
    milestone: Milestone
    agent_id: str
    agent_version: str
    vertical: str | None = None


class OutOfTime(Exception):
    """The judges' model answers, but too slowly for the deadline."""


class Samples(Protocol):
    async def frozen(self, asked: RampRequest, milestone: Milestone, registry: Registry) -> Sample:
        """The sample of this request's gate: drawn at the first call, the same one at every later call."""
        ...


class Scoring(Protocol):
    async def score(
        self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        """Return each judge's answers for its items, by judge id, and by `judge.dimension` where it has dimensions.
        Each is an event by then (PC5 §9.4).

        Never raises for a judge or an item. Answers from before cost nothing. After `within` seconds the rest is
        unscored where the model answers no call at all; where it answers and was too slow, raises OutOfTime.
        """
        ...


class History(Protocol):
    async def baseline(self, asked: RampRequest, line: Line) -> Sequence[Past]:
        """Return what a judge came to at the last gates of this line, oldest first, without this request's own."""
        ...

    async def stand(self, asked: RampRequest | InvalidRequest, milestone: Milestone) -> Stand:
        """Return how the request's agent definition stands with a gate; as never judged where it can't be read."""
        ...

    async def suspended(self, judge: str, version: str) -> str:
        """Return why this version of a judge is suspended, whichever serves by now; empty where it is not."""
        ...


class JoinCoverage(Protocol):
    async def rate(self, vertical: str | None, window_seconds: int) -> float | None: ...


async def _none() -> Skips:
    """No override."""
    return Skips()


@dataclass(frozen=True)
class GatePorts:
    samples: Samples
    scoring: Scoring
    history: History
    coverage: JoinCoverage
    room: AbstractAsyncContextManager[Any] = field(default_factory=nullcontext)
    """Limits how many gates hold their sample at once; waiting for room takes from the deadline."""
    scores: Callable[[Milestone, Mapping[str, Sequence[Answer]]], None] = lambda milestone, answers: None
    """Gets what judges answered at a gate, by judge or judge.dimension."""
    overrides: Callable[[], Awaitable[Skips]] = _none
    """Returns what the central log of overrides has; nothing where no one knows."""
