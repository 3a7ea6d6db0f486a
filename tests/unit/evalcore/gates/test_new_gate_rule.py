"""A new gate rule is one function and one line in `GATE_RULES` (CONTRIBUTING.md): every way to a verdict obeys it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from evalcore.gates import decision
from evalcore.gates.decision import Evidence, Judged
from evalcore.gates.evaluate import evaluate_gate
from schemas.judges import Milestone
from schemas.verdicts import Code, Reason, VerdictLevel
from tests.unit.agents.gates.ramp_answers_rig import Scripted, registry, verdict

WHY = "no gate opens on an odd number of items"


def even_samples_only(milestone: Milestone, judged: Mapping[str, Judged], evidence: Evidence) -> Iterator[Reason]:
    if evidence.size % 2:
        yield Reason(Code.INSUFFICIENT_SAMPLE, WHY)


@pytest.fixture
def _with_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision, "GATE_RULES", (*decision.GATE_RULES, even_samples_only))


def told(reasons: list[Reason]) -> list[str]:
    return [reason.message for reason in reasons]


@pytest.mark.usefixtures("_with_the_rule")
def test_a_new_rule_decides_ramp_steps_on_the_stream() -> None:
    broken, kept = verdict(Scripted(size=401)), verdict(Scripted(size=400))
    assert (broken.verdict, told(broken.reasons)) == (VerdictLevel.FAIL, [WHY])
    assert kept.verdict is VerdictLevel.PASS


@pytest.mark.usefixtures("_with_the_rule")
def test_a_new_rule_decides_evaluate_gate() -> None:
    def decided(size: int) -> list[str]:
        traces = [{"trace_id": f"t{number}", "input": "hi", "output": "ho"} for number in range(size)]
        return told(evaluate_gate("pre_ramp", traces, ["ux_quality"], registry=registry()).reasons)

    assert WHY in decided(101)
    assert WHY not in decided(100)
