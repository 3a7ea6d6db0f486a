"""Who scores against people is found, who does not is not called, and who can't be told is neither (PF-9 FR-10)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from evalcore.inversion.check import Composed, Pairs, check, check_composites, check_slices, standing
from evalcore.stats.correlation import correlation

SEEDS = 200
ITEMS = 301


def scores(seed: int, correlations: list[float]) -> Iterator[Pairs]:
    """Judges and people on a scale from 1 to 5, correlated by so much before they are cut to it."""
    draw = np.random.default_rng(seed)
    for rho in correlations:
        one, noise = draw.normal(size=(2, ITEMS))
        other = rho * one + np.sqrt(1 - rho**2) * noise
        judge, human = (np.clip(np.round(series * 1.2 + 3), 1, 5) for series in (one, other))
        yield Pairs([str(item) for item in range(ITEMS)], judge, human)


def inverted(seed: int, correlations: list[float]) -> list[bool | None]:
    return [one.inverted for one in check({str(at): pairs for at, pairs in enumerate(scores(seed, correlations))})]


def test_pf9_ac6_ten_inverted_judges_are_found_and_two_sound_ones_are_not_called() -> None:
    """Of 301 items, as in JADE's first round, in each of 200 seeds."""
    for seed in range(SEEDS):
        assert inverted(seed, [-0.4] * 5 + [-0.5] * 5 + [0.3, 0.4]) == [True] * 10 + [False] * 2, seed


def test_uncorrelated_judges_are_called_in_at_most_3_percent() -> None:
    called = [one for seed in range(SEEDS) for one in inverted(seed, [0.0] * 20)]
    assert sum(one is True for one in called) / len(called) <= 0.03
    assert sum(one is None for one in called) / len(called) <= 0.2, "Spearman's may be of the other sign near zero"


def of(judge: list[float], human: list[float]) -> bool | None:
    return standing("a", correlation(np.array(judge), np.array(human))).inverted


def test_few_pairs_and_series_that_say_nothing_are_undecidable_and_not_fine() -> None:
    falling = [float(-n) for n in range(10)]
    rising = [float(n) for n in range(10)]
    assert of(falling, rising) is True
    assert of(falling[:9], rising[:9]) is None
    assert of([1.0] * 10, rising) is None
    assert of(rising, [1.0] * 10) is None
    nearly = standing("a", correlation(np.array([0.0] * 4 + [1.0] * 196), np.array([0.0] * 8 + [1.0] * 192)))
    assert (nearly.inverted, nearly.detectable) == (None, None)
    assert "no pairing" in nearly.reason


def test_weights_that_are_all_alike_are_none_and_others_count() -> None:
    one = next(scores(1, [0.2]))
    alike = Pairs(one.items, one.judge, one.human, weights=np.full(ITEMS, 2.5))
    assert check({"a": alike}) == check({"a": one})
    rare = Pairs(one.items, one.judge, one.human, weights=np.where(np.arange(ITEMS) < 30, 10.0, 1.0))
    (weighted,) = check({"a": rare})
    assert weighted.found.n < ITEMS / 2, "Kish's number of pairs"
    assert weighted.found.spearman == check({"a": one})[0].found.spearman, "of the pairs as they are"


def test_inversion_is_declared_when_the_whole_interval_lies_below_zero() -> None:
    """PF-9 AC-10."""
    for n, pairs in enumerate(scores(3, [-0.05, -0.1, -0.15, -0.2])):
        found = correlation(pairs.judge, pairs.human)
        assert found.ci95 is not None
        assert standing(str(n), found).inverted is (found.ci95[1] < 0)


def test_a_composite_is_its_members_scores_made_one_on_the_items_that_all_have() -> None:
    sound, against = list(scores(1, [0.5, -0.9]))
    part = Pairs(against.items[:50], against.judge[:50], against.human[:50])
    judges = {"sound": sound, "against": part}
    (least,) = check_composites(judges, {"least": Composed({"sound": 1.0, "against": 1.0}, least=True)})
    assert least.found.n == 50
    both = np.minimum(sound.judge[:50], part.judge), np.minimum(sound.human[:50], part.human)
    assert least.found.pearson == pytest.approx(np.corrcoef(*both)[0, 1])
    (weighted,) = check_composites(judges, {"mean": Composed({"sound": 3.0, "against": 1.0})})
    mean = (3 * sound.judge[:50] + part.judge) / 4, (3 * sound.human[:50] + part.human) / 4
    assert weighted.found.pearson == pytest.approx(np.corrcoef(*mean)[0, 1])
    assert check_composites(judges, {"lacks one": Composed({"sound": 1.0, "other": 1.0})}) == []


def test_slices_are_adjusted_over_all_of_them() -> None:
    """Forty slices of uncorrelated scores: unadjusted, one is called in two of three checks."""
    called = 0
    for seed in range(60):
        places = np.arange(ITEMS) % 20
        sliced = {"category": (["", *map(str, range(20))], places + 1)}
        pairs = {
            str(n): Pairs(one.items, one.judge, one.human, sliced) for n, one in enumerate(scores(seed, [0.0] * 2))
        }
        found = check_slices(pairs)
        assert len(found) == 40
        called += any(one.against for one in found)
    assert called <= 6
    strong = Pairs(pairs["0"].items, pairs["0"].judge, -pairs["0"].judge, sliced)
    assert all(one.against for one in check_slices({"a": strong}))
