"""A suite's run that is killed again and again ends complete, and repeats only the calls that were under way."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from tests.fork_server import Forked
from tests.unit.rampgate.ci_gate.gate_rig import Rig, candidate, local_model
from tests.unit.rampgate.suite.suite_folders import case, written

KILLS, CASES, SAMPLES, AT_ONCE = 20, 40, 2, 2
UNKEPT = 2 * AT_ONCE
"""As many calls may be under way, or answered and not kept yet."""


class Doom:
    """Counts the calls that reach the model and the candidate, and kills the run at one of them."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.run: Forked | None = None
        self.at: int | None = None

    def called(self, whom: str) -> None:
        self.calls[whom] += 1
        if self.at is not None and self.calls.total() == self.at and self.run is not None:
            os.kill(self.run.pid, signal.SIGKILL)


def kept(folder: Path) -> Counter[str]:
    """How many values of each kind the store holds."""
    store = folder / ".rampgate" / "store.db"
    if not store.exists():
        return Counter()
    database = sqlite3.connect(store)
    try:
        return Counter(key.partition(":")[0] for (key,) in database.execute("SELECT key FROM kept"))
    finally:
        database.close()


def test_a_run_killed_at_twenty_random_points_repeats_only_calls_in_flight(tmp_path: Path) -> None:
    doom, chance = Doom(), random.Random(7)

    def says(body: dict[str, Any], count: int) -> tuple[int, dict[str, str]]:
        doom.called("candidate")
        return 200, {"output": f"so {count} {body['input']} #quality:1"}

    with local_model() as model, candidate(says) as fake:
        model.model.hear = lambda content: doom.called("model")
        folder = tmp_path / "suite"
        path = written(
            folder,
            [case(number) for number in range(CASES)],
            candidate={"url": fake.url, "at_once": AT_ONCE, "parts": {"model": {"value": "m-1"}}},
            judges=["helpfulness"],
            score="helpfulness",
            samples=SAMPLES,
        )
        environment = dict(os.environ) | Rig(tmp_path, model.url).environment
        environment |= {"RAMPGATE_MODEL_CALLS_AT_ONCE": f"{AT_ONCE}"}
        for _ in range(KILLS):
            before, held = Counter(doom.calls), kept(folder)
            assert run_to_its_end(doom, environment, path, chance.randint(1, 10)) == -signal.SIGKILL
            now = kept(folder)
            assert doom.calls["candidate"] - before["candidate"] <= now["answers"] - held["answers"] + UNKEPT
            assert doom.calls["model"] - before["model"] <= now["scores"] - held["scores"] + UNKEPT
        assert now["scores"] > UNKEPT, "each run goes on where the last one was"
        before = Counter(doom.calls)
        assert run_to_its_end(doom, environment, path, None) == 0
        asked = doom.calls - before
        assert asked["candidate"] == CASES * SAMPLES - now["answers"]
        assert asked["model"] == CASES * SAMPLES - now["scores"]
        (results,) = (folder / ".rampgate").glob("*.jsonl")
        assert len(results.read_text().splitlines()) == CASES * SAMPLES


def run_to_its_end(doom: Doom, environment: dict[str, str], path: Path, calls: int | None) -> int:
    """The exit code of a run that is killed when it has made so many calls."""
    with TemporaryFile() as out, TemporaryFile() as err:
        doom.at, doom.run = None if calls is None else doom.calls.total() + calls, None
        doom.run = Forked(["suite", "run", str(path)], environment, out, err)
        try:
            return doom.run.wait(120)
        finally:
            doom.run.kill()
