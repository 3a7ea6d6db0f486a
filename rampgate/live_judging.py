"""From settings to live judging: what scores live traces inside a worker, and watches the scores (PC5 FR-11, §5.7)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import structlog

from agents.live_judging import NAME, LiveJudging
from agents.live_writing import Judged
from evalcore import live
from evalcore.scoring import Scorer
from rampgate.regressions import make_watch
from rampgate.settings import Settings
from rampgate.wiring import Parts
from streams.side_feed import SideFeed

log = structlog.get_logger(__name__)
GROUP = "-live"
"""Added to the worker's group: these offsets are the live judges' own."""


def why_off(settings: Settings) -> str:
    """Empty where live traces are judged."""
    if not settings.live_judging:
        return "live_judging is off"
    if settings.model_url is None:
        return "no judges' model is configured: RAMPGATE_MODEL_URL"
    return "" if settings.write else "writing is off"


class LiveJudges:
    """Started and closed with the worker. `scorer` is the gates': they share its limits and its cache."""

    def __init__(self, parts: Parts, scorer: Scorer | None) -> None:
        self._parts, self._scorer = parts, scorer
        self.feed: SideFeed | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._client: httpx.AsyncClient | None = None

    def start(self, replaying: Callable[[], bool]) -> None:
        parts, settings = self._parts, self._parts.settings
        off = why_off(settings)
        log.info("live_judging", state=off or "on", settle_seconds=settings.live_settle_seconds)
        if off or self._scorer is None:
            return
        judging = LiveJudging(
            parts.ports,
            parts.policy,
            self._scorer,
            live.loaded,
            parts.opik.traces.get,
            frozenset(name for name, vertical in parts.verticals.items() if vertical.live_judge == "opik"),
            parts.topics["traces"],
            self._observe,
        )
        self.feed = SideFeed(
            NAME,
            parts.access,
            settings.group + GROUP,
            {parts.topics["traces"]: judging.traces, parts.topics["thumbs"]: judging.thumbs},
            parts.clock,
            settings.live_settle_seconds,
            session_seconds=settings.session_timeout_seconds,
            ready=lambda: not replaying(),
        )
        self._client = httpx.AsyncClient(follow_redirects=False)
        watch = make_watch(parts, self._client, replaying)
        self._tasks = [
            asyncio.create_task(self.feed.run(), name="live-judging"),
            asyncio.create_task(watch.run(), name="regressions"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    def _observe(self, judged: Judged) -> None:
        for outcome in judged.outcomes():
            self._parts.metrics.live_scores.labels(outcome).inc()
