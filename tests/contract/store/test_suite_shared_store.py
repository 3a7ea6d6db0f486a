"""`rampgate suite run` with a store that machines share: the second asks no one, and one that goes away costs calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.model.server import Running
from rampgate.store.place import Place
from rampgate.suite.runs.stored import StoredRuns
from tests.contract.store.store_rigs import s3_rig
from tests.s3_stand_in import BUCKET, s3_stand_in
from tests.unit.rampgate.ci_gate.gate_rig import local_model
from tests.unit.rampgate.suite.suite_commands import document, lines, ran, refused, suite_folder
from tests.unit.rampgate.suite.suite_folders import asked, case, written

JUDGED = {"judges": ["helpfulness", "honesty"], "score": "helpfulness", "samples": 2}
CASES = [case(number) for number in range(10)]
SWAYING = """
from hashlib import sha256
from itertools import count

ASKED = count()


def answer(case):
    chance = sha256(f"{case['input']} {next(ASKED)}".encode()).digest()[0]
    return "good" if chance < 200 else "bad"
"""
"""An agent that is good four times in five."""
SECRET = "the secret of trusted jobs"


@pytest.fixture
def model() -> Iterator[Running]:
    with local_model() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with suite_folder(tmp_path, model, monkeypatch) as made:
        monkeypatch.setenv("RAMPGATE_SEAL_KEY", SECRET)
        yield made


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with s3_rig(monkeypatch.setenv) as rig:
        yield rig.where


def checked(path: Path, *arguments: object) -> dict[str, Any]:
    """The document of a check."""
    return document("check", path, "--simulations", 100, *arguments, codes=(0, 1))


def said(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The results without how long the answers took, which their traces tell, too."""
    return [{name: told for name, told in line.items() if name not in ("latency_ms", "trace")} for line in lines(found)]


def test_a_second_machine_with_the_same_store_asks_nobody_and_writes_the_same(
    folder: Path, shared: str, tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ran(written(folder, CASES, **JUDGED), "--store", shared)
    assert (first["answers"]["asked"], first["judge_calls"]) == (20, 20)
    calls, other = model.model.requests.total(), tmp_path / "elsewhere" / "other"
    path = written(other, CASES, **JUDGED)
    monkeypatch.chdir(other)
    monkeypatch.setenv("RAMPGATE_MODEL_KEY", "another machine's")
    plan = ran(path, "--store", shared, "--plan")
    assert (plan["answers"]["to_ask"], plan["judge_calls"]["to_ask"]) == (0, 0)
    second = ran(path, "--store", shared)
    assert second["answers"] == {"asked": 0, "kept": 20, "failed": 0}
    assert second["judge_calls"] == 0
    assert model.model.requests.total() == calls
    assert asked(other) == []
    assert lines(second) == lines(first)
    assert not list(tmp_path.rglob("store.db")), "nothing is kept beside the suite"


def test_mains_run_in_the_store_is_the_baseline_of_another_machine(
    folder: Path, shared: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMPGATE_SUITE_STORE", shared)
    ran(written(folder, CASES), "--label", "main")
    other = tmp_path / "other"
    other.mkdir()
    (other / "prompt.md").write_text("bad\n")
    page = tmp_path / "page.html"
    blocked = ran(written(other, CASES), "--report", page, code=1)
    assert blocked["baseline"]["label"] == "main"
    assert blocked["comparison"]["verdict"] == "fail"
    assert "bad question 1 " in page.read_text(), "the page has the traces that the store has"


def test_a_check_tells_of_a_shared_stores_runs_what_it_tells_of_a_files(folder: Path, shared: str) -> None:
    path, file = written(folder, [case(number) for number in range(40)], SWAYING, samples=3), folder / "own.db"
    for label in ("main", ""):
        ran(path, "--store", file, "--label", label)
    with (
        closing(Place(str(file), SECRET.encode()).opened()) as own,
        closing(Place(shared, SECRET.encode()).opened()) as to,
    ):
        for run in asyncio.run(StoredRuns(own).of("desk")):
            asyncio.run(StoredRuns(to).add(run, asyncio.run(StoredRuns(own).results(run)) or b""))
    told = [checked(path, "--store", store) for store in (file, shared)]
    assert told[0]["runs"]["looked_at"] == 2
    assert told[0]["simulated"] is not None
    assert told[1] == told[0]


def test_a_job_without_the_secret_puts_nothing_in_that_a_trusted_one_believes(
    folder: Path, shared: str, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES, **JUDGED)
    monkeypatch.delenv("RAMPGATE_SEAL_KEY")
    ran(path, "--store", shared, "--label", "main")
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", SECRET)
    assert "have no seal of RAMPGATE_SEAL_KEY" in refused(path, "--store", shared)
    trusted = ran(path, "--store", shared, "--label", "main")
    assert trusted["answers"]["asked"] == 20
    assert trusted["judge_calls"] == 20
    assert trusted["baseline"] is None
    assert trusted["refused"] > 0
    again = ran(path, "--store", shared)
    assert again["judge_calls"] == 0, "what was forged has been replaced"
    assert again["baseline"]["label"] == "main"


def test_an_s3_that_fails_in_the_middle_costs_calls_and_no_answer(
    folder: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(folder, CASES, **JUDGED)
    with s3_stand_in() as s3:
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        whole, left = ran(path, "--out", folder / "whole.jsonl"), 15

        def count(content: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                s3.status = 503

        model.model.hear = count
        broken = ran(path, "--store", f"s3://{BUCKET}")
        assert left < 0
        assert broken["verdict"] == "pass"
        assert said(broken) == said(whole)
        assert "SlowDown" in broken["store_failures"][0]
        s3.status, model.model.hear = None, lambda content: None
        again = ran(path, "--store", f"s3://{BUCKET}")
        assert again["store_failures"] == []
        assert 0 < again["judge_calls"] < 20, "what was kept before is there"


def test_a_store_that_may_be_listed_and_not_read_costs_calls_and_a_plan_says_why(
    folder: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = written(folder, CASES, **JUDGED), f"s3://{BUCKET}"
    with s3_stand_in() as s3:
        for name, value in s3.environment().items():
            monkeypatch.setenv(name, value)
        ran(path, "--store", store, "--out", folder / "main.jsonl")
        s3.denied = {"GET"}
        how = ("--store", store, "--baseline", folder / "main.jsonl")
        assert "AccessDenied" in refused(path, *how, "--plan")
        assert "the baseline can't be read" in refused(path, "--store", store)
        found = ran(path, *how)
        assert (found["verdict"], found["judge_calls"]) == ("pass", 20)
        assert "AccessDenied" in found["store_failures"][0]


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("redis://me:hidden@127.0.0.1:1/0", "Redis is no store of suites any more; copy its keys once"),
        ("rediss+sentinel://me:hid/den@redis/main/0", "Redis is no store of suites any more"),
        ("http://me:hidden@127.0.0.1/", "must be the path of a file or s3://bucket/prefix"),
        ("s3://", "must be s3://bucket or s3://bucket/prefix"),
        ("s3://me:hidden@bucket", "must be s3://bucket or s3://bucket/prefix"),
    ],
)
def test_a_store_that_can_not_be_used_is_told_before_anybody_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, store: str, says: str
) -> None:
    monkeypatch.setenv("RAMPGATE_SUITE_STORE", store)
    told = refused(written(folder, CASES))
    assert says in told
    assert "hid" not in told
    assert asked(folder) == []
