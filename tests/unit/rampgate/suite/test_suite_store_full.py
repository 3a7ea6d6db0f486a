"""A store that is full costs the next run its calls, and this one nothing: results, verdict and a word about it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from rampgate.store.sqlite_file import FileShelf
from tests.unit.rampgate.suite.suite_commands import lines, ran
from tests.unit.rampgate.suite.suite_folders import asked, written


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
