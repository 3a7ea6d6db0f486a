"""What one call learns about the model's server, for all others: wait, or don't ask at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evalcore.scoring.calls import PASSING, CallFailed, Failure


class Outages:
    """A server that answers nobody for `patience` seconds, over at least `calls` calls, is down: calls fail at once,
    but for one every `probe` seconds, until one succeeds. What it asks us to wait (429), all calls wait."""

    LONGEST_WAIT = 60.0

    def __init__(self, patience: float, calls: int, now: Callable[[], float], probe: float = 5.0) -> None:
        self._patience, self._calls, self._now, self._probe = patience, calls, now, probe
        self._since: float | None = None
        self._failed = 0
        self._probed = self._until = 0.0

    async def pass_or_wait(self) -> None:
        """Raises CallFailed while the server is down."""
        while (wait := self._until - self._now()) > 0:  # noqa: ASYNC110 - a time, and answers set it further
            await asyncio.sleep(wait)
        now = self._now()
        if self._since is None or self._failed < self._calls or now - self._since < self._patience:
            return
        if now - self._probed < self._probe:
            raise CallFailed(Failure.DOWN, f"the model has answered no call for {now - self._since:.0f} s")
        self._probed = now

    def succeeded(self) -> None:
        self._since, self._failed = None, 0

    def failed(self, failure: CallFailed) -> None:
        """A refusal is an answer: the server is there."""
        if failure.kind not in PASSING:
            self.succeeded()
            return
        now = self._now()
        self._until = max(self._until, now + min(failure.retry_after, self.LONGEST_WAIT))
        if failure.kind is Failure.RATE_LIMITED:
            return
        self._failed += 1
        if self._since is None:
            self._since = now
