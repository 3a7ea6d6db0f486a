"""Pull requests from end to end by `suite run`, against main's last run that passed, each answer drawn again: those
that change nothing are seldom blocked, and a planted drop is found as often as predicted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalcore.drift.scale import Scale
from evalcore.suite.gates import judge
from evalcore.suite.pairing import paired
from evalcore.suite.power import Drawn, errors_of, slice_power
from rampgate.suite.result_files import read_run
from tests.unit.rampgate.registry.git_folders import committed, git
from tests.unit.rampgate.suite.suite_commands import document
from tests.unit.rampgate.suite.suite_folders import case, written

EACH = 40
DROP = 0.15
AGENT = f"""
import random
from pathlib import Path

PROMPT = Path(__file__).with_name("prompt.md").read_text().strip()
STATE = Path("STATE_FOLDER")


def answer(case):
    name = case["input"]
    asked = STATE / f"{{PROMPT}} {{name}}"
    with asked.open("a") as log:
        log.write(".")
    chance = random.Random(name).betavariate(6.4, 1.6)
    if PROMPT.startswith("worse") and name.startswith("a"):
        chance -= {DROP}
    drawn = random.Random(f"{{PROMPT}} {{name}} {{asked.stat().st_size}}").random()
    return "good" if drawn < chance else "bad"
"""
"""An agent that gets each case right by a chance of the case's own. No answer is one of before, whoever asks: the
prompt's text, which alone differs, says nothing of how good it is, but where it is worse."""


@dataclass
class Desk:
    """The agent's repository, with its suite of two slices."""

    folder: Path
    path: Path

    def main(self, number: int) -> dict[str, Any]:
        """Main's run after its next commit."""
        self._say(f"main {number}")
        git(self.folder, "commit", "-qam", f"main {number}")
        return self._ran("--label", "main")

    def pull_request(self, prompt: str) -> dict[str, Any]:
        """The run of a branch whose prompt alone is another one, asked from scratch."""
        self._say(prompt)
        found = self._ran("--out", str(self.folder.parent / "branch.jsonl"))
        assert found["answers"] == {"asked": 6 * EACH, "kept": 0, "failed": 0}
        assert found["baseline"]["label"] == "main"
        return found

    def _say(self, prompt: str) -> None:
        (self.folder / "prompt.md").write_text(prompt)

    def _ran(self, *arguments: str) -> dict[str, Any]:
        return document("run", self.path, *arguments, codes=(0, 1))


@pytest.fixture
def desk(tmp_path: Path, folder: Path) -> Desk:
    (tmp_path / "state").mkdir()
    cases = [case(number, input=f"{'ab'[number % 2]}{number}", tags=["ab"[number % 2]]) for number in range(2 * EACH)]
    agent = AGENT.replace("STATE_FOLDER", str(tmp_path / "state"))
    candidate = {"entry": "agent:answer", "at_once": 1, "parts": {"prompt": {"files": ["prompt.md"]}}}
    path = written(folder, cases, agent, candidate=candidate, samples=3)
    (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
    committed(folder, "begun")
    return Desk(folder, path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_pull_requests_that_change_nothing_are_seldom_blocked(desk: Desk) -> None:
    desk.main(0)
    found = []
    for number in range(1, 11):
        found.append(desk.pull_request(f"change {number}"))
        desk.main(number)
    blocked = sum(one["verdict"] == "fail" for one in found)
    asked_again = sum(bool(one["comparison"]["confirmation"]["found"]) for one in found)
    print(f"{blocked} of {len(found)} blocked, {asked_again} asked again")
    assert all(one["comparison"]["confirmation"]["why_not"] is None for one in found)
    assert blocked <= stats.binom.ppf(0.99, len(found), 0.07)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_a_planted_drop_is_found_in_pull_requests_as_often_as_predicted(desk: Desk) -> None:
    desk.main(0)
    found, predicted, drawn = 0, [], Drawn()
    for number in range(1, 21):
        told = desk.pull_request(f"worse {number}")
        reasons = told["comparison"]["reasons"]
        found += any((one["code"], one["slice"]) == ("slice_regressed", "a") for one in reasons)
        sides = [read_run(Path(name)) for name in (told["baseline"]["results"], told["results"])]
        pairs = paired(sides[0], sides[1], "is_good", Scale(0.0, 1.0, whole=False))
        errors = errors_of([one for one in pairs.pairs if "a" in one.slices], judge(pairs).comparison.slices["a"])
        assert errors is not None
        predicted.append(slice_power(errors, EACH, DROP, drawn).confirmed_found)
        desk.main(number)
    share = float(np.mean(predicted))
    print(f"{found} of {len(predicted)} found, {share:.3f} predicted")
    assert stats.binom.ppf(0.005, len(predicted), share) <= found <= stats.binom.ppf(0.995, len(predicted), share)
