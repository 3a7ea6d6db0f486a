"""Updates the gauges of the shared state when `/metrics` is read; one process alone can't know them."""

from __future__ import annotations

import asyncio
import math
import time

import structlog
from prometheus_client import Gauge

from agents.ports import Unavailable
from rampgate.queries import Queries
from schemas.answers import Conservation, Coverage
from schemas.dead_letters import clean
from streams.metrics import Metrics

log = structlog.get_logger(__name__)
FRESH_SECONDS = 5.0


class Scrape:
    """Reads Redis at most once in `FRESH_SECONDS`. A figure that it can't read has no series, rather than an old
    value."""

    def __init__(self, metrics: Metrics, queries: Queries) -> None:
        self._metrics, self._queries = metrics, queries
        self._read_at = -math.inf
        self._lock = asyncio.Lock()
        self._shown: set[tuple[Gauge, str]] = set()
        self._signals: set[str] = set()

    async def refresh(self) -> None:
        """Update the gauges. Never raises for a part out of reach: the process's own figures must be readable then
        too."""
        async with self._lock:
            if time.monotonic() - self._read_at < FRESH_SECONDS:
                return
            try:
                covered = (await self._queries.coverage()).verticals
                balance: Conservation | None = await self._queries.conservation()
            except Unavailable as error:
                log.warning("scrape_without_state", reason=clean(str(error)))
                covered, balance = [], None
            self._show_coverage(covered)
            self._show_balance(balance)
            self._read_at = time.monotonic()

    def _show_coverage(self, covered: list[Coverage]) -> None:
        metrics = self._metrics
        wanted: dict[tuple[Gauge, str], float] = {}
        for row in covered:
            wanted[metrics.both_present, row.vertical] = row.both_present
            wanted[metrics.missing_trace, row.vertical] = row.missing_trace
            wanted[metrics.missing_signal, row.vertical] = row.missing_signal
            wanted[metrics.joined_unjudged, row.vertical] = row.unjudged
            if row.rate is not None:
                wanted[metrics.coverage_rate, row.vertical] = row.rate
        for gauge, vertical in self._shown - wanted.keys():
            gauge.remove(vertical)
        for (gauge, vertical), value in wanted.items():
            gauge.labels(vertical).set(value)
        self._shown = set(wanted)

    def _show_balance(self, balance: Conservation | None) -> None:
        metrics = self._metrics
        signals = balance.signals if balance is not None else {}
        for signal in self._signals - signals.keys():
            metrics.conservation_difference.remove(signal)
        for signal, one in signals.items():
            metrics.conservation_difference.labels(signal).set(one.difference)
        self._signals = set(signals)
        metrics.parked.set(sum(one.parked for one in signals.values()) if balance is not None else math.nan)
