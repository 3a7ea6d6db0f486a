"""Absence is no pass: a run that finds no baseline, though main has one, fails (issue 32, line 2)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rampgate.cli import app
from tests.unit.rampgate.suite.suite_folders import case, written

CASES = [case(number, tags=["safety"]) for number in range(4)]


def run(path: Path, *arguments: object) -> tuple[int, str, str]:
    """Exit code, verdict and annotations of a run."""
    named = ["suite", "run", str(path), *map(str, arguments), "--json", "--report", "github"]
    done = CliRunner().invoke(app, named)
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
    assert run(path, "--label", "main")[:2] == (0, "pass")
    written(folder, [*(one | {"input": "crash"} for one in CASES), case(9)])
    code, verdict, said = run(path, *lost(folder))
    assert (code, verdict) == (1, "no_baseline")
    assert "::error title=Suite desk%2C full set::no_baseline: " in said
    assert "--first-run" in said, "it says what to do"


def test_main_and_a_first_run_pass_without_a_baseline_and_a_first_run_is_compared_where_there_is_one(
    folder: Path,
) -> None:
    path = written(folder, CASES)
    assert run(path, "--first-run")[:2] == (0, "pass")
    assert run(path)[:2] == (1, "no_baseline"), "such a run is not the next one's baseline"
    assert run(path, "--label", "main")[:2] == (0, "pass")
    (folder / "prompt.md").write_text("bad\n")
    code, verdict, _ = run(path, "--first-run")
    assert (code, verdict) == (1, "fail")


def test_the_reports_of_a_run_without_a_baseline_say_that_it_is_no_pass(folder: Path) -> None:
    path = written(folder, CASES)
    reports = [folder / f"r.{ending}" for ending in ("html", "md", "xml", "json")]
    code, *_ = run(path, *(word for one in reports for word in ("--report", one)))
    assert code == 1
    assert all("no baseline" in one.read_text() or "no_baseline" in one.read_text() for one in reports)


def test_a_fork_without_keys_is_told_that_its_judges_cannot_be_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES, judges=["helpfulness"], score="helpfulness")
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "k" * 32)
    assert run(path, "--label", "main")[:2] == (0, "pass")
    for key in ("RAMPGATE_SEAL_KEY", "RAMPGATE_MODEL_URL", "RAMPGATE_MODEL_KEY"):
        monkeypatch.delenv(key, raising=False)
    (folder / "prompt.md").write_text("good as well\n")
    code, verdict, said = run(path)
    assert (code, verdict) == (1, "unscored")
    assert "::error title=Suite desk%2C full set::judge_unavailable: " in said
