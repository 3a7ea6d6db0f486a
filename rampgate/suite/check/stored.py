"""Reads from a suite's store what its runs say of the suite itself: how long they took, what they found kept, and which
of them are of the same candidate with fresh samples.

A run whose answers were kept repeats those of another one, and says nothing of chance: only runs that had all their
answers made count as drawn again. A file of answers that is scored twice is known by its traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from evalcore.calibration.floors import percentile
from evalcore.suite.resampled import Rate
from evalcore.suite.results import Run, versions_of
from rampgate.suite.result_files import read_run
from rampgate.suite.runs.stored import INCOMPLETE, MAIN, PASSED, StoredRun, StoredRuns


@dataclass(frozen=True)
class Fresh:
    """Runs of one configuration whose samples were drawn apart: the last of the best kind, `reference`, first."""

    reference: StoredRun
    runs: Sequence[tuple[StoredRun, Run]]


def turnarounds(runs: Sequence[StoredRun]) -> list[dict[str, Any]]:
    """How long runs took from their start to their verdict, by set and by the half that they were: those that came to a
    verdict and tell it."""
    found: dict[tuple[str, str], list[float]] = {}
    for one, seconds in verdict_seconds(runs):
        found.setdefault((one.set, one.only), []).append(seconds)
    out = []
    for (kind, only), all_seconds in sorted(found.items()):
        took = np.array(all_seconds)
        p50, p95 = (percentile(took, np.ones(took.size), percent) for percent in (50, 95))
        out.append({"set": kind, "only": only or None, "n": took.size, "p50_seconds": p50, "p95_seconds": p95})
    return out


def verdict_seconds(runs: Sequence[StoredRun]) -> list[tuple[StoredRun, float]]:
    """Each run that came to a verdict and tells how long it took, with that."""
    return [(one, one.seconds) for one in runs if one.seconds is not None and one.verdict != INCOMPLETE]


def hits(runs: Sequence[StoredRun]) -> dict[str, dict[str, Any]]:
    """How many of the answers that runs needed were kept, those of judges and the candidate's; runs of earlier releases
    do not tell."""
    told = [(one.judged_kept, one.judged) for one in runs]
    return {
        "judge_answers": _hits([(kept, judged) for kept, judged in told if kept is not None and judged is not None]),
        "answers": _hits([(one.kept, one.kept + one.asked) for one in runs if one.kept is not None]),
    }


def _hits(told: Sequence[tuple[int, int]]) -> dict[str, Any]:
    kept, of = (sum(pair[place] for pair in told) for place in (0, 1))
    return {"kept": kept, "of": of, "ratio": kept / of if of else None}


async def fresh_runs(store: StoredRuns, runs: Sequence[StoredRun], score: str) -> Fresh | None:
    """Returns the runs to draw from: those of main's last configuration that passed, else of the last run, a full one
    where there is any. None where no run has its results. Raises Unavailable, BadFile."""
    complete = [one for one in runs if one.verdict != INCOMPLETE]

    def worth(one: StoredRun) -> tuple[bool, bool, str]:
        return one.set == "full", one.label == MAIN and one.verdict in PASSED, one.at

    for reference in sorted(complete, key=worth, reverse=True):
        if (first := await _results(store, reference)) is not None:
            break
    else:
        return None
    found = [(reference, first)]
    for one in reversed(complete):
        if one.configuration != reference.configuration or one is reference or one.kept != 0 or one.asked == 0:
            continue
        run = await _results(store, one)
        if run is None or versions_of(run.values(), score) != versions_of(first.values(), score):
            continue
        if not any(one.results == other.results or _same(run, known) for other, known in found):
            found.append((one, run))
    return Fresh(reference, [found[0], *reversed(found[1:])])


def as_shipped(runs: Sequence[StoredRun]) -> Rate:
    """How many runs were blocked of those, the oldest first, that were compared with a stored run of their own
    configuration. Of runs of the same results the last one counts: the job that confirms has the last word."""
    held = {
        one.results: one.verdict == "fail" for one in runs
        if one.against == one.configuration and one.kept == 0 and one.asked and one.verdict in (*PASSED, "fail")
    }  # fmt: skip
    return Rate(sum(held.values()), len(held))


async def _results(store: StoredRuns, one: StoredRun) -> Run | None:
    held = await store.results(one)
    return _read(one, held) if held is not None else None


def _read(one: StoredRun, held: bytes) -> Run:
    with TemporaryDirectory(prefix="rampgate-check-") as folder:
        file = Path(folder, f"{one.results[:12]}.jsonl")
        file.write_bytes(held)
        return read_run(file)


def _same(run: Run, other: Run) -> bool:
    """Tells whether all samples that both have, of the same case and number, have the same trace. A file that is scored
    twice keeps every one; most may agree by chance, where an agent answers within a millisecond."""
    traces = [
        {(name, sample.number): sample.trace for name, case in one.items() for sample in case.samples if sample.trace}
        for one in (run, other)
    ]
    both = traces[0].keys() & traces[1].keys()
    return bool(both) and all(traces[0][place] == traces[1][place] for place in both)
