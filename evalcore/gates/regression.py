"""Finds judges whose live scores fall below their floor, and plans the response, once for each breach (PC5 §5.7). Pure.

A safety judge's breach ramps the agent down to 0 % and pages; a quality judge's is sent to people, who triage it within
a day. The caller keeps the open breaches and hands them in at each look, so that none is reported twice.
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
"""Share of the scores that begin a breach; with fewer left in the window the breach ends. It is far enough below 1 that
one score more or less does not end a breach and begin it again."""


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
        """Returns the key of a breach: the same for the same judge, vertical and agent version."""
        parts = (self.judge.id, self.judge.vertical or "", self.agent_id, self.agent_version)
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return "rampgate-" + hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Breach:
    """A floor breach; `score` is the weighted mean or rate of `n` scores, `detected_at` in ISO 8601."""

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
    """The score is back at the floor or above."""
    LAPSED = "lapsed"
    """Its scores have left the window and hardly any came since, as after a ramp-down."""


class Step(StrEnum):
    """An action about a breach, or about its end."""

    RAMP_DOWN = "ramp_down"
    PAGE = "page"
    MANUAL_RAMP_DOWN = "manual_ramp_down"
    """The page asks people to do it, since automatic ramp-down is off."""
    RESOLVE_PAGE = "resolve_page"
    MESSAGE = "message"
    ANNOTATION = "annotation"
    TRIAGE = "triage"
    LOG = "log"


@dataclass(frozen=True)
class Response:
    """What to do about an event. `breach` has the numbers of the event; one that has lapsed has the score with which it
    began."""

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
    """The responses of one look; `open` are the breaches that remain, by key, to be handed in at the next look."""

    responses: tuple[Response, ...]
    open: Mapping[str, Breach]


def look(
    watched: Iterable[Watched], known: Mapping[str, Breach], minimum: int, ramping: bool, now: datetime
) -> Outcome:
    """Compares all watched judges with their floors.

    `known` are the open breaches. With fewer than `minimum` scores a judge neither breaches nor recovers; with fewer
    than half of them an open breach lapses. Unscored items count as scores here, so that no outage ends a breach.
    `ramping`: the ramping primitive is live; without it a page asks for a ramp-down by hand.
    """
    responses: list[Response] = []
    standing, left = dict(known), dict.fromkeys(known, 0)
    for line in watched:
        left[line.key] = line.answers.n
        state = _state(line, minimum, now)
        if state is None:
            continue
        breach, below = state
        before = standing.get(line.key)
        if below and before is None:
            standing[line.key] = breach
            responses.append(Response(breach, Event.BREACH, _on_breach(breach, ramping)))
        elif not below and before is not None:
            del standing[line.key]
            responses.append(Response(breach, Event.RECOVERED, _at_its_end(breach)))
    for key, before in known.items():
        if key in standing and left[key] < LAPSED * minimum:
            breach = replace(standing.pop(key), n=left[key], detected_at=now.isoformat(timespec="seconds"))
            responses.append(Response(breach, Event.LAPSED, _at_its_end(before)))
    return Outcome(tuple(responses), standing)


def _state(line: Watched, minimum: int, now: datetime) -> tuple[Breach, bool] | None:
    """Returns the judge's numbers, and whether they are below the floor; None where too little is known. For a breach
    unscored items count at their best, so that an outage of the judges' model pages no one."""
    judge, scored = line.judge, len(line.answers.values)
    whole = aggregate(line.answers, judge.score_range, judge.score_type is ScoreType.BOOLEAN)
    if not scored or scored < minimum or whole.best is None or whole.worst is None:
        return None
    below, above = whole.best < judge.floor, whole.worst >= judge.floor
    if not below and not above:
        return None
    total = sum(line.answers.weights)
    mean = sum(v * w for v, w in zip(line.answers.values, line.answers.weights, strict=True)) / total
    breach = Breach(
        line.key, judge.id, judge.vertical, line.agent_id, line.agent_version, judge.safety,
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
