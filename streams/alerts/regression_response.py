"""Carries out the response to a regression: command, page, message, annotation, triage item, trend log (PC5 §5.7)."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from evalcore.gates.messages import HEADER, annotation, log_line, page, slack_message
from evalcore.gates.regression import Response, Step
from schemas.dead_letters import clean
from streams.alerts.notifiers import PAGERDUTY, Address, Notifier
from streams.alerts.ramp_commands import RampCommands
from streams.alerts.regression_watch import Ours, PendingResponse
from streams.alerts.triage_log import TriageLog
from streams.retry import reason_of

log = structlog.get_logger(__name__)
TITLE = "# Post-deploy regressions\n\nAppended to by Rampgate, never rewritten (PC5 §5.7).\n\n"


class TrendLog:
    """Appends rows to a Markdown table, and begins the file where there is none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def refusal(self) -> str | None:
        """Why no row can be appended; None where one can. It makes nothing."""
        path = self._path.absolute()
        place = next(one for one in (path, *path.parents) if os.path.lexists(one))
        fits = place.is_file() if place == path else place.is_dir()
        return None if fits and os.access(place, os.W_OK) else f"{place} can't be written"

    def append(self, response: Response) -> None:
        """Append one row, in one write that two processes never do at once. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed: who finds it empty begins it
            begun = file.seek(0, os.SEEK_END) > 0
            file.write(("" if begun else TITLE + HEADER).encode() + log_line(response).encode())


@dataclass(frozen=True)
class Channels:
    """Where people are told. A channel that is None is not configured: its step is left out, and the log says so."""

    routing_key: str | None = field(default=None, repr=False)
    slack: Address | None = None
    grafana: Address | None = None
    pagerduty: Address = field(default_factory=lambda: Address(PAGERDUTY))


class Unconfigured(Exception):
    """The channel is not configured: no repetition helps."""


class Responder:
    """Takes the steps of a response."""

    def __init__(
        self, commands: RampCommands, notifier: Notifier, channels: Channels, trend: TrendLog, triage: TriageLog
    ) -> None:
        self._commands, self._notifier, self._channels, self._trend = commands, notifier, channels, trend
        self._triage = triage

    async def carry_out(self, pending: PendingResponse, step: Step, ours: Ours) -> bool:
        """Take a step; returns whether it is done, or no repetition helps.

        People hear of a ramp-down only once its command has gone out.
        """
        response = pending.response
        shown = response.by_hand() if Step.RAMP_DOWN in pending.left else response
        steps: Mapping[Step, Callable[[], Awaitable[None]]] = {
            Step.RAMP_DOWN: lambda: self._commands.send(response, pending.since, ours),
            Step.PAGE: lambda: self._page(shown),
            Step.RESOLVE_PAGE: lambda: self._page(shown),
            Step.MESSAGE: lambda: self._to(self._channels.slack, "Slack", slack_message(shown)),
            Step.ANNOTATION: lambda: self._to(self._channels.grafana, "Grafana", annotation(shown)),
            Step.TRIAGE: lambda: self._triage.open(response, pending.since),
            Step.LOG: lambda: asyncio.to_thread(self._trend.append, shown),
        }
        act = steps.get(step)
        if act is None:
            return True  # people do it, and the page says so: a ramp-down by hand
        try:
            await act()
        except Unconfigured as error:
            log.error("regression_tells_nobody", step=step, judge=response.breach.judge_id, reason=str(error))
        except Exception as error:
            reason = clean(reason_of(error))
            log.error("regression_step_failed", step=step, judge=response.breach.judge_id, reason=reason)
            return False
        return True

    async def _page(self, response: Response) -> None:
        if self._channels.routing_key is None:
            raise Unconfigured("PagerDuty is not configured: it has no routing key")
        await self._notifier.post(self._channels.pagerduty, page(response, self._channels.routing_key))

    async def _to(self, address: Address | None, name: str, body: Mapping[str, Any]) -> None:
        if address is None:
            raise Unconfigured(f"{name} is not configured")
        await self._notifier.post(address, body)
