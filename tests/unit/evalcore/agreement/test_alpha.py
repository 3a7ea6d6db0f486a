"""Alpha is Krippendorff's: his published examples, his definition written out, and no number where there is none. A
category clears its threshold or is quarantined, and the report says what lowers its agreement (PF-9 FR-14)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from evalcore.agreement.alpha import MOST_COMPARED, alpha, alpha_interval, disagreement, pairwise_agreement, ratings
from evalcore.agreement.check import Bound, Rated, agreement
from schemas.checks.agreement import AgreementSource, Level

Table = Sequence[Sequence[float | None]]
_ = None
FOUR_OBSERVERS: Table = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
    [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
]
"""Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", C: one row an observer."""
TWO_OBSERVERS: Table = [[0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]]
FIVE_LABELS: Table = [[1, 1, 2, 2, 4, 3, 3, 3, 5, 4, 4, 1], [2, 1, 2, 2, 2, 3, 3, 3, 5, 4, 4, 4]]


def flat(table: Table) -> tuple[list[int], list[float]]:
    pairs = [(item, score) for row in table for item, score in enumerate(row) if score is not None]
    return [item for item, _ in pairs], [score for _, score in pairs]


def of(table: Table, level: Level) -> float | None:
    return alpha(ratings(*flat(table))[0], level)


@pytest.mark.parametrize(
    ("table", "level", "published"),
    [
        (TWO_OBSERVERS, Level.NOMINAL, 0.095),
        (FIVE_LABELS, Level.NOMINAL, 0.692),
        (FOUR_OBSERVERS, Level.NOMINAL, 0.743),
        (FOUR_OBSERVERS, Level.ORDINAL, 0.815),
        (FOUR_OBSERVERS, Level.INTERVAL, 0.849),
        (FOUR_OBSERVERS, Level.RATIO, 0.797),
    ],
)
def test_pf9_fr14_it_gives_the_published_values(table: Table, level: Level, published: float) -> None:
    found = of(table, level)
    assert found is not None
    assert round(found, 3) == published
    assert found == pytest.approx(defined(table, level), abs=1e-9)


def defined(table: Table, level: Level) -> float:
    """Alpha by the definition, pair by pair: one minus observed over expected disagreement."""
    units = [[score for score in column if score is not None] for column in zip(*table, strict=True)]
    units = [unit for unit in units if len(unit) > 1]
    every = [score for unit in units for score in unit]

    def apart(one: float, other: float) -> float:
        match level:
            case Level.NOMINAL:
                return float(one != other)
            case Level.ORDINAL:
                low, high = sorted((one, other))
                between = sum(low <= score <= high for score in every)
                return (between - (every.count(low) + every.count(high)) / 2) ** 2 if low != high else 0.0
            case Level.INTERVAL:
                return (one - other) ** 2
            case Level.RATIO:
                return ((one - other) / (one + other)) ** 2 if one != other else 0.0

    observed = sum(sum(apart(*pair) for pair in itertools.permutations(unit, 2)) / (len(unit) - 1) for unit in units)
    expected = sum(apart(*pair) for pair in itertools.permutations(every, 2)) / (len(every) - 1)
    return 1 - observed / expected


@pytest.mark.parametrize("level", Level)
@pytest.mark.parametrize("seed", range(5))
def test_it_is_its_definition_on_any_ratings(level: Level, seed: int) -> None:
    draw = np.random.default_rng(seed)
    whole = draw.integers(0, 7, (4, 25)) if seed % 2 else draw.random((4, 25)) * 9
    table: Table = [[float(x) if draw.random() < 0.7 else None for x in row] for row in whole]
    assert of(table, level) == pytest.approx(defined(table, level), abs=1e-9)


@pytest.mark.parametrize("level", Level)
def test_it_is_one_where_all_agree_and_not_defined_where_nothing_varies_or_is_rated_twice(level: Level) -> None:
    assert of([[1, 2, 3], [1, 2, 3]], level) == pytest.approx(1.0)
    assert of([[4, 4, 4], [4, 4, 4]], level) is None
    assert of([[1, 2, _], [_, _, 3]], level) is None
    assert of([[1, 1, 5], [1, 1, _]], level) is None, "what is rated once is compared with nothing"


def test_an_interval_scale_may_stand_anywhere_and_be_of_any_size() -> None:
    moved: Table = [[None if x is None else x * 1e-7 + 1e3 for x in row] for row in FOUR_OBSERVERS]
    assert of(moved, Level.INTERVAL) == pytest.approx(of(FOUR_OBSERVERS, Level.INTERVAL), abs=1e-6)


def test_items_are_told_by_their_part_of_the_disagreement_and_their_pairs() -> None:
    found, paired = ratings(*flat([[1, 1, 1, 2], [1, 1, 5, 2], [1, 2, 1, None]]))
    parts = disagreement(found, Level.INTERVAL)
    assert list(paired) == [0, 1, 2, 3]
    assert parts == pytest.approx([0, 1 / 17, 16 / 17, 0])
    assert pairwise_agreement(found) == pytest.approx([1, 1 / 3, 1 / 3, 1])


def noisy(level: Level) -> tuple[list[int], list[float]]:
    draw = np.random.default_rng(7)
    truth = draw.normal(size=60)
    whole = np.clip(np.round(truth[:, None] + 0.7 * draw.normal(size=(60, 3)) + 3), 1, 5)
    return [item for item in range(60) for _ in range(3)], [float(score) for score in whole.ravel()]


@pytest.mark.parametrize("level", Level)
def test_its_interval_is_scipys_bca_over_items_and_has_the_same_digits_each_time(level: Level) -> None:
    items, scores = noisy(level)
    by_item = np.array(scores).reshape(-1, 3)

    def resampled(drawn: np.ndarray) -> float:
        rows = by_item[drawn]
        found = alpha(ratings([item for item in range(len(rows)) for _ in range(3)], rows.ravel().tolist())[0], level)
        return math.nan if found is None else found

    reference = stats.bootstrap(
        (np.arange(60),), resampled, n_resamples=2_000, vectorized=False, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    found = alpha_interval(ratings(items, scores)[0], level, 1)
    assert found == pytest.approx((reference.low, reference.high), abs=0.02)
    assert found == alpha_interval(ratings(items, scores)[0], level, 1)


def fine(items: int) -> tuple[list[int], list[float]]:
    """Two ratings an item, each another value: from 0 to about 60, and two of them 0."""
    draw = np.random.default_rng(3)
    scores = np.exp(draw.normal(size=items)[:, None] + draw.normal(size=(items, 2)) * 0.7)
    scores[:2, 0] = 0.0
    return [item for item in range(items) for _ in range(2)], scores.ravel().tolist()


@pytest.mark.parametrize("level", [Level.ORDINAL, Level.RATIO])
def test_a_scale_of_more_than_a_thousand_values_has_an_interval_too(level: Level) -> None:
    items, scores = fine(600)
    found = ratings(items, scores)[0]
    assert len(found.values) > MOST_COMPARED
    low, high = alpha_interval(found, level, 1) or (0.0, 0.0)
    assert low < (alpha(found, level) or 0) < high
    by_item = np.array(scores).reshape(-1, 2)
    by_hand = np.random.default_rng(5)
    drawn = [by_item[by_hand.integers(0, 600, 600)] for _ in range(100)]
    values = [alpha(ratings(items, rows.ravel().tolist())[0], level) or 0.0 for rows in drawn]
    assert (low, high) == pytest.approx(tuple(np.percentile(values, [2.5, 97.5])), abs=0.03)


@pytest.mark.parametrize("times", [1e-150, 1.0, 1e150])
def test_a_fine_ratio_scale_has_the_alpha_of_its_pairs_one_by_one(times: float) -> None:
    items, scores = fine(600)
    one = np.array(scores)
    both = one[:, None] + one[None, :]
    apart = np.divide(one[:, None] - one[None, :], both, out=np.zeros_like(both), where=both > 0) ** 2
    observed = 2 * sum(apart[2 * item, 2 * item + 1] for item in range(600)) / len(one)
    exact = 1 - observed / (apart.sum() / (len(one) * (len(one) - 1)))
    assert alpha(ratings(items, [score * times for score in scores])[0], Level.RATIO) == pytest.approx(exact, abs=1e-9)


def rated(*rows: tuple[float, ...]) -> Rated:
    """One row an item, one column an annotator."""
    annotators = [f"annotator-{place}" for place in range(len(rows[0]))]
    items = [f"item-{place}" for place in range(len(rows))]
    item_at = [item for item, row in enumerate(rows) for _ in row]
    annotator_at = [place for row in rows for place in range(len(row))]
    return Rated(items, annotators, item_at, annotator_at, [score for row in rows for score in row])


ALIKE = [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0), (5.0, 5.0)] * 2


def test_pf9_ac14_a_category_below_its_threshold_is_quarantined_and_one_above_it_is_not() -> None:
    clears = agreement("a", rated(*ALIKE), Bound())
    assert (clears.alpha, clears.quarantined, clears.why) == (pytest.approx(1.0), False, "")
    below = agreement("a", rated(*ALIKE[:6], *((one, 6 - one) for one, _ in ALIKE[6:])), Bound())
    assert below.alpha is not None
    assert 0 < below.alpha < 0.667
    assert below.quarantined
    assert "below the threshold 0.667" in below.why
    assert below.bound.source is AgreementSource.PROVISIONAL_SEED


def test_alpha_of_fewer_than_ten_items_is_a_number_and_the_category_quarantined() -> None:
    nine = agreement("a", rated(*ALIKE[:9]), Bound())
    assert (nine.alpha, nine.quarantined) == (pytest.approx(1.0), True)
    assert "9 items" in nine.why
    assert not agreement("a", rated(*ALIKE[:10]), Bound()).quarantined


def test_alpha_that_is_not_defined_is_quarantined() -> None:
    same = agreement("a", rated(*[(3.0, 3.0)] * 12), Bound())
    assert (same.alpha, same.ci95, same.quarantined) == (None, None, True)
    alone = agreement("a", Rated(["x", "y"], ["one", "two"], [0, 1], [0, 1], [1.0, 2.0]), Bound())
    assert (alone.alpha, alone.quarantined, alone.single) == (None, True, 2)
    assert "no item is rated twice" in alone.why


def test_the_annotator_and_the_ratings_that_lower_it_are_named() -> None:
    rows = [(one, one, 6 - one if place < 4 else one) for place, (one, _) in enumerate(ALIKE)]
    found = agreement("a", rated(*rows), Bound(Level.INTERVAL))
    assert found.alpha is not None
    best = max(found.annotators, key=lambda each: each.alpha or 0)
    assert (best.annotator, best.alpha) == ("annotator-2", pytest.approx(1.0))
    assert found.items[0].item == "item-0"
    assert sum(item.part for item in found.items) == pytest.approx(1.0)
    assert found.codebook[0].ratings == (1.0, 5.0)
    assert sum(entry.part for entry in found.codebook) == pytest.approx(1.0)


def test_labels_are_told_as_they_were_written() -> None:
    labelled = Rated(["a", "b"], ["x", "y"], [0, 0, 1, 1], [0, 1, 0, 1], [0.0, 1.0, 1.0, 1.0], ["bad", "good"])
    found = agreement("a", labelled, Bound(Level.NOMINAL))
    assert found.codebook[0].ratings == ("bad", "good")
    assert found.codebook[0].items == 1
