"""Takes production's scores of the last days from a vertical's own Opik project (PF-9 §5.3): state holds a week."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from agents.gates.pools import PRODUCTION
from agents.ports import Unauthorized, Unavailable
from evalcore.drift.scale import declared
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from evalcore.scoring.applicability import kept_weight
from rampgate.checks.score_files import ScoreColumn
from rampgate.console import Failure, run
from rampgate.progress import Progress
from rampgate.registry.opik_reading import opened
from rampgate.settings import Settings
from schemas.answers import TurnView
from schemas.judges import judge_id
from schemas.signals import THUMBS
from schemas.verticals import Vertical
from streams.queries.turn_pages import turn_pages

PATIENCE_SECONDS = 60.0
"""A month is read page by page, and no one waits for a single one."""
_FROM = Path("Opik")


@dataclass
class Window:
    """Scores of turns that production had on full days in UTC, from `since` up to the day before `until`. `left_out`:
    turns and scores that count for nothing, by why."""

    project: str
    since: date
    until: date
    turns: int = 0
    columns: dict[str, ScoreColumn] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def evidence(self) -> str:
        """What a limit cites: the hash of the scores with their turns, weights and days."""
        found = hashlib.sha256()
        for judge, column in sorted(self.columns.items()):
            rows = zip(column.numbers, column.scores, column.weights, column.days, strict=True)
            items = [*column.items]
            for row in sorted((items[at], *rest) for at, *rest in rows):
                found.update(repr((judge, *row)).encode())
        return f"sha256:{found.hexdigest()[:16]}"

    def document(self) -> dict[str, Any]:
        days = {"since": self.since.isoformat(), "until": self.until.isoformat()}
        return {"project": self.project, **days, "turns": self.turns, "left_out": dict(self.left_out)}


def window_of(today: date, days: int) -> tuple[date, date]:
    """Returns the first day, and the one after the last, of the last so many full days."""
    return today - timedelta(days=days), today


def read_window(settings: Settings, registry: Registry, owner: Vertical, days: int, today: date) -> Window:
    """Read the vertical's project. Raises Failure where Opik can't be read."""
    since, until = window_of(today, days)
    found = Window(owner.project, since, until)

    judges = by_name(registry.all(owner.name))

    async def read() -> None:
        async for view in production_turns(settings, owner, _moment(since), _moment(until), found.left_out):
            _add(found, view, judges)

    try:
        run(read)
    except (Unauthorized, Unavailable) as error:
        raise Failure(f"{owner.project}: {error}") from error
    return found


async def production_turns(
    settings: Settings, owner: Vertical, since_ms: int, until_ms: int, left_out: Counter[str]
) -> AsyncIterator[TurnView]:
    """The vertical's turns of production in a window, without their texts, while progress is shown; those of other
    environments are counted in `left_out`. Raises Unavailable and Unauthorized."""
    async with opened(settings, owner, retry_seconds=PATIENCE_SECONDS, tells=True) as traces:
        pages = turn_pages(traces, owner.project, vertical=owner.name, since_ms=since_ms, until_ms=until_ms)
        with Progress(f"reading {owner.project}", unit="turns") as shown:
            async for page in pages:
                for view in page:
                    if (view.environment or "").lower() in PRODUCTION:
                        yield view
                    else:
                        left_out["another environment"] += 1
                shown.advance(len(page))


def off_scale(judge: Judge, score: float) -> bool:
    """Tells whether a judge could not have given a score."""
    import numpy as np

    return declared(judge.score_type, judge.score_range).first_off(np.array([score])) is not None


def by_name(judges: Iterable[Judge]) -> dict[str, Judge]:
    """Judges by their ids, and by the names of their scores in Opik."""
    found = list(judges)
    return {judge.score_name: judge for judge in found} | {judge.id: judge for judge in found}


def _add(found: Window, view: TurnView, judges: Mapping[str, Judge]) -> None:
    """Adds the scores of a turn of production. A judge's score weighs the inverse of the chance that its turn was
    judged; one that is not registered weighs 1."""
    day = _day(view)
    if day is None or not found.since <= day < found.until:
        found.left_out["another day, or none"] += 1
        return
    found.turns += 1
    voted_down = view.feedback_scores.get(THUMBS.score, 0.0) < 0
    scores = {opinion.judge_id: opinion.score for opinion in view.judge_scores if opinion.score is not None}
    for name, score in scores.items():
        judge = judges.get(name) or judges.get(judge_id(name))
        if judge is None and name.partition(".")[0] in judges:
            continue  # a dimension has no limit of its own in a vertical's file
        if judge is not None and off_scale(judge, score):
            found.left_out[f"off the scale of {judge.id}"] += 1
            continue
        column = found.columns.setdefault(name if judge is None else judge.id, ScoreColumn(_FROM))
        if view.response_id not in column.items:
            weight = 1.0 if judge is None else kept_weight(judge, voted_down)
            column.add(len(column.items), view.response_id, score, weight, day.toordinal())


def _day(view: TurnView) -> date | None:
    """The day on which the turn began, in UTC."""
    for said in (view.trace.get("start_time"), view.timestamp):
        try:
            at = datetime.fromisoformat(said) if isinstance(said, str) else None
        except ValueError:
            at = None
        if at is not None:
            return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC).date()
    return None


def _moment(day: date) -> int:
    return round(datetime.combine(day, time(), UTC).timestamp() * 1_000)
