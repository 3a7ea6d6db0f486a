"""Judges that are watched after a deployment, and what a look at them finds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from evalcore.gates.regression import Outcome, Response, Watched, WatchLimits, look
from evalcore.scoring.answers import Answer, Scored, collect
from tests.unit.evalcore.registry.registry_disk import built

REGISTRY = built({})


NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)


def watched(
    judge_id: str, answers: Sequence[Answer], version: str = "v7", agent: str = "assistant", users: int = 40
) -> Watched:
    """`users`: of the traces below the floor, each with a session of its own."""
    judge = REGISTRY.judge(judge_id)
    return Watched(judge, agent, version, collect(answers, judge.score_range), users, users)


def bad(judge_id: str, count: int = 40, **names: str) -> Watched:
    return watched(judge_id, [Scored(REGISTRY.judge(judge_id).score_range[0])] * count, **names)


def good(judge_id: str, count: int = 40) -> Watched:
    return watched(judge_id, [Scored(REGISTRY.judge(judge_id).score_range[1])] * count)


def seen(*found: Watched, known: Outcome | None = None, ramping: bool = True, minutes: int = 0) -> Outcome:
    before = known.open if known is not None else {}
    return look(found, before, WatchLimits(ramping=ramping), NOW + timedelta(minutes=minutes))


def only(outcome: Outcome) -> Response:
    (response,) = outcome.responses
    return response
