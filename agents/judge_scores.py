"""Makes an event of each answer of a judge, for PS-5, which keeps judges' scores with their traces (PC5 §9.4; contracts
§1, `rampgate.judge-scores`).

What rests on a score, a mark or a verdict, comes after the score's event is durable: no score is lost, and one may come
twice. Its `event_id` is made of where and by whom the question was answered, so a repeat is told from another score.
Of a trace an event has names and numbers, never a text.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NotRequired, Protocol, cast

from typing_extensions import TypedDict

from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answer, Judgement, NotApplicable, Scored, Unscored
from schemas.dead_letters import clean
from schemas.judges import Milestone
from schemas.wire_forms import ScoreEvent

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "judge-scores.rampgate")
LONGEST = 512
"""Characters of a name: a trace may call its agent anything, and an event has to fit into a record."""


class Subject(TypedDict):
    """What was judged, of whom and why: the fields that the events of all its judges share."""

    trace_id: str | None
    item_id: NotRequired[str]
    response_id: str | None
    agent_id: str | None
    agent_version: str | None
    vertical: str | None
    source: Literal["live", "gate"]
    request_id: NotRequired[str]
    milestone: NotRequired[Milestone]


class ScoreEvents(Protocol):
    """Where events go."""

    async def put(self, events: Iterable[ScoreEvent]) -> None:
        """Return once all are durable; raises Unavailable otherwise."""
        ...


def live_events(
    trace_id: str, response_id: str, metadata: Any, said: Iterable[tuple[Judge, Judgement]], at_ms: int
) -> Iterator[ScoreEvent]:
    """Yield the events of a live trace, of which `metadata` tells agent and vertical."""
    known = metadata if isinstance(metadata, Mapping) else {}
    subject: Subject = {
        "trace_id": trace_id,
        "response_id": name_of(response_id),
        "agent_id": name_of(known.get("agent_id")),
        "agent_version": name_of(known.get("agent_version")),
        "vertical": name_of(known.get("vertical")),
        "source": "live",
    }
    for judge, found in said:
        yield from events_of([trace_id], subject, judge, found, at_ms)


def name_of(value: Any) -> str | None:
    """Return a name as one printable line; None for what is no name."""
    return clean(value, LONGEST) if isinstance(value, str) and value else None


def events_of(
    place: Sequence[str], subject: Subject, judge: Judge, found: Judgement, at_ms: int
) -> Iterator[ScoreEvent]:
    """Yield the event of the judge's answer, and one of each dimension's. `place`: where the judge was asked, which no
    two answers of one judge's version share."""
    at = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    for dimension, answer in (("", found.answer), *found.dimensions.items()):
        made = {
            **subject,
            "event_id": _id(subject["source"], place, judge, dimension, answer),
            "judge_id": judge.id,
            "judge_version": judge.version,
            "score": answer.value if isinstance(answer, Scored) else None,
            "at": at,
        }
        event = cast("ScoreEvent", made)
        if dimension:
            event["dimension"] = dimension
        if isinstance(answer, Unscored):
            event["unscored"] = True
        elif isinstance(answer, NotApplicable):
            event["na"] = True
        yield event


def _id(source: str, place: Sequence[str], judge: Judge, dimension: str, answer: Answer) -> str:
    """A missing score has an id of its own: a store that keeps the first event of each id would keep it in place of the
    score that a replay brings."""
    named = json.dumps([source, *place, judge.id, judge.version, dimension, isinstance(answer, Unscored)])
    return str(uuid.uuid5(NAMESPACE, named))
