"""At the model's door: a suite pays once for a judgement, on whatever machine, and keeps the judge's reason with it. A
store that is full costs the next run its calls, and this one nothing: results, verdict and a word about it."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from rampgate.local.model.server import Running
from rampgate.store.sqlite_file import FileShelf
from tests.unit.rampgate.suite.suite_commands import lines, ran
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED = {"judges": ["helpfulness", "honesty"], "score": "helpfulness", "samples": 1}
TENTH = """
from pathlib import Path

PROMPT = Path(__file__).with_name("prompt.md").read_text().strip()


def answer(case):
    number = int(case["input"].split()[1])
    return f"so {number} {PROMPT if number % 10 == 0 else ''} #quality:1"
"""
"""An agent of whose answers a tenth shows the prompt."""


def test_a_change_of_a_tenth_of_the_outputs_costs_a_tenth_of_the_judge_calls(folder: Path, model: Running) -> None:
    path = written(folder, [case(number) for number in range(50)], TENTH, **JUDGED)
    first = ran(path)
    assert first["judge_calls"] == model.model.requests.total() == 100
    (folder / "prompt.md").write_text("better\n")
    second = ran(path)
    assert second["answers"] == {"asked": 50, "kept": 0, "failed": 0}
    assert second["judge_calls"] == 10
    assert second["judge_answers"] == {"given": 100, "kept": 90}
    assert model.model.requests.total() == 110


def test_a_second_run_asks_nobody_and_writes_the_same_bytes(folder: Path, model: Running) -> None:
    path = written(folder, [case(number) for number in range(10)], **JUDGED)
    first = Path(ran(path)["results"]).read_bytes()
    assert b"Stand-in, no language model" in first
    again = ran(path)
    assert Path(again["results"]).read_bytes() == first
    assert again["judge_calls"] == 0
    assert model.model.requests.total() == 20
    assert len(asked(folder)) == 10


def test_a_second_machine_with_the_store_asks_nobody(
    folder: Path, tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nonce around a turn is made with a machine's own secret, and no key of a kept answer depends on it."""
    cases = [case(number) for number in range(10)]
    first = ran(written(folder, cases, **JUDGED))
    other = written(tmp_path / "other", cases, **JUDGED)
    shutil.copy(folder / ".rampgate" / "store.db", tmp_path / "carried.db")
    monkeypatch.setenv("RAMPGATE_MODEL_KEY", "another machine's")
    second = ran(other, "--store", tmp_path / "carried.db")
    assert second["answers"] == {"asked": 0, "kept": 10, "failed": 0}
    assert model.model.requests.total() == 20
    assert lines(second) == lines(first)


def test_a_full_store_loses_no_answer_of_this_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = FileShelf._opened

    def full(store: FileShelf) -> sqlite3.Connection:
        database = opened(store)
        database.execute("PRAGMA max_page_count = 4")
        return database

    path = written(folder)
    with monkeypatch.context() as patched:
        patched.setattr(FileShelf, "_opened", full)
        found = ran(path)
    assert found["verdict"] == "pass"
    assert "disk is full" in found["store_failures"][0]
    assert [row["scores"] for row in lines(found)] == [{"is_good": 1.0}] * 20
    again = ran(path)
    assert again["store_failures"] == []
    assert len(asked(folder)) == 20 + again["answers"]["asked"]
