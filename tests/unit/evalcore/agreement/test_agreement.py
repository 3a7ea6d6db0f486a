"""A category clears its threshold or is quarantined, and the report says what lowers its agreement (PF-9 FR-14)."""

from __future__ import annotations

import pytest

from evalcore.agreement.check import Bound, Rated, agreement
from schemas.checks.agreement import AgreementSource, Level


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
