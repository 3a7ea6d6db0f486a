"""What a gate asks beside its judges: earlier verdicts, the join's coverage, and who may publish."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from redis.exceptions import RedisError

from agents.join.counting import BOTH
from agents.keys import PUBLISH_LEASE
from agents.ports import Clock, Store, Unavailable
from evalcore.gates.history import Line
from evalcore.gates.requests import RampRequest
from streams.gates.pooled_traces import Whole
from streams.gates.verdict_log import VerdictLog
from streams.queries.coverage import of_one, read_counts

LEASE_MS = 60_000
"""Twice as long as a producer may take."""
TAKE = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""


class VerdictHistory:
    """The gates' `History`, out of the verdicts' topic."""

    def __init__(self, verdicts: VerdictLog) -> None:
        self._verdicts = verdicts

    async def baseline(self, asked: RampRequest, line: Line) -> Sequence[float]:
        return self._verdicts.history.baseline(line, asked.request_id)

    async def suspended(self, judge: str) -> str:
        return ""


class WindowCoverage:
    """The gates' `JoinCoverage`."""

    def __init__(self, store: Store, clock: Clock, registered: Sequence[str], whole: Whole = nullcontext) -> None:
        self._store, self._clock, self._registered, self._whole = store, clock, registered, whole

    async def rate(self, vertical: str | None, window_seconds: int) -> float | None:
        async with self._whole():
            counts = await read_counts(self._store, self._clock.now_ms(), window_seconds)
        if vertical is not None:
            return of_one(counts, vertical, self._registered, window_seconds).rate
        total = sum(counts.values())
        both = sum(turns for (_, kind), turns in counts.items() if kind == BOTH)
        return both / total if total else None


class PublishLeases:
    """In Redis. A worker that dies leaves its lease to expire, and the next one then finds whether it published."""

    def __init__(self, redis: Any, prefix: str) -> None:
        self._prefix = prefix
        self._take = redis.register_script(TAKE)

    async def take(self, request_id: str, owner: str) -> bool:
        try:
            return bool(await self._take(keys=[self._prefix + PUBLISH_LEASE.key(request_id)], args=[owner, LEASE_MS]))
        except (RedisError, OSError, TimeoutError) as error:
            raise Unavailable(f"Redis: {error}") from error
