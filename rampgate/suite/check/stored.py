"""Reads from a suite's store what its runs say of the suite itself: how long they took, what they found kept, and which
of them are of the same candidate with fresh samples.

A run whose answers were kept repeats those of another one, and says nothing of chance: only runs that had all their
answers made count as drawn anew. A file of answers that is scored twice is known by its traces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from evalcore.calibration.floors import percentile
from evalcore.drift.scale import Scale
from evalcore.suite.gates import judge
from evalcore.suite.pairing import paired
from evalcore.suite.resampled import CODES, PULL_REQUEST, Rate
from evalcore.suite.results import Run, versions_of
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.result_files import read_run
from rampgate.suite.runs.stored import INCOMPLETE, MAIN, PASSED, StoredRun, StoredRuns
from schemas.verdicts import VerdictLevel


@dataclass(frozen=True)
class Turnaround:
    """How long the runs of a set took, from their start to their verdict; `only` where they were half a run."""

    set: str
    only: str
    n: int
    p50: float
    p95: float


@dataclass(frozen=True)
class Hits:
    """Of `of` answers that runs needed, how many were `kept`; runs of earlier releases do not tell."""

    kept: int
    of: int

    @property
    def ratio(self) -> float | None:
        return self.kept / self.of if self.of else None


@dataclass(frozen=True)
class Fresh:
    """Runs of one configuration whose samples were drawn apart, the oldest first, and the last of the best kind,
    `reference`, which is among them."""

    reference: StoredRun
    runs: Sequence[tuple[StoredRun, Run]]

    @property
    def results(self) -> list[Run]:
        """The reference's first."""
        return [run for _, run in sorted(self.runs, key=lambda one: one[0] is not self.reference)]


@dataclass(frozen=True)
class NoOps:
    """Stored runs of the same candidate held against one another: in how many pairs each gate tripped by the plain
    rule. `shipped`: runs that were held against a stored run of their own configuration, and how many were blocked."""

    pairs: int = 0
    gates: dict[str, Rate] = field(default_factory=dict)
    shipped: Rate = field(default_factory=lambda: Rate(0, 0))


def turnarounds(runs: Sequence[StoredRun]) -> list[Turnaround]:
    """By set, of the runs that came to a verdict and tell it."""
    found: dict[tuple[str, str], list[float]] = {}
    for one in runs:
        if one.seconds is not None and one.verdict != INCOMPLETE:
            found.setdefault((one.set, one.only), []).append(one.seconds)
    out = []
    for (kind, only), seconds in sorted(found.items()):
        took = np.array(seconds)
        p50, p95 = (percentile(took, np.ones(took.size), percent) for percent in (50, 95))
        out.append(Turnaround(kind, only, len(seconds), p50, p95))
    return out


def verdict_seconds(runs: Sequence[StoredRun]) -> list[float]:
    """How long each run took that came to a verdict and tells it."""
    return [one.seconds for one in runs if one.seconds is not None and one.verdict != INCOMPLETE]


def answer_hits(runs: Sequence[StoredRun]) -> Hits:
    told = [(one.kept, one.asked) for one in runs if one.kept is not None]
    return Hits(sum(kept for kept, _ in told), sum(kept + asked for kept, asked in told))


def judge_hits(runs: Sequence[StoredRun]) -> Hits:
    told = [(one.judged_kept, one.judged) for one in runs if one.judged_kept is not None and one.judged is not None]
    return Hits(sum(kept for kept, _ in told), sum(judged for _, judged in told))


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
        if run is None or versions_of(run, score) != versions_of(first, score):
            continue
        if not any(one.results == other.results or _same(run, known) for other, known in found):
            found.append((one, run))
    return Fresh(reference, sorted(found, key=lambda one: one[0].at))


def no_ops(fresh: Fresh, runs: Sequence[StoredRun], how: Comparison, scale: Scale, told: Callable[[], None]) -> NoOps:
    """Holds each fresh run against the last one before that passed, as in use."""
    baseline, pairs, tripped = fresh.runs[0][1], 0, dict.fromkeys((*CODES, PULL_REQUEST), 0)
    for _, candidate in fresh.runs[1:]:
        asked = {name: case for name, case in baseline.items() if name in candidate}
        found = paired(asked, candidate, how.score or "", scale, how.safety, how.safe_at, let_go=asked)
        told()
        if not found.pairs:
            continue
        judged = judge(found, how.seed)
        codes = {one.code for one in judged.reasons}
        pairs += 1
        for gate, code in CODES.items():
            tripped[gate] += code in codes
        tripped[PULL_REQUEST] += judged.verdict is VerdictLevel.FAIL
        if judged.verdict is not VerdictLevel.FAIL:
            baseline = candidate
    return NoOps(pairs, {gate: Rate(count, pairs) for gate, count in tripped.items()}, as_shipped(runs))


def as_shipped(runs: Sequence[StoredRun]) -> Rate:
    """How many runs were blocked of those, the oldest first, that were held against a stored run of their own
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
