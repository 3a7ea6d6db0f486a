"""Holds columns of judges' scores then and now, and says which of them have drifted apart (PF-9 FR-13)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalcore.drift.divergence import Compared, Sample, compare
from evalcore.drift.scale import Scale, declared, fitting
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry, UnknownJudge
from rampgate.checks.score_files import ScoreColumn
from rampgate.command import Document
from rampgate.input_files import BadFile
from schemas.judges import judge_id


@dataclass(frozen=True)
class Known:
    """What the registry says of a judge of the file; nothing of one that is not registered."""

    scale: Scale | None = None
    limit: float | None = None
    source: str | None = None


@dataclass(frozen=True)
class Checked:
    """One judge of the two files."""

    judge: str
    known: Known
    baseline: Sample
    current: Sample
    shared: int
    found: Compared

    def document(self) -> dict[str, Any]:
        one, before = self.current, self.baseline
        return {
            "judge_id": self.judge,
            "kl": self.found.kl,
            "threshold": self.known.limit,
            "ceiling_fraction": self.found.ceiling,
            "floor_fraction": self.found.floor,
            "passed": self.found.passed,
            "reason": self.found.reason,
            "warnings": list(self.found.warnings),
            "registered": self.known.scale is not None,
            "threshold_source": self.known.source,
            "n": one.n,
            "baseline_n": before.n,
            "shared_items": self.shared,
            "na_share": one.share(one.not_applicable),
            "baseline_na_share": before.share(before.not_applicable),
            "unscored_share": one.share(one.unscored),
            "baseline_unscored_share": before.share(before.unscored),
        }


def found(checked: Sequence[Checked], vertical: str | None, registry: Registry, about: Mapping[str, Any]) -> Document:
    """The answer of the command: exit code 1 where a judge has drifted or that is unknown."""
    drifted = sum(one.found.passed is False for one in checked)
    fields = {"judges": [one.document() for one in checked], **about, "vertical": vertical}
    whole = {**fields, "config_hash": registry.config_hash, "drifted_count": drifted}
    return Document(whole, 0 if all(one.found.passed for one in checked) else 1)


def compared(
    baseline: Mapping[str, ScoreColumn],
    current: Mapping[str, ScoreColumn],
    registry: Registry | None,
    vertical: str | None,
    before: Registry | None = None,
) -> list[Checked]:
    """Returns each judge of either file, the current one's first. Ids are as written there; kebab and snake case are
    one judge where it is registered. A limit of the registry `before` a change goes before the changed one: nothing
    widens its own. Raises BadFile for a score that is none on a registered judge's scale."""
    judges = {name: registered(registry, name, vertical) for name in [*current, *baseline]}
    ids = dict[str, str]()
    for name, judge in judges.items():
        ids.setdefault(judge_id(name) if judge else name, name)
    return [
        _checked(
            shown, _merged(current, key), _merged(baseline, key), judges[shown], registered(before, shown, vertical)
        )
        for key, shown in ids.items()
    ]  # fmt: skip


def registered(registry: Registry | None, name: str, vertical: str | None) -> Judge | None:
    """The judge, also of a dimension of its own (`judge.dimension`); None of one that is not registered."""
    own, _, dimension = judge_id(name).partition(".")
    if registry is None or (dimension and dimension not in _dimensions(registry, own)):
        return None
    try:
        return registry.judge(own, vertical)
    except UnknownJudge:
        return None


def _dimensions(registry: Registry, name: str) -> Mapping[str, Any]:
    try:
        return registry.judge(name).dimensions
    except UnknownJudge:
        return {}


def _merged(columns: Mapping[str, ScoreColumn], key: str) -> ScoreColumn | None:
    """A judge's column. Raises BadFile where a file spells one judge in two ways."""
    found = [name for name in columns if key in (name, judge_id(name))]
    if len(found) > 1:
        one = columns[found[1]]
        line = min(one.items.values())
        raise BadFile(f"{one.path}:{line}: judge_id: {found[1]!r} and {found[0]!r} are one judge; write one of them")
    return columns[found[0]] if found else None


def _checked(
    name: str, current: ScoreColumn | None, baseline: ScoreColumn | None, judge: Judge | None, before: Judge | None
) -> Checked:
    columns = (baseline, current)
    samples = (_sample(baseline), _sample(current))
    known = Known()
    if judge is not None:
        drift = before.drift if before is not None and before.drift is not None else judge.drift
        limit = drift if "." not in name else None
        stated = (float(limit.kl_threshold), limit.baseline_source.value) if limit else (None, None)
        known = Known(declared(judge.score_type, judge.score_range), *stated)
    for column, sample in zip(columns, samples, strict=True):
        if column is not None and judge is not None:
            require_on_scale(column.path, "score", sample.scores, column.numbers, judge)
    scale = known.scale or fitting(np.concatenate([one.scores for one in samples]))
    shared = len(current.items.keys() & baseline.items.keys()) if current and baseline else 0
    shifts = _shifts(baseline, current) if baseline and current else None
    found = compare(*samples, scale, known.limit, shifts)
    # The limit for so many scores; the stated one where there are too few for any.
    known = replace(known, limit=known.limit if found.limit is None else found.limit)
    return Checked(name, known, *samples, shared, found)


def _shifts(baseline: ScoreColumn, current: ScoreColumn) -> NDArray[np.float64]:
    """Of the items that both files have a score of, the score now less the one then."""
    then = dict(zip(baseline.numbers, baseline.scores, strict=True))
    now = dict(zip(current.numbers, current.scores, strict=True))
    shared = [(baseline.items[item], line) for item, line in current.items.items() if item in baseline.items]
    found = [now[late] - then[early] for early, late in shared if early in then and late in now]
    return np.array(found, dtype=np.float64)


def require_on_scale(path: Path, field: str, scores: Any, numbers: Sequence[int], judge: Judge) -> None:
    """Raises BadFile for a score that is none on a registered judge's scale, with its line of `numbers`."""
    off = declared(judge.score_type, judge.score_range).first_off(scores)
    if off is not None:
        low, high = judge.score_range
        scale = f"{judge.id} scores {judge.score_type.value} from {low:g} to {high:g}"
        raise BadFile(f"{path}:{numbers[off]}: {field}: {scores[off]:g} is none: {scale}")


def _sample(column: ScoreColumn | None) -> Sample:
    if column is None:
        return Sample(np.array([], dtype=np.float64))
    return Sample(np.array(column.scores, dtype=np.float64), column.not_applicable, column.unscored)
