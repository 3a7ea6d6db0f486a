"""How a score went on over stored runs of a suite, slice by slice. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalcore.drift.scale import Scale
from evalcore.suite.comparison import SEED, Interval, by_cluster, interval_of
from evalcore.suite.pairing import side_of
from evalcore.suite.results import Case, Run

if TYPE_CHECKING:
    from evalcore.suite.comparison import Numbers


@dataclass(frozen=True)
class SliceTrend:
    """For each run how many cases the slice has, and their mean, None without any. `ci95` is the last mean's."""

    n: tuple[int, ...]
    means: tuple[float | None, ...]
    ci95: Interval | None

    @property
    def change(self) -> float | None:
        """The last mean less the first that there is; None of fewer than two."""
        known = [mean for mean in self.means if mean is not None]
        return known[-1] - known[0] if len(known) > 1 and self.means[-1] is not None else None


def trend(runs: Sequence[Run], score: str, scale: Scale) -> dict[str | None, SliceTrend]:
    """Returns the trend of all cases, under None, and of each slice. A sample that no one could score counts at its
    worst, as in a comparison."""
    names: list[str | None] = [None, *sorted({name for run in runs for case in run.values() for name in case.slices})]
    found = {}
    for name in names:
        each = [_means(run, name, score, scale) for run in runs]
        means = tuple(float(values.mean()) if values.size else None for values, _ in each)
        found[name] = SliceTrend(tuple(values.size for values, _ in each), means, _interval(*each[-1]))
    return found


def _means(run: Run, name: str | None, score: str, scale: Scale) -> tuple[Numbers, list[str]]:
    """The means of the cases of a slice that have the score, and their clusters."""
    cases: list[Case] = [run[key] for key in sorted(run) if name is None or name in run[key].slices]
    sides = [(side_of(case, score, scale, scale.low, safety=False), case.cluster or case.case_id) for case in cases]
    told = [(side.mean(best=False), cluster) for side, cluster in sides if side.worst]
    import numpy as np

    return np.array([mean for mean, _ in told], dtype=np.float64), [cluster for _, cluster in told]


def _interval(values: Numbers, clusters: list[str]) -> Interval | None:
    return interval_of(*by_cluster(values, clusters), SEED) if clusters else None
