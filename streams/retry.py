"""Repeats failed calls: which ones, how long to wait before each, and when to give up; and the worker's clock, with
whether it can be trusted.

All code in `streams` that repeats a failed call uses `Retry`; loops that sleep in a way of their own use its `pause`.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import structlog
from tenacity import RetryCallState, retry_if_exception_type
from tenacity.asyncio import AsyncRetrying

from agents.ports import Unavailable
from evalcore.stopping import heed_cancel
from schemas.dead_letters import clean

log = structlog.get_logger(__name__)
T = TypeVar("T")
RETRIED_STATUSES: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""HTTP answers after which the same request may succeed."""


CLOCK_LIMIT_MS: Final = 60_000


class WallClock:
    """The time of this machine. It is trusted while it agrees with a witness, Redis, to CLOCK_LIMIT_MS.

    Between two looks at the witness the monotonic clock goes on for it, so that a clock that is set wrong is noticed at
    the next question. A clock that was never compared is trusted.
    """

    def __init__(self) -> None:
        self._witness: tuple[float, float] | None = None

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def compare(self, witness_ms: float, at: float) -> None:
        """Take what the witness said, at a time of the monotonic clock (seconds)."""
        self._witness = witness_ms, at

    def ahead_ms(self) -> int:
        """How far this clock is ahead of the witness's; below zero where it is behind, 0 where it was not compared."""
        if self._witness is None:
            return 0
        told, at = self._witness
        return round(self.now_ms() - told - (time.monotonic() - at) * 1000)

    def doubt(self) -> str:
        """Why this clock can't be trusted; "" where it can."""
        ahead = self.ahead_ms()
        if abs(ahead) <= CLOCK_LIMIT_MS:
            return ""
        side = "ahead of" if ahead > 0 else "behind"
        return f"this machine's clock is {abs(ahead) // 1000} s {side} Redis's; one of the two is wrong"

    def trusted_ms(self) -> int:
        """The time. Raises Unavailable while this clock can't be trusted: what is decided by it, such as which record
        is too old, must wait."""
        doubt = self.doubt()
        if doubt:
            raise Unavailable(doubt)
        return self.now_ms()


class TryAgain(Exception):
    """A failed try that may be repeated. `hint`: seconds that the server asks to wait, 0 where it names none."""

    def __init__(self, why: str, hint: float = 0.0) -> None:
        super().__init__(why)
        self.hint = hint


@dataclass(frozen=True)
class Retry:
    """Waits `first` seconds after the first failure and twice as long after each further one, up to `longest`.

    It waits out a server's hint in full, up to `longest_hint`. It gives up after `tries` tries, or when the next try
    would begin more than `seconds` after the first, except that it waits out a hint even then. Where both are None it
    goes on until it is cancelled.
    """

    first: float = 0.2
    longest: float = 5.0
    longest_hint: float = 60.0
    tries: int | None = None
    seconds: float | None = None

    def pause(self, failures: int, hint: float = 0.0) -> float:
        """Seconds to wait after this many failures in a row (1 or more), give or take a quarter, so that many workers
        don't try again at the same moment."""
        growing = min(self.first * 2.0 ** min(failures - 1, 60), self.longest)
        spread = growing * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, not a secret
        return max(spread, min(hint, self.longest_hint))

    async def call(
        self,
        call: Callable[[], Awaitable[T]],
        again: type[Exception] | tuple[type[Exception], ...],
        *,
        noticed: Callable[[BaseException, int, float], None] = lambda error, failures, pause: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> T:
        """The result of `call`, which is repeated after the errors in `again`. Raises the last error when it gives up,
        and every other error at once. Once its task is cancelled it tries no more, whatever the call made of that.

        `noticed` is told of each error that is about to be tried again, the failures so far, and the pause.
        """
        began = clock()

        async def attempt() -> T:
            return await call()

        def wait(state: RetryCallState) -> float:
            return self.pause(state.attempt_number, _hint(state))

        def stop(state: RetryCallState) -> bool:
            if self.tries is not None and state.attempt_number >= self.tries:
                return True
            pause = 0.0 if _hint(state) else state.upcoming_sleep
            return self.seconds is not None and clock() + pause > began + self.seconds

        def notice(state: RetryCallState) -> None:
            heed_cancel()
            noticed(_error(state), state.attempt_number, round(state.upcoming_sleep, 2))

        retrying = AsyncRetrying(
            retry=retry_if_exception_type(again),
            wait=wait,
            stop=stop,
            before_sleep=notice,
            sleep=sleep,
            reraise=True,
        )
        return await retrying(attempt)


def logged(event: str, **about: object) -> Callable[[BaseException, int, float], None]:
    """Return a `noticed` that logs each failure as this event."""

    def noticed(error: BaseException, failures: int, pause: float) -> None:
        reason = str(error) if isinstance(error, Unavailable | TryAgain) else reason_of(error)
        log.warning(event, reason=clean(reason), attempt=failures, seconds=pause, **about)

    return noticed


def reason_of(error: BaseException) -> str:
    """The error's type and text, as logs and error texts say it."""
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _error(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome is not None else None
    return error or AssertionError("a try that did not fail is not repeated")


def _hint(state: RetryCallState) -> float:
    error = _error(state)
    return error.hint if isinstance(error, TryAgain) else 0.0
