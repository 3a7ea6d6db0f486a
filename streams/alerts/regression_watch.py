"""Looks at the live scores at intervals, and at each evaluation when it comes, and has each floor breach responded to
once (PC5 §5.7).

The steps of a response are written to Redis before the first begins, and struck off one by one: a step that fails, and
what a worker that died left undone, is tried again at the next looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog

from agents.keys import FOREVER, REGRESSION_LEASE, REGRESSION_STATE
from agents.live.scores import watched
from agents.ports import Change, Clock
from evalcore.gates.regression import (
    EVALUATED_DAYS,
    Breach,
    Event,
    Kind,
    Response,
    Step,
    Watched,
    WatchLimits,
    look,
)
from evalcore.registry.registry import Registry
from streams.alerts.looking import look_again_and_again
from streams.redis.lease import LeasingStore

log = structlog.get_logger(__name__)
LEASE_MS = 300_000
"""Longer than a breach's steps may take together, so that no two workers respond to the same breach."""
DAY_MS = 86_400_000
GIVEN_UP_AFTER_MS = DAY_MS
"""A step that has failed for so long is given up."""
LOGGED = (
    "judge_id", "vertical", "agent_id", "agent_version", "safety", "kind", "score", "floor", "n", "upper_bound",
    "users", "sessions", "unscored", "origin",
)  # fmt: skip


@dataclass
class PendingResponse:
    """A response and its steps that are `left`. Times in ms: it `began` then, and a command `since` then answers this
    breach and no earlier one."""

    response: Response
    left: tuple[Step, ...]
    began: int
    since: int


@dataclass
class Regressions:
    """What the watch remembers between its looks. `ended`: when a breach of each key last ended, kept for as long as a
    command about it is looked for. `evaluated`: when the last evaluation about each key came, so that an earlier one,
    which is tried again, does not undo what a later one found."""

    open: dict[str, Breach] = field(default_factory=dict)
    pending: list[PendingResponse] = field(default_factory=list)
    ended: dict[str, int] = field(default_factory=dict)
    evaluated: dict[str, int] = field(default_factory=dict)

    def note(self, response: Response, now: int, window: int) -> None:
        """Remember that a breach began or ended. What is pending about its last event is dropped: it is out of date."""
        key = response.breach.key
        self.pending = [earlier for earlier in self.pending if earlier.response.breach.key != key]
        since = max(self.ended.get(key, 0), now - window)
        self.pending.append(PendingResponse(response, response.steps, now, since))
        self.ended = {name: at for name, at in self.ended.items() if at > now - window}
        if response.over:
            self.open.pop(key, None)
            self.ended[key] = now
        else:
            self.open[key] = response.breach

    def newest(self, lines: Sequence[Watched], at: int) -> list[Watched]:
        """Note an evaluation that came `at` that time (ms); returns its lines that no later one is about."""
        out = []
        for line in lines:
            keys = [line.key_of(kind) for kind in Kind]
            if all(self.evaluated.get(key, 0) <= at for key in keys):
                out.append(line)
                self.evaluated |= dict.fromkeys(keys, at)
        oldest = at - EVALUATED_DAYS * DAY_MS
        self.evaluated = {key: came for key, came in self.evaluated.items() if came >= oldest}
        return out

    def encode(self) -> bytes:
        return orjson.dumps(asdict(self))

    @classmethod
    def decode(cls, raw: bytes) -> Regressions:
        held = orjson.loads(raw or b"{}")
        pending = held.get("pending", held.get("errands", ()))  # as earlier releases called them
        return cls(
            {key: _breach(breach) for key, breach in held.get("open", {}).items()},
            [_pending(each) for each in pending],
            held.get("ended", {}),
            held.get("evaluated", {}),
        )


def _breach(held: dict[str, Any]) -> Breach:
    """Of earlier releases' breaches each safety judge's was answered by a command."""
    return Breach(**{"certain": held["safety"], **held})


def _pending(held: dict[str, Any]) -> PendingResponse:
    response = held["response"]
    response = Response(_breach(response["breach"]), Event(response["event"]), _steps(response["steps"]))
    return PendingResponse(response, _steps(held["left"]), held["began"], held["since"])


def _steps(names: list[str]) -> tuple[Step, ...]:
    return tuple(Step(name) for name in names)


CarryOut = Callable[[PendingResponse], Awaitable[PendingResponse | None]]
"""Takes the steps that are left; returns those that failed, to be tried again, None where none did."""


class RegressionWatch:
    """Each worker has one; the open breaches are in Redis, and one worker looks at a time."""

    def __init__(
        self,
        store: LeasingStore,
        clock: Clock,
        registry: Callable[[], Registry | None],
        carry_out: CarryOut,
        *,
        window_seconds: float,
        limits: WatchLimits,
        every: float,
        ready: Callable[[], bool] = lambda: True,
        observe: Callable[[Response], None] = lambda response: None,
    ) -> None:
        """`every`: seconds between looks. `observe` is told of each breach that begins or ends."""
        self._lease, self._observe = store.lease(REGRESSION_LEASE.key(), LEASE_MS), observe
        self._store, self._clock, self._registry, self._carry_out = store, clock, registry, carry_out
        self._window, self._limits = round(window_seconds * 1000), limits
        self._every, self._ready = every, ready
        self._one_at_a_time = asyncio.Lock()  # the lease is this watch's, so it holds up no other task of it

    async def run(self) -> None:
        """Look at the scores until cancelled."""
        await asyncio.sleep(self._every)
        await look_again_and_again(self._once_ready, self._every, "regression_watch_waits", "regression_watch_failed")

    async def _once_ready(self) -> None:
        if self._ready():
            await self.once()

    async def once(self) -> list[Response]:
        """Look once; returns the responses to what is new. Nothing where another worker looks. Raises Unavailable."""
        registry = self._registry()
        if registry is None:
            return []
        async with self._one_at_a_time:
            if not await self._lease.acquire():
                return []
            try:
                known, now = await self._known(), self._clock.now_ms()
                found = await watched(self._store, registry, now, self._window)
                return await self._respond(known, found, now, whole=True)
            finally:
                await self._lease.release()

    async def evaluated(self, lines: Sequence[Watched], at: int) -> bool:
        """Respond to what an evaluation found that came `at` that time (ms), as to what a look at live scores finds.
        Returns whether nothing of it is left to do; False also where another worker looks. Raises Unavailable."""
        async with self._one_at_a_time:
            if not await self._lease.acquire():
                return False
            try:
                known, now = await self._known(), self._clock.now_ms()
                await self._respond(known, known.newest(lines, at), now, whole=False)
            finally:
                await self._lease.release()
        keys = {line.key_of(kind) for line in lines for kind in Kind}
        return not any(pending.response.breach.key in keys for pending in known.pending)

    async def _known(self) -> Regressions:
        return Regressions.decode(*await self._store.read([REGRESSION_STATE.key()]))

    async def _respond(self, known: Regressions, found: Sequence[Watched], now: int, *, whole: bool) -> list[Response]:
        outcome = look(found, known.open, self._limits, datetime.fromtimestamp(now / 1000, UTC), whole=whole)
        for response in outcome.responses:
            known.note(response, now, self._window)
        known.open = dict(outcome.open)
        if outcome.responses or not whole:
            await self._note(known)
        for response in outcome.responses:
            self._observe(response)
            breach = response.breach
            log.warning("regression", what=response.event, **{name: getattr(breach, name) for name in LOGGED})
        for pending in list(known.pending):
            if not await self._lease.acquire():
                break  # the steps took so long that another worker looks by now
            left = await self._carry_out(pending)
            if left is not None and now - left.began >= GIVEN_UP_AFTER_MS:
                log.error("regression_given_up", judge=left.response.breach.judge_id, steps=left.left)
                left = None
            place = known.pending.index(pending)
            known.pending[place : place + 1] = [left] if left is not None else []
            await self._note(known)
        return list(outcome.responses)

    async def _note(self, known: Regressions) -> None:
        await self._store.apply(Change(sets={REGRESSION_STATE.key(): (known.encode(), FOREVER)}))
