"""A suite says which judges were shown a part alone of how many answers."""

from __future__ import annotations

from pathlib import Path

from rampgate.local.model.server import Running
from tests.unit.rampgate.suite.suite_commands import lines, ran
from tests.unit.rampgate.suite.suite_folders import case, written

AGENT = """
def answer(case):
    return ("glad to help " * 12_000 if case["input"] == "question 1" else "glad to help") + " #quality:1"
"""
JUDGED = {"judges": ["helpfulness", "honesty"], "score": "helpfulness", "samples": 1}


def test_a_run_says_how_many_answers_a_judge_saw_a_part_of(folder: Path, model: Running) -> None:
    """Padded answers looked like any others. A safety judge reads all of them, in windows."""
    found = ran(written(folder, [case(number) for number in range(5)], AGENT, **JUDGED))
    assert found.get("judged_cut") == {"helpfulness": 1}
    cut = {one["case_id"]: one.get("judged_cut") for one in lines(found)}
    assert cut == {**dict.fromkeys(("c0", "c2", "c3", "c4")), "c1": ["helpfulness"]}
    assert model.model.requests.total() == 11, "two of them for the two windows"
