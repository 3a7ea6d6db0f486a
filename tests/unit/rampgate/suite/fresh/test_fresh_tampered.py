"""No change of the files of fresh answers helps a candidate: what is missing is its own error, what the baseline lacks
or what stands there beside what was asked leaves the plain rule, which blocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.checks.suite_again import Side
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


UNUSABLE: dict[str, tuple[Change, str]] = {
    "the baseline lacks an answer": (lambda ours, theirs: ours.pop(), "1 of 36 answers are missing, the first is"),
    "the baseline lacks all answers": (lambda ours, theirs: ours.__delitem__(slice(1, None)), "36 of 36 answers"),
    "the candidate is another one": (
        lambda ours, theirs: theirs[0].update(configuration="0" * 64),
        "configuration: the answers are of",
    ),
    "the candidate answers for the baseline's parts": (
        lambda ours, theirs: theirs[0].update(configuration=ours[0]["configuration"]),
        "configuration: the answers are",
    ),
    "the baseline has a sample more": (lambda ours, theirs: added(ours, sample=1, key="0" * 64), "key: it is not that"),
    "the candidate has a sample more": (lambda ours, theirs: added(theirs, sample=1), "key: it is not that"),
    "the candidate has another case": (lambda ours, theirs: added(theirs, case_id="c99"), "key: it is not that"),
    "the candidate answers one twice": (lambda ours, theirs: added(theirs), "stands there twice"),
    "another request of the candidate": (
        lambda ours, theirs: theirs[0].update(request="0" * 64),
        "request: it answers",
    ),
    "another request of the baseline": (lambda ours, theirs: ours[0].update(request="0" * 64), "request: it answers"),
    "a line that is none": (lambda ours, theirs: theirs[1].update(score=1), "score: "),
}
REFUSED: dict[str, tuple[Change, str]] = {
    "the baseline's file is empty": (lambda ours, theirs: ours.clear(), ":1: configuration: must be there"),
    "the candidate's file is empty": (lambda ours, theirs: theirs.clear(), ":1: configuration: must be there"),
    "the baseline's answers are the candidate's, too": (taken, "it has fresh answers of the candidate, and so has"),
    "the candidate answers for the baseline": (
        lambda ours, theirs: theirs[0].update(side="baseline"), "it has fresh answers of the baseline, and so has"
    ),
    "a baseline that says it is the candidate": (
        lambda ours, theirs: ours[0].update(side="candidate"), "it has fresh answers of the candidate, and so has"
    ),
    "answers that are not fresh": (lambda ours, theirs: theirs[0].pop("request"), "it has first answers, and so has"),
}  # fmt: skip
"""What a file says of itself is no part of this run."""


@pytest.fixture
def jobs(tmp_path: Path, folder: Path) -> SplitJobs:
    """A candidate that passes by the fresh answers as they are."""
    jobs = SplitJobs(tmp_path, folder, BY_CHANCE)
    jobs.tripped()
    for side in Side:
        jobs.answered(side)
    return jobs


def why_not(found: dict[str, Any]) -> str:
    assert (found["verdict"], found["comparison"]["confirmation"]["found"], found["again"]) == ("fail", [], None)
    assert "slice_regressed" in codes(found)
    return str(found["comparison"]["confirmation"]["why_not"])


def test_fresh_answers_that_are_not_what_was_asked_leave_the_plain_rule(jobs: SplitJobs) -> None:
    honest = {side: jobs.rows(side) for side in Side}
    assert jobs.confirmed(code=0)["verdict"] == "pass"

    def changed(change: Change) -> None:
        rows = {side: [dict(row) for row in honest[side]] for side in Side}
        change(rows[BASELINE], rows[CANDIDATE])
        for side in Side:
            jobs.rewrite(side, rows[side])

    for name, (change, said) in UNUSABLE.items():
        changed(change)
        assert said in why_not(jobs.confirmed(code=1)), name
    for name, (change, said) in REFUSED.items():
        changed(change)
        assert said in jobs.confirmed_refused(), name
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
    assert "request: it answers another" in why_not(jobs.confirmed(code=1))


def test_answers_of_a_candidate_with_the_baselines_parts_are_not_the_baselines(tmp_path: Path, folder: Path) -> None:
    """It reads what is in no part: by their configuration both sides are the same."""
    jobs = SplitJobs(tmp_path, folder, "not (HERE / 'broken').exists()")
    (jobs.proposed / "prompt.md").write_text("old")
    (jobs.proposed / "broken").write_text("")
    jobs.tripped()
    for side in Side:
        jobs.answered(side)
    assert jobs.confirmed(code=1)["comparison"]["confirmation"]["found"][0]["fresh"]["delta"] == -1.0
    jobs.rewrite(BASELINE, jobs.rows(CANDIDATE))
    assert "it has fresh answers of the candidate, and so has" in jobs.confirmed_refused()
