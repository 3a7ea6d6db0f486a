"""A model that answers nobody: how long a gate waits for it, and what it asks everybody to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evalcore.scoring.calls import PASSING, CallFailed, Failure

MANY = 0.1
"""Of a gate's calls, that failed."""
GLITCH = 1.0
"""Seconds; a model that failed within them only is not yet silent."""


class CircuitBreaker:
    """One gate's with its model: `seconds` from the first call that failed since one was answered. A model that is half
    down tries nobody's patience."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._silent_since: float | None = None
        self._failing_since = 0.0
        self._last: CallFailed | None = None
        self._answered = self._failed = 0

    def began(self) -> None:
        """A call. It may never end: the silence is as old as the first of them."""
        if self._silent_since is None:
            self._silent_since = self._now()

    def answered(self) -> None:
        self._answered += 1
        self._silent_since = self._last = None

    def failed(self, failure: CallFailed) -> None:
        """A refusal is an answer: the server is there."""
        if failure.kind not in PASSING:
            self.answered()
            return
        self.began()
        self._failed += 1
        if self._last is None:
            self._failing_since = self._now()
        self._last = failure

    @property
    def over(self) -> bool:
        return self._last is not None and self._now() - self._failing_since >= self._seconds

    def down(self) -> CallFailed | None:
        """Why calls that were not made have no answer; None where the model answers."""
        if self._last is None:
            return None
        return CallFailed(Failure.DOWN, f"{self._silent}: {self._last.message}")

    def to_blame(self) -> CallFailed | None:
        """Why what was not scored when the time was over was not; None of a model that answers and was too slow. It is
        to blame where it answered nobody, at all or for as long as a gate waits, and where many of its calls failed."""
        if self._last is not None and self._silence >= GLITCH:
            return self.down()
        calls = self._answered + self._failed
        if self._failed and self._failed >= MANY * calls:
            why = f", the last so: {self._last.message}" if self._last is not None else ""
            return CallFailed(Failure.DOWN, f"the model failed {self._failed} of {calls} calls{why}")
        if self._silent_since is not None and (not self._answered or self._silence >= self._seconds):
            return CallFailed(Failure.DOWN, self._silent)
        return None

    @property
    def asked(self) -> bool:
        """Whether a call was made at all."""
        return self._silent_since is not None or self._answered + self._failed > 0

    def silent(self) -> CallFailed | None:
        return CallFailed(Failure.DOWN, self._silent) if self._silence >= GLITCH else None

    @property
    def _silence(self) -> float:
        return self._now() - self._silent_since if self._silent_since is not None else 0.0

    @property
    def _silent(self) -> str:
        return f"the model has answered no call for {self._silence:.0f} s"


class SharedPause:
    """What the server asks one call to wait (429), all wait."""

    LONGEST = 60.0

    def __init__(self, now: Callable[[], float]) -> None:
        self._now, self._until = now, 0.0

    def asked(self, seconds: float) -> None:
        self._until = max(self._until, self._now() + min(seconds, self.LONGEST))

    async def over(self) -> None:
        """Answers that come meanwhile set its end further."""
        while (wait := self._until - self._now()) > 0:  # noqa: ASYNC110 - a time, and answers set it further
            await asyncio.sleep(wait)
