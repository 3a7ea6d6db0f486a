"""What fell in a run that is split over jobs is answered again by both sides, each in a job of its own, and decided
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
from schemas.checks.suite_again import Side, SuiteAgain
from tests.unit.rampgate.registry.git_folders import git
from tests.unit.rampgate.suite.fresh.split_jobs import SplitJobs
from tests.unit.rampgate.suite.suite_branches import codes, two_slices
from tests.unit.rampgate.suite.suite_commands import ran, refused

BY_CHANCE = "kind == 'old' or number > 2"
"""Good but for the first run's samples: what trips by chance."""
WORSE = "kind == 'old'"
NONE = "0" * 64
Making = Callable[..., SplitJobs]


@pytest.fixture
def making(tmp_path: Path, folder: Path) -> Making:
    return lambda rule, cases=None, **changes: SplitJobs(tmp_path, folder, rule, cases, **changes)


def why_not(found: dict[str, Any]) -> str:
    """Why the plain rule stands, which blocks."""
    assert (found["verdict"], codes(found)) == ("fail", ["slice_regressed"])
    assert found["comparison"]["confirmation"]["found"] == []
    return str(found["comparison"]["confirmation"]["why_not"])


def test_a_slice_that_fell_by_chance_passes_after_both_sides_answered_again(making: Making) -> None:
    jobs = making(BY_CHANCE)
    first = jobs.tripped()
    assert "not yet confirmed" in why_not(first)
    assert first["again"] == {"file": str(jobs.again), "cases": 6, "samples": 6}
    again = SuiteAgain.model_validate_json(jobs.again.read_bytes())
    assert (again.suite, again.set, again.samples, len(again.cases)) == ("desk", "full", 6, 6)
    assert (again.baseline.commit, again.candidate.commit) == (jobs.main, "")
    assert again.candidate.configuration == first["configuration"] != again.baseline.configuration
    before = jobs.asked()
    for side in Side:
        assert jobs.answered(side)["answers"] == {"asked": 36, "kept": 0, "failed": 0}
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


def test_where_nothing_tripped_nobody_is_asked_and_the_file_of_before_is_gone(making: Making) -> None:
    jobs = making("True")
    jobs.again.write_text("of an earlier run")
    assert jobs.tripped(code=0)["again"] is None
    assert not jobs.again.exists()


def test_a_baseline_of_no_known_commit_is_not_waited_for(making: Making) -> None:
    jobs = making(BY_CHANCE)
    ran(jobs.path, *jobs.kept, "--out", jobs.root / "main.jsonl")
    main = jobs.root / "elsewhere.jsonl"
    main.write_text((jobs.root / "main.jsonl").read_text().replace('"latency_ms":', '"latency_ms":1'))
    jobs.tripped()
    found = jobs.score("--baseline", main, code=1)
    assert "no commit of the baseline is known" in why_not(found)
    assert (found["again"], jobs.again.exists()) == (None, False)


def test_what_trips_without_blocking_waits_for_fresh_samples_too(making: Making) -> None:
    """By the plain rule one broken case of twelve passes, and the job that confirms was never asked."""
    jobs = making("kind == 'old' or name != 'a0'", two_slices(12))
    first = jobs.tripped(code=1)
    assert (first["verdict"], first["again"]["cases"]) == ("pass", 1)
    for side in Side:
        jobs.answered(side)
    assert codes(jobs.confirmed(code=0)) == ["cases_broken"]


def test_the_baseline_answers_in_a_checkout_of_its_commit_alone(making: Making) -> None:
    jobs = making(BY_CHANCE)
    jobs.tripped()
    prompt, words = jobs.checkout / "prompt.md", "no checkout of"
    prompt.write_text("new one")
    assert words in jobs.answers_refused(Side.BASELINE)
    git(jobs.checkout, "restore", "prompt.md")
    git(jobs.checkout, "commit", "--quiet", "--allow-empty", "-m", "of the same parts")
    assert words in jobs.answers_refused(Side.BASELINE)
    git(jobs.checkout, "checkout", "--quiet", jobs.main)
    assert jobs.answered(Side.BASELINE)["side"] == "baseline"
    assert jobs.asked()["old a0"] == 2 + 6


def test_two_runs_of_one_commit_answer_again_for_a_side_each(making: Making) -> None:
    """As main's weekly run does, of which chance or the world may fall."""
    jobs = making("number != 3 and number != 4")
    shutil.rmtree(jobs.proposed)
    git(jobs.root, "clone", "--quiet", jobs.folder, jobs.proposed)
    jobs.tripped()
    for side in Side:
        assert jobs.answered(side)["side"] == side
    (said,) = jobs.confirmed(code=1)["comparison"]["confirmation"]["found"]
    assert (said["stands"], said["fresh"]["delta"]) == (False, 0.0), "all cases fell, which fresh samples don't decide"


def changed(jobs: SplitJobs, change: Callable[[dict[str, Any]], object]) -> None:
    told = json.loads(jobs.again.read_text())
    change(told)
    jobs.again.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("change", "side", "said"),
    [
        (
            lambda told: told["baseline"].update(configuration="0" * 64),
            Side.BASELINE,
            "baseline.configuration: must be",
        ),
        (
            lambda told: told["candidate"].update(configuration="0" * 64),
            Side.CANDIDATE,
            "candidate.configuration: must",
        ),
        (lambda told: told["baseline"].update(commit="nowhere"), Side.BASELINE, "no checkout of 'nowhere'"),
        (lambda told: told.update(suite="other"), Side.CANDIDATE, "suite: it is of 'other'"),
        (lambda told: told["cases"].append("c99"), Side.CANDIDATE, "cases: 'c99' is no case of"),
        (lambda told: told["cases"].append("c0"), Side.CANDIDATE, "cases: one is there twice"),
        (lambda told: told.update(samples="6"), Side.CANDIDATE, "samples: "),
        (lambda told: told.update(after=1), Side.CANDIDATE, "after: "),
        (lambda told: told.update(more=1), Side.CANDIDATE, "more: "),
        (lambda told: told.clear(), Side.CANDIDATE, "suite: must be there, got nothing"),
    ],
)
def test_a_file_that_asks_for_something_else_is_refused_by_its_field(
    making: Making, change: Callable[[dict[str, Any]], object], side: Side, said: str
) -> None:
    jobs = making(BY_CHANCE)
    jobs.tripped()
    changed(jobs, change)
    told = jobs.answers_refused(side)
    assert said in told
    assert "again.json" in told


def test_options_that_do_not_go_together_are_refused(making: Making) -> None:
    jobs = making("True")
    file = jobs.root / "x.json"
    assert "--cases goes with --generate" in refused(jobs.path, "--cases", file, "--score", file)
    assert "the halves of a run" in refused(jobs.path, "--generate", file, "--score", file)


def test_a_judge_that_was_away_at_first_makes_no_fresh_answer_void(making: Making, model: Running) -> None:
    """Of thousands of scores some are missing at first, and are there when the answers are scored again."""
    jobs = making(BY_CHANCE, judges=["helpfulness"])
    model.model.tell(Behaviour(wrong="prose"))
    assert jobs.tripped()["unscored"]
    model.model.tell(None)
    for side in Side:
        jobs.answered(side)
    found = jobs.confirmed(code=0)
    assert (found["verdict"], found["unscored"]) == ("pass", 0)


def test_a_run_that_is_judged_twice_keeps_its_word(making: Making) -> None:
    """The job that confirms asks no one again what the first one found: the same results, the same fresh samples."""
    jobs = making(BY_CHANCE, judges=["helpfulness"])
    first = jobs.tripped()
    assert first["judge_calls"]
    again = jobs.again.read_bytes()
    results = (jobs.root / "branch.jsonl").read_bytes()
    assert jobs.score(code=1)["judge_calls"] == 0
    assert (jobs.again.read_bytes(), (jobs.root / "branch.jsonl").read_bytes()) == (again, results)
    assert first["verdict"] == "fail"
