"""Gaps: records that may be lost on their way from the table. Said in the log, as a metric, and in Redis for people."""

from __future__ import annotations

import structlog

from agents.ports import Clock
from streams.leases import Ledger, label
from streams.metrics import Metrics
from streams.shards import Place, Shard, forgettable, vanished

log = structlog.get_logger(__name__)


class Gaps:
    """Of one feed. `count` is how many it reported."""

    def __init__(self, ledger: Ledger, clock: Clock, metrics: Metrics) -> None:
        self._ledger, self._clock, self._metrics = ledger, clock, metrics
        self._missing: set[str] = set()
        self.count = 0

    async def report(self, arn: str, shard: str, reason: str, since_ms: int = 0, sequence: str | None = None) -> None:
        """Everything up to `since_ms` and `sequence` was published; what came next may be lost."""
        log.error("feed_gap", shard=shard, reason=reason, since_ms=since_ms, after=sequence, remedy="rampgate sweep")
        now = self._clock.now_ms()
        gap = {"at_ms": now, "stream": label(arn), "shard": shard, "reason": reason}
        await self._ledger.add_gap(gap | {"since_ms": since_ms, "sequence": sequence})
        self.count += 1
        self._metrics.feed_gaps.inc()

    async def account_for(self, arn: str, listed: list[Shard], reading: set[str], *, sure: bool) -> None:
        """Call with each listing. Unread shards that two in a row don't have are gaps: a reshard may tear one listing.
        `sure`: there will be no second. Read ones that are gone are forgotten."""
        places: dict[str, Place] = await self._ledger.places(arn)
        names = [shard.shard_id for shard in listed]
        gone = set(vanished(names, places)) - reading
        lost = sorted(gone if sure else gone & self._missing)
        self._missing = gone
        for shard in lost:
            await self.report(arn, shard, "the shard is gone", places[shard].time, places[shard].seq)
        await self._ledger.forget(arn, lost + forgettable(names, places))
