"""Ends tasks whose cancellation a client swallowed."""

from __future__ import annotations

import asyncio


def heed_cancel() -> None:
    """Raises CancelledError if this task was cancelled and a call swallowed that. Call it in each round of an endless
    loop, and where a task goes on after a client's call.

    Clients sometimes turn a cancellation into an error of their own, and `asyncio.wait_for` of Python 3.11 loses one
    that comes as its call ends. A loop that goes on after that never lets its process stop.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
