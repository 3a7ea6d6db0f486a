"""A worker with its HTTP side, as one process."""

from __future__ import annotations

from rampgate.settings import Settings
from rampgate.wiring import make_parts
from rampgate.worker import Worker


async def serve_worker(settings: Settings) -> int:
    """Run a worker until it is told to stop; returns its exit code."""
    parts = make_parts(settings)
    try:
        return await Worker(parts).run()
    finally:
        await parts.close()
