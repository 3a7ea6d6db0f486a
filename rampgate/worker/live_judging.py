"""Makes, from the settings, what scores live traces inside a worker and what watches those scores (PC5 FR-11, §5.7).

The watch tells a regression to people and to the rollout controller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum

import structlog

from agents.live.balance import Balance, End, Whose
from agents.live.judging import NAME, LiveJudging, Said, outcomes_of
from evalcore.gates.regression import Event, Kind, Response, WatchLimits
from evalcore.scoring.http_client import HttpClient
from evalcore.scoring.runner import Scorer
from rampgate.registry.metrics import observed
from rampgate.settings import Settings, revealed
from rampgate.wiring import Parts
from streams.alerts.notifiers import Address, Notifier, grafana
from streams.alerts.ramp_commands import RampCommands
from streams.alerts.regression_response import Channels, Responder, TrendLog
from streams.alerts.regression_watch import RegressionWatch
from streams.alerts.triage_log import TriageLog
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.metrics import Metrics

log = structlog.get_logger(__name__)
ALERTS = 8, 30.0
"""Connections of the notifiers' client, and seconds."""
GROUP = "-live"
"""Ends the name of the consumer group: live judging commits offsets of its own."""


def channels_of(settings: Settings) -> Channels:
    hook, token = revealed(settings.slack_webhook), revealed(settings.grafana_token)
    board = grafana(settings.grafana_url, token) if settings.grafana_url and token else None
    return Channels(
        revealed(settings.pagerduty_key),
        Address(hook) if hook else None,
        board,
        Address(settings.pagerduty_url),
    )


def make_notifier(parts: Parts, client: HttpClient) -> Notifier:
    """The caller closes `client`."""

    def observe(delivered: bool) -> None:
        parts.metrics.notifications.labels("delivered" if delivered else "failed").inc()

    return Notifier(client, observe=observe)


def triage_log(parts: Parts) -> TriageLog:
    return TriageLog(parts.access, parts.producer, parts.topics["triage"], parts.store)


def watch_limits(settings: Settings) -> WatchLimits:
    return WatchLimits(
        settings.regression_minimum,
        settings.ramp_down,
        settings.ramp_down_users,
        settings.ramp_down_sessions,
        settings.regression_unscored_share,
    )


def make_watch(parts: Parts, client: HttpClient, replaying: Callable[[], bool]) -> RegressionWatch:
    """The watch over live scores. The caller closes the notifiers' `client`."""
    settings = parts.settings
    responder = Responder(
        RampCommands(parts.access, parts.producer, parts.topics["ramp-commands"]),
        make_notifier(parts, client),
        channels_of(settings),
        TrendLog(settings.regressions_log),
        triage_log(parts),
    )
    return RegressionWatch(
        parts.store,
        parts.clock,
        observed(parts.metrics),
        responder.carry_out,
        window_seconds=settings.regression_window_seconds,
        limits=watch_limits(settings),
        every=settings.regression_seconds,
        ready=lambda: not replaying(),
        observe=lambda response: count(parts, response),
    )


def count(parts: Parts, response: Response) -> None:
    tier = "safety" if response.breach.safety else "quality"
    unscored = response.event is Event.BREACH and response.breach.kind == Kind.UNSCORED
    parts.metrics.regressions.labels(tier, Kind.UNSCORED if unscored else response.event).inc()


def why_off(settings: Settings) -> str:
    """The reason why live traces are not judged; empty where they are."""
    if not settings.live_judging:
        return "live_judging is off"
    if settings.model_url is None:
        return "no judges' model is configured: RAMPGATE_MODEL_URL"
    return "" if settings.write else "writing is off"


class LiveFigures:
    """Shows what live judging counts."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def due(self, whose: Whose) -> None:
        self._metrics.live_due.labels(*whose).inc()
        self._metrics.live_ended.labels(*whose, End.DEAD_LETTERED)  # at 0, so that an increase shows

    def ended(self, whose: Whose, end: StrEnum) -> None:
        self._metrics.live_ended.labels(*whose, end).inc()

    def waiting(self, whose: Whose, by: int) -> None:
        self._metrics.live_waiting.labels(*whose).inc(by)


class LiveJudges:
    """Started and closed with the worker. `scorer` is the gates' too, so that both share its limits and its cache."""

    def __init__(self, parts: Parts, scorer: Scorer | None) -> None:
        self._parts, self._scorer = parts, scorer
        self.consumer: DelayedConsumer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._client = HttpClient(*ALERTS)

    def start(self, replaying: Callable[[], bool]) -> None:
        parts, settings = self._parts, self._parts.settings
        off = why_off(settings)
        log.info("live_judging", state=off or "on", settle_seconds=settings.live_settle_seconds)
        if off or self._scorer is None:
            return
        balance = Balance(LiveFigures(parts.metrics))
        judging = LiveJudging(
            parts.ports,
            parts.policy,
            self._scorer,
            observed(parts.metrics),
            parts.opik.traces.get,
            frozenset(name for name, vertical in parts.verticals.items() if vertical.live_judge == "opik"),
            parts.topics["traces"],
            parts.judge_scores,
            balance,
            self._observe,
            lambda escape: parts.metrics.live_escapes.labels(escape).inc(),
        )
        self.consumer = DelayedConsumer(
            NAME,
            parts.access,
            settings.group + GROUP,
            {parts.topics["traces"]: judging.traces, parts.topics["thumbs"]: judging.thumbs},
            parts.clock,
            settings.live_settle_seconds,
            session_seconds=settings.session_timeout_seconds,
            ready=lambda: not replaying(),
            let_go=lambda: balance.all_end(End.HANDED_OVER),
        )
        watch = make_watch(parts, self._client, replaying)
        self._tasks = [
            asyncio.create_task(self.consumer.run(), name="live-judging"),
            asyncio.create_task(watch.run(), name="regressions"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    def _observe(self, said: Said) -> None:
        for outcome in outcomes_of(said):
            self._parts.metrics.live_scores.labels(outcome).inc()
