"""A loop that is told to stop stops, also when the client it was in swallowed that."""

from __future__ import annotations

import asyncio

import pytest

from streams.stopping import heed_cancel


async def swallowing_client() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise OSError("connection lost") from None


async def test_a_swallowed_cancellation_ends_the_loop_all_the_same() -> None:
    async def loop() -> None:
        while True:
            try:
                await swallowing_client()
            except OSError:
                heed_cancel()
                await asyncio.sleep(60)

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)


async def test_nothing_happens_to_a_task_that_nobody_stopped() -> None:
    heed_cancel()
