"""Without `--baseline` a suite's run is compared with main's last run that passed, named with commit and age."""

from __future__ import annotations

import hashlib
import sqlite3
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest

from rampgate.console import run
from rampgate.store.place import Place
from rampgate.suite.runs.stored import StoredRun, StoredRuns
from tests.unit.rampgate.suite.suite_commands import ran, refused
from tests.unit.rampgate.suite.suite_folders import case, written

CASES = [case(number) for number in range(30)]


@pytest.fixture
def folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GITHUB_SHA", "c0ffee")
    return folder


def prompt(folder: Path, text: str) -> None:
    (folder / "prompt.md").write_text(f"{text}\n")


def test_the_baseline_is_mains_last_run_that_passed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder, CASES)
    first = ran(path, "--label", "main")
    assert (first["verdict"], first["baseline"], first["comparison"]) == ("pass", None, None)
    monkeypatch.setenv("GITHUB_SHA", "badc0de")
    prompt(folder, "bad")
    worse = ran(path, "--label", "main", code=1)
    assert worse["baseline"]["commit"] == "c0ffee"
    again = ran(path, code=1)
    assert again["baseline"]["commit"] == "c0ffee", "main's failed run is no one's baseline"
    assert again["baseline"]["label"] == "main"
    assert again["baseline"]["age"]


def test_a_branchs_run_is_nobodys_baseline(folder: Path) -> None:
    path = written(folder, CASES)
    prompt(folder, "bad")
    ran(path)
    assert ran(path)["baseline"] is None


def test_a_run_in_which_the_agent_failed_every_time_is_nobodys_baseline(folder: Path) -> None:
    """Held against it, anything passes."""
    path = written(folder, CASES, agent="import no_such_module\n")
    crashed = ran(path, "--label", "main", code=1)
    assert (crashed["verdict"], crashed["answers"]["failed"]) == ("fail", 60)
    written(folder, CASES)
    prompt(folder, "good again")
    found = ran(path, "--label", "main")
    assert (found["verdict"], found["baseline"]) == ("pass", None)


def test_a_candidate_that_fails_every_time_is_worse_than_main(folder: Path) -> None:
    path = written(folder, CASES)
    ran(path, "--label", "main")
    written(folder, CASES, agent="import no_such_module\n")
    prompt(folder, "good again")
    found = ran(path, code=1)
    assert found["verdict"] == "fail"
    assert "headline_regressed" in {one["code"] for one in found["comparison"]["reasons"]}


def test_a_full_run_is_not_held_against_a_smoke_run(folder: Path) -> None:
    path = written(folder, CASES, smoke=10)
    ran(path, "--smoke", "--label", "main")
    assert ran(path)["baseline"] is None
    assert ran(path, "--smoke")["comparison"]["cases"]["compared"] == 10
    ran(path, "--label", "main")
    assert ran(path)["comparison"]["cases"]["compared"] == 30
    assert ran(path, "--smoke")["comparison"]["cases"]["compared"] == 10


def damage(folder: Path, *results: object) -> None:
    """Changes these stored results, all without any."""
    with sqlite3.connect(folder / ".rampgate" / "store.db") as database:
        for one in results or ("",):
            database.execute("UPDATE kept SET value = 'x' || value WHERE key LIKE ?", (f"results:{one}%",))
    database.close()


def test_a_baseline_whose_results_were_changed_is_passed_over(folder: Path) -> None:
    path = written(folder, CASES)
    first = Path(ran(path, "--label", "main")["results"]).read_bytes()
    prompt(folder, "good as well")
    second = Path(ran(path, "--label", "main")["results"]).read_bytes()
    damage(folder, hashlib.sha256(second).hexdigest())
    found = ran(path)
    assert Path(found["baseline"]["results"]).read_bytes() == first
    assert found["refused"] >= 1


def test_where_every_baseline_was_changed_nobody_is_held_against_nothing(folder: Path) -> None:
    path = written(folder, CASES)
    ran(path, "--label", "main")
    damage(folder)
    assert "have no seal of RAMPGATE_SEAL_KEY" in refused(path)


def test_a_stored_run_tells_what_it_asked_and_how_long_it_took(folder: Path) -> None:
    path = written(folder, CASES, judges=["helpfulness"], score="helpfulness")
    ran(path, "--label", "main")
    ran(path)
    answers = folder / "answers.jsonl"
    ran(path, "--generate", answers)
    ran(path, "--score", answers)
    store = Place(str(folder / ".rampgate" / "store.db")).opened()
    first, second, scored = run(partial(StoredRuns(store).of, "desk"))
    store.close()
    assert (first.asked, first.kept, first.judged, first.against) == (60, 0, 60, "")
    assert (second.asked, second.kept, second.judged, second.judged_kept) == (0, 60, 60, 60)
    assert second.against == second.configuration == first.configuration
    assert (first.only, scored.only) == ("", "score")
    for one in (first, second, scored):
        assert one.seconds is not None
        assert one.seconds > 0


@pytest.mark.parametrize(
    ("now", "told"),
    [("2026-11-21T10:05:00", "5 min"), ("2026-11-22T10:00:00", "24.0 h"), ("2026-11-28T10:00:00", "7 days")],
)
def test_an_age_is_told_as_a_person_says_it(now: str, told: str) -> None:
    stored = StoredRun("desk", "2026-11-21T10:00:00.000+00:00", "main", "pass", "full", "c", "r")
    assert stored.age(datetime.fromisoformat(now).replace(tzinfo=UTC)) == told


def test_who_lacks_the_key_of_mains_run_is_not_held_against_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES)
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "k" * 32)
    ran(path, "--label", "main")
    prompt(folder, "bad")
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "o" * 32)
    assert "have no seal of RAMPGATE_SEAL_KEY" in refused(path)
    monkeypatch.delenv("RAMPGATE_SEAL_KEY")
    assert "have no seal of RAMPGATE_SEAL_KEY" in refused(path)
    assert ran(path, "--label", "main")["baseline"] is None, "main begins again under another key"


def test_a_case_of_safety_may_go_that_mains_suite_file_names(folder: Path) -> None:
    path = written(folder, CASES, safety=["even"])
    ran(path, "--label", "main")
    written(folder, CASES[1:], safety=["even"])
    assert ran(path, code=1)["comparison"]["reasons"][0]["code"] == "safety_cases_removed"
    written(folder, CASES[1:], safety=["even"], let_go=["c0"])
    found = ran(path)
    assert (found["verdict"], found["comparison"]["reasons"][0]["code"]) == ("warn", "cases_removed")


def test_a_baseline_is_named_by_its_results_label_or_hash_and_keeps_its_commit(folder: Path) -> None:
    path = written(folder, CASES)
    results = Path(ran(path, "--label", "main", "--out", folder / "main.jsonl")["results"])
    for name in (results, "main", sha256(results.read_bytes()).hexdigest()[:12]):
        assert ran(path, "--baseline", name, "--out", folder / "b.jsonl")["baseline"]["commit"] == "c0ffee"
    assert "no file, no label of a run of desk that passed" in refused(path, "--baseline", "mian")
