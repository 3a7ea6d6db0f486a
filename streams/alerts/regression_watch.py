"""Looks at the live scores at intervals, and at each evaluation when it comes, and has each floor breach responded to
once (PC5 §5.7).

The steps of a response are written to Redis before the first begins, and struck off one by one: a step that fails, and
what a worker that died left undone, is tried again at the next looks. A look sends its ramp-downs before anything else.
Notices go apart from the looks, each breach's alone and all its steps at once, so a receiver that accepts and never
answers delays neither a command nor a look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import orjson
import structlog

from agents.keys import FOREVER, REGRESSION_LEASE, REGRESSION_NOTICES, REGRESSION_STATE, Key
from agents.live.scores import watched
from agents.ports import Change, Clock, Unavailable
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
from schemas.dead_letters import clean
from streams.alerts.looking import look_again_and_again
from streams.redis.lease import SHORT_LEASE_MS, Lease, acquired, renewed
from streams.redis.state import RedisStore

log = structlog.get_logger(__name__)
T = TypeVar("T")
WAIT_SECONDS = SHORT_LEASE_MS / 1_000 + 1.0
"""How long a look waits for another worker's: longer than the lease of one that died."""
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

    @property
    def about(self) -> tuple[str, str, int]:
        """The event that it responds to."""
        return self.response.breach.key, self.response.event, self.began


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

    def strike(self, taken: PendingResponse, step: Step, *, done: bool) -> None:
        """Note that the step is done or given up, unless a later event of the breach has taken its place."""
        for place, one in enumerate(self.pending):
            if one.about == taken.about:
                response = one.response if done or step is not Step.RAMP_DOWN else one.response.by_hand()
                left = tuple(other for other in one.left if other is not step)
                self.pending[place : place + 1] = [replace(one, response=response, left=left)] if left else []

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


Ours = Callable[[], Awaitable[bool]]
"""Whether this worker may still act. Raises Unavailable."""
CarryOut = Callable[[PendingResponse, Step, Ours], Awaitable[bool]]
"""Takes a step; returns whether it is done, or no repetition helps. Raises nothing. It asks right before a command is
sent whether the worker may still act."""


@dataclass
class RegressionWatch:
    """Each worker has one; the open breaches are in Redis, and one worker looks at a time. `every`: seconds between
    looks. `observe` gets each breach that begins or ends."""

    store: RedisStore
    clock: Clock
    registry: Callable[[], Registry | None]
    carry_out: CarryOut
    _: KW_ONLY
    window_seconds: float
    limits: WatchLimits
    every: float
    ready: Callable[[], bool] = lambda: True
    observe: Callable[[Response], None] = lambda response: None

    def __post_init__(self) -> None:
        self._window = round(self.window_seconds * 1000)
        self._notices: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Do at once what a worker that died left undone, and look at the scores at intervals, until cancelled."""
        begun = False

        async def look() -> None:
            nonlocal begun
            ready, begun = begun and self.ready(), True
            await (self.once() if ready else self.evaluated((), 0))

        try:
            await look_again_and_again(look, self.every, "regression_watch_waits", "regression_watch_failed")
        finally:
            await self.close()

    async def close(self) -> None:
        """Break off the notices that are under way. Another worker, or the next start, sends them."""
        for task in self._notices:
            task.cancel()
        await self.notified()

    async def notified(self) -> None:
        """Return once no notice is under way."""
        await asyncio.gather(*self._notices, return_exceptions=True)

    async def once(self) -> list[Response]:
        """Look once; returns the responses to what is new. Nothing where another worker looks. Raises Unavailable."""
        registry = self.registry()
        async with self._held(REGRESSION_LEASE.key(), WAIT_SECONDS) as (lease, _):
            if registry is None or lease is None:
                return []
            now = self.clock.now_ms()
            found = await watched(self.store, registry, now, self._window)
            return await self._respond(lease, lambda known: found, now, whole=True)

    async def evaluated(self, lines: Sequence[Watched], at: int) -> bool:
        """Respond to what an evaluation found that came `at` that time (ms), as to what a look at live scores finds.
        Returns whether nothing of it is left to do; False also where another worker looks. What is left of earlier
        responses is done, too, also without `lines`. Raises Unavailable."""
        async with self._held(REGRESSION_LEASE.key(), WAIT_SECONDS) as (lease, _):
            if lease is None:
                return False
            await self._respond(lease, lambda known: known.newest(lines, at), self.clock.now_ms(), whole=False)
        keys, known = {line.key_of(kind) for line in lines for kind in Kind}, await self._known()
        noted = all(known.evaluated.get(key, 0) >= at for key in keys)  # else Redis was emptied, or the turn was lost
        return noted and not any(pending.response.breach.key in keys for pending in known.pending)

    @asynccontextmanager
    async def _held(self, key: Key, patience: float) -> AsyncIterator[tuple[Lease | None, asyncio.Task[None] | None]]:
        """Hold a lease inside; gives it, and a task that ends where it is lost. None where another task or worker
        keeps it for longer than so many seconds."""
        lease = self.store.lease(key, SHORT_LEASE_MS)
        if not await acquired(lease, patience):
            yield None, None
            return
        try:
            async with renewed(lease, SHORT_LEASE_MS / 3_000) as lost:
                yield lease, lost
        finally:
            with suppress(Unavailable):
                await lease.release()

    async def _known(self) -> Regressions:
        return Regressions.decode(*await self.store.read([REGRESSION_STATE.key()]))

    async def _change(self, change: Callable[[Regressions], T], checks: dict[Key, bytes]) -> T | None:
        """Change what is remembered, and again where another task has changed it meanwhile; returns what `change` did.
        None, and nothing changed, where a check fails. Raises Unavailable."""
        key = REGRESSION_STATE.key()
        while True:
            (raw,) = await self.store.read([key])
            known = Regressions.decode(raw)
            done, after = change(known), known.encode()
            failed = await self.store.apply(Change(checks={**checks, key: raw}, sets={key: (after, FOREVER)}))
            if not failed:
                return done
            if failed != [key]:
                return None

    async def _respond(
        self, lease: Lease, find: Callable[[Regressions], Sequence[Watched]], now: int, *, whole: bool
    ) -> list[Response]:
        def note(known: Regressions) -> Sequence[Response]:
            at = datetime.fromtimestamp(now / 1000, UTC)
            outcome = look(find(known), known.open, self.limits, at, whole=whole)
            for response in outcome.responses:
                known.note(response, now, self._window)
            known.open = dict(outcome.open)
            return outcome.responses

        # A worker that slept in its turn must not overwrite what another one found since.
        responses = await self._change(note, {lease.key: lease.value})
        if responses is None:
            log.warning("regression_watch_waits", reason="the look took longer than its lease")
            return []
        for response in responses:
            self.observe(response)
            breach = response.breach
            log.warning("regression", what=response.event, **{name: getattr(breach, name) for name in LOGGED})
        due = [pending for pending in (await self._known()).pending if Step.RAMP_DOWN in pending.left]
        await asyncio.gather(*(self._take(pending, Step.RAMP_DOWN, lease.held) for pending in due))
        for pending in (await self._known()).pending:
            task = asyncio.create_task(self._notify(pending), name=f"notices {pending.response.breach.key}")
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)
        return list(responses)

    async def _notify(self, pending: PendingResponse) -> None:
        """Send the notices that are left, all at once, unless some about the same breach are under way: then a later
        look does, so that an older event is never reported after a newer one."""
        try:
            async with self._held(REGRESSION_NOTICES.key(pending.response.breach.key), 0.0) as (lease, lost):
                if lease is None or lost is None or pending not in (await self._known()).pending:
                    return
                steps = [step for step in pending.left if step is not Step.RAMP_DOWN]
                sent = asyncio.gather(*(self._take(pending, step, lease.held) for step in steps))
                either: set[asyncio.Future[Any]] = {sent, lost}
                try:
                    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    sent.cancel()  # a worker that slept has lost them to another
                    await asyncio.gather(sent, return_exceptions=True)
        except Unavailable as error:
            log.warning("regression_watch_waits", reason=clean(str(error)))

    async def _take(self, pending: PendingResponse, step: Step, ours: Ours) -> None:
        """Take a step and strike it off: where it is done, or has failed for too long."""
        judge = pending.response.breach.judge_id
        done = await self.carry_out(pending, step, ours)
        late = self.clock.now_ms() - pending.began >= GIVEN_UP_AFTER_MS
        if not done and late:
            log.error("regression_given_up", judge=judge, step=step)
        if done or late:
            try:
                await self._change(lambda known: known.strike(pending, step, done=done), {})
            except Unavailable as error:
                log.warning("regression_step_repeats", step=step, judge=judge, reason=clean(str(error)))
