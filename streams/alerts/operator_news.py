"""Failed verdicts told to an operator, from the topic that PC6 reads too (PC5 AC-4, §5.5, §9.5).

The topic is what is owed: a worker that dies after it published a verdict leaves the telling to whoever reads on, so a
verdict is told at least once. One that was told is marked; only a death between Slack's answer and the mark tells it
twice. Nothing waits for this: neither the verdict, nor a verdict behind one that can't be delivered.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import structlog
from pydantic import ValidationError

from agents.keys import OPERATOR_TOLD
from agents.ports import Change, Clock, Store
from evalcore.gates.messages import message, news
from evalcore.gates.verdict import from_json
from schemas.dead_letters import Record, clean
from schemas.verdicts import Verdict, VerdictLevel
from streams.alerts.notifiers import Address, Notifier, Undelivered

log = structlog.get_logger(__name__)
TRIED_FOR = 86_400_000
"""Milliseconds after which what could not be delivered is news no more."""


class OperatorNews:
    """A handler of `streams.kafka.delayed_consumer`. Without `slack` the log's error line is all
    the news there is; it is there in any case."""

    def __init__(self, store: Store, clock: Clock, notifier: Notifier, slack: Address | None, keep_ms: int) -> None:
        self._store, self._clock, self._notifier, self._slack, self._keep = store, clock, notifier, slack, keep_ms

    async def __call__(self, records: Sequence[Record]) -> Sequence[Record]:
        """Returns those to be tried again. Raises Unavailable."""
        waiting = []
        for record in records:
            verdict = _failed(record)
            if verdict is None:
                continue
            key, now = OPERATOR_TOLD.key(verdict.verdict_id), self._clock.now_ms()
            if any(await self._store.read([key])):
                continue
            told = await self._told(verdict)
            if not told and now - record.timestamp < TRIED_FOR:
                waiting.append(record)
                continue
            _log(verdict, told or "nobody: Slack took it from none of a day's tries")
            await self._store.apply(Change(sets={key: (b"1", now + self._keep)}))
        return waiting

    async def _told(self, verdict: Verdict) -> str:
        """By which way, empty where it could not be delivered."""
        if self._slack is None:
            return "nobody: slack_webhook is not set"
        try:
            await self._notifier.post(self._slack, message(news(verdict)))
        except Undelivered as error:
            log.warning("operator_not_told", request_id=verdict.request_id, reason=clean(str(error)))
            return ""
        return "slack"


def _failed(record: Record) -> Verdict | None:
    try:
        verdict = from_json(orjson.loads(record.value or b""))
    except (ValueError, TypeError, ValidationError) as error:
        log.error("no_verdict", partition=record.partition, offset=record.offset, reason=clean(str(error), 200))
        return None
    return verdict if verdict.verdict is VerdictLevel.FAIL else None


def _log(verdict: Verdict, told: str) -> None:
    log.error(
        "gate_failed",
        told=told,
        experiment_id=verdict.experiment_id,
        agent_id=verdict.agent_id,
        agent_version=verdict.agent_version,
        vertical=verdict.vertical,
        from_percent=verdict.from_percent,
        to_percent=verdict.to_percent,
        milestone=verdict.milestone,
        halt_at_percent=verdict.halt_at_percent,
        failing_judges=verdict.failing_judges,
        reasons=[f"{reason.code}: {reason.message}" for reason in verdict.reasons],
        request_id=verdict.request_id,
        verdict_id=verdict.verdict_id,
    )
