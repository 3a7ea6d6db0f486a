"""No change of the files of fresh answers helps a candidate: what is missing is its own error, what the baseline lacks
or what stands there beside what was asked leaves the plain rule, which blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rampgate.suite.runs.only import Side
from tests.unit.rampgate.suite.fresh.split_jobs import Rows, SplitJobs
from tests.unit.rampgate.suite.suite_branches import codes

BY_CHANCE = "kind == 'old' or number > 2"
BASELINE, CANDIDATE = Side.BASELINE, Side.CANDIDATE
Change = Callable[[Rows, Rows], object]
"""Changes the baseline's rows, or the candidate's, the first of which says whose they are."""


def added(rows: Rows, **changes: Any) -> None:
    rows.append({**rows[-1], **changes})


def taken(rows: Rows, other: Rows) -> None:
    rows[:] = [dict(row) for row in other]


def swapped(ours: Rows, theirs: Rows) -> None:
    ours[:], theirs[:] = list(theirs), list(ours)


UNUSABLE: dict[str, tuple[Change, str]] = {
    "the baseline lacks an answer": (lambda ours, theirs: ours.pop(), "1 of 36 answers are missing, the first is"),
    "the baseline lacks all answers": (lambda ours, theirs: ours.__delitem__(slice(1, None)), "36 of 36 answers"),
    "the baseline's file is empty": (lambda ours, theirs: ours.clear(), "configuration: the answers are of 'None'"),
    "the candidate's file is empty": (lambda ours, theirs: theirs.clear(), "configuration: the answers are of 'None'"),
    "the candidate's answers are the baseline's, too": (taken, "configuration: the answers are of"),
    "each has the other's": (swapped, "configuration: the answers are of"),
    "the baseline has a sample more": (lambda ours, theirs: added(ours, sample=1, key="0" * 64), "key: it is not that"),
    "the candidate has a sample more": (lambda ours, theirs: added(theirs, sample=1), "key: it is not that"),
    "the candidate has another case": (lambda ours, theirs: added(theirs, case_id="c99"), "key: it is not that"),
    "the candidate answers one twice": (lambda ours, theirs: added(theirs), "stands there twice"),
    "numbers that it chose itself": (lambda ours, theirs: theirs[0].update(after=1_000), "after: it is '1000' and not"),
    "a baseline of another commit": (lambda ours, theirs: ours[0].update(commit="f" * 40), "commit: it is 'ffff"),
    "a baseline that says it is the candidate": (lambda ours, theirs: ours[0].update(side="candidate"), "side: it is"),
    "answers that are not fresh": (lambda ours, theirs: theirs[0].pop("side"), "side: it is ''"),
    "a line that is none": (lambda ours, theirs: theirs[1].update(score=1), "score: "),
}


@pytest.fixture
def jobs(tmp_path: Path, folder: Path) -> SplitJobs:
    """A candidate that passes by the fresh answers as they are."""
    jobs = SplitJobs(tmp_path, folder, BY_CHANCE)
    jobs.tripped()
    for side in Side:
        jobs.anew(side)
    return jobs


def why_not(found: dict[str, Any]) -> str:
    assert (found["verdict"], found["comparison"]["confirmation"]["found"], found["again"]) == ("fail", [], None)
    assert "slice_regressed" in codes(found)
    return str(found["comparison"]["confirmation"]["why_not"])


def test_fresh_answers_that_are_not_what_was_asked_leave_the_plain_rule(jobs: SplitJobs) -> None:
    honest = {side: jobs.rows(side) for side in Side}
    assert jobs.confirmed(code=0)["verdict"] == "pass"
    for name, (change, said) in UNUSABLE.items():
        rows = {side: [dict(row) for row in honest[side]] for side in Side}
        change(rows[BASELINE], rows[CANDIDATE])
        for side in Side:
            jobs.rewrite(side, rows[side])
        assert said in why_not(jobs.confirmed(code=1)), name
    for side in Side:
        for other in Side:
            jobs.rewrite(other, honest[other])
        jobs.fresh[side].unlink()
        assert f"the fresh answers of the {side} can't be used" in why_not(jobs.confirmed(code=1))


@pytest.mark.parametrize("left", [0, 12])
def test_what_a_candidate_leaves_out_is_its_own_error(jobs: SplitJobs, left: int) -> None:
    rows = jobs.rows(CANDIDATE)
    jobs.rewrite(CANDIDATE, rows[: 1 + left])
    found = jobs.confirmed(code=1)
    (said,) = found["comparison"]["confirmation"]["found"]
    broken = [] if left else ["cases_broken"]
    assert (said["stands"], codes(found)) == (True, ["slice_regressed", *broken])
    assert said["fresh"]["delta"] == pytest.approx(left / 36 - 1)


def test_answers_that_are_others_by_now_make_the_fresh_answers_of_before_void(jobs: SplitJobs) -> None:
    """Else a candidate would choose which answers its fresh ones confirm."""
    answers = jobs.root / "answers.jsonl"
    answers.write_text(answers.read_text().replace('"latency_ms":', '"latency_ms":1'))
    assert "after: it is" in why_not(jobs.confirmed(code=1))


def test_answers_of_a_candidate_with_the_baselines_parts_are_not_the_baselines(tmp_path: Path, folder: Path) -> None:
    """It reads what is in no part: by their configuration both sides are the same."""
    jobs = SplitJobs(tmp_path, folder, "not (HERE / 'broken').exists()")
    (jobs.proposed / "prompt.md").write_text("old")
    (jobs.proposed / "broken").write_text("")
    jobs.tripped()
    for side in Side:
        jobs.anew(side)
    assert jobs.confirmed(code=1)["comparison"]["confirmation"]["found"][0]["fresh"]["delta"] == -1.0
    jobs.rewrite(BASELINE, jobs.rows(CANDIDATE))
    assert "side: it is 'candidate'" in why_not(jobs.confirmed(code=1))
