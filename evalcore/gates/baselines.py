"""Keeps the aggregates of runs on main, from which rolling baselines are made (PC5 §5.2; contracts §3). Pure.

A baseline holds for one judge version, dataset, dataset version, milestone and vertical; a change of any of them begins
a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from pydantic import Field

from evalcore.gates.limits import PastRun
from evalcore.registry.registry import Judge
from schemas.files import FileModel
from schemas.judges import Milestone
from schemas.manifests import ROLLING, Dataset
from schemas.verdicts import GateVerdict, VerdictLevel

KEPT = 50
"""Runs of one judge that stay in the file: the last three decide, the others show the trend."""


class BaselineRun(FileModel):
    """One judge in one run on main. `error` is the standard error of its score, null in runs of before it was kept."""

    judge: str
    judge_version: str
    dataset: str
    dataset_version: int
    milestone: Milestone
    vertical: str | None = None
    score: float = Field(allow_inf_nan=False)
    n: int = Field(ge=1)
    error: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    at: str
    commit: str = ""

    def of(self, name: str, judge: Judge, dataset: Dataset, milestone: Milestone, vertical: str | None) -> bool:
        return (self.judge, self.judge_version, self.dataset, self.dataset_version, self.milestone, self.vertical) == (
            name, judge.version, dataset.name, dataset.version, milestone, vertical
        )  # fmt: skip


class BaselineFile(FileModel):
    """The file of baselines; `runs` are oldest first."""

    runs: list[BaselineRun] = Field(default_factory=list)

    def history(
        self, judges: Iterable[Judge], dataset: Dataset, milestone: Milestone, vertical: str | None
    ) -> dict[str, list[PastRun]]:
        """Returns the last runs of each judge and dimension by its name, oldest first, without those that have no
        run."""
        out = {}
        for name, judge in _named(judges):
            past = [
                PastRun(run.score, run.n, run.error)
                for run in self.runs
                if run.of(name, judge, dataset, milestone, vertical)
            ]
            if past:
                out[name] = past[-ROLLING:]
        return out

    def outdated(self, judges: Iterable[Judge], milestone: Milestone, vertical: str | None) -> dict[str, str]:
        """Returns, for each judge that has runs of other versions alone, on any dataset, the version of its last
        run."""
        out = {}
        for name, judge in _named(judges):
            versions = [
                run.judge_version
                for run in self.runs
                if (run.judge, run.milestone, run.vertical) == (name, milestone, vertical)
            ]
            if versions and judge.version not in versions:
                out[name] = versions[-1]
        return out

    def with_run(self, verdict: GateVerdict, dataset: Dataset, vertical: str | None, at: str, commit: str = "") -> Self:
        """Returns the file with the verdict's scores added. A gate that failed adds none, and neither does a judge that
        could not score every item: they are no baseline."""
        if verdict.verdict is VerdictLevel.FAIL:
            return self
        new = [
            BaselineRun(
                judge=name, judge_version=score.judge_version, dataset=dataset.name, dataset_version=dataset.version,
                milestone=verdict.milestone, vertical=vertical, score=score.score, n=score.n,
                error=score.error, at=at, commit=commit,
            )
            for name, score in sorted(verdict.per_judge_scores.items())
            if score.score is not None and score.n and not score.unscored
        ]  # fmt: skip
        return self.model_copy(update={"runs": _kept([*self.runs, *new])})

    def document(self) -> Mapping[str, Any]:
        return self.model_dump(mode="json")


def _named(judges: Iterable[Judge]) -> Iterator[tuple[str, Judge]]:
    """Yields every name that may decide, with its judge."""
    for judge in judges:
        yield judge.id, judge
        yield from ((f"{judge.id}.{dimension}", judge) for dimension in judge.dimensions)


def _kept(runs: list[BaselineRun]) -> list[BaselineRun]:
    """Returns the last KEPT runs of each judge under the same conditions, in their order."""
    counted: dict[tuple[object, ...], int] = {}
    out = []
    for run in reversed(runs):
        key = (run.judge, run.judge_version, run.dataset, run.dataset_version, run.milestone, run.vertical)
        counted[key] = counted.get(key, 0) + 1
        if counted[key] <= KEPT:
            out.append(run)
    return out[::-1]
