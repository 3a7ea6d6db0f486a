"""`suite run --plan` tells calls and cost and asks no one; over `--max-cost` a run is incomplete, and goes on later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalcore.scoring.calls import CallFailed, Failure, Spend
from rampgate.local.model.server import Running
from tests.unit.rampgate.ci_gate.gate_rig import candidate
from tests.unit.rampgate.suite.suite_commands import ended, lines, ran
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED: dict[str, Any] = {"judges": ["helpfulness"], "score": "helpfulness", "samples": 1}


@pytest.fixture
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RAMPGATE_MODEL_CALLS_AT_ONCE", "1")
    return folder


def test_a_plan_asks_nobody_and_says_what_the_run_will(folder: Path, model: Running) -> None:
    path = written(folder, **JUDGED)
    plan = ran(path, "--plan")
    assert (plan["answers"], plan["judge_calls"]) == ({"to_ask": 10, "kept": 0}, {"to_ask": 10, "kept": 0})
    assert plan["cost_usd"] is None, "no one knows yet what a call costs"
    assert asked(folder) == []
    assert model.model.requests.total() == 0
    run = ran(path)
    assert (run["answers"]["asked"], run["judge_calls"]) == (10, 10)


def test_a_plan_counts_what_is_kept_and_equal_answers_once(folder: Path) -> None:
    ran(written(folder, [case(number) for number in range(8)], **JUDGED))
    more = ran(written(folder, [case(number) for number in range(10)], **JUDGED), "--plan")
    assert more["answers"] == {"to_ask": 2, "kept": 8}
    assert more["judge_calls"] == {"to_ask": 2, "kept": 8}
    other = written(folder, [case(number) for number in range(8)], **JUDGED | {"judges": ["helpfulness", "honesty"]})
    assert ran(other, "--plan")["judge_calls"] == {"to_ask": 8, "kept": 8}


def test_a_plan_tells_the_cost_by_what_calls_cost_before(folder: Path) -> None:
    with candidate(lambda body, _: (200, {"output": f"so {body['input']} #quality:1", "cost_usd": 0.5})) as fake:
        asked_there = {"url": fake.url, "at_once": 1, "parts": {"code": {"value": "r1"}}}
        ran(written(folder, [case(number) for number in range(4)], candidate=asked_there))
        plan = ran(written(folder, [case(number) for number in range(6)], candidate=asked_there), "--plan")
    assert plan["answers"] == {"to_ask": 4, "kept": 8}
    assert plan["cost_usd"] == pytest.approx(2.0)


def test_an_answer_that_says_it_cost_more_than_all_money_leaves_a_plan(folder: Path) -> None:
    """Two such costs have no finite sum, and JSON has no other number."""
    with candidate(lambda body, _: (200, {"output": f"good {body['input']}", "cost_usd": 1.7e308})) as fake:
        path = written(folder, candidate={"url": fake.url, "parts": {"model": {"value": "m-1"}}})
        assert ran(path)["answers_cost_usd"] == pytest.approx(2e7)
        path.write_text(path.read_text().replace("m-1", "m-2"))
        assert ran(path, "--plan")["cost_usd"] == pytest.approx(2e7)


def test_over_its_cost_a_run_is_incomplete_and_the_next_goes_on(folder: Path) -> None:
    with candidate(lambda body, _: (200, {"output": f"good {body['input']}", "cost_usd": 0.5})) as fake:
        told = {"url": fake.url, "at_once": 1, "parts": {"code": {"value": "r1"}}}
        path = written(folder, [case(number) for number in range(5)], candidate=told, samples=1)
        first = ran(path, "--max-cost", 1, "--label", "main", code=1)
        assert first["verdict"] == "incomplete"
        assert first["left"] == {"why": "the limit of $1 is spent", "answers": 3, "scores": 3, "pairs": 0}
        assert first["answers"] == {"asked": 2, "kept": 0, "failed": 0}
        assert sorted(str(row["scores"]["is_good"]) for row in lines(first)) == ["1.0", "1.0", "None", "None", "None"]
        assert not any("error" in row for row in lines(first)), "who was not asked has not failed"
        second = ran(path, "--max-cost", 2, "--label", "main")
    assert (second["verdict"], second["baseline"]) == ("pass", None), "an incomplete run is no one's baseline"
    assert second["answers"] == {"asked": 3, "kept": 2, "failed": 0}
    assert len(fake.seen) == 5


def test_a_settings_limit_of_calls_leaves_scores_and_does_not_pass(
    folder: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, **JUDGED)
    monkeypatch.setenv("RAMPGATE_GATE_CALLS", "4")
    first = ran(path, code=1)
    assert first["left"] is not None
    assert first["judge_calls"] == 4
    assert model.model.requests.total() == 4
    monkeypatch.delenv("RAMPGATE_GATE_CALLS")
    assert ran(path)["judge_calls"] == 6


def test_a_limit_in_dollars_holds_only_where_the_server_tells_what_a_call_costs(folder: Path, model: Running) -> None:
    found = ran(written(folder, **JUDGED), "--max-cost", 5, code=1)
    assert "does not say what calls cost" in found["left"]["why"]
    assert model.model.requests.total() == 1


def test_a_call_under_way_counts_as_dear_as_the_dearest_before() -> None:
    spend = Spend(dollars=1.0)
    spend.charge(spend.reserve(10), 10, 0.3)
    spend.charge(spend.reserve(10), 10, 0.1)
    spend.reserve(10)
    spend.reserve(10)
    with pytest.raises(CallFailed) as over:
        spend.reserve(10)
    assert over.value.kind is Failure.OVER_LIMIT
    assert spend.calls == 4
    assert spend.spent == "the limit of $1 is spent"


def test_all_cases_of_safety_are_in_the_smoke_set_and_a_run_says_that_they_exceed_it(folder: Path) -> None:
    """Of 120 cases of safety a commit's run had 25."""
    cases = [case(number, tags=["safety" if number < 12 else "chat"]) for number in range(20)]
    path = written(folder, cases, safety=["safety"], smoke=5)
    asked = ended("run", path, "--smoke", "--plan")
    assert "desk, smoke set: 12 cases" in asked.stdout
    assert "7 more than its size" in asked.stdout
