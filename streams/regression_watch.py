"""Looks at the live scores again and again, and has what follows from a floor breach done once (PC5 §5.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog
from redis.exceptions import RedisError

from agents.live_scores import watched
from agents.ports import Clock, Store, Unavailable
from evalcore.gates.regression import Breach, Response, Step, look
from evalcore.registry import Registry
from schemas.dead_letters import clean

log = structlog.get_logger(__name__)
LEASE_MS = 300_000
"""Longer than a round of notifications may take: no two workers respond to the same breach."""


class RegressionWatch:
    """Any number of workers may have one; the open breaches are in Redis, and one worker looks at a time."""

    def __init__(
        self,
        redis: Any,
        prefix: str,
        store: Store,
        clock: Clock,
        registry: Callable[[], Registry | None],
        carry_out: Callable[[Response], Awaitable[dict[Step, str]]],
        *,
        window_seconds: float,
        minimum: int,
        ramping: bool,
        every: float,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._redis, self._open, self._lease = redis, prefix + "regressions", prefix + "regressions-watched"
        self._store, self._clock, self._registry, self._carry_out = store, clock, registry, carry_out
        self._window, self._minimum, self._ramping = round(window_seconds * 1000), minimum, ramping
        self._every, self._ready = every, ready

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._every)
            try:
                if self._ready():
                    await self.once()
            except (Unavailable, RedisError, OSError) as error:
                log.warning("regression_watch_waits", reason=clean(str(error)))
            except Exception:
                log.exception("regression_watch_failed")

    async def once(self) -> list[Response]:
        registry = self._registry()
        if registry is None or not await self._redis.set(self._lease, b"1", nx=True, px=LEASE_MS):
            return []
        try:
            return await self._look(registry)
        finally:
            await self._redis.delete(self._lease)

    async def _look(self, registry: Registry) -> list[Response]:
        now = self._clock.now_ms()
        known = {
            key: Breach(**value) for key, value in orjson.loads(await self._redis.get(self._open) or b"{}").items()
        }
        found = await watched(self._store, registry, now, self._window)
        outcome = look(found, known, self._minimum, self._ramping, datetime.fromtimestamp(now / 1000, UTC))
        for response in outcome.responses:
            failed = await self._carry_out(response)
            key = response.breach.key
            if Step.RAMP_DOWN in failed:
                continue  # not open yet: the next look has the whole response done again
            if response.recovered:
                known.pop(key, None)
            else:
                known[key] = response.breach
            await self._redis.set(self._open, orjson.dumps({name: asdict(one) for name, one in known.items()}))
        return list(outcome.responses)
