"""What one call learns about the model's server, for all others: wait, or don't ask at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evalcore.scoring.calls import PASSING, CallFailed, Failure


class Outages:
    """A server that answers nobody for `patience` seconds, over at least `calls` calls, is down: calls fail at once,
    but for one every `probe` seconds, whose end the others wait for. What it asks us to wait (429), all calls wait."""

    LONGEST_WAIT = 60.0

    def __init__(self, patience: float, calls: int, now: Callable[[], float], probe: float = 5.0) -> None:
        self._patience, self._calls, self._now, self._probe = patience, calls, now, probe
        self._since: float | None = None
        self._failed = 0
        self._probed = self._until = 0.0
        self._probing: asyncio.Event | None = None

    async def pass_or_wait(self) -> None:
        """Raises CallFailed while the server is down. Who passes says how it ended: `succeeded`, `failed` or `left`."""
        while (wait := self._until - self._now()) > 0:  # noqa: ASYNC110 - a time, and answers set it further
            await asyncio.sleep(wait)
        if not self._down():
            return
        if self._probing is None and self._now() - self._probed >= self._probe:
            self._probed, self._probing = self._now(), asyncio.Event()
            return
        if self._probing is not None:
            await self._probing.wait()
        if self._down():
            raise CallFailed(
                Failure.DOWN, f"the model has answered no call for {self._now() - (self._since or 0):.0f} s"
            )

    def succeeded(self) -> None:
        self._since, self._failed = None, 0
        self.left()

    def failed(self, failure: CallFailed) -> None:
        """A refusal is an answer: the server is there."""
        if failure.kind not in PASSING:
            self.succeeded()
            return
        now = self._now()
        self._until = max(self._until, now + min(failure.retry_after, self.LONGEST_WAIT))
        if failure.kind is not Failure.RATE_LIMITED:
            self._failed += 1
            self._since = now if self._since is None else self._since
        self.left()

    def left(self) -> None:
        if self._probing is not None:
            self._probing.set()
            self._probing = None

    def _down(self) -> bool:
        return self._since is not None and self._failed >= self._calls and self._now() - self._since >= self._patience
