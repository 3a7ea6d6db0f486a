"""How long to wait for a part that is unavailable, from one try to the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat

PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)


def pauses() -> Iterator[float]:
    """Seconds, without end: what is waited for comes back some day, or whoever waits is cancelled."""
    return chain(PAUSES, repeat(PAUSES[-1]))
