"""Scores gates' samples: each judge on its items, through one scorer for the process. Each answer is an event before a
gate is decided by it (PC5 §9.4)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from agents.gates.ports import AskingGate, OutOfTime
from agents.judge_scores import ScoreEvents, Subject, events_of, name_of
from agents.ports import Clock
from evalcore.judges.bindings import vertical_named
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answer, Judgement, by_name
from evalcore.scoring.assignments import Assignment, arrived, assign, score_assignments
from evalcore.scoring.calls import Failure, Spend
from evalcore.scoring.items import Item, turn_of
from evalcore.scoring.runner import Scorer
from schemas.wire_forms import ScoreEvent

EVENT_SECONDS = 0.0002
"""Kept for sending an event, of the time that judges have."""


@dataclass
class JudgeScoring:
    """Scores with the judges' model. A judge's filter, sub-agents and sampling rate choose its items; others get no
    answer. Without a scorer what a model would have to say is missing, so that every gate fails closed and says why.
    `calls` and `tokens` are what one gate may spend; None is no limit."""

    scorer: Scorer | None
    events: ScoreEvents
    clock: Clock
    calls: int | None = None
    tokens: int | None = None

    async def score(
        self, gate: AskingGate, judges: Sequence[Judge], items: Sequence[Item], within: float | None = None
    ) -> dict[str, list[Answer]]:
        began, spend = time.monotonic(), Spend(self.calls, self.tokens)
        async with arrived(self.scorer, gate.request_id, judges, items, spend) as (there, scoring):
            pairs = assign(judges, there)
            if within is not None:
                within = max(within - (time.monotonic() - began), 0.0)
                within -= min(len(pairs) * EVENT_SECONDS, within / 10)
            found = await score_assignments(scoring, pairs, within)
        await self.events.put(gate_events(gate, pairs, found, self.clock.now_ms()))
        if any(one.failure is Failure.OUT_OF_TIME for one in found):
            raise OutOfTime
        return by_name((judge for judge, _ in pairs), found)


def gate_events(
    gate: AskingGate, pairs: Sequence[Assignment], found: Sequence[Judgement], at_ms: int
) -> Iterator[ScoreEvent]:
    """Yield the events of a gate's answers: one for each item and judge, and each of the judge's dimensions."""
    by_item = groupby(zip(pairs, found, strict=True), lambda answered: answered[0][1])
    for item, answers in by_item:
        place, subject = [gate.request_id, gate.milestone, item.context, item.id], _subject(gate, item)
        for (judge, _), said in answers:
            yield from events_of(place, subject, judge, said, at_ms)


def _subject(gate: AskingGate, item: Item) -> Subject:
    """A trace says itself whose it is; an item of a dataset was answered by whom the gate is about. The candidate's
    answer to a production input is no trace, and must not count as that input's."""
    traced = item.context == "online"
    metadata = item.source.get("metadata") if traced else None
    known = metadata if isinstance(metadata, dict) else {}
    trace = _trace(item.id) if traced else None
    subject: Subject = {
        "trace_id": trace,
        "response_id": name_of(turn_of(item.source)) if trace is not None else None,
        "agent_id": name_of(known.get("agent_id")) or name_of(gate.agent_id),
        "agent_version": name_of(known.get("agent_version")) or name_of(gate.agent_version),
        "vertical": name_of(vertical_named(item.source)) or name_of(gate.vertical),
        "source": "gate",
        "request_id": gate.request_id,
        "milestone": gate.milestone,
    }
    if trace is None:
        subject["item_id"] = name_of(item.id) or ""
    return subject


def _trace(identity: str) -> str | None:
    try:
        return str(UUID(identity))
    except ValueError:
        return None
