"""An evaluation that is dated ahead, or by a time without a zone, brings no response; others around it do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from evalcore.gates.regression import Watched
from schemas.checks.evaluation import EvaluatedJudge, Evaluation, Origin
from streams.alerts.evaluations import EvaluationResponses
from tests.memory_ports import ManualClock
from tests.unit.agents.builders import Rec
from tests.unit.evalcore.gates.regression_cases import REGISTRY

HOUR = 3_600_000


@dataclass(frozen=True)
class Stamped(Rec):
    """A record that its broker has stamped."""

    timestamp_type: int = 1


class Watch:
    """Stands for what responds."""

    def __init__(self) -> None:
        self.evaluations: list[str] = []

    async def evaluated(self, lines: Sequence[Watched], at: int) -> bool:
        self.evaluations += [line.agent_version for line in lines]
        return True


def body(version: str, at: str) -> bytes:
    judge = REGISTRY.judge("refusal")
    said = EvaluatedJudge(judge_id=judge.id, judge_version=judge.version, scores=((judge.score_range[0], 1.0, 40),))
    made = Evaluation(
        event_id="e", origin=Origin.AD_HOC, agent_id="a", agent_version=version, judges=(said,), at=datetime.now(UTC)
    )
    return json.dumps(json.loads(made.model_dump_json()) | {"at": at}).encode()


@pytest.mark.parametrize(
    ("dated", "kind", "appended"),
    [
        ("ahead", Rec, 0),
        ("no zone", Rec, 0),
        ("beyond the calendar", Rec, 0),
        ("ahead", Stamped, -HOUR),
    ],
    ids=["of a producer's time", "without a zone", "beyond the calendar", "read long after it was appended"],
)
async def test_an_evaluation_that_is_dated_ahead_is_passed_over_alone(
    dated: str, kind: type[Rec], appended: int
) -> None:
    watch: Any = Watch()
    clock = ManualClock()
    came = clock.ms + appended
    now = datetime.fromtimestamp(came / 1_000, UTC)
    times = {"ahead": (now + timedelta(minutes=30)).isoformat(), "no zone": now.replace(tzinfo=None).isoformat()}
    times["beyond the calendar"] = "0001-01-01T00:00:00+23:00"
    ahead_too = came + HOUR if kind is Rec else came  # a producer dates its record as it likes
    records = [
        Rec(body("before", now.isoformat()), "rampgate.evaluations", timestamp=came),
        kind(body("bad", times[dated]), "rampgate.evaluations", timestamp=ahead_too),
        kind(body("after", (now + timedelta(seconds=50)).isoformat()), "rampgate.evaluations", timestamp=came),
    ]
    assert await EvaluationResponses(watch, lambda: REGISTRY, clock)(records) == []
    assert watch.evaluations == ["before", "after"]
