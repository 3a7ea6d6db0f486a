"""What a suspended judge does to a gate, by every way: a safety judge fails it, a quality judge decides nothing."""

from __future__ import annotations

from typing import Any

import pytest

from evalcore.gates.decision import Evidence, decide
from evalcore.gates.gate import judged, prepare
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import Answer, NotApplicable, Scored
from schemas.judges import Milestone
from schemas.verdicts import Code, GateVerdict, JudgeStanding, VerdictLevel
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

QUALITY, SAFETY = "helpfulness", "refusal"
WHY = "by its check of canaries on 2026-11-01: 12 of 12 items raised"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return built()


def gate(registry: Registry, answers: dict[str, list[Answer]], *suspended: str) -> GateVerdict:
    at = Milestone.PRE_FULL
    beside = {
        name: judged(name, registry.judge(name), at, said, (), WHY if name in suspended else "", TODAY)
        for name, said in answers.items()
    }
    return decide(at, beside, Evidence(100, 10))


def scored(value: float) -> list[Answer]:
    return [Scored(value)] * 100


def codes(verdict: GateVerdict) -> list[Any]:
    return [reason.code for reason in verdict.reasons]


def test_a_suspended_safety_judge_fails_the_gate_however_well_it_scores(registry: Registry) -> None:
    found = gate(registry, {QUALITY: scored(5), SAFETY: scored(1)}, SAFETY)
    assert (found.verdict, codes(found), found.failing_judges) == (VerdictLevel.FAIL, [Code.JUDGE_SUSPENDED], [SAFETY])
    assert WHY in found.reasons[0].message


@pytest.mark.parametrize(
    "answers", [scored(5), scored(1), [], [NotApplicable()] * 100], ids=["best", "worst", "none", "na"]
)
def test_a_suspended_quality_judge_decides_nothing_and_the_gate_warns_at_best(
    registry: Registry, answers: list[Answer]
) -> None:
    found = gate(registry, {QUALITY: answers, SAFETY: scored(1)}, QUALITY)
    assert (found.verdict, codes(found)) == (VerdictLevel.WARN, [Code.JUDGE_SUSPENDED])
    assert found.per_judge_scores[QUALITY].standing is JudgeStanding.SUSPENDED
    assert found.per_judge_scores[QUALITY].passed is False


def test_beside_a_suspended_quality_judge_the_others_decide_as_ever(registry: Registry) -> None:
    found = gate(registry, {QUALITY: scored(5), SAFETY: scored(0)}, QUALITY)
    assert found.verdict is VerdictLevel.FAIL
    assert Code.FLOOR_BREACH in codes(found)


def test_where_every_judge_is_suspended_the_gate_fails(registry: Registry) -> None:
    """A guard that can be switched off by suspending its only judge would be none."""
    found = gate(registry, {QUALITY: scored(5)}, QUALITY)
    assert (found.verdict, set(codes(found))) == (VerdictLevel.FAIL, {Code.JUDGE_SUSPENDED})


@pytest.mark.parametrize(("name", "level"), [(QUALITY, VerdictLevel.WARN), (SAFETY, VerdictLevel.FAIL)])
def test_a_judge_that_is_switched_off_and_asked_for_by_name_is_suspended(name: str, level: VerdictLevel) -> None:
    off = prepare(Milestone.PRE_MERGE, [], [QUALITY, SAFETY], built({f"rules/{name}.yaml": "enabled: false"}), None)
    found = off.verdict({QUALITY: scored(5), SAFETY: scored(1)}, TODAY)
    suspended = [one.message for one in found.reasons if one.code is Code.JUDGE_SUSPENDED]
    assert len(suspended) == 1
    assert name in suspended[0]
    assert "enabled: false" in suspended[0]
    beside = decide(Milestone.PRE_MERGE, {name: judged(name, off.judges[name], Milestone.PRE_MERGE, scored(1), (),
                    "off", TODAY), "brevity": judged("brevity", built().judge("brevity"), Milestone.PRE_MERGE,
                    scored(5), (), "", TODAY)}, Evidence(100, 10))  # fmt: skip
    assert beside.verdict is level
