"""From settings to live judging: what scores live traces inside a worker (PC5 §5.2, FR-11)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from agents.live_judging import LiveJudging
from agents.live_writing import Judged
from evalcore import live
from evalcore.scoring import Scorer
from rampgate.settings import Settings
from rampgate.wiring import Parts
from streams.live_feed import LiveFeed

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
        self._task: asyncio.Task[None] | None = None

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
        feed = LiveFeed(
            parts.access,
            settings.group + GROUP,
            {parts.topics["traces"]: judging.traces, parts.topics["thumbs"]: judging.thumbs},
            parts.clock,
            settings.live_settle_seconds,
            session_seconds=settings.session_timeout_seconds,
            ready=lambda: not replaying(),
        )
        self._task = asyncio.create_task(feed.run(), name="live-judging")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _observe(self, judged: Judged) -> None:
        for outcome in judged.outcomes():
            self._parts.metrics.live_scores.labels(outcome).inc()
