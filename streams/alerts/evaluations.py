"""Responds to evaluations that people or a schedule asked for, as the watch responds to live scores (PC5 §5.7).

The topic remembers what is still to be done: a record is done once all steps of its responses are, so that neither a
worker that died nor an emptied Redis loses one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog
from pydantic import ValidationError

from agents.ports import Clock
from evalcore.evaluations import lines_of
from evalcore.registry.registry import Registry
from schemas.checks.evaluation import Evaluation
from schemas.dead_letters import Record, clean
from schemas.zoned_time import is_ahead
from streams.alerts.regression_watch import GIVEN_UP_AFTER_MS, RegressionWatch
from streams.kafka.reading import appended_ms

log = structlog.get_logger(__name__)


class EvaluationResponses:
    """A handler of `streams.kafka.delayed_consumer`."""

    def __init__(self, watch: RegressionWatch, registry: Callable[[], Registry | None], clock: Clock) -> None:
        self._watch, self._registry, self._clock = watch, registry, clock

    async def __call__(self, records: Sequence[Record]) -> Sequence[Record]:
        """Respond to the evaluations among these records; returns those to be tried again. Raises Unavailable."""
        waiting = []
        for record in records:
            evaluation = self._read(record)
            if evaluation is None:
                continue
            why = await self._why_left(evaluation, record.timestamp)
            if why and self._clock.now_ms() - record.timestamp < GIVEN_UP_AFTER_MS:
                waiting.append(record)
            elif why:
                log.error("evaluation_given_up", evaluation=evaluation.event_id, reason=why)
        return waiting

    async def _why_left(self, evaluation: Evaluation, at: int) -> str:
        """Respond; returns why something of it is left, empty where nothing is."""
        registry = self._registry()
        if registry is None:
            return "no registry serves"
        lines, unknown = lines_of(evaluation, registry)
        if not await self._watch.evaluated(lines, at):
            return "a step failed, or another worker looks"
        return f"judges of which another version serves here: {clean(', '.join(unknown))}" if unknown else ""

    def _read(self, record: Record) -> Evaluation | None:
        try:
            evaluation = Evaluation.model_validate_json(record.value or b"")
            if not is_ahead(evaluation.at, appended_ms(record, self._clock.now_ms())):
                return evaluation
            wrong = "its time lies ahead of when it was appended"
        except ValidationError as error:
            wrong = f"{error.error_count()} fields are wrong"
        log.error("no_evaluation", partition=record.partition, offset=record.offset, reason=wrong)
        return None
