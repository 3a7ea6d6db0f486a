"""Ending a task that is inside a client when it is told to stop."""

from __future__ import annotations

import asyncio


def heed_cancel() -> None:
    """Raise CancelledError if this task was told to stop and a call swallowed that. For each round of an endless loop.

    Clients turn a cancellation into errors of their own now and then, and `asyncio.wait_for` of Python 3.11 loses one
    that comes as its call ends. A loop that goes on after that holds up its process's stop for good.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
