"""Finds judges whose scores fall below their floor, and plans the response, once for each breach (PC5 §5.7). Pure.

The scores are those of live traces, or of an evaluation that somebody or a schedule asked for.

A safety judge's breach pages, and ramps the agent down to 0 % once it is certain; a quality judge's is sent to people,
who triage it within a day. A safety judge that gives too many traces no score pages as well: no one knows then whether
it is below its floor. The caller keeps the open breaches and hands them in at each look, so that none is reported
twice.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeVar
from unicodedata import category, normalize

from evalcore.gates.limits import aggregate
from evalcore.registry.registry import Judge
from evalcore.scoring.answers import Answers
from schemas.checks.evaluation import Origin
from schemas.judges import ScoreType

T = TypeVar("T")
SOURCE = "rampgate"
"""Who says it, in messages and in triage items."""
TRIAGE_HOURS = 24
EVALUATED_DAYS = 30
"""A breach that an evaluation found ends after so long without another evaluation; the next one tells it again."""
LAPSED = 0.5
"""Share of the scores that begin a breach; with fewer left in the window the breach ends. It is far enough below 1 that
one score more or less does not end a breach and begin it again."""
FEWEST_UNSCORED = 3
"""Traces without a score that page; fewer are an accident, whatever share of a small window they are."""


def person(name: object) -> str:
    """Returns a user's or a session's name in the one spelling by which a ramp-down counts them, empty for none: what
    differs in case, width, space around it or signs that show nothing is one."""
    seen = normalize("NFKC", name) if isinstance(name, str) else ""
    return "".join(one for one in seen if category(one) != "Cf").casefold().strip()


def distinct(people: Iterable[T], nameless: T) -> int:
    """Returns how many people traces below a floor are of. One that names none counts as of one of its own: else an
    agent that traces neither users nor sessions is never ramped down, and PC5 §5.7 prefers one too many."""
    found = Counter(people)
    return found[nameless] + len(found.keys() - {nameless})


@dataclass(frozen=True)
class WatchLimits:
    """What it takes to respond. With fewer than `minimum` traces nothing follows. `ramping`: the ramping primitive is
    live; without it a page asks for a ramp-down by hand. A ramp-down wants as many distinct `users` and `sessions`
    among the traces below the floor. More than `unscored_share` of a safety judge's traces without a score page."""

    minimum: int = 30
    ramping: bool = True
    users: int = 3
    sessions: int = 3
    unscored_share: float = 0.02


class Kind(StrEnum):
    """What a breach is about."""

    FLOOR = "floor"
    UNSCORED = "unscored"
    """A safety judge that gives too many traces no score: unscored, or N/A, which is none of its answers."""


@dataclass(frozen=True)
class Watched:
    """A judge's scores of one agent version in the live window, or in one evaluation, with their weights. Of its traces
    below the floor there are so many distinct `users` and `sessions`."""

    judge: Judge
    agent_id: str
    agent_version: str
    answers: Answers
    users: int = 0
    sessions: int = 0
    origin: Origin = Origin.LIVE

    @property
    def key(self) -> str:
        """Returns the key of a floor breach: the same for the same judge, vertical and agent version."""
        return self.key_of(Kind.FLOOR)

    def key_of(self, kind: Kind) -> str:
        parts = [self.judge.id, self.judge.vertical or "", self.agent_id, self.agent_version]
        parts += [] if kind is Kind.FLOOR else [kind]
        parts += [] if self.origin is Origin.LIVE else ["evaluation"]  # live scores neither end nor repeat its breach
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return "rampgate-" + hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Breach:
    """A floor breach; `score` is the weighted mean or rate of `n` scores, `detected_at` in ISO 8601. `upper_bound` is
    that of its 95 % interval, None where there is none. It is `certain` enough for a ramp-down where that is below the
    floor and the traces below it are of enough users and sessions.

    Of the kind `unscored`, `score` counts the `unscored` of its `n` traces at their worst.
    """

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
    kind: str = Kind.FLOOR
    upper_bound: float | None = None
    users: int = 0
    sessions: int = 0
    unscored: int = 0
    certain: bool = False
    origin: str = Origin.LIVE
    evaluated_at: str = ""
    """When the last evaluation found it so; empty of live scores."""


class Event(StrEnum):
    BREACH = "breach"
    CONFIRMED = "confirmed"
    """A safety judge's open breach is certain by now, and ramps the agent down."""
    RECOVERED = "recovered"
    """The score is back at the floor or above."""
    LAPSED = "lapsed"
    """Its scores have left the window and hardly any came since, as after a ramp-down; or no evaluation did."""


class Step(StrEnum):
    """An action about a breach, or about its end."""

    RAMP_DOWN = "ramp_down"
    PAGE = "page"
    MANUAL_RAMP_DOWN = "manual_ramp_down"
    """The page asks people to do it: automatic ramp-down is off, or no command has gone out."""
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
        return self.event in (Event.RECOVERED, Event.LAPSED)

    def by_hand(self) -> Response:
        """The same where no command has gone out."""
        steps = (Step.MANUAL_RAMP_DOWN if step is Step.RAMP_DOWN else step for step in self.steps)
        return replace(self, steps=tuple(steps))

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
    watched: Iterable[Watched],
    known: Mapping[str, Breach],
    limits: WatchLimits,
    now: datetime,
    *,
    whole: bool = True,
) -> Outcome:
    """Compares judges with their floors. `watched` is the `whole` live window, or else what one evaluation found.

    `known` are the open breaches. With fewer scores than the minimum a judge neither breaches nor recovers; with fewer
    than half of them an open breach lapses. Unscored items count as scores here, so that no outage ends a breach.
    """
    responses: list[Response] = []
    standing, left = dict(known), dict.fromkeys(known, 0)
    for line in watched:
        for kind in Kind:
            left[line.key_of(kind)] = line.answers.n
        for state in (_floor(line, limits, now), _unscored(line, limits, now)):
            if state is None:
                continue
            breach, below = state
            before = standing.get(breach.key)
            if before is not None and below and _lapsed(before, None, limits, now):
                before = None  # it ended, and no one has looked since
            if below and before is None:
                standing[breach.key] = breach
                responses.append(Response(breach, Event.BREACH, _on_breach(breach, limits.ramping)))
            elif below and before is not None and breach.certain and not before.certain:
                standing[breach.key] = breach
                responses.append(Response(breach, Event.CONFIRMED, _on_breach(breach, limits.ramping)))
            elif below and before is not None and line.origin is not Origin.LIVE:
                standing[breach.key] = replace(before, evaluated_at=breach.evaluated_at)
            elif not below and before is not None:
                del standing[breach.key]
                responses.append(Response(breach, Event.RECOVERED, _at_its_end(breach)))
    for key, before in known.items():
        if key in standing and _lapsed(standing[key], left[key] if whole else None, limits, now):
            breach = replace(standing.pop(key), n=left[key], detected_at=now.isoformat(timespec="seconds"))
            responses.append(Response(breach, Event.LAPSED, _at_its_end(before)))
    return Outcome(tuple(responses), standing)


def _lapsed(breach: Breach, left: int | None, limits: WatchLimits, now: datetime) -> bool:
    """Tells whether an open breach ends for want of scores. `left`: its scores in the live window, None where this look
    is not about that."""
    if breach.origin == Origin.LIVE:
        return left is not None and left < LAPSED * limits.minimum
    return now - datetime.fromisoformat(breach.evaluated_at) > timedelta(days=EVALUATED_DAYS)


def _floor(line: Watched, limits: WatchLimits, now: datetime) -> tuple[Breach, bool] | None:
    """Returns the judge's numbers, and whether they are below the floor; None where too little is known. For a breach
    unscored items count at their best: an outage of the judges' model is no low score, and ramps no one down."""
    judge, scored = line.judge, len(line.answers.values)
    whole = aggregate(line.answers, judge.score_range, judge.score_type is ScoreType.BOOLEAN)
    if not scored or scored < limits.minimum or whole.best is None or whole.worst is None:
        return None
    below, above = whole.best < judge.floor, whole.worst >= judge.floor
    if not below and not above:
        return None
    total = sum(line.answers.weights)
    mean = sum(v * w for v, w in zip(line.answers.values, line.answers.weights, strict=True)) / total
    breach = _breach(line, Kind.FLOOR, mean, scored, now)
    upper = _upper_bound(line)
    sure = upper is not None and upper < judge.floor
    certain = judge.safety and sure and line.users >= limits.users and line.sessions >= limits.sessions
    return replace(breach, upper_bound=upper, certain=certain), below


def _unscored(line: Watched, limits: WatchLimits, now: datetime) -> tuple[Breach, bool] | None:
    """Returns a safety judge's numbers, and whether too many traces have no score: more than the limit's share, or so
    many that they decide whether it is below its floor. None where too little is known."""
    judge, answers = line.judge, line.answers
    if not judge.safety or answers.n < limits.minimum:
        return None
    whole = aggregate(answers, judge.score_range, judge.score_type is ScoreType.BOOLEAN)
    worst, best = whole.worst or 0.0, whole.best or 0.0
    missing = len(answers.missing)
    hidden = worst < judge.floor <= best
    too_many = missing >= FEWEST_UNSCORED and (missing > limits.unscored_share * answers.n or hidden)
    return _breach(line, Kind.UNSCORED, worst, answers.n, now), too_many


def _breach(line: Watched, kind: Kind, score: float, n: int, now: datetime) -> Breach:
    judge, at = line.judge, now.isoformat(timespec="seconds")
    return Breach(
        line.key_of(kind), judge.id, judge.vertical, line.agent_id, line.agent_version, judge.safety,
        score, judge.floor, n, at, kind, evaluated_at="" if line.origin is Origin.LIVE else at,
        users=line.users, sessions=line.sessions, unscored=len(line.answers.missing), origin=line.origin,
    )  # fmt: skip


def _upper_bound(line: Watched) -> float | None:
    """Returns the upper bound of the 95 % interval, with what is unscored at its best."""
    answers, judge = line.answers, line.judge
    values = answers.values + (judge.score_range[1],) * len(answers.missing)
    at_best = replace(answers, values=values, weights=answers.weights + answers.missing, missing=())
    interval = aggregate(at_best, judge.score_range, judge.score_type is ScoreType.BOOLEAN).ci95
    return interval[1] if interval is not None else None


def _on_breach(breach: Breach, ramping: bool) -> tuple[Step, ...]:
    if not breach.safety:
        return Step.MESSAGE, Step.ANNOTATION, Step.TRIAGE, Step.LOG
    if not breach.certain:
        return Step.PAGE, Step.LOG
    first = Step.RAMP_DOWN if ramping else Step.MANUAL_RAMP_DOWN
    return first, Step.PAGE, Step.LOG


def _at_its_end(breach: Breach) -> tuple[Step, ...]:
    return (Step.RESOLVE_PAGE, Step.LOG) if breach.safety else (Step.MESSAGE, Step.ANNOTATION, Step.LOG)
