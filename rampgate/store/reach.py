"""Whether a store's address is worth asking: a run goes on without a store that is away, instead of waiting for it at
each answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from agents.ports import Unavailable
from rampgate.store.shelf import unusable

AWAY_SECONDS: Final = 15.0
"""So long an address that nobody answered at is not asked."""


class Reach:
    """One address; threads may share it. `shown` is the address without a password."""

    def __init__(self, shown: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.shown, self._clock = shown, clock
        self._away: tuple[float, str] | None = None

    def check(self) -> None:
        """Raises Unavailable for AWAY_SECONDS after a call that nobody answered."""
        away = self._away
        if away is not None and self._clock() < away[0]:
            raise Unavailable(away[1])

    def lost(self, why: object) -> Unavailable:
        """Take notice that nobody answered; returns what says so."""
        told = unusable(self.shown, why)
        self._away = self._clock() + AWAY_SECONDS, told
        return Unavailable(told)
