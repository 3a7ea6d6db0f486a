"""The central log of overrides, by quarter (PC5 §5.5: every override is logged centrally and audited quarterly)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rampgate.cli import app
from rampgate.console import Failure
from rampgate.overrides import Quarter, event_id, report
from tests.unit.rampgate.ci_gate.gate_rig import jsonl


def entry(at: str = "2026-11-20T09:00:00+00:00", **changes: Any) -> dict[str, Any]:
    about = {"at": at, "kind": "gate_skip", "repository": "example/agents", "pull_request": "#12", "author": "writer"}
    said = {
        "approved_by": "@owner",
        "justification": "flaky",
        "expires": "2026-12-23",
        "head": "9f2c",
        "milestone": "pre_ramp",
    }
    return {**about, **said, **changes}


SHIFT = entry(kind="baseline_shift", milestone=None, judges=["brevity"], author="other", approved_by="Owner")


def reported(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["overrides", "report", *map(str, arguments)])


def test_a_quarter_shows_who_asked_for_and_allowed_how_many_overrides(tmp_path: Path) -> None:
    """PC5 §5.5: audited quarterly, of each quarter from its first moment to its last."""
    later = entry(pull_request="#13", at="2026-12-31T23:59:59+00:00")
    first = entry(pull_request="#1", at="2026-10-01T00:00:00+00:00")
    assert report([first, later], Quarter.of("2026-Q4"))["count"] == 2
    outside = [entry(at="2026-09-30T23:00:00+00:00", head="a"), entry(at="2027-01-01T00:00:00+00:00", head="b")]
    lines = [entry(), SHIFT, *outside, {"at": "2026-11-20T09:00:00+00:00", "kind": "skip", "topic": "x"}]
    files = jsonl(tmp_path / "one.jsonl", *lines), jsonl(tmp_path / "two.jsonl", later)
    done = reported("--quarter", "2026-Q4", "--audit", files[0], "--audit", files[1], "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["quarter"], found["count"]) == ("2026-Q4", 3)
    assert found["by_kind"] == {"gate_skip": 2, "baseline_shift": 1}
    assert found["by_milestone"] == {"pre_ramp": 2}
    assert found["by_author"] == {"writer": 2, "other": 1}
    assert found["by_approver"] == {"owner": 3}
    assert found["by_pair"] == {"writer owner": 2, "other owner": 1}
    assert [one["pull_request"] for one in found["overrides"]] == ["#12", "#12", "#13"]
    loose = entry(kind="enforcement", judges=["ux_quality"], vertical="receipts", approved_by="@owner, @Second")
    both = report([entry(), SHIFT, loose, {**loose, "vertical": "travel"}, loose], Quarter.of("2026-Q4"))
    assert both["by_kind"] == {"enforcement": 2, "gate_skip": 1, "baseline_shift": 1}, "all three kinds"
    assert both["by_approver"] == {"owner": 4, "second": 2}, "each of who reviewed"
    assert both["by_pair"] == {"writer owner": 3, "writer second": 2, "other owner": 1}
    shown = reported("--quarter", "2026-q4", "--audit", files[0])
    assert "2 overrides in 2026-Q4" in shown.stdout


def test_a_run_that_is_repeated_is_no_second_override() -> None:
    again = entry("2026-11-20T10:00:00+00:00")
    pushed = entry("2026-11-20T11:00:00+00:00", head="b2c3")
    assert event_id(again) == event_id(entry()) != event_id(pushed)
    versions = {event_id(entry(agent_id="a", agent_version=version)) for version in ("v1", "v2")}
    assert len(versions | {event_id(entry())}) == 3, "a skip of another version is another override"
    assert report([entry(), again, pushed], Quarter.of("2026Q4"))["count"] == 2


def test_an_override_without_a_time_is_not_lost() -> None:
    assert report([entry(at="yesterday")], Quarter.of("2026-Q1"))["count"] == 1


@pytest.mark.parametrize("word", ["", "Q4", "2026", "2026-Q5", "26-Q4", "2026-Q٤"])
def test_a_quarter_is_named_by_year_and_number(word: str) -> None:
    done = reported("--quarter", word, "--audit", "x")
    assert isinstance(done.exception, Failure)
    assert "is no quarter" in str(done.exception)
