"""A suite's run that is killed again and again ends complete, and repeats only the calls that were under way."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from typing import Any

import pytest

from tests.contract.store.store_rigs import Rig, rig_of
from tests.fork_server import Forked
from tests.unit.rampgate.ci_gate.gate_rig import Rig as Registry
from tests.unit.rampgate.ci_gate.gate_rig import candidate, local_model
from tests.unit.rampgate.suite.suite_folders import case, written

KILLS = [
    ("file", 20),
    ("s3", 6),
    pytest.param("s3", 20, marks=pytest.mark.slow),
]
"""Where the store is, and how often a run is killed."""
CASES, SAMPLES, AT_ONCE = 40, 2, 2
UNKEPT = 2 * AT_ONCE
"""As many calls may be under way, or answered and not kept yet."""


class Doom:
    """Counts the calls that reach the model and the candidate, and kills the run at one of them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.run: Forked | None = None
        self.at: int | None = None
        self.begun = Event()

    def called(self, whom: str) -> None:
        self.calls[whom] += 1
        if self.at is not None and self.calls.total() == self.at:
            self.begun.wait()  # a run's first call may come before its process is known here
            assert self.run is not None
            os.kill(self.run.pid, signal.SIGKILL)

    def settled(self) -> Counter[str]:
        """The calls, once those have come that a killed run had sent: a busy server reads them late."""
        before = Counter[str]()
        while before != self.calls:
            before = Counter(self.calls)
            time.sleep(0.5)
        return before


@pytest.fixture
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    with rig_of(request.param, tmp_path, monkeypatch.setenv) as made:
        yield made


@pytest.mark.parametrize(("rig", "kills"), KILLS, indirect=["rig"])
def test_a_run_killed_at_random_points_repeats_only_calls_in_flight(tmp_path: Path, rig: Rig, kills: int) -> None:
    """Afterwards a second machine's run with the same store asks no one, and has the same results."""
    doom, chance = Doom(), random.Random(7)

    def says(body: dict[str, Any], count: int) -> tuple[int, dict[str, str]]:
        doom.called("candidate")
        return 200, {"output": f"so {count} {body['input']} #quality:1"}

    with local_model() as model, candidate(says) as fake:
        model.model.hear = lambda content: doom.called("model")
        environment = dict(os.environ) | Registry(tmp_path, model.url).environment
        environment |= {"RAMPGATE_MODEL_CALLS_AT_ONCE": f"{AT_ONCE}", "RAMPGATE_SUITE_STORE": rig.where}
        path = judged(tmp_path / "suite", fake.url)
        for _ in range(kills):
            before, held = Counter(doom.calls), rig.held()
            assert run_to_its_end(doom, environment, path, chance.randint(1, 10)) == -signal.SIGKILL
            now = rig.held()
            assert doom.calls["candidate"] - before["candidate"] <= now["answers"] - held["answers"] + UNKEPT
            assert doom.calls["model"] - before["model"] <= now["scores"] - held["scores"] + UNKEPT
        assert now["answers"] > 0, "each run goes on where the last one was"
        assert now["runs"] == 0
        before, held = doom.settled(), rig.held()
        assert run_to_its_end(doom, environment, path, None) == 0
        asked = doom.calls - before
        assert asked["candidate"] == CASES * SAMPLES - held["answers"]
        assert asked["model"] == CASES * SAMPLES - held["scores"]
        (results,) = (path.parent / ".rampgate").glob("*.jsonl")
        assert len(results.read_text().splitlines()) == CASES * SAMPLES

        before = Counter(doom.calls)
        elsewhere = judged(tmp_path / "elsewhere", fake.url)
        assert run_to_its_end(doom, environment | {"RAMPGATE_MODEL_KEY": "another's"}, elsewhere, None) == 0
        assert doom.calls == before
        (same,) = (elsewhere.parent / ".rampgate").glob("*.jsonl")
        assert same.read_bytes() == results.read_bytes()


def judged(folder: Path, url: str) -> Path:
    """A suite with a judge, of the candidate at that address."""
    return written(
        folder,
        [case(number) for number in range(CASES)],
        candidate={"url": url, "at_once": AT_ONCE, "parts": {"code": {"value": "r1"}}},
        judges=["helpfulness"],
        score="helpfulness",
        samples=SAMPLES,
    )


def run_to_its_end(doom: Doom, environment: dict[str, str], path: Path, calls: int | None) -> int:
    """The exit code of a run that is killed when it has made so many calls."""
    with TemporaryFile() as out, TemporaryFile() as err:
        doom.begun.clear()
        doom.at = None if calls is None else doom.calls.total() + calls
        doom.run = Forked(["suite", "run", str(path), "--first-run"], environment, out, err)
        doom.begun.set()
        try:
            return doom.run.wait(120)
        finally:
            doom.run.kill()
