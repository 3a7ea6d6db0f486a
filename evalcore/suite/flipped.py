"""Which cases a regression is made of, the worst first: what a reviewer reads before anything else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalcore.suite.gates import BLOCKING, SuiteCode, SuiteReason
from evalcore.suite.pairing import Pair, Paired
from evalcore.suite.results import Gone, Run, Sample

MOST = 50
SHOWN = BLOCKING | {SuiteCode.SLICE_NOT_CONFIRMED, SuiteCode.CASES_BROKEN}
"""Reasons whose cases are looked at."""


@dataclass(frozen=True)
class Flip:
    """A case that fell, with the baseline's best sample beside the candidate's worst."""

    pair: Pair
    baseline: Sample
    candidate: Sample


def flipped(paired: Paired, reasons: Sequence[SuiteReason], baseline: Run, candidate: Run) -> list[Flip]:
    """Returns at most fifty cases that fell and are part of what blocks or may be worse; none where nothing does."""
    blocking = [one for one in reasons if one.code in SHOWN]
    named = {case for one in blocking for case in one.cases}
    slices = {one.slice for one in blocking if one.slice is not None}
    whole = any(not one.cases and one.slice is None for one in blocking)
    found = [
        pair
        for pair in paired.pairs
        if pair.case_id in named or (pair.delta() < 0 and (whole or not pair.slices.isdisjoint(slices)))
    ]
    found.sort(key=lambda pair: (pair.case_id not in named, pair.delta(), pair.case_id))
    return [
        Flip(pair, _at(baseline, pair, paired, best=True), _at(candidate, pair, paired, best=False))
        for pair in found[:MOST]
    ]


def _at(run: Run, pair: Pair, paired: Paired, *, best: bool) -> Sample:
    def worth(sample: Sample) -> float:
        value = sample.score(paired.score)
        return paired.scale.low if isinstance(value, Gone) else value

    samples = sorted(run[pair.case_id].samples, key=lambda sample: (worth(sample), sample.number))
    return samples[-1] if best else samples[0]
