"""Makes an event of each answer of a judge, for PS-5, which keeps judges' scores with their traces (PC5 §9.4; contracts
§1, `rampgate.judge-scores`).

What rests on a score, a mark or a verdict, comes after the score's event is durable: no score is lost, and one may come
twice. Its `event_id` is made of where and by whom the question was answered, so a repeat is told from another score.
Of a trace an event has names and numbers, never a text.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha1
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
    place, at = place_of("live", trace_id), time_of(at_ms)
    for judge, found in said:
        yield from events_of(place, subject, judge, found, at)


def name_of(value: Any) -> str | None:
    """Return a name as one printable line; None for what is no name."""
    return clean(value, LONGEST) if isinstance(value, str) and value else None


def place_of(source: Literal["live", "gate"], *names: str) -> str:
    """Return where a judge is asked, as part of an event's id: which no two answers of one judge's version share."""
    return json.dumps([source, *names])


def time_of(at_ms: int) -> str:
    """Return the time as events have it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def events_of(place: str, subject: Subject, judge: Judge, found: Judgement, at: str) -> Iterator[ScoreEvent]:
    """Yield the event of the judge's answer, and one of each dimension's. A gate waits for hundreds of them, so what
    they share, `place` and `at`, is made once."""
    for dimension, answer in (("", found.answer), *found.dimensions.items()):
        made = {
            **subject,
            "event_id": _id(place, judge, dimension, answer),
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


def _id(place: str, judge: Judge, dimension: str, answer: Answer) -> str:
    """A missing score has an id of its own: a store that keeps the first event of each id would keep it in place of the
    score that a replay brings."""
    asked = _asked(judge.id, judge.version, dimension, isinstance(answer, Unscored))
    return _uuid5(f"{place[:-1]}, {asked[1:]}")


@lru_cache(maxsize=1_024)
def _asked(judge: str, version: str, dimension: str, missing: bool) -> str:
    return json.dumps([judge, version, dimension, missing])


def _uuid5(name: str) -> str:
    """Return the name's UUID as `uuid.uuid5` has it, in a fifth of the time: it makes an object of each."""
    found = sha1(NAMESPACE.bytes + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(found[16], 16) & 3]
    return f"{found[:8]}-{found[8:12]}-5{found[13:16]}-{variant}{found[17:20]}-{found[20:32]}"
