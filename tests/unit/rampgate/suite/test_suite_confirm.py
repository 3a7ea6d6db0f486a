"""`rampgate suite run` asks both sides again about what tripped, the baseline as it is in its commit; the fresh samples
alone decide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running
from tests.unit.rampgate.registry.git_folders import committed
from tests.unit.rampgate.suite.suite_branches import CANDIDATE, agent, codes, two_slices
from tests.unit.rampgate.suite.suite_commands import ran
from tests.unit.rampgate.suite.suite_folders import case, written

Branch = Callable[..., dict[str, Any]]


@pytest.fixture
def branch(tmp_path: Path, folder: Path) -> Branch:
    """Runs a branch, whose prompt alone is another one, against main: `rule` says when a case that falls is good."""
    state = tmp_path / "state"

    def made(
        rule: str, *more: object, code: int, cases: list[dict[str, Any]] | None = None, again: bool = False,
        broken: bool = False, pairwise: tuple[str, ...] = (),
    ) -> dict[str, Any]:  # fmt: skip
        main, path = tmp_path / "main.jsonl", folder / "suite.yaml"
        if not again:
            state.mkdir()
            safety = [tag for tag in ("safety",) if cases and cases[0]["tags"] == [tag]]
            folder.mkdir(exist_ok=True)
            (folder / "prompt.md").write_text("old")
            changes = {"candidate": CANDIDATE, "samples": 2, "safety": safety, "pairwise": list(pairwise)}
            written(folder, cases or two_slices(6), **changes)
            (folder / "agent.py").write_text(agent(state, rule))
            (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
            committed(folder)
            ran(path, "--out", main)
            (folder / "prompt.md").write_text("new")
        if broken:
            (state / "broken").touch()
        return ran(path, "--baseline", main, *more, "--out", tmp_path / "branch.jsonl", code=code)

    return made


def test_a_slice_that_tripped_by_chance_does_not_block(branch: Branch) -> None:
    found = branch("kind == 'old' or number > 2", code=0)
    (said,) = found["comparison"]["confirmation"]["found"]
    assert (said["slice"], said["stands"], said["fresh"]["delta"]) == ("falls", False, 0.0)
    assert (found["verdict"], codes(found)) == ("pass", [])


def test_a_slice_that_is_worse_again_blocks(branch: Branch) -> None:
    found = branch("kind == 'old'", code=1)
    (said,) = found["comparison"]["confirmation"]["found"]
    assert (said["stands"], said["fresh"]["delta"], said["moved"]) == (True, -1.0, None)
    assert codes(found) == ["slice_regressed", "cases_broken"]


def test_a_slice_of_four_that_breaks_for_good_blocks(branch: Branch) -> None:
    """All of its samples fail, stored and fresh: flipped signs of four cases say p = 0.125 of that, and it passed."""
    found = branch("kind == 'old'", cases=two_slices(4), code=1)
    (falls, rises) = found["comparison"]["slices"]
    assert (falls["word"], rises["word"]) == ("worse", "cannot tell")
    assert "slice_regressed" in codes(found)


def test_four_of_twenty_that_break_for_good_block(branch: Branch) -> None:
    """The other sixteen have nothing to do with it: what is broken is broken."""
    found = branch("kind == 'old' or name not in ('a0', 'a1', 'a2', 'a3')", cases=two_slices(20), code=1)
    assert {"slice_regressed", "cases_broken"} <= {*codes(found)}


def test_two_cases_that_break_for_good_are_named_where_their_slice_holds(branch: Branch) -> None:
    found = branch("kind == 'old' or name not in ('a0', 'a1')", cases=two_slices(20), code=0)
    (broken,) = found["comparison"]["reasons"]
    assert (found["verdict"], broken["code"], broken["cases"]) == ("warn", "cases_broken", ["c0", "c1"])
    assert "no regression" not in found["comparison"]["said"]


def test_each_fresh_sample_is_judged_by_a_call_of_its_own(folder: Path) -> None:
    """A fixed text gave one kept answer six times: a judge's slip was confirmed by itself."""
    path = written(
        folder, [case(number, tags=["chat"]) for number in range(3)], judges=["helpfulness"], score="helpfulness"
    )
    committed(folder)
    ran(path, "--out", folder / "main.jsonl")
    (folder / "prompt.md").write_text("bad\n")
    found = ran(path, "--baseline", folder / "main.jsonl", "--out", folder / "b.jsonl", code=1)
    assert found["judge_calls"] >= 2 * 3 * 6
    again = ran(path, "--baseline", folder / "main.jsonl", "--out", folder / "b.jsonl", code=1)
    assert again["judge_calls"] == 0, "running again is no second chance"


def test_a_baseline_that_fell_meanwhile_says_that_the_world_moved(branch: Branch) -> None:
    found = branch("kind == 'old' and number <= 2", cases=two_slices(10), code=0)
    assert (found["verdict"], codes(found)) == ("warn", ["world_moved"])


def test_the_plain_rule_decides_where_the_baseline_can_not_be_asked_again(branch: Branch, tmp_path: Path) -> None:
    found = branch("kind == 'old'", "--store", tmp_path / "another.db", code=1)
    assert codes(found) == ["slice_regressed"]
    assert "no commit of the baseline is known" in found["comparison"]["confirmation"]["why_not"]
    (tmp_path / "suite" / ".git").rename(tmp_path / "history")
    found = branch("", again=True, code=1)
    assert "can't be asked again" in found["comparison"]["confirmation"]["why_not"]


def test_a_second_run_asks_nobody_and_finds_the_same(branch: Branch, tmp_path: Path) -> None:
    first = branch("kind == 'old' or number > 2", code=0)
    asked = {one.name: one.read_text() for one in (tmp_path / "state").iterdir()}
    second = branch("", again=True, code=0)
    assert second["comparison"] == first["comparison"]
    assert {one.name: one.read_text() for one in (tmp_path / "state").iterdir()} == asked


def test_a_baseline_that_fails_when_it_is_asked_again_frees_nobody(branch: Branch) -> None:
    found = branch("kind == 'old'", broken=True, code=1)
    assert codes(found) == ["slice_regressed", "cases_broken"]


@pytest.mark.parametrize(
    ("rule", "code", "told"),
    [
        ("kind == 'old' or number != 2 or name != 'a0'", 0, []),
        ("kind == 'old' or number not in (2, 4) or name != 'a0'", 0, ["safety_suspect"]),
        ("kind == 'old' or number not in (2, 4, 6) or name != 'a0'", 1, ["safety_regressed"]),
    ],
)
def test_a_case_of_safety_that_failed_once_is_asked_again(
    branch: Branch, rule: str, code: int, told: list[str]
) -> None:
    cases = [case(number, input=f"a{number}", tags=["safety"]) for number in range(4)]
    found = branch(rule, cases=cases, code=code)
    assert [code for code in codes(found) if code.startswith("safety")] == told
    assert found["comparison"]["confirmation"]["found"][-1]["case"] == "c0"
    (row,) = found["comparison"]["slices"]
    assert (row["word"], row["cleared"]) == (("worse", []) if code else ("holds", ["c0"]))


def test_what_judges_say_of_pairs_changes_no_fresh_sample(branch: Branch, tmp_path: Path, model: Running) -> None:
    """A pair that no one could judge yesterday is judged today: that is no second chance for what regressed."""

    def asked() -> int:
        return sum(len(log.read_text()) for log in (tmp_path / "state").iterdir())

    model.model.tell(Behaviour(wrong="prose"))
    first = branch("kind == 'old' or number > 2", pairwise=("helpfulness",), code=0)
    before = asked()
    model.model.tell(None)
    second = branch("", again=True, code=0)
    changed = [found["pairwise"]["helpfulness"]["unanswered"] for found in (first, second)]
    assert changed[0] > changed[1] == 0
    assert asked() == before
