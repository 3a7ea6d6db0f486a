"""Ends a gate's waiting for a model that answers none of its calls (PC5 §9.5)."""

from __future__ import annotations

from collections.abc import Callable

from evalcore.scoring.calls import PASSING, CallFailed, Failure

MANY = 0.1
"""Share of failed calls from which the model is to blame for what a gate left unscored."""
GLITCH = 1.0
"""Seconds without an answer that do not yet make a model silent."""


class CircuitBreaker:
    """Opens for one gate `seconds` after the first call that failed since a call was answered.

    A model that answers some calls keeps it closed.
    """

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds, self._now = seconds, now
        self._silent_since: float | None = None
        self._failing_since = 0.0
        self._last: CallFailed | None = None
        self._answered = self._failed = 0

    def began(self) -> None:
        """Note a call. It may never end, so silence is as old as the first call without an answer."""
        if self._silent_since is None:
            self._silent_since = self._now()

    def answered(self) -> None:
        self._answered += 1
        self._silent_since = self._last = None

    def failed(self, failure: CallFailed) -> None:
        """Note a failed call. A refusal is an answer: the server is there."""
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
        """The failure of calls that were not made; None where the model answers."""
        if self._last is None:
            return None
        return CallFailed(Failure.DOWN, f"{self._silent}: {self._last.message}")

    def to_blame(self) -> CallFailed | None:
        """The model's failure that left items unscored when the time was over; None for a model that was only slow.

        It is to blame where it answered no call, at all or for as long as a gate waits, and where many calls failed.
        """
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
        """True once a call was made."""
        return self._silent_since is not None or self._answered + self._failed > 0

    def silent(self) -> CallFailed | None:
        return CallFailed(Failure.DOWN, self._silent) if self._silence >= GLITCH else None

    @property
    def _silence(self) -> float:
        return self._now() - self._silent_since if self._silent_since is not None else 0.0

    @property
    def _silent(self) -> str:
        return f"the model has answered no call for {self._silence:.0f} s"
