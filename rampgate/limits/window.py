"""Takes production's scores of the last days from a vertical's own Opik project (PF-9 §5.3): state holds a week."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
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
from rampgate.opik_reading import opened
from rampgate.progress import progress
from rampgate.settings import Settings
from schemas.answers import TurnView
from schemas.judges import judge_id
from schemas.signals import THUMBS
from schemas.verticals import Vertical
from streams.queries.turn_pages import turn_pages

RETRY_SECONDS = 60.0
"""A month is read page by page, and nobody waits for a single one."""
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

    async def read() -> None:
        async with opened(settings, owner, retry_seconds=RETRY_SECONDS, tells=True) as traces:
            first, end = _moment(since), _moment(until)
            pages = turn_pages(traces, owner.project, vertical=owner.name, since_ms=first, until_ms=end)
            with progress(f"reading {owner.project}", unit="turns") as shown:
                await collect(found, pages, registry.all(owner.name), shown.advance)

    try:
        run(read)
    except (Unauthorized, Unavailable) as error:
        raise Failure(f"{owner.project}: {error}") from error
    return found


async def collect(
    found: Window,
    pages: AsyncIterable[Sequence[TurnView]],
    judges: Sequence[Judge],
    tell: Callable[[int], None] = lambda turns: None,
) -> None:
    """Adds the scores of every turn of production. A judge's score weighs the inverse of the chance that its turn was
    judged; one that is not registered weighs 1."""
    by_name = {judge.score_name: judge for judge in judges} | {judge.id: judge for judge in judges}
    async for page in pages:
        for view in page:
            _add(found, view, by_name)
        tell(len(page))


def _add(found: Window, view: TurnView, by_name: Mapping[str, Judge]) -> None:
    if (view.environment or "").lower() not in PRODUCTION:
        found.left_out["another environment"] += 1
        return
    day = _day(view)
    if day is None or not found.since <= day < found.until:
        found.left_out["another day, or none"] += 1
        return
    found.turns += 1
    voted_down = view.feedback_scores.get(THUMBS.score, 0.0) < 0
    scores = {opinion.judge_id: opinion.score for opinion in view.judge_scores if opinion.score is not None}
    for name, score in scores.items():
        judge = by_name.get(name) or by_name.get(judge_id(name))
        if judge is None and name.partition(".")[0] in by_name:
            continue  # a dimension has no limit of its own in a vertical's file
        if judge is not None and declared(judge.score_type, judge.score_range).first_off(_one(score)) is not None:
            found.left_out[f"off the scale of {judge.id}"] += 1
            continue
        column = found.columns.setdefault(name if judge is None else judge.id, ScoreColumn(_FROM))
        if view.response_id not in column.items:
            weight = 1.0 if judge is None else kept_weight(judge, voted_down)
            column.add(len(column.items), view.response_id, score, weight, day.toordinal())


def _one(score: float) -> Any:
    import numpy as np

    return np.array([score])


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
