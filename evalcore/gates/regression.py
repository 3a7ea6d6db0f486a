"""After the fact: what follows when a judge's live scores fall below its floor, once for each breach (PC5 §5.7). Pure.

A safety judge's breach ramps the agent down to 0 % and pages; a quality judge's tells people, who look within a day.
Whoever looks keeps the breaches that are open: a breach that is known is news to nobody, until it has ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from evalcore.gates.limits import aggregate
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answers
from schemas.judges import ScoreType

TRIAGE_HOURS = 24
LAPSED = 0.5
"""Of the scores that a breach needs: with fewer left in the window it ends. Far enough below what begins one that a
score which comes or goes does not end it and begin it anew."""


@dataclass(frozen=True)
class Watched:
    """A judge's scores of one agent version in the live window, with their weights. `floor` and `score` are on the
    judge's own scale."""

    judge: Judge
    agent_id: str
    agent_version: str
    answers: Answers

    @property
    def key(self) -> str:
        """Of a breach: the same for as long as it is the same judge, vertical and agent version."""
        parts = (self.judge.id, self.judge.vertical or "", self.agent_id, self.agent_version)
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return "rampgate-" + hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Breach:
    """`detected_at` in ISO 8601; `n` scores are in `score`, their weighted mean or rate."""

    key: str
    judge_id: str
    vertical: str | None
    agent_id: str
    agent_version: str
    safety: bool
    score: float
    floor: float
    n: int
    detected_at: str


class Event(StrEnum):
    BREACH = "breach"
    RECOVERED = "recovered"
    """Back at the floor or above."""
    LAPSED = "lapsed"
    """Its scores have left the window, and hardly any came instead: a version that was ramped down."""


class Step(StrEnum):
    """What is done about a breach, or about its end."""

    RAMP_DOWN = "ramp_down"
    PAGE = "page"
    MANUAL_RAMP_DOWN = "manual_ramp_down"
    """The page asks for it, since nothing here may do it."""
    RESOLVE_PAGE = "resolve_page"
    MESSAGE = "message"
    ANNOTATION = "annotation"
    TRIAGE = "triage"
    LOG = "log"


@dataclass(frozen=True)
class Response:
    """`breach` as it stands at the event; one that has lapsed with the score it had when it began."""

    breach: Breach
    event: Event
    steps: tuple[Step, ...]

    @property
    def over(self) -> bool:
        return self.event is not Event.BREACH

    @property
    def triage_due(self) -> str | None:
        if Step.TRIAGE not in self.steps:
            return None
        return (datetime.fromisoformat(self.breach.detected_at) + timedelta(hours=TRIAGE_HOURS)).isoformat()


@dataclass(frozen=True)
class Outcome:
    """`open`: the breaches that stand now, by key, to be handed in at the next look."""

    responses: tuple[Response, ...]
    open: Mapping[str, Breach]


def look(
    watched: Iterable[Watched], known: Mapping[str, Breach], minimum: int, ramping: bool, now: datetime
) -> Outcome:
    """`known`: the breaches open so far. `minimum`: of fewer scores no breach follows and no recovery; of fewer than
    half of it an open breach lapses. What could not be scored counts as left: no outage ends a breach. `ramping`:
    whether the ramping primitive is live; without it a page asks for a ramp-down by hand."""
    responses: list[Response] = []
    standing, left = dict(known), dict.fromkeys(known, 0)
    for one in watched:
        left[one.key] = one.answers.n
        found = _state(one, minimum, now)
        if found is None:
            continue
        breach, below = found
        before = standing.get(one.key)
        if below and before is None:
            standing[one.key] = breach
            responses.append(Response(breach, Event.BREACH, _on_breach(breach, ramping)))
        elif not below and before is not None:
            del standing[one.key]
            responses.append(Response(breach, Event.RECOVERED, _at_its_end(breach)))
    for key, before in known.items():
        if key in standing and left[key] < LAPSED * minimum:
            breach = replace(standing.pop(key), n=left[key], detected_at=now.isoformat(timespec="seconds"))
            responses.append(Response(breach, Event.LAPSED, _at_its_end(before)))
    return Outcome(tuple(responses), standing)


def _state(one: Watched, minimum: int, now: datetime) -> tuple[Breach, bool] | None:
    """How it stands, and whether that is below the floor. What could not be scored counts at its best: an outage of the
    judges' model pages nobody. None where too little is known."""
    judge, scored = one.judge, len(one.answers.values)
    whole = aggregate(one.answers, judge.score_range, judge.score_type is ScoreType.BOOLEAN)
    if not scored or scored < minimum or whole.best is None or whole.worst is None:
        return None
    below, above = whole.best < judge.floor, whole.worst >= judge.floor
    if not below and not above:
        return None
    total = sum(one.answers.weights)
    mean = sum(v * w for v, w in zip(one.answers.values, one.answers.weights, strict=True)) / total
    breach = Breach(
        one.key, judge.id, judge.vertical, one.agent_id, one.agent_version, judge.safety,
        mean, judge.floor, scored, now.isoformat(timespec="seconds"),
    )  # fmt: skip
    return breach, below


def _on_breach(breach: Breach, ramping: bool) -> tuple[Step, ...]:
    if not breach.safety:
        return Step.MESSAGE, Step.ANNOTATION, Step.TRIAGE, Step.LOG
    first = Step.RAMP_DOWN if ramping else Step.MANUAL_RAMP_DOWN
    return first, Step.PAGE, Step.LOG


def _at_its_end(breach: Breach) -> tuple[Step, ...]:
    return (Step.RESOLVE_PAGE, Step.LOG) if breach.safety else (Step.MESSAGE, Step.ANNOTATION, Step.LOG)
