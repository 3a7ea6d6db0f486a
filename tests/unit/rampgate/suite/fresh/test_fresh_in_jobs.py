"""What tripped in a run that is split over jobs is answered anew by both sides, each in a job of its own, and decided
by a job that runs nothing of either: as a run in one job decides."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running
from rampgate.suite.runs.only import Side
from schemas.checks.suite_again import SuiteAgain
from tests.unit.rampgate.suite.fresh.split_jobs import SplitJobs
from tests.unit.rampgate.suite.suite_branches import codes
from tests.unit.rampgate.suite.suite_commands import refused
from tests.unit.rampgate.suite.suite_folders import case

BY_CHANCE = "kind == 'old' or number > 2"
"""Good but for the first run's samples: what trips by chance."""
WORSE = "kind == 'old'"
Making = Callable[..., SplitJobs]


@pytest.fixture
def making(tmp_path: Path, folder: Path) -> Making:
    return lambda rule, cases=None, **changes: SplitJobs(tmp_path, folder, rule, cases, **changes)


def why_not(found: dict[str, Any]) -> str:
    """Why the plain rule stands, which blocks."""
    assert (found["verdict"], codes(found)) == ("fail", ["slice_regressed"])
    assert found["comparison"]["confirmation"]["found"] == []
    return str(found["comparison"]["confirmation"]["why_not"])


def test_a_slice_that_tripped_by_chance_passes_after_both_sides_answered_anew(making: Making) -> None:
    jobs = making(BY_CHANCE)
    first = jobs.tripped()
    assert "not yet confirmed" in why_not(first)
    assert first["again"] == {"file": str(jobs.again), "cases": 6, "samples": 6}
    again = SuiteAgain.model_validate_json(jobs.again.read_bytes())
    assert (again.suite, again.set, again.samples, len(again.cases)) == ("desk", "full", 6, 6)
    assert (again.baseline.commit, again.candidate.commit) == (jobs.main, "c" * 40)
    assert again.candidate.configuration == first["configuration"] != again.baseline.configuration
    before = jobs.asked()
    for side in Side:
        assert jobs.anew(side)["answers"] == {"asked": 36, "kept": 0, "failed": 0}
    fresh = {name: many - before[name] for name, many in jobs.asked().items()}
    assert {name: many for name, many in fresh.items() if many} == {
        f"{kind} a{n}": 6 for kind in ("old", "new") for n in range(6)
    }
    shutil.rmtree(jobs.state)  # whoever runs something of either side's now fails
    found = jobs.confirmed(code=0)
    (said,) = found["comparison"]["confirmation"]["found"]
    assert (said["slice"], said["stands"], said["fresh"]["delta"]) == ("falls", False, 0.0)
    assert (found["verdict"], codes(found), found["again"]) == ("pass", [], None)


def test_a_slice_that_is_worse_again_blocks(making: Making) -> None:
    found = making(WORSE).all_jobs(code=1)
    (said,) = found["comparison"]["confirmation"]["found"]
    assert (said["stands"], said["fresh"]["delta"]) == (True, -1.0)
    assert (found["verdict"], codes(found)) == ("fail", ["slice_regressed", "cases_broken"])


@pytest.mark.parametrize(
    ("rule", "code", "told"),
    [
        ("kind == 'old' or number != 2 or name != 'a0'", 0, []),
        ("kind == 'old' or number not in (2, 4) or name != 'a0'", 0, ["safety_suspect"]),
        ("kind == 'old' or number not in (2, 4, 6) or name != 'a0'", 1, ["safety_regressed"]),
    ],
)
def test_a_case_of_safety_that_failed_once_is_asked_again(
    making: Making, rule: str, code: int, told: list[str]
) -> None:
    cases = [case(number, input=f"a{number}", tags=["safety"]) for number in range(4)]
    found = codes(making(rule, cases, safety=["safety"]).all_jobs(code=code))
    assert [name for name in found if name.startswith("safety")] == told


def test_where_nothing_tripped_nobody_is_asked_and_the_file_of_before_is_gone(making: Making) -> None:
    jobs = making("True")
    jobs.again.write_text("of an earlier run")
    assert jobs.tripped(code=0)["again"] is None
    assert not jobs.again.exists()


def test_a_baseline_whose_commit_is_gone_is_not_waited_for(making: Making) -> None:
    jobs = making(BY_CHANCE)
    shutil.rmtree(jobs.folder / ".git")
    found = jobs.tripped()
    assert "the baseline can't be asked again" in why_not(found)
    assert (found["again"], jobs.again.exists()) == (None, False)


def test_a_baseline_that_fails_when_it_is_asked_again_frees_nobody(making: Making) -> None:
    jobs = making(WORSE)
    jobs.tripped()
    (jobs.state / "broken").touch()
    assert jobs.anew(Side.BASELINE)["answers"]["failed"] == 36
    jobs.anew(Side.CANDIDATE)
    assert codes(jobs.confirmed(code=1)) == ["slice_regressed", "cases_broken"]


def test_the_baseline_answers_as_it_is_in_its_commit_whatever_the_folder_has(making: Making) -> None:
    jobs = making(BY_CHANCE)
    jobs.tripped()
    (jobs.folder / "prompt.md").write_text("new")
    told = jobs.anew(Side.BASELINE)
    assert told["configuration"] == json.loads(jobs.again.read_text())["baseline"]["configuration"]
    assert jobs.asked()["old a0"] == 2 + 6


def changed(jobs: SplitJobs, change: Callable[[dict[str, Any]], object]) -> None:
    told = json.loads(jobs.again.read_text())
    change(told)
    jobs.again.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("change", "side", "said"),
    [
        (lambda told: told["baseline"].update(configuration="0" * 64), Side.BASELINE, "baseline.configuration: it is"),
        (lambda told: told["candidate"].update(configuration="0" * 64), Side.CANDIDATE, "candidate.configuration: it"),
        (lambda told: told["baseline"].update(commit="nowhere"), Side.BASELINE, "the baseline can't be asked again"),
        (lambda told: told.update(suite="other"), Side.CANDIDATE, "suite: it is of 'other'"),
        (lambda told: told["cases"].append("c99"), Side.CANDIDATE, "cases: 'c99' is no case of"),
        (lambda told: told["cases"].append("c0"), Side.CANDIDATE, "cases: one is there twice"),
        (lambda told: told.update(samples="6"), Side.CANDIDATE, "samples: "),
        (lambda told: told.update(after=1), Side.CANDIDATE, "after: "),
        (lambda told: told.update(more=1), Side.CANDIDATE, "more: "),
        (lambda told: told.clear(), Side.CANDIDATE, "suite: Field required"),
    ],
)
def test_a_file_that_asks_for_something_else_is_refused_by_its_field(
    making: Making, change: Callable[[dict[str, Any]], object], side: Side, said: str
) -> None:
    jobs = making(BY_CHANCE)
    jobs.tripped()
    changed(jobs, change)
    told = jobs.anew_refused(side)
    assert said in told
    assert "again.json" in told or "nowhere" in told


def test_options_that_do_not_go_together_are_refused(making: Making) -> None:
    jobs = making("True")
    file = jobs.root / "x.json"
    score, generate = ("--only", "score", "--answers", file), ("--only", "generate", "--answers", file)
    both = ("--fresh-baseline", file, "--fresh-candidate", file)
    for words, said in (
        (("--again", file), "--again goes with --only"),
        ((*generate, "--again", file), "--side goes with --only generate and --again"),
        ((*score, "--again", file, "--side", "baseline"), "--side goes with --only generate and --again"),
        ((*score, "--fresh-baseline", file), "--fresh-baseline and --fresh-candidate go together"),
        ((*generate, *both), "--fresh-baseline and --fresh-candidate go with --only score"),
        ((*score, "--again", file, *both), "go with --only score, without --again"),
        ((*score, *both, "--confirm", "none"), "--confirm none asks for no fresh samples"),
        ((*score, *both, "--plan"), "--plan is of a whole run"),
        ((*generate, "--again", file, "--side", "candidate", "--smoke"), "--smoke: the file of --again names"),
    ):
        assert said in refused(jobs.path, *words)


def test_a_judge_that_was_away_at_first_makes_no_fresh_answer_void(making: Making, model: Running) -> None:
    """Of thousands of scores some are missing at first, and are there when the answers are scored again."""
    jobs = making(BY_CHANCE, judges=["helpfulness"])
    model.model.tell(Behaviour(wrong="prose"))
    assert jobs.tripped()["unscored"]
    model.model.tell(None)
    for side in Side:
        jobs.anew(side)
    found = jobs.confirmed(code=0)
    assert (found["verdict"], found["unscored"]) == ("pass", 0)


def test_a_run_that_is_judged_twice_keeps_its_word(making: Making) -> None:
    """The job that confirms asks nobody anew what the first one found: the same results, the same fresh samples."""
    jobs = making(BY_CHANCE, judges=["helpfulness"])
    first = jobs.tripped()
    assert first["judge_calls"]
    again = jobs.again.read_bytes()
    results = (jobs.root / "branch.jsonl").read_bytes()
    assert jobs.score("--again", jobs.again, code=1)["judge_calls"] == 0
    assert (jobs.again.read_bytes(), (jobs.root / "branch.jsonl").read_bytes()) == (again, results)
    assert first["verdict"] == "fail"
