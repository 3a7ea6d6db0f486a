"""Both sides of a suite are scored by the same versions of judges and checks: a changed rubric judges the baseline's
stored outputs again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.model.server import Running
from tests.unit.rampgate.ci_gate.gate_rig import Rig
from tests.unit.rampgate.suite.suite_commands import failure, lines, ran, refused
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED: dict[str, Any] = {"judges": ["helpfulness"], "score": "helpfulness", "samples": 1}
CASES = [case(number) for number in range(12)]
OTHERWISE: dict[str, str | None] = {"rules/helpfulness.yaml": "task_introduction: You judge otherwise."}


def other_rubric(folder: Path, model: Running) -> None:
    Rig(folder.parent, model.url).registry(OTHERWISE)


def baseline_lines(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(found["baseline"]["results"]).read_text().splitlines()]


def test_a_changed_rubric_judges_the_baselines_outputs_again(folder: Path, model: Running) -> None:
    path = written(folder, CASES, **JUDGED)
    (before,) = {row["versions"]["helpfulness"] for row in lines(ran(path, "--label", "main"))}
    other_rubric(folder, model)
    second = ran(path)
    assert second["baseline"]["judged_again"] == 12
    assert second["comparison"]["verdict"] == "pass"
    (now,) = {row["versions"]["helpfulness"] for row in baseline_lines(second)}
    assert {row["versions"]["helpfulness"] for row in lines(second)} == {now} != {before}
    assert len(asked(folder)) == 12, "outputs are judged, and no one is asked for new ones"
    assert ran(path)["judge_calls"] == 0, "what was judged again is kept"


def test_by_the_same_rubric_the_baseline_stays_as_it_is(folder: Path) -> None:
    path = written(folder, CASES, **JUDGED)
    ran(path, "--label", "main")
    assert ran(path)["baseline"]["judged_again"] == 0


def test_a_changed_check_looks_at_the_baselines_outputs_again(folder: Path) -> None:
    ran(written(folder, CASES), "--label", "main")
    (folder / "prompt.md").write_text("bad\n")
    found = ran(written(folder, CASES, checks={"is_good": {"regex": "^bad"}}))
    assert found["baseline"]["judged_again"] == 24
    assert found["comparison"]["headline"]["baseline"] == 0.0
    assert found["comparison"]["headline"]["candidate"] == 1.0


def test_files_of_two_versions_are_not_compared(folder: Path, model: Running) -> None:
    path = written(folder, CASES, **JUDGED)
    first = ran(path, "--out", folder / "one.jsonl", "--store", folder / "one.db")
    other_rubric(folder, model)
    second = ran(path, "--out", folder / "two.jsonl", "--store", folder / "two.db")
    said = failure("compare", first["results"], second["results"], "--score", "helpfulness")
    assert "other versions of its judge" in said


def test_a_baseline_without_outputs_that_would_have_to_be_judged_is_refused_by_its_line(folder: Path) -> None:
    path = written(folder, CASES)
    bare = folder / "bare.jsonl"
    rows = [{"case_id": f"c{number}", "sample": 1, "scores": {"is_good": 1}} for number in range(12)]
    bare.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "bare.jsonl:1: output: there is none to judge again" in refused(path, "--baseline", bare)


def test_the_agents_error_stays_the_worst_value(folder: Path) -> None:
    cases = [*CASES, case(12, input="crash")]
    ran(written(folder, cases), "--label", "main")
    found = ran(written(folder, cases, checks={"is_good": {"regex": "good"}}))
    assert found["baseline"]["judged_again"] == 24
    assert sum("error" in row for row in baseline_lines(found)) == 2


def test_what_the_limit_leaves_of_the_baseline_makes_the_run_incomplete(
    folder: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES, **JUDGED)
    ran(path, "--label", "main")
    other_rubric(folder, model)
    (folder / "prompt.md").write_text("better\n")
    monkeypatch.setenv("RAMPGATE_GATE_CALLS", "12")
    found = ran(path, code=1)
    assert (found["verdict"], found["left"]["scores"]) == ("incomplete", 12)
