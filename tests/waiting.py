"""Waiting for what nothing tells of. The deadlines are a slow machine's: a test that holds is done long before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

LONG = 60.0


def until(condition: Callable[[], object], what: str = "", seconds: float = LONG) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what or 'what was waited for'}: not within {seconds:g} s"
        time.sleep(0.1)


async def come(condition: Callable[[], object], seconds: float = LONG) -> None:
    """The same on a loop, which goes on meanwhile."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"it did not come to pass within {seconds:g} s"
        await asyncio.sleep(0.005)
