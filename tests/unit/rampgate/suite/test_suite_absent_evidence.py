"""Absent or self-supplied evidence passes no suite's run and no comparison: a run without a baseline, though main has
one, fails (issue 32, line 2)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.evalcore.registry.registry_disk import written as registry
from tests.unit.rampgate.ci_gate.gate_rig import MANIFEST
from tests.unit.rampgate.suite.suite_commands import ended, failure, ran, refused
from tests.unit.rampgate.suite.suite_folders import case, written

SILENT = """
def answer(case):
    return {"output": OUTPUT, "tool_calls": TOOLS}
"""
NO_CARD = {"is_good": {"regex": "[0-9]{13}", "absent": True}}


def lines(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(one)}\n" for one in found))
    return path


def run(ok: float = 1.0, tag: str = "chat", **more: Any) -> list[dict[str, Any]]:
    return [
        {"case_id": f"c{number}", "slices": [tag], "sample": sample, "scores": {"ok": ok}, **more}
        for number in range(20)
        for sample in range(3)
    ]


def not_compared(*arguments: object) -> str:
    return failure("compare", *arguments, "--json")


@pytest.mark.parametrize("named", [False, True])
def test_a_run_that_writes_over_its_baseline_is_refused_before_it_does(folder: Path, named: bool) -> None:
    path = written(folder)
    out = folder / "main.jsonl"
    ran(path, "--label", "main", "--out", out)
    before = out.read_bytes()
    (folder / "prompt.md").write_text("bad\n")
    link = folder / "link.jsonl"
    link.symlink_to(out)
    said = refused(path, "--baseline", link if named else out, "--out", out)
    assert "is the baseline itself" in said
    assert out.read_bytes() == before


def test_a_slice_of_safety_that_no_case_is_in_is_refused(tmp_path: Path) -> None:
    sides = lines(tmp_path / "main.jsonl", run(tag="harm")), lines(tmp_path / "branch.jsonl", run(tag="harm"))
    assert "no case of the files is in the slice 'hram'" in not_compared(*sides, "--safety", "hram")
    assert ended("compare", *sides, "--safety", "harm").exit_code == 0


def test_a_candidates_own_numbers_do_not_widen_the_scale(tmp_path: Path) -> None:
    """One 100 moves the middle of the scale, below which a case of safety fails, to 50: all failed before, too."""
    branch = run(0.0, "safety")
    branch[0]["scores"] = {"ok": 100}
    sides = lines(tmp_path / "main.jsonl", run(tag="safety")), lines(tmp_path / "branch.jsonl", branch)
    assert "not on the baseline's scale, 0 to 1" in not_compared(*sides)


def test_a_candidate_that_does_not_say_what_it_was_asked_is_not_compared(tmp_path: Path) -> None:
    main = lines(tmp_path / "main.jsonl", run(question_hash="a" * 64))
    assert "nothing can be compared" in not_compared(main, lines(tmp_path / "branch.jsonl", run()))


@pytest.mark.parametrize("output", ["", "  \n"])
def test_a_blank_text_is_no_answer(folder: Path, output: str) -> None:
    """A check that something is absent finds it absent in nothing, too."""
    path = written(folder, checks=NO_CARD)
    ran(path, "--label", "main")
    silent = SILENT.replace("OUTPUT", repr(output))
    written(folder, checks=NO_CARD, agent=silent.replace("TOOLS", "[]"))
    assert ran(path, code=1)["verdict"] == "fail"
    written(folder, checks=NO_CARD, agent=silent.replace("TOOLS", "[{'name': 'refund'}]"))
    assert ran(path)["verdict"] == "pass", "who calls a tool may say nothing beside it"


@pytest.mark.parametrize("label", [(), ("--label", "main")])
def test_a_run_in_which_the_score_never_applied_is_no_first_run(folder: Path, label: tuple[str, ...]) -> None:
    never = 'allow_na: true\nprompt: "Rate {{output}} as an answer to {{input}}. The score must be N/A."'
    registry(folder.parent, {"evaluation_manifest.yaml": MANIFEST, "rules/helpfulness.yaml": never})
    path = written(folder, [case(0)], checks={}, judges=["helpfulness"], score="helpfulness")
    found = ran(path, *label, code=1)
    assert (found["verdict"], found["comparison"]) == ("unscored", None)


CASES = [case(number, tags=["safety"]) for number in range(4)]


def told(path: Path, *arguments: object) -> tuple[int, str, str]:
    """Exit code, verdict and annotations of a run."""
    done = ended("run", path, *arguments, "--json", "--report", "github")
    assert done.stdout, (done.exception, done.output)
    told: dict[str, Any] = json.loads(done.stdout)
    return done.exit_code, told["verdict"], done.stderr


def no_store(folder: Path) -> list[str]:
    for file in (folder / ".rampgate").glob("store.db*"):
        file.unlink()
    return []


def no_rows(folder: Path) -> list[str]:
    with sqlite3.connect(folder / ".rampgate" / "store.db") as database:
        database.execute("DELETE FROM kept WHERE key LIKE 'runs:%'")
    database.close()
    return []


def mistyped(folder: Path) -> list[str]:
    return ["--store", str(folder / ".rampgate" / "sotre.db")]


@pytest.mark.parametrize("lost", [no_store, no_rows, mistyped])
def test_a_crashing_candidate_whose_baseline_is_gone_does_not_pass(
    folder: Path, lost: Callable[[Path], list[str]]
) -> None:
    path = written(folder, [*CASES, case(9)])
    assert told(path, "--label", "main")[:2] == (0, "pass")
    written(folder, [*(one | {"input": "crash"} for one in CASES), case(9)])
    code, verdict, said = told(path, *lost(folder))
    assert (code, verdict) == (1, "no_baseline")
    assert "::error title=Suite desk%2C full set::no_baseline: " in said
    assert "--first-run" in said, "it says what to do"


def test_main_and_a_first_run_pass_without_a_baseline_and_a_first_run_is_compared_where_there_is_one(
    folder: Path,
) -> None:
    path = written(folder, CASES)
    assert told(path, "--first-run")[:2] == (0, "pass")
    assert told(path)[:2] == (1, "no_baseline"), "such a run is not the next one's baseline"
    assert told(path, "--label", "main")[:2] == (0, "pass")
    (folder / "prompt.md").write_text("bad\n")
    code, verdict, _ = told(path, "--first-run")
    assert (code, verdict) == (1, "fail")


def test_the_reports_of_a_run_without_a_baseline_say_that_it_is_no_pass(folder: Path) -> None:
    path = written(folder, CASES)
    reports = [folder / f"r.{ending}" for ending in ("html", "md", "xml", "json")]
    code, *_ = told(path, *(word for one in reports for word in ("--report", one)))
    assert code == 1
    assert all("no baseline" in one.read_text() or "no_baseline" in one.read_text() for one in reports)


def test_a_fork_without_keys_is_told_that_its_judges_cannot_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES, judges=["helpfulness"], score="helpfulness")
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "k" * 32)
    assert told(path, "--label", "main")[:2] == (0, "pass")
    for key in ("RAMPGATE_SEAL_KEY", "RAMPGATE_MODEL_URL", "RAMPGATE_MODEL_KEY"):
        monkeypatch.delenv(key, raising=False)
    (folder / "prompt.md").write_text("good as well\n")
    code, verdict, said = told(path)
    assert (code, verdict) == (1, "unscored")
    assert "::error title=Suite desk%2C full set::judge_unavailable: " in said
