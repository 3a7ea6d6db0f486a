"""How an agent definition stands with its gates, by the verdicts on the topic (PC5 §5.5, "Per-Agent-Definition
lifecycle threads"; contracts §3, "The gate before")."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from evalcore.gates import history as subject
from evalcore.gates.history import History, Stand
from evalcore.gates.verdict import Moment, as_json, of_pull_request
from schemas.judges import Milestone
from schemas.verdicts import GateVerdict, VerdictLevel

NONE = Stand()


def decided(number: int, word: str = "pass", milestone: str = "pre_ramp", **changes: Any) -> dict[str, Any]:
    """Decided in the minute `number`."""
    return {
        "request_id": f"r{number} {milestone}",
        "verdict_id": f"v{number}",
        "experiment_id": "e-1",
        "agent_id": "agent",
        "agent_version": "abc",
        "vertical": None,
        "from_percent": 0.0,
        "to_percent": 5.0,
        "gates": [{"milestone": milestone, "verdict": word, "per_judge_scores": {}}],
        "sample": None,
        "evidence": {"decided_at": at(number)},
        **changes,
    }


def at(number: int) -> str:
    return f"2026-11-21T{number // 60:02}:{number % 60:02}:00.000+00:00"


def stands(*verdicts: dict[str, Any], milestone: str = "pre_ramp") -> bool:
    found = History()
    for one in verdicts:
        found.add(one)
    return found.stand("agent", "abc", milestone).passes


@pytest.mark.parametrize(("word", "passes"), [("pass", True), ("warn", True), ("fail", False)])
def test_a_gate_that_did_not_fail_is_a_pass(word: str, passes: bool) -> None:
    assert stands(decided(1, word)) is passes


def test_nothing_known_is_no_pass() -> None:
    assert not stands()


@pytest.mark.parametrize(
    "other",
    [
        {"agent_id": "another"},
        {"agent_version": "abd"},
        {"gates": [{"milestone": "pre_full", "verdict": "pass", "per_judge_scores": {}}]},
        {"gates": []},
    ],
)
def test_a_pass_is_of_one_definition_and_one_gate(other: dict[str, Any]) -> None:
    assert not stands(decided(1, **other))


def test_a_later_failure_takes_a_pass_away_in_any_order_of_reading() -> None:
    """After a restart the partitions of the topic are read in any order; experiments of one version lie on several."""
    for order in permutations([decided(1), decided(2, "fail", experiment_id="e-2")]):
        assert not stands(*order)
    for order in permutations([decided(1), decided(2, "fail", experiment_id="e-2"), decided(3, experiment_id="e-3")]):
        assert stands(*order), "passed again"
    for order in permutations([decided(2), decided(2, "fail", experiment_id="e-2")]):
        assert not stands(*order), "of two at one moment the failure counts"


def test_a_gate_counts_as_it_ended_whatever_became_of_its_step() -> None:
    """A jump to 100 % that passes pre_ramp and fails pre_full has passed pre_ramp."""
    gates = [
        {"milestone": "pre_ramp", "verdict": "pass", "per_judge_scores": {}},
        {"milestone": "pre_full", "verdict": "fail", "per_judge_scores": {}},
    ]
    jump = decided(1, to_percent=100.0, verdict="fail", gates=gates)
    assert stands(jump)
    assert not stands(jump, milestone="pre_full")


def test_a_refusal_takes_no_pass_away() -> None:
    """A deadline that has passed, an invalid request: they cost nothing and say nothing about the agent."""
    assert stands(decided(1), decided(2, milestone="late", gates=[], verdict="fail", to_percent=5.0))


def test_a_flood_of_free_verdicts_makes_no_pass_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither refusals of made-up agents nor their gates, which fail for want of a sample, and cost nothing as well."""
    monkeypatch.setattr(subject, "STANDS", 50)
    found = History()
    found.add(decided(1))
    for number in range(2, 600):
        made_up = {"agent_id": f"made up {number}", "experiment_id": f"e{number}"}
        found.add(decided(number, "fail", **made_up))
        found.add(decided(number, milestone="x", gates=[], **made_up))
        found.drop(decided(number, "fail", **made_up))
    assert found.stand("agent", "abc", "pre_ramp").passes
    assert len(found._failed._values) <= 53


def test_what_is_dropped_from_the_listing_stays_a_pass() -> None:
    found = History()
    found.add(decided(1))
    found.drop(decided(1))
    assert found.stand("agent", "abc", "pre_ramp") == Stand(passed=at(1))


@pytest.mark.parametrize("word", VerdictLevel)
def test_a_pull_requests_verdict_stands_in_the_same_history(word: VerdictLevel) -> None:
    gate = GateVerdict({}, word, [], Milestone.PRE_MERGE)
    verdict = of_pull_request("agent", "abc", gate, Moment(at(1), 1.0), request_id="gate-run-1")
    assert (verdict.milestone, verdict.verdict, verdict.experiment_id) == (Milestone.PRE_MERGE, word, None)
    assert verdict.action == ("halt" if word is VerdictLevel.FAIL else "proceed")
    assert stands(as_json(verdict), milestone="pre_merge") is (word is not VerdictLevel.FAIL)
    assert not stands(as_json(verdict))
