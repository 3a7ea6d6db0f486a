"""A store in a file forgets what no run of its suite used for 90 days, and nothing that a baseline is made of."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.golden import CandidateAnswer
from rampgate.suite.generation import Generator
from tests.unit.rampgate.suite.suite_commands import lines, ran
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED = {"judges": ["helpfulness"], "score": "helpfulness"}
CASES = [case(number) for number in range(10)]


@pytest.fixture(autouse=True)
def each_answer_takes_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is kept by its content: two samples that say the same in the same time have one, and counts would hang on
    the machine."""
    timed, numbers = Generator._timed, count(1)

    async def apart(self: Generator, asked: Mapping[str, Any]) -> tuple[CandidateAnswer, float | None]:
        answer, latency = await timed(self, asked)
        return answer, float(next(numbers)) if latency is not None else None

    monkeypatch.setattr(Generator, "_timed", apart)


def execute(folder: Path, word: str, *values: object) -> list[Any]:
    with sqlite3.connect(folder / ".rampgate" / "store.db") as database:
        found = database.execute(word, values).fetchall()
    database.close()
    return found


def held(folder: Path) -> Counter[str]:
    return Counter(key.partition(":")[0] for (key,) in execute(folder, "SELECT key FROM kept"))


def later(folder: Path, days: int = 91) -> None:
    execute(folder, "UPDATE used SET day = day - ?", days)


def variant(folder: Path, prompt: str) -> None:
    (folder / "prompt.md").write_text(prompt)


def test_mains_last_run_stays_with_what_it_is_made_of_and_all_else_goes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SHA", "c0ffee")
    path = written(folder, CASES, **JUDGED)
    variant(folder, "good once\n")
    ran(path, "--label", "main")
    variant(folder, "good\n")
    main = ran(path, "--label", "main")
    variant(folder, "good again\n")
    ran(path)
    later(folder)
    variant(folder, "good at last\n")
    again = ran(path)
    assert (again["baseline"]["commit"], again["store_failures"]) == ("c0ffee", [])
    assert held(folder) == {"runs": 2, "results": 2, "answers": 40, "scores": 10, "traces": 40}
    before = len(asked(folder))
    variant(folder, "good\n")
    found = ran(path)
    assert len(asked(folder)) == before, "the baseline's answers stayed"
    assert [line["trace"] for line in lines(main)] == [line["trace"] for line in lines(found)]
    variant(folder, "good again\n")
    assert ran(path)["answers"] == {"asked": 20, "kept": 0, "failed": 0}


def test_the_baselines_of_both_sets_and_of_other_suites_stay(folder: Path, tmp_path: Path) -> None:
    path = written(folder, CASES, smoke=4)
    for words in (("--smoke",), ("--smoke",), (), ()):
        ran(path, "--label", "main", *words)
    other = written(tmp_path / "other", [case(number) for number in range(50, 54)], suite="till")
    store = folder / ".rampgate" / "store.db"
    ran(other, "--label", "main", "--store", store)
    ran(other, "--store", store)
    later(folder)
    ran(path)
    runs = [key.split(":")[1] for (key,) in execute(folder, "SELECT key FROM kept WHERE key LIKE 'runs:%'")]
    assert Counter(runs) == {"desk": 3, "till": 1}
    assert ran(path, "--smoke")["baseline"] is not None


def test_a_last_run_whose_results_are_gone_is_no_baseline_and_the_one_before_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_SHA", "first")
    path = written(folder, CASES)
    ran(path, "--label", "main")
    variant(folder, "good, too\n")
    monkeypatch.setenv("GITHUB_SHA", "second")
    ran(path, "--label", "main")
    hashes = [key for (key,) in execute(folder, "SELECT key FROM kept WHERE key LIKE 'runs:%' ORDER BY key")]
    execute(folder, "DELETE FROM kept WHERE key LIKE ?", f"results:{hashes[-1].rpartition(':')[2]}%")
    later(folder)
    for prompt in ("good again\n", "good at last\n"):
        variant(folder, prompt)
        assert ran(path)["baseline"]["commit"] == "first"


def test_a_run_that_did_not_pass_or_lost_cases_is_no_baseline_and_goes(folder: Path) -> None:
    path = written(folder, CASES)
    ran(path, "--label", "main")
    variant(folder, "bad\n")
    assert ran(path, "--label", "main", code=1)["verdict"] == "fail"
    later(folder)
    variant(folder, "good\n")
    ran(path)
    assert held(folder)["runs"] == 2


def test_what_a_run_uses_stays_with_its_trace_however_long_ago_it_was_made(folder: Path) -> None:
    path = written(folder, CASES, **JUDGED)
    ran(path)
    variant(folder, "good again\n")
    ran(path)
    for _ in range(3):
        later(folder, 50)
        ran(path)
    assert (held(folder)["answers"], held(folder)["scores"], held(folder)["traces"]) == (20, 10, 20)
    found = ran(path)
    assert (found["answers"]["asked"], found["judge_calls"]) == (0, 0)


def test_the_setting_says_how_many_days(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder, CASES)
    ran(path)
    later(folder, 31)
    variant(folder, "good again\n")
    ran(path)
    assert held(folder)["runs"] == 2
    monkeypatch.setenv("RAMPGATE_SUITE_KEEP_DAYS", "30")
    ran(path)
    assert held(folder)["answers"] == 20


def test_without_the_key_of_trusted_jobs_nothing_of_theirs_goes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which of their runs is main's last is unknown without a key; with one it counts."""
    path = written(folder, CASES)
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "the secret of trusted jobs")
    before = ran(path, "--label", "main")
    later(folder)
    monkeypatch.delenv("RAMPGATE_SEAL_KEY")
    variant(folder, "good again\n")
    ran(path, "--baseline", before["results"])
    assert held(folder)["runs"] == 2
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "another secret of trusted jobs")
    variant(folder, "good at last\n")
    ran(path, "--label", "main")
    assert (held(folder)["runs"], held(folder)["answers"]) == (2, 40)


KILLED = """
import os, signal, sys
from rampgate.cli import app
from rampgate.store import sqlite_file

def _do(self, work, made=sqlite_file.FileShelf._do):
    def step(database):
        if getattr(work, "func", work).__name__ == "take":
            killed = lambda word: word.startswith(sys.argv[2]) and os.kill(os.getpid(), signal.SIGKILL)
            database.set_trace_callback(killed)
        return work(database)
    return made(self, step)

sqlite_file.FileShelf._do = _do
app(["suite", "run", sys.argv[1], "--first-run", "--json"])
"""
"""A run that is killed before a step of its store's forgetting."""


@pytest.mark.parametrize("step", ["INSERT INTO used", "DELETE FROM kept", "COMMIT"])
def test_a_run_that_is_killed_while_its_store_forgets_leaves_it_whole(folder: Path, step: str) -> None:
    path = written(folder, CASES)
    ran(path, "--label", "main")
    variant(folder, "good again\n")
    ran(path)
    later(folder)
    variant(folder, "good at last\n")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), step], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (held(folder)["runs"], held(folder)["results"], held(folder)["answers"]) == (3, 3, 60)
    assert ran(path)["baseline"]["label"] == "main"
    assert (held(folder)["runs"], held(folder)["results"], held(folder)["answers"]) == (3, 2, 40)
    variant(folder, "good\n")
    assert ran(path)["answers"]["asked"] == 0
