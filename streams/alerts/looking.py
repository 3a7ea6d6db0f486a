"""Looks again and again, and outlives every look that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from agents.ports import Unavailable
from evalcore.stopping import heed_cancel
from schemas.dead_letters import clean

log = structlog.get_logger(__name__)


async def look_again_and_again(look: Callable[[], Awaitable[object]], every: float, waits: str, failed: str) -> None:
    """Looks at once, and again each so many seconds, until cancelled. `waits` is the log line of a look that a part out
    of reach held up, `failed` that of any other failure."""
    while True:
        try:
            await look()
        except Unavailable as error:
            log.warning(waits, reason=clean(str(error)))
        except Exception:
            log.exception(failed)
        heed_cancel()
        await asyncio.sleep(every)
