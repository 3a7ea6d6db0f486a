"""Ends tasks: pauses that an event ends, and cancellations that a client swallowed."""

from __future__ import annotations

import asyncio
from contextlib import suppress


def heed_cancel() -> None:
    """Raise CancelledError if this task was cancelled and a call swallowed that. Call it in each round of an endless
    loop.

    Clients sometimes turn a cancellation into an error of their own, and `asyncio.wait_for` of Python 3.11 loses one
    that comes as its call ends. A loop that goes on after that never lets its process stop.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def pause(seconds: float, until: asyncio.Event) -> None:
    """Wait so many seconds, or until the event is set."""
    with suppress(TimeoutError):
        await asyncio.wait_for(until.wait(), seconds)
