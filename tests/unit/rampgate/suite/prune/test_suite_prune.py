"""`rampgate suite prune` takes away of a store in a file what nobody has used for days, and nothing that is needed."""

from __future__ import annotations

import json
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
from typer.testing import CliRunner

from evalcore.gates.golden import CandidateAnswer
from rampgate.cli import app
from rampgate.console import Failure
from rampgate.suite.generation import Generator
from rampgate.suite.prune import command
from tests.unit.rampgate.suite.suite_commands import lines, ran
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED = {"judges": ["helpfulness"], "score": "helpfulness"}
CASES = [case(number) for number in range(10)]
TODAY = command._today()


@pytest.fixture(autouse=True)
def each_answer_takes_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace is kept by its content: two samples that say the same in the same time have one, and counts would hang on
    the machine."""
    timed, numbers = Generator._timed, count(1)

    async def apart(self: Generator, asked: Mapping[str, Any]) -> tuple[CandidateAnswer, float | None]:
        answer, latency = await timed(self, asked)
        return answer, float(next(numbers)) if latency is not None else None

    monkeypatch.setattr(Generator, "_timed", apart)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pruning takes place 40 days after the runs."""
    monkeypatch.setattr(command, "_today", lambda: TODAY + 40)


def pruned(path: Path, *arguments: object, days: int = 30) -> dict[str, Any]:
    words = ["suite", "prune", str(path), "--older-than", f"{days}", *map(str, arguments), "--json"]
    done = CliRunner().invoke(app, words)
    if isinstance(done.exception, Failure):
        raise done.exception
    assert done.exit_code == 0, (done.exception, done.output)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def execute(folder: Path, word: str, *values: object) -> list[Any]:
    with sqlite3.connect(folder / ".rampgate" / "store.db") as database:
        found = database.execute(word, values).fetchall()
    database.close()
    return found


def held(folder: Path) -> Counter[str]:
    return Counter(key.partition(":")[0] for (key,) in execute(folder, "SELECT key FROM kept"))


def variant(folder: Path, prompt: str) -> None:
    (folder / "prompt.md").write_text(prompt)


def test_mains_last_run_stays_with_what_it_is_made_of_and_all_else_goes(folder: Path, later: None) -> None:
    path = written(folder, CASES, **JUDGED)
    variant(folder, "good once\n")
    ran(path, "--label", "main")
    variant(folder, "good\n")
    main = ran(path, "--label", "main", "--commit", "c0ffee")
    variant(folder, "good again\n")
    ran(path)
    found = pruned(path)
    assert found["removed"] == {"runs": 2, "results": 2, "answers": 40, "scores": 30, "traces": 40}
    assert found["kept"] == {"runs": 1, "results": 1, "answers": 20, "scores": 0, "traces": 20}
    assert held(folder) == Counter({kind: many for kind, many in found["kept"].items() if many})
    ((baseline),) = found["baselines"]
    assert (baseline["suite"], baseline["set"], baseline["commit"]) == ("desk", "full", "c0ffee")
    before = len(asked(folder))
    again = ran(path)
    assert (again["baseline"]["commit"], again["judge_calls"]) == ("c0ffee", 10)
    assert len(asked(folder)) == before + 20, "the candidate's answers went"
    variant(folder, "good\n")
    assert ran(path)["answers"] == {"asked": 0, "kept": 20, "failed": 0}, "the baseline's stayed"
    assert [line["trace"] for line in lines(main)] == [line["trace"] for line in lines(ran(path))]


def test_the_baselines_of_both_sets_stay(folder: Path, later: None) -> None:
    path = written(folder, CASES, smoke=4)
    ran(path, "--label", "main", "--smoke")
    ran(path, "--label", "main", "--smoke")
    ran(path, "--label", "main")
    ran(path, "--label", "main")
    found = pruned(path)
    assert found["removed"]["runs"] == 2
    assert sorted(one["set"] for one in found["baselines"]) == ["full", "smoke"]
    assert ran(path, "--smoke")["baseline"] is not None


def test_a_last_run_whose_results_are_gone_is_no_baseline_and_the_one_before_stays(folder: Path, later: None) -> None:
    path = written(folder, CASES)
    ran(path, "--label", "main", "--commit", "first")
    variant(folder, "good, too\n")
    last = ran(path, "--label", "main", "--commit", "second")
    assert last["baseline"]["commit"] == "first"
    hashes = [key for (key,) in execute(folder, "SELECT key FROM kept WHERE key LIKE 'runs:%' ORDER BY key")]
    execute(folder, "DELETE FROM kept WHERE key LIKE ?", f"results:{hashes[-1].rpartition(':')[2]}%")
    assert [one["commit"] for one in pruned(path)["baselines"]] == ["first"]


def test_what_is_young_stays(folder: Path) -> None:
    path = written(folder, CASES, **JUDGED)
    ran(path)
    before = held(folder)
    found = pruned(path, days=1)
    assert set(found["removed"].values()) == {0}
    assert held(folder) == before


def test_what_a_run_uses_stays_however_long_ago_it_was_made(folder: Path) -> None:
    path = written(folder, CASES, **JUDGED)
    ran(path)
    variant(folder, "good again\n")
    ran(path)
    execute(folder, "UPDATE used SET day = day - 40")
    ran(path)
    found = pruned(path)
    assert found["removed"] == {"runs": 0, "results": 0, "answers": 20, "scores": 10, "traces": 0}
    again = ran(path)
    assert (again["answers"]["asked"], again["judge_calls"]) == (0, 0)


def test_an_answer_that_stays_keeps_its_trace_though_no_run_names_it(folder: Path, later: None) -> None:
    """As that of a run which was killed."""
    path = written(folder, CASES)
    ran(path)
    execute(folder, "DELETE FROM kept WHERE key LIKE 'runs:%'")
    execute(folder, "UPDATE used SET day = ? WHERE key LIKE 'answers:%'", TODAY + 40)
    found = pruned(path)
    assert found["removed"] == {"runs": 0, "results": 1, "answers": 0, "scores": 0, "traces": 0}


def test_another_suite_of_the_store_keeps_its_runs(folder: Path, tmp_path: Path, later: None) -> None:
    path, store = written(folder, CASES), folder / ".rampgate" / "store.db"
    ran(path)
    other = written(tmp_path / "other", [case(number) for number in range(50, 54)], suite="till")
    ran(other, "--store", store)
    found = pruned(path)
    assert (found["removed"]["runs"], found["kept"]["runs"]) == (1, 1)
    assert (found["kept"]["results"], found["kept"]["traces"]) == (1, 8)


def test_a_dry_run_tells_the_same_and_does_nothing(folder: Path, later: None) -> None:
    path = written(folder, CASES, **JUDGED)
    ran(path, "--label", "main")
    variant(folder, "good again\n")
    ran(path)
    before = execute(folder, "SELECT * FROM kept ORDER BY key")
    planned = pruned(path, "--dry-run")
    assert execute(folder, "SELECT * FROM kept ORDER BY key") == before
    done = pruned(path)
    assert planned["removed"] == done["removed"]
    assert planned["kept"] == done["kept"]
    assert planned["bytes"]["after"] < planned["bytes"]["before"]
    assert set(pruned(path)["removed"].values()) == {0}


def test_the_disk_has_its_room_back_though_a_run_has_the_file_open(folder: Path, later: None) -> None:
    path = written(folder, [case(number, input=f"{number} {'long ' * 5_000}") for number in range(20)])
    ran(path)
    with sqlite3.connect(folder / ".rampgate" / "store.db") as other:
        other.execute("SELECT count(*) FROM kept").fetchall()
        size = pruned(path)["bytes"]
    other.close()
    assert size["before"] > 1_000_000
    assert size["after"] < 100_000
    assert sum(one.stat().st_size for one in (folder / ".rampgate").glob("store.db*")) < 200_000


def test_a_store_of_an_earlier_release_counts_as_used_today(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(folder, CASES)
    ran(path)
    for word in ("TABLE used", "TRIGGER kept_put", "TRIGGER kept_taken"):
        execute(folder, f"DROP {word}")
    before = held(folder)
    found = pruned(path)
    assert (found["undated"], set(found["removed"].values())) == (before.total(), {0})
    assert ran(path)["answers"]["asked"] == 0
    execute(folder, "INSERT OR IGNORE INTO kept VALUES ('scores:of an earlier release', x'00')")
    assert pruned(path)["undated"] == 0
    monkeypatch.setattr(command, "_today", lambda: TODAY + 40)
    assert pruned(path)["removed"]["scores"] == 1


def test_runs_without_our_seal_keep_all_from_going_until_somebody_says_otherwise(
    folder: Path, later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES)
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", "the secret of trusted jobs")
    ran(path, "--label", "main")
    monkeypatch.delenv("RAMPGATE_SEAL_KEY")
    before = held(folder)
    with pytest.raises(Failure, match="1 runs lack the seal of RAMPGATE_SEAL_KEY"):
        pruned(path)
    assert held(folder) == before
    assert pruned(path, "--unsealed")["removed"]["runs"] == 1
    assert held(folder) == Counter()


KILLED = """
import os, signal, sys
from functools import partial
from rampgate.cli import app
from rampgate.store import file_pruning
from rampgate.suite.prune import command

left = int(sys.argv[1])


def stepping(wrapped):
    async def step(self, work):
        global left
        left -= isinstance(work, partial) or work.__name__ == "shrunk"
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return await wrapped(self, work)
    return step


file_pruning.AT_ONCE = 7
file_pruning.FilePruning._do = stepping(file_pruning.FilePruning._do)
command._today = lambda today=command._today(): today + 40
app(["suite", "prune", sys.argv[2], "--older-than", "30", "--json"])
"""
"""A pruning that is killed before one of its nine steps that change the file."""


@pytest.mark.parametrize("step", [1, 2, 4, 7, 9])
def test_a_pruning_that_is_killed_leaves_a_whole_store_and_the_next_one_ends_it(
    folder: Path, later: None, step: int
) -> None:
    path = written(folder, CASES)
    ran(path, "--label", "main")
    variant(folder, "good again\n")
    ran(path)
    variant(folder, "good\n")
    done = subprocess.run([sys.executable, "-c", KILLED, f"{step}", str(path)], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    middle = held(folder)
    assert middle["results"] >= middle["runs"]
    assert middle["traces"] >= middle["answers"]
    assert middle["runs"] == (2 if step == 1 else 1)
    again = ran(path)
    assert (again["baseline"]["label"], again["answers"]["asked"]) == ("main", 0)
    found = pruned(path)
    assert found["removed"]["runs"] == middle["runs"], "that of just now among them"
    assert held(folder) == {"runs": 1, "results": 1, "answers": 20, "traces": 20}
    assert execute(folder, "PRAGMA freelist_count") == [(0,)]


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("s3://bucket/suites", "a bucket forgets by lifecycle rules"),
        ("nowhere.db", "there is no such store"),
    ],
)
def test_a_store_that_is_no_file_is_told_what_makes_it_forget(folder: Path, store: str, says: str) -> None:
    with pytest.raises(Failure, match=says):
        pruned(written(folder, CASES), "--store", store)
    assert not Path("nowhere.db").exists()
