"""Pauses that an event ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Wait so many seconds, or until the event is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(until.wait(), seconds)
