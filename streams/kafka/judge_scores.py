"""Sends what judges say to `rampgate.judge-scores`, from where PS-5 takes it (PC5 §9.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import orjson

from schemas.wire_forms import ScoreEvent
from streams.kafka.client import Producer

AT_ONCE = 500
"""Events in flight: a gate of a thousand items and sixteen judges must not hold all of its own."""


class JudgeScoresTopic:
    """The topic of judges' scores. `sent` is told of events that are durable."""

    def __init__(
        self, producer: Producer, topic: str, sent: Callable[[Sequence[ScoreEvent]], None] = lambda events: None
    ) -> None:
        self._producer, self._topic, self._sent = producer, topic, sent

    async def put(self, events: Iterable[ScoreEvent]) -> None:
        """Return once all are durable, under their trace's id, or their item's. Raises Unavailable; some may be durable
        then, and come again with the rest."""
        left = iter(events)
        while some := list(islice(left, AT_ONCE)):
            await self._producer.send([(self._topic, _key(event), orjson.dumps(event), []) for event in some])
            self._sent(some)


def _key(event: ScoreEvent) -> bytes:
    return (event["trace_id"] or event.get("item_id") or "").encode()
