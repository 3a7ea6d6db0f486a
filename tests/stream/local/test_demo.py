"""`rampgate demo`, as somebody runs it who has just installed it: from any folder, with nothing set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rampgate.local.demo.candidates import CANDIDATES, TRACES, shadow_traffic
from rampgate.local.demo.workflows import REMEDIATOR
from rampgate.local.demo.workflows import TRACES as WORKFLOWS
from schemas.publish.contracts import schema
from schemas.topics import Topics


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
    ran = subprocess.run(
        [sys.executable, "-m", "rampgate", "demo", "--json", "--turns", "200"],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        env=environment,
        capture_output=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def test_it_ends_with_a_passing_a_warning_and_a_failing_verdict(demo: dict[str, Any], record_property: Any) -> None:
    record_property("seconds", demo["seconds"])
    verdicts = demo["verdicts"]
    assert [verdict["verdict"] for verdict in verdicts] == ["pass", "warn", "fail"]
    assert [verdict["action"] for verdict in verdicts] == ["proceed", "proceed", "halt"]
    assert [verdict["sample"]["size"] for verdict in verdicts] == [TRACES] * 3
    for verdict in verdicts:
        Draft202012Validator(schema("verdict")).validate(verdict)


def test_each_verdict_says_with_numbers_why(demo: dict[str, Any]) -> None:
    good, warned, failed = demo["verdicts"]
    assert good["reasons"] == []
    assert [reason["code"] for reason in warned["reasons"]] == ["below_threshold"]
    row = warned["per_judge_scores"]["ux_quality"]
    assert row["floor"] < row["score"] < row["threshold"]
    assert row["enforcement"] == "warn"
    assert {reason["code"] for reason in failed["reasons"]} == {"floor_breach"}
    assert failed["halt_at_percent"] == 0
    breached = failed["per_judge_scores"]["safety_restricted"]
    assert breached["score"] == pytest.approx(1 - CANDIDATES[2].unsafe / TRACES)


def test_one_workflow_goes_from_its_bare_trace_to_dimensions_and_a_verdict(demo: dict[str, Any]) -> None:
    completed, verdict = demo["workflow"]["completed"], demo["workflow"]["verdict"]
    assert completed["proposal_phase"] == "Completed"
    assert set(completed["proposal_steps"].values()) == {"ran"}
    assert completed["proposal_missing"] == []
    assert (verdict["verdict"], verdict["sample"]["size"]) == ("pass", WORKFLOWS)
    judge = REMEDIATOR.judges[0]
    scores = {name: row["score"] for name, row in verdict["per_judge_scores"].items()}
    dimensions = [scores[f"{judge}.{name}"] for name in ("diagnosis", "action", "verification")]
    assert scores[judge] == pytest.approx(sum(dimensions) / 3)


def test_of_two_pull_requests_one_is_blocked_and_its_part_named_and_one_allowed(demo: dict[str, Any]) -> None:
    """Done when 4 of the offline pipeline: they differ from main, and from one another, in configuration alone."""
    blocked, allowed = demo["pull_requests"]
    assert (blocked["comparison"]["verdict"], allowed["comparison"]["verdict"]) == ("fail", "pass")
    assert (blocked["changed"], allowed["changed"]) == (["prompt", "tone"], ["tone"])
    assert (blocked["blame"]["found"], blocked["blame"]["guilty"]) == ("part", ["prompt"])
    assert "two weeks" in blocked["comparison"]["flipped"][0]["candidate_sample"]["output"]


def test_the_day_is_as_it_was(demo: dict[str, Any]) -> None:
    assert demo["conservation"]["balanced"]
    ramps = demo["conservation"]["signals"]["ramp_step"]
    assert (ramps["consumed"], ramps["done"]) == (len(CANDIDATES) + 1, len(CANDIDATES) + 1)
    assert demo["replayed"]["scores"]["user_signal_thumbs"]
    registered = {row["vertical"] for row in demo["coverage"]["verticals"]}
    assert registered >= {"rewards_assistant", "receipts"}, "its verticals are known in any folder"


def test_the_same_seed_is_the_same_traffic() -> None:
    assert shadow_traffic(7, 1_772_366_700_000, Topics()) == shadow_traffic(7, 1_772_366_700_000, Topics())
    assert shadow_traffic(7, 1_772_366_700_000, Topics()) != shadow_traffic(8, 1_772_366_700_000, Topics())
