"""Calls a judge's model, and repeats a prompt until there is a score or no point in asking (PC5 §9.5).

Its limits hold for all gates of a process together: calls at once, shared fairly, calls a minute, and the pause that
the model's server asks for. What one gate may spend, and how long it waits, is the gate's own.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

import stamina
import stamina.instrumentation
import structlog
from aiolimiter import AsyncLimiter

from evalcore.framing import MOST_TOKENS
from evalcore.judges.evaluator import Evaluation, NoScore, Prompt
from evalcore.judges.kinds import evaluator_of
from evalcore.registry.judge import Judge
from evalcore.scoring.calls import PASSING, Bill, CallFailed, CircuitBreaker, Failure, Model, Reply, Spend

T = TypeVar("T")
_PRINTING = "stamina.instrumentation._structlog"
SLIPS = 1
"""Times that a reply without a score is asked for again: a model that can't say its score does not learn it."""


def retries_to_logging() -> None:
    """Has retries told through `logging` in a process that has not configured structlog, which would print them to
    stdout: that is the caller's, and `--json`'s. Other hooks stay."""
    if structlog.is_configured():
        return
    hooks = stamina.instrumentation.get_on_retry_hooks()
    others = [hook for hook in hooks if getattr(hook, "__module__", "") != _PRINTING]
    if len(others) < len(hooks):
        stamina.instrumentation.set_on_retry_hooks([*others, stamina.instrumentation.LoggingOnRetryHook])


class FairSemaphore:
    """Lets `places` calls run at once, and gives free places to the waiting gates in turn: a gate that comes late with
    few calls does not wait for all calls that came before."""

    def __init__(self, places: int) -> None:
        if places < 1:
            raise ValueError("at least one place is needed")
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
                self._leave()  # the place was given at the moment in which the call was cancelled
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


class SharedPause:
    """A wait that the server asks of one call (429) holds for all calls; `LONGEST` in seconds."""

    LONGEST = 60.0

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._until = now, 0.0

    def prolong(self, seconds: float) -> None:
        self._until = max(self._until, self._now() + min(seconds, self.LONGEST))

    async def wait(self) -> None:
        """Wait until the pause is over; replies that come meanwhile may prolong it."""
        while True:
            wait = self._until - self._now()
            if wait <= 0:
                return
            await asyncio.sleep(wait)


@dataclass(frozen=True)
class CallLimits:
    """Limits for all gates of a process together; times are in seconds. `patience`: how long each gate waits for a
    model that answers none of its calls. `judged_tokens`: how much of an item's texts a judge is shown."""

    at_once: int = 20
    calls_per_minute: float | None = None
    call_seconds: float = 60.0
    patience: float = 30.0
    first_pause: float = 0.5
    longest_pause: float = 5.0
    jitter: float = 1.0
    judged_tokens: int = MOST_TOKENS


@dataclass(frozen=True)
class GateCalls:
    """The gate that makes calls: what it may spend, and the breaker that ends its waiting."""

    name: str
    spend: Spend
    breaker: CircuitBreaker
    paying: FairSemaphore = field(default_factory=lambda: FairSemaphore(1))

    @asynccontextmanager
    async def paid(self, tokens: int) -> AsyncIterator[Bill]:
        """Yields the bill of a call, in the order of asking. Before a place is taken: a gate that waits for its own
        calls holds up no other. Raises CallFailed."""
        with ExitStack() as stack:
            async with self.paying.place(self.name):
                await self.spend.room(tokens)
                bill = stack.enter_context(self.spend.begun(tokens))
            yield bill


class ModelCaller:
    """Asks the model within the limits. `observe` is told of each call's end: `ok` or a Failure."""

    def __init__(
        self, model: Model, limits: CallLimits, now: Callable[[], float], observe: Callable[[str], None]
    ) -> None:
        retries_to_logging()
        self.model, self._limits, self._observe = model, limits, observe
        self._places = FairSemaphore(limits.at_once)
        self._limiter = _rate(limits.calls_per_minute)
        self._pause = SharedPause(now)
        self._everyones = CircuitBreaker(inf, now)

    async def score(self, gate: GateCalls, judge: Judge, asked: Prompt) -> Evaluation:
        """The evaluation that the model's reply gives. Raises the last try's CallFailed."""
        return await self.ask(gate, asked, lambda reply: evaluator_of(judge).read(reply, judge))

    async def ask(self, gate: GateCalls, asked: Prompt, read: Callable[[str], T]) -> T:
        """What `read` makes of the model's reply; where it raises NoScore, the model is asked once more. Raises the
        last try's CallFailed."""
        slips = 0

        def again(error: Exception) -> bool | float:
            nonlocal slips
            if not isinstance(error, CallFailed):
                return False
            if error.kind is Failure.SLIP:
                slips += 1
                return 0.0 if slips <= SLIPS else False
            return error.kind in PASSING and not gate.breaker.over

        limits = self._limits
        async for attempt in stamina.retry_context(
            on=again, attempts=None, timeout=None,
            wait_initial=limits.first_pause, wait_max=limits.longest_pause, wait_jitter=limits.jitter,
        ):  # fmt: skip
            with attempt:
                async with gate.paid(asked.tokens) as bill, self._places.place(gate.name):
                    reply = await self._call(gate, asked, bill)
                try:
                    return read(reply.text)
                except NoScore as error:
                    self._observe(Failure.SLIP)
                    raise CallFailed(Failure.SLIP, str(error)) from error
        raise AssertionError

    def to_blame(self, gate: GateCalls) -> CallFailed | None:
        """Returns why a gate was not done when its time was over; None where the model answers. For a gate that got no
        place, the calls of other gates tell, since they hold the places."""
        return gate.breaker.to_blame() if gate.breaker.asked else self._everyones.silent()

    async def _call(self, gate: GateCalls, asked: Prompt, bill: Bill) -> Reply:
        if gate.breaker.over and (down := gate.breaker.down()) is not None:
            raise down
        await self._pause.wait()
        if self._limiter is not None:
            await self._limiter.acquire()
        bill.made = True
        gate.breaker.began()
        self._everyones.began()
        seconds = self._limits.call_seconds
        try:
            async with asyncio.timeout(seconds):
                reply = await self.model.complete(asked)
        except TimeoutError as error:
            failure = CallFailed(Failure.TIMEOUT, f"the model gave no answer in {seconds:g} s")
            raise self._noted(failure, gate, bill) from error
        except CallFailed as failure:
            raise self._noted(failure, gate, bill) from None
        gate.breaker.answered()
        self._everyones.answered()
        self._observe("ok")
        gate.spend.charge(bill.reserved, reply.tokens, reply.dollars, prompt=bill.prompt)
        return reply

    def _noted(self, failure: CallFailed, gate: GateCalls, bill: Bill) -> CallFailed:
        gate.breaker.failed(failure)
        self._everyones.failed(failure)
        self._pause.prolong(failure.retry_after)
        self._observe(failure.kind)
        if failure.kind not in (Failure.TIMEOUT, Failure.SLIP):
            gate.spend.charge(bill.reserved, 0)  # nothing was answered, nothing is charged
        return failure


def _rate(calls_per_minute: float | None) -> AsyncLimiter | None:
    """A limiter that spreads calls over the minute: one by the minute would let all of them go at once."""
    if calls_per_minute is None:
        return None
    per_second = calls_per_minute / 60
    return AsyncLimiter(max(per_second, 1.0), max(1.0, 1 / per_second))
