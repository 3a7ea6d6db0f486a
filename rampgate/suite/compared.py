"""Two runs of a suite and what was decided of them: what every form of the answer is made from."""

from __future__ import annotations

from dataclasses import dataclass

from evalcore.stats.bootstrap import RESAMPLES
from evalcore.suite.gates import Judged
from evalcore.suite.pairing import Paired
from evalcore.suite.results import Run


@dataclass(frozen=True)
class Compared:
    baseline: Run
    candidate: Run
    paired: Paired
    judged: Judged
    seed: int
    resamples: int = RESAMPLES
