"""A worker with its HTTP side, as one process."""

from __future__ import annotations

import gc

from rampgate.settings import Settings
from rampgate.wiring import make_parts
from rampgate.worker import Worker


async def serve_worker(settings: Settings) -> int:
    """Run a worker until it is told to stop; returns its exit code."""
    parts = make_parts(settings)
    quiet_collector()
    try:
        return await Worker(parts).run()
    finally:
        await parts.close()


def quiet_collector() -> None:
    """Leave what is loaded by now out of garbage collection, and collect seldom: a batch makes tens of thousands of
    objects that die with it, and looking through them took a third of the worker's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 20, 20)
