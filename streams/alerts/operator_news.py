"""Tells operators of failed verdicts, from the topic that PC6 reads too (PC5 AC-4, §5.5, §9.5), and counts those that
CI published (PC5 §10.2).

A worker that dies after it published a verdict leaves the telling to the worker that reads on, so a verdict is told at
least once. A mark in Redis says what was told; only a death between Slack's answer and the mark tells a verdict twice.
Nothing waits for this: neither the verdict, nor a verdict behind one that can't be delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
import structlog
from pydantic import ValidationError

from agents.keys import OPERATOR_TOLD
from agents.ports import Change, Clock, Store
from evalcore.gates.messages import news
from evalcore.gates.verdict import from_json
from schemas.dead_letters import Record
from schemas.judges import Milestone
from schemas.verdicts import Verdict, VerdictLevel
from streams.alerts.notifiers import Slack

log = structlog.get_logger(__name__)
GIVEN_UP_AFTER_MS = 86_400_000
"""A verdict that could not be delivered for so long is given up."""


@dataclass(eq=False, repr=False)
class OperatorNews:
    """A handler of `streams.kafka.delayed_consumer`. Each failed verdict is an error line in the log, and a message
    where `slack` is configured. `published` gets each verdict of CI's gate, at one worker and once: a rollout's was
    counted by its publisher. The pull request itself shows that its gate failed."""

    store: Store
    clock: Clock
    slack: Slack
    keep_ms: int
    published: Callable[[Verdict], None]

    async def __call__(self, records: Sequence[Record]) -> Sequence[Record]:
        """Tell of the failed verdicts among these records; returns those to be tried again. Raises Unavailable."""
        waiting = []
        for record in records:
            verdict = _heeded(record)
            if verdict is None:
                continue
            key, now = OPERATOR_TOLD.key(verdict.verdict_id), self.clock.now_ms()
            if any(await self.store.read([key])):
                continue
            mark = Change(sets={key: (b"1", now + self.keep_ms)})
            if verdict.milestone is Milestone.PRE_MERGE:
                await self.store.apply(mark)  # first: a record that comes again is not counted twice
                self.published(verdict)
                continue
            channel = await self.slack.tell(news(verdict), "operator_not_told", request_id=verdict.request_id)
            if not channel and now - record.timestamp < GIVEN_UP_AFTER_MS:
                waiting.append(record)
                continue
            _log(verdict, channel or "no one: Slack took it from none of a day's tries")
            await self.store.apply(mark)
        return waiting


def _heeded(record: Record) -> Verdict | None:
    """The verdict where it is CI's, or a rollout's fail; None for any other record."""
    try:
        verdict = from_json(orjson.loads(record.value or b""))
    except (ValueError, TypeError, ValidationError) as error:
        wrong = f"{error.error_count()} fields are wrong" if isinstance(error, ValidationError) else "no JSON"
        log.error("no_verdict", partition=record.partition, offset=record.offset, reason=wrong)
        return None
    return verdict if verdict.milestone is Milestone.PRE_MERGE or verdict.verdict is VerdictLevel.FAIL else None


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
