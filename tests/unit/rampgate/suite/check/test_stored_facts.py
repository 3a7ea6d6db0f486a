"""What stored runs tell of turnaround and of what was kept: only those that came to a verdict, and only those that
tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rampgate.suite.check.stored import Hits, answer_hits, judge_hits, turnarounds, verdict_seconds
from rampgate.suite.runs.stored import StoredRun

RUN = StoredRun("desk", "2026-11-21T10:00:00.000+00:00", "", "pass", "full", "c", "r", asked=10, kept=0)


def test_turnaround_is_told_by_set_and_by_half() -> None:
    runs = [replace(RUN, seconds=float(seconds)) for seconds in range(1, 101)]
    runs += [replace(RUN, set="smoke", seconds=7.0), replace(RUN, only="score", seconds=3.0)]
    found = {(one.set, one.only): one for one in turnarounds(runs)}
    full = found["full", ""]
    assert (full.n, full.p50, full.p95) == (100, 50.0, 95.0)
    assert (found["smoke", ""].p95, found["full", "score"].p50) == (7.0, 3.0)


def test_a_run_that_came_to_no_verdict_has_no_turnaround() -> None:
    runs = [replace(RUN, seconds=5.0), replace(RUN, seconds=900.0, verdict="incomplete"), RUN]
    assert [one.p95 for one in turnarounds(runs)] == [5.0]
    assert verdict_seconds(runs) == [5.0]


def test_a_run_of_an_earlier_release_does_not_count_as_one_without_hits() -> None:
    runs = [
        replace(RUN, kept=None),
        replace(RUN, asked=1, kept=9, judged=20, judged_kept=15),
        replace(RUN, asked=10, kept=0, judged=20, judged_kept=0),
    ]
    assert answer_hits(runs) == Hits(9, 20)
    assert judge_hits(runs) == Hits(15, 40)
    assert judge_hits(runs).ratio == pytest.approx(0.375)
    assert judge_hits([RUN]).ratio is None
