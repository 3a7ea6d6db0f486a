"""One question to a judge's model, until there is a score or no point in asking again (PC5 §9.5).

A limit on calls at once that several gates share fairly: free places go round, one gate after the other.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf

import stamina
from aiolimiter import AsyncLimiter

from evalcore.judges.evaluator import Evaluation, NoScore, Prompt
from evalcore.judges.kinds import evaluator_of
from evalcore.registry.judge import Judge
from evalcore.scoring.calls import PASSING, CallFailed, Failure, Model, Reply, Spend
from evalcore.scoring.circuit_breaker import CircuitBreaker, SharedPause


class FairSemaphore:
    """`places` calls at once. A gate that comes late with few calls waits for its turn, not for all who came before."""

    def __init__(self, places: int) -> None:
        if places < 1:
            raise ValueError("a room needs at least one place")
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, gate: str) -> AsyncIterator[None]:
        await self._take(gate)
        try:
            yield
        finally:
            self._leave()

    async def _take(self, gate: str) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(gate, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place was given in the moment in which nobody wanted it any more
            else:
                self._forget(gate, turn)
            raise

    def _leave(self) -> None:
        while self._waiting:
            gate, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[gate] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, gate: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(gate)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[gate]


SLIPS = 1
"""Answers that are no score are asked for again so often: a model that can't say its score will not learn it."""


@dataclass(frozen=True)
class CallLimits:
    """For all gates of a process together. Seconds; `patience`: how long each gate waits for a model that answers none
    of its calls."""

    at_once: int = 20
    calls_per_minute: float | None = None
    call_seconds: float = 60.0
    patience: float = 30.0
    first_pause: float = 0.5
    longest_pause: float = 5.0
    jitter: float = 1.0


@dataclass(frozen=True)
class GateCalls:
    """Whose calls these are: what it may spend, and how long it waits."""

    name: str
    spend: Spend
    patience: CircuitBreaker


class ModelCaller:
    """`observe` is told of each call's end: `ok` or a Failure."""

    def __init__(
        self, model: Model, limits: CallLimits, now: Callable[[], float], observe: Callable[[str], None]
    ) -> None:
        self.model, self._limits, self._observe = model, limits, observe
        self._room = FairSemaphore(limits.at_once)
        self._limiter = _rate(limits.calls_per_minute)
        self._respite = SharedPause(now)
        self._everybodys = CircuitBreaker(inf, now)

    async def score(self, gate: GateCalls, judge: Judge, asked: Prompt) -> Evaluation:
        """Raises CallFailed, of the last try."""
        slips = 0

        def again(error: Exception) -> bool | float:
            nonlocal slips
            if not isinstance(error, CallFailed):
                return False
            if error.kind is Failure.SLIP:
                slips += 1
                return 0.0 if slips <= SLIPS else False
            return error.kind in PASSING and not gate.patience.over

        limits = self._limits
        async for attempt in stamina.retry_context(
            on=again, attempts=None, timeout=None,
            wait_initial=limits.first_pause, wait_max=limits.longest_pause, wait_jitter=limits.jitter,
        ):  # fmt: skip
            with attempt:
                async with self._room.place(gate.name):
                    reply = await self._call(gate, asked)
                try:
                    return evaluator_of(judge).read(reply.text, judge)
                except NoScore as error:
                    self._observe(Failure.SLIP)
                    raise CallFailed(Failure.SLIP, str(error)) from error
        raise AssertionError

    def to_blame(self, gate: GateCalls) -> CallFailed | None:
        """Why a gate was not done when its time was over; None where the model answers. Of one that got no place the
        others' calls tell, which hold them."""
        return gate.patience.to_blame() if gate.patience.asked else self._everybodys.silent()

    async def _call(self, gate: GateCalls, asked: Prompt) -> Reply:
        if gate.patience.over and (down := gate.patience.down()) is not None:
            raise down
        await self._respite.over()
        if self._limiter is not None:
            await self._limiter.acquire()
        reserved = gate.spend.reserve(asked.tokens)
        gate.patience.began()
        self._everybodys.began()
        seconds = self._limits.call_seconds
        try:
            async with asyncio.timeout(seconds):
                reply = await self.model.complete(asked)
        except TimeoutError as error:
            failure = CallFailed(Failure.TIMEOUT, f"the model gave no answer in {seconds:g} s")
            raise self._noted(failure, gate, reserved) from error
        except CallFailed as failure:
            raise self._noted(failure, gate, reserved) from None
        gate.patience.answered()
        self._everybodys.answered()
        self._observe("ok")
        gate.spend.settle(reserved, reply.tokens)
        return reply

    def _noted(self, failure: CallFailed, gate: GateCalls, reserved: int) -> CallFailed:
        gate.patience.failed(failure)
        self._everybodys.failed(failure)
        self._respite.asked(failure.retry_after)
        self._observe(failure.kind)
        if failure.kind not in (Failure.TIMEOUT, Failure.SLIP):
            gate.spend.settle(reserved, 0)  # nothing was answered, nothing is charged
        return failure


def _rate(calls_per_minute: float | None) -> AsyncLimiter | None:
    """Spread over the minute: a limiter by the minute would let all of a minute's calls go at once."""
    if calls_per_minute is None:
        return None
    per_second = calls_per_minute / 60
    return AsyncLimiter(max(per_second, 1.0), max(1.0, 1 / per_second))
