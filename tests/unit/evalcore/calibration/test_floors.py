"""Floors and thresholds from single scores (PF-9 §5.3), and what they do at a gate. The draw of a calibration round: by
category, with a stratum of turns that users and judges see otherwise."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from evalcore.calibration.draw import TooFewTurns, Turn, disagree, draw
from evalcore.calibration.floors import Derived, derived, deviation, often_breached, percentile
from evalcore.drift.scale import Scale
from schemas.judges import BaselineSource

FIVE, FRACTION, TRUTH = Scale(1, 5, True), Scale(0, 1, False), Scale(0, 1, True)
JADE, PRODUCTION, SEED = (
    BaselineSource.JADE_CALIBRATION, BaselineSource.PRODUCTION_DISTRIBUTION, BaselineSource.PROVISIONAL_SEED
)  # fmt: skip


def of(source: BaselineSource, scores: list[float], scale: Scale, at_gate: int = 100) -> Derived:
    found = np.array(scores, dtype=float)
    return derived(source, found, np.ones(found.size), scale, at_gate)


def test_a_percentile_is_the_lowest_score_with_that_share_of_the_weight_at_or_below_it() -> None:
    scores = np.arange(1.0, 101)
    assert percentile(scores, np.ones(100)) == 5
    assert percentile(scores[:99], np.ones(99)) == 5
    assert percentile(np.array([3.0, 1.0, 2.0]), np.ones(3)) == 1
    assert percentile(np.array([1.0, 2.0, 3.0]), np.array([0.04, 0.01, 0.95])) == 2, "by the weight, not by the count"


def test_the_deviation_is_by_n_less_one_and_weights_that_are_all_alike_change_nothing() -> None:
    scores = np.array([1.0, 2, 4, 4, 5])
    assert deviation(scores, np.ones(5)) == pytest.approx(np.std(scores, ddof=1))
    assert deviation(scores, np.full(5, 7.0)) == pytest.approx(np.std(scores, ddof=1))
    assert deviation(scores[:1], np.ones(1)) is None


def test_each_source_has_its_rule() -> None:
    scores = [0.5] * 5 + [0.8] * 50 + [0.9] * 45
    sigma, mean = float(np.std(scores, ddof=1)), float(np.mean(scores))
    assert of(JADE, scores, FRACTION).limit == 0.5
    assert of(PRODUCTION, scores, FRACTION).limit == pytest.approx(0.5 - 2 * sigma)
    assert of(SEED, scores, FRACTION).limit == pytest.approx(mean - 2 * sigma)


def test_a_floor_in_the_lowest_tenth_of_the_scale_is_told_and_not_proposed() -> None:
    """The 5th percentile less two deviations often is below the scale: nothing could breach it."""
    spread = of(PRODUCTION, [1, 2, 3, 4, 5] * 40, FIVE)
    assert spread.limit is not None
    assert spread.limit < 1.4
    assert (spread.proposed, "lowest tenth" in spread.reason) == (False, True)
    assert of(JADE, [0.6] * 200 + [1.0] * 10, FRACTION).proposed
    assert of(SEED, [4, 4, 5, 4, 5] * 4, FIVE).proposed


def test_beside_a_limit_stands_how_often_unchanged_traffic_breaches_it_and_the_fall_that_it_sees() -> None:
    """As simulated: means of 40 items drawn from the very scores, and the same with a fall of that size."""
    draw = np.random.default_rng(3)
    scores = draw.normal(0.7, 0.1, 2_000)
    limit_of = derived(SEED, scores, np.ones(2_000), FRACTION, 40)
    assert limit_of.limit is not None
    assert limit_of.breach == pytest.approx(0, abs=1e-6)
    assert limit_of.detectable is not None
    means = draw.choice(scores, (4_000, 40)).mean(axis=1) - limit_of.detectable
    assert (means < limit_of.limit).mean() == pytest.approx(0.8, abs=0.03)


def test_of_true_and_false_the_pass_rate_is_held_against_the_limit() -> None:
    found = of(JADE, [1.0] * 196 + [0.0] * 4, TRUTH, at_gate=50)
    assert (found.limit, found.proposed) == (1.0, True), "fewer than 5 of 100 are false: the 5th percentile is true"
    assert found.breach == pytest.approx(1 - 0.98**50)
    assert "unchanged traffic breaches 1 in 64% of gates" in often_breached(found.limit, found.breach)
    seldom = of(JADE, [1.0] * 199 + [0.0], TRUTH, at_gate=50)
    assert often_breached(seldom.limit, seldom.breach) == "", "one gate in five"
    assert of(JADE, [1.0] * 180 + [0.0] * 20, TRUTH).proposed is False


def test_without_scores_nothing_is_derived() -> None:
    assert of(JADE, [], FIVE).proposed is False
    assert of(SEED, [4], FIVE).limit is None


def turns(**of: int) -> list[Turn]:
    """So many turns of each category; one in ten is disagreed about."""
    return [Turn(f"{name}{n}", name, n % 10 == 0) for name, many in of.items() for n in range(many)]


def test_pf9_5_3_at_least_200_turns_are_drawn_by_category() -> None:
    drawn = draw(turns(much=3_000, some=900, few=15), ["much", "some", "few"], 200, "seed")
    assert Counter(one.turn.category for one in drawn) == {"much": 154, "some": 46, "few": 15}
    assert len({one.turn.item for one in drawn}) == len(drawn) >= 200


def test_pf9_5_3_weights_bring_each_category_back_to_its_turns() -> None:
    drawn = draw(turns(much=3_000, some=900), ["much", "some"], 200, "seed")
    back = Counter[tuple[str, bool]]()
    for one in drawn:
        back[one.turn.category, one.turn.disagreeing] += round(one.weight * 1_000)
    wanted = {("much", True): 300, ("much", False): 2_700, ("some", True): 90, ("some", False): 810}
    assert {key: round(weight / 1_000) for key, weight in back.items()} == wanted


def test_turns_that_users_and_judges_see_otherwise_are_a_quarter() -> None:
    drawn = draw(turns(much=3_000), ["much"], 200, "seed")
    assert sum(one.turn.disagreeing for one in drawn) == 50
    all_of_them = draw([Turn(f"t{n}", "c", True) for n in range(200)], ["c"], 200, "seed")
    assert {one.weight for one in all_of_them} == {1.0}
    rare = draw([Turn(f"t{n}", "c", n == 0) for n in range(900)], ["c"], 200, "seed")
    assert [one.weight for one in rare if one.turn.disagreeing] == [1.0]


def test_the_draw_is_the_same_in_whatever_order_turns_come_and_another_with_another_seed() -> None:
    of = turns(much=3_000, some=900)
    shuffled = random.Random(3).sample(of, len(of))
    assert draw(of, ["much", "some"], 200, "a") == draw(shuffled, ["much", "some"], 200, "a")
    assert draw(of, ["much", "some"], 200, "a") != draw(of, ["much", "some"], 200, "b")


def test_too_few_turns_are_told() -> None:
    with pytest.raises(TooFewTurns, match="few has 9, none has 0 turns; 10 of each"):
        draw(turns(much=300, few=9), ["much", "few", "none"], 200, "seed")
    with pytest.raises(TooFewTurns, match="199 turns"):
        draw(turns(much=199), ["much"], 200, "seed")


def test_a_user_and_judges_that_say_the_opposite_disagree() -> None:
    assert disagree(1.0, [0.0, 0.25])
    assert disagree(-1.0, [1.0, 0.5])
    assert not disagree(1.0, [0.5])
    assert not disagree(None, [0.0])
    assert not disagree(-1.0, [])
