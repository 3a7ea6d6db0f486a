"""A model that answers nobody: how long a gate waits for it, and what it asks everybody to wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evalcore.scoring.calls import PASSING, CallFailed, Failure


class Patience:
    """One gate's with its model: `seconds` from the first call that failed since one was answered. A model that is half
    down tries nobody's patience."""

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._since = 0.0
        self._last: CallFailed | None = None

    def answered(self) -> None:
        self._last = None

    def failed(self, failure: CallFailed) -> None:
        """A refusal is an answer: the server is there."""
        if failure.kind not in PASSING:
            self.answered()
            return
        if self._last is None:
            self._since = self._now()
        self._last = failure

    @property
    def over(self) -> bool:
        return self._last is not None and self._now() - self._since >= self._seconds

    def down(self) -> CallFailed | None:
        """Why calls that were not made have no answer; None where the model answers."""
        if self._last is None:
            return None
        return CallFailed(
            Failure.DOWN, f"the model has answered no call for {self._now() - self._since:.0f} s: {self._last.message}"
        )


class Respite:
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
