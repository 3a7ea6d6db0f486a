"""From settings to the watch over live scores: whom a regression is told to, and how (PC5 §5.7)."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from evalcore import live
from evalcore.gates.regression import Response
from rampgate.setting_values import revealed
from rampgate.settings import Settings
from rampgate.wiring import Parts
from streams.notifiers import Address, Notifier, grafana
from streams.ramp_commands import RampCommands
from streams.regression_response import Channels, Responder, TrendLog
from streams.regression_watch import RegressionWatch


def channels_of(settings: Settings) -> Channels:
    hook, token = revealed(settings.slack_webhook), revealed(settings.grafana_token)
    board = grafana(settings.grafana_url, token) if settings.grafana_url and token else None
    return Channels(
        revealed(settings.pagerduty_key),
        Address(hook) if hook else None,
        board,
        Address(settings.pagerduty_url),
    )


def make_notifier(parts: Parts, client: httpx.AsyncClient) -> Notifier:
    """`client` is the notifier's; whoever makes it closes it."""

    def observe(delivered: bool) -> None:
        parts.metrics.notifications.labels("delivered" if delivered else "failed").inc()

    return Notifier(client, observe=observe)


def make_watch(parts: Parts, client: httpx.AsyncClient, replaying: Callable[[], bool]) -> RegressionWatch:
    """`client` is the notifiers'; whoever makes it closes it."""
    settings = parts.settings
    responder = Responder(
        RampCommands(parts.access, parts.producer, parts.topics["ramp-commands"]),
        make_notifier(parts, client),
        channels_of(settings),
        TrendLog(settings.regressions_log),
    )
    return RegressionWatch(
        parts.store.redis,
        parts.store.prefix,
        parts.store,
        parts.clock,
        live.loaded,
        responder.carry_out,
        window_seconds=settings.regression_window_seconds,
        minimum=settings.regression_minimum,
        ramping=settings.ramp_down,
        every=settings.regression_seconds,
        ready=lambda: not replaying(),
        observe=lambda response: count(parts, response),
    )


def count(parts: Parts, response: Response) -> None:
    tier = "safety" if response.breach.safety else "quality"
    parts.metrics.regressions.labels(tier, response.event).inc()
