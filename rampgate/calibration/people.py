"""What people said in a round: how far they agree, and what they say beside the judges (PF-9 FR-14, FR-10)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from evalcore.agreement.check import Agreement, Bound, Rated, agreement
from evalcore.agreement.reference import Entry, bounds, extended, version
from evalcore.inversion.check import Pairs, check
from evalcore.registry.files import REFERENCE_SET
from evalcore.registry.judge import Judge
from rampgate.calibration.folder import DrawnTurn, Rating, RoundPair, write_whole
from rampgate.checks.agreement import read_reference
from rampgate.console import Failure
from schemas.calibration_cycle import AgainstPeople, Cycle, RatedAlike
from schemas.checks.agreement import AgreementFile
from schemas.judges import ScoreType

SHOWN_ITEMS = 20


def agreements(
    ratings: Sequence[Rating], drawn: Mapping[str, DrawnTurn], stated: Mapping[str, Bound]
) -> list[RatedAlike]:
    """Measures each category and judge: each judge's rubric asks people something else, on a scale of its own. Each has
    to reach the category's threshold."""
    groups: dict[tuple[str, str], list[Rating]] = {}
    for one in ratings:
        groups.setdefault((drawn[one.item].category, one.judge), []).append(one)
    none = Bound(wrong="the file of thresholds has no such category")
    return [
        _told(category, judge, agreement(f"{category}/{judge}", _rated(of), stated.get(category, none)))
        for (category, judge), of in sorted(groups.items())
    ]


def bounds_of(file: AgreementFile, entries: Iterable[Entry], cycle: Cycle) -> dict[str, Bound]:
    """What each category has to reach on the round's day. The round itself is no earlier round."""
    return bounds(file, [entry for entry in entries if entry["round"] != cycle.round], cycle.day)


def enter(folder: Path, cycle: Cycle, ratings: Sequence[Rating], drawn: Mapping[str, DrawnTurn]) -> str:
    """Puts the round into the vertical's reference set, once, and returns the set's version. An item of the set is a
    judge and a turn. Raises Failure where another round of that name is in it."""
    path = folder / REFERENCE_SET
    entries = read_reference(path)
    by_category: dict[str, list[Rating]] = {}
    for one in ratings:
        by_category.setdefault(drawn[one.item].category, []).append(one)
    rated = {name: _rated(of, with_judge=True) for name, of in sorted(by_category.items())}
    there = [entry for entry in entries if entry["round"] == cycle.round]
    before = entries[: entries.index(there[0])] if there else entries
    added = extended(before, rated, cycle.round, f"{cycle.day.isoformat()}T00:00:00+00:00")
    if there and there != added:
        raise Failure(f"{path}: has other ratings of {cycle.round}: a round that was scored again has another --round")
    if there:
        return str(there[-1]["hash"])
    whole = [*entries, *added]
    write_whole(path, "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in whole))
    return version(whole)


def pairs(
    ratings: Sequence[Rating],
    drawn: Mapping[str, DrawnTurn],
    judges: Mapping[str, Judge],
    scores: Mapping[tuple[str, str], float],
    *,
    on_scale: bool,
) -> list[RoundPair]:
    """Returns each judge's score of each turn, of those that it has of `scores`, beside the mean of people's, with the
    draw's weight. `on_scale`: the mean as the nearest score that the judge's scale has, the lower one of two."""
    said: dict[tuple[str, str], list[float]] = {}
    for one in ratings:
        said.setdefault((one.judge, one.item), []).append(one.score)
    found = []
    for (name, item), of_people in sorted(said.items()):
        if (name, item) not in scores:
            continue
        of = drawn[item]
        mean = math.fsum(of_people) / len(of_people)
        if on_scale and judges[name].score_type is not ScoreType.FLOAT:
            mean = float(math.ceil(mean - 0.5))
        version_ = judges[name].version
        found.append(RoundPair(name, version_, item, scores[name, item], mean, of.category, of.weight))
    return found


def against_people(lines: Sequence[RoundPair]) -> list[AgainstPeople]:
    """Decides of each judge whether it scores against people, by the draw's weights; Spearman's is of the drawn turns
    as they are."""
    by_judge: dict[str, list[RoundPair]] = {}
    for one in lines:
        by_judge.setdefault(one.judge_id, []).append(one)
    fields = ("judge_score", "human_score", "weight")
    found = []
    for name, of in by_judge.items():
        own, people, weights = (np.array([getattr(one, field) for one in of], dtype=np.float64) for field in fields)
        found += check({name: Pairs([one.item_id for one in of], own, people, weights=weights)})
    return [
        AgainstPeople(
            judge_id=one.name, n=len(by_judge[one.name]), effective_n=one.found.n, pearson=one.found.pearson,
            pearson_ci95=one.found.ci95, spearman=one.found.spearman, inverted=one.inverted,
            carries_signal=one.carries_signal, detectable=one.detectable, reason=one.reason,
        )
        for one in found
    ]  # fmt: skip


def _rated(ratings: Sequence[Rating], *, with_judge: bool = False) -> Rated:
    items: dict[str, int] = {}
    annotators: dict[str, int] = {}
    names = [f"{one.judge}/{one.item}" if with_judge else one.item for one in ratings]
    item_at = [items.setdefault(name, len(items)) for name in names]
    annotator_at = [annotators.setdefault(one.annotator, len(annotators)) for one in ratings]
    return Rated([*items], [*annotators], item_at, annotator_at, [one.score for one in ratings])


def _told(category: str, judge: str, found: Agreement) -> RatedAlike:
    return RatedAlike(
        category=category, judge_id=judge, level=found.bound.level, alpha=found.alpha, alpha_ci95=found.ci95,
        n_items=len(found.items), n_ratings=found.ratings, threshold=found.bound.threshold,
        baseline_source=found.bound.source, passed=not found.quarantined, reason=found.why,
        pairwise_agreement=found.pairwise,
        items=[
            {"item_id": one.item, "pairwise_agreement": one.pairwise, "disagreement": one.part}
            for one in found.items if one.part > 0
        ][:SHOWN_ITEMS],
        annotators=[
            {"annotator": one.annotator, "n_ratings": one.ratings, "alpha_without": one.alpha}
            for one in found.annotators
        ],
        codebook=[
            {"ratings": [float(one) for one in entry.ratings], "n_items": entry.items, "disagreement": entry.part}
            for entry in found.codebook
        ][:SHOWN_ITEMS],
    )  # fmt: skip
