"""What stored runs tell of turnaround and of what was kept: only those that came to a verdict, and only those that
tell."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any, cast

from evalcore.suite.resampled import Rate
from rampgate.suite.check.stored import (
    Fresh,
    as_shipped,
    fresh_runs,
    hits,
    turnarounds,
    verdict_seconds,
)
from rampgate.suite.runs.stored import StoredRun, StoredRuns

RUN = StoredRun("desk", "2026-11-21T10:00:00.000+00:00", "", "pass", "full", "c", "r", asked=10, kept=0)


def test_turnaround_is_told_by_set_and_by_half() -> None:
    runs = [replace(RUN, seconds=float(seconds)) for seconds in range(1, 101)]
    runs += [replace(RUN, set="smoke", seconds=7.0), replace(RUN, only="score", seconds=3.0)]
    assert [tuple(one.values()) for one in turnarounds(runs)] == [
        ("full", None, 100, 50.0, 95.0), ("full", "score", 1, 3.0, 3.0), ("smoke", None, 1, 7.0, 7.0),
    ]  # fmt: skip


def test_a_run_that_came_to_no_verdict_has_no_turnaround() -> None:
    runs = [replace(RUN, seconds=5.0), replace(RUN, seconds=900.0, verdict="incomplete"), RUN]
    assert [one["p95_seconds"] for one in turnarounds(runs)] == [5.0]
    assert [seconds for _, seconds in verdict_seconds(runs)] == [5.0]


def test_a_run_of_an_earlier_release_does_not_count_as_one_without_hits() -> None:
    runs = [
        replace(RUN, kept=None),
        replace(RUN, asked=1, kept=9, judged=20, judged_kept=15),
        replace(RUN, asked=10, kept=0, judged=20, judged_kept=0),
    ]
    assert hits(runs)["answers"] == {"kept": 9, "of": 20, "ratio": 0.45}
    assert hits(runs)["judge_answers"] == {"kept": 15, "of": 40, "ratio": 0.375}
    assert hits([RUN])["judge_answers"]["ratio"] is None


class Held:
    """A store's results: of each run so many cases, whose traces begin with the run's name or the given one."""

    async def results(self, run: StoredRun) -> bytes | None:
        if run.results.startswith("gone"):
            return None
        lines: list[dict[str, Any]] = [
            {"case_id": f"c{n}", "slices": [], "sample": 1, "scores": {"ok": 1.0}, "trace": {"hash": f"{run.label}{n}"}}
            | {"versions": {"ok": run.commit or "v1"}}
            for n in range(4)
        ]
        return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def stored(name: str, number: int, **changes: Any) -> StoredRun:
    """`label` is what traces begin with, `commit` the version of the check."""
    at = f"2026-11-21T10:00:{number:02}.000+00:00"
    return replace(RUN, results=name, at=at, **{"label": name, **changes})


def found(*runs: StoredRun) -> Fresh:
    fresh = asyncio.run(fresh_runs(cast(StoredRuns, Held()), runs, "ok"))
    assert fresh is not None
    return fresh


def names(fresh: Fresh) -> list[str]:
    return [run.results for run, _ in fresh.runs]


def test_runs_count_as_drawn_apart_where_all_their_answers_were_made_anew() -> None:
    runs = [
        stored("part-kept", 1, kept=5),
        stored("not-telling", 2, kept=None),
        stored("other-candidate", 3, configuration="d"),
        stored("other-check", 4, commit="v2"),
        stored("incomplete", 5, verdict="incomplete"),
        stored("gone", 6),
        stored("first", 7),
        stored("first-again", 8, label="first"),
        stored("last", 9),
    ]
    fresh = found(*runs)
    assert names(fresh) == ["last", "first-again"], "one of two that have the same answers"
    assert fresh.reference.results == "last"


def test_the_last_of_main_that_passed_is_taken_before_later_runs_and_a_full_one_before_a_smoke_run() -> None:
    main, failed = stored("m", 1, label="main"), stored("f", 2, label="main", verdict="fail")
    assert found(main, failed, stored("branch", 3)).reference == main
    assert found(stored("full", 1), stored("smoke", 2, set="smoke")).reference.set == "full"
    assert asyncio.run(fresh_runs(cast(StoredRuns, Held()), [stored("gone", 1)], "ok")) is None


def test_of_a_run_that_was_confirmed_the_last_word_counts_and_it_counts_once() -> None:
    tripped = stored("one", 1, against="c", verdict="fail", only="score")
    runs = [tripped, replace(tripped, verdict="pass"), stored("two", 2, against="c", verdict="fail")]
    assert as_shipped(runs) == Rate(1, 2)
    assert as_shipped([*runs, stored("three", 3, against="other"), stored("four", 4)]) == Rate(1, 2)
