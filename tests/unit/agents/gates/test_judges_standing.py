"""What judges' limits rest on stands in each verdict: a seed, evidence, either past its day, or a suspension (PF-9
FR-3, FR-4; DECISIONS 16)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from evalcore.gates.verdict import as_json, from_json
from evalcore.registry.registry import Registry
from schemas.judges import BaselineSource
from tests.unit.agents.gates.ramp_answers_rig import NOW, Scripted, registry, verdict

TODAY = NOW.date()
SEED, ROUND, SCORES = (
    BaselineSource.PROVISIONAL_SEED,
    BaselineSource.JADE_CALIBRATION,
    BaselineSource.PRODUCTION_DISTRIBUTION,
)


class Suspending(Scripted):
    async def suspended(self, judge: str, version: str) -> str:
        asked_of = registry().judge(judge, "receipts").version
        return "canaries move it" if (judge, version) == ("jailbreaking", asked_of) else ""


def resting_on(source: BaselineSource, due: date) -> Registry:
    key = ("ux_quality", "receipts")
    judge = replace(registry().judges[key], baseline_source=source, recalibration_due=due, beside=())
    return replace(registry(), judges={**registry().judges, key: judge})


@pytest.mark.parametrize(
    ("source", "days", "standing"),
    [
        (SEED, 0, "provisional"),
        (SEED, -1, "overdue"),
        (ROUND, 0, "calibrated"),
        (ROUND, -1, "overdue"),
        (SCORES, 30, "calibrated"),
        (SCORES, -30, "overdue"),
    ],
)
@pytest.mark.parametrize("to", [5, 100])
def test_every_verdict_says_what_each_judges_limits_rest_on(
    source: BaselineSource, days: int, standing: str, to: int
) -> None:
    due = TODAY + timedelta(days=days)
    found = verdict(Scripted(), resting_on(source, due), to_percent=to)
    assert len(found.gates) == (1 if to == 5 else 2)
    for scores in (found.per_judge_scores, *(gate.per_judge_scores for gate in found.gates)):
        score = scores["ux_quality"]
        assert (score.standing, score.recalibration_due) == (standing, due.isoformat())
        assert all(one.standing and one.recalibration_due for one in scores.values())


def test_shipped_judges_are_provisional_in_the_record_on_the_topic() -> None:
    record = as_json(verdict())
    for score in record["per_judge_scores"].values():
        assert (score["standing"], score["recalibration_due"]) == ("provisional", "2027-02-18")


def test_a_suspended_judge_is_called_so_whatever_its_limits_rest_on() -> None:
    found = verdict(Suspending())
    assert found.per_judge_scores["jailbreaking"].standing == "suspended"
    assert found.per_judge_scores["ux_quality"].standing == "provisional"


def test_a_verdict_of_before_has_none_and_is_read() -> None:
    record = as_json(verdict())
    for scores in (record["per_judge_scores"], *(gate["per_judge_scores"] for gate in record["gates"])):
        for score in scores.values():
            del score["standing"], score["recalibration_due"]
    assert {score.standing for score in from_json(record).per_judge_scores.values()} == {None}
